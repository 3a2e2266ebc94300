"""The student's own check on small notebooks: what it says, and with which status it ends."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import psutil
import pytest
from labkit import validate
from nbformat import v4
from nbgrader.utils import compute_checksum

TASKS = {"halve": "return x / 2", "thirds": "return x / 3"}
CHECKS = {
    "halve-values": '"""Half."""\nexpect_values(halve(3.0), 1.5, given=3.0)',
    "halve-zero": '"""Half of nothing."""\nexpect_values(halve(0.0), 0.0, given=0.0)',
    "thirds-values": '"""A third."""\nexpect_values(thirds(6.0), 2.0, given=6.0)',
}
STUB = 'raise NotImplementedError("{0}: replace this line by your answer")'


def graded(source: str, grade_id: str, grade: bool) -> nbformat.NotebookNode:
    """Return an answer or a check cell as nbgrader releases it, with nbgrader's own checksum."""
    fields = {"grade_id": grade_id, "grade": grade, "solution": not grade, "locked": grade, "task": False}
    cell = v4.new_code_cell(
        source, id=grade_id, metadata={"nbgrader": {**fields, "schema_version": 3, "cell_type": "code"}}
    )
    if grade:
        cell.metadata.nbgrader.points = 1
    cell.metadata.nbgrader.checksum = compute_checksum(cell)
    return cell


def released() -> nbformat.NotebookNode:
    cells = [v4.new_code_cell("from labkit.expect import expect_values", id="imports")]
    for task in TASKS:
        cells.append(graded(f"def {task}(x):\n    {STUB.format(task)}", task, grade=False))
        cells += [graded(text, id, grade=True) for id, text in CHECKS.items() if id.startswith(task)]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return v4.new_notebook(cells=cells, metadata={"kernelspec": kernel, "lab": {"name": "lab", "checks": list(CHECKS)}})


def solved(**bodies: str) -> nbformat.NotebookNode:
    notebook = released()
    for task, body in {**TASKS, **bodies}.items():
        cell_of(notebook, task).source = f"def {task}(x):\n    {body}"
    return notebook


def cell_of(notebook: nbformat.NotebookNode, id: str) -> nbformat.NotebookNode:
    return next(cell for cell in notebook.cells if cell.id == id)


def run(notebook: nbformat.NotebookNode, folder: Path, *options: str) -> int:
    path = folder / "lab.ipynb"
    nbformat.write(notebook, path)
    return validate.main(["validate", str(path), *options])


def table(printed: str) -> dict[str, str]:
    """Return what the table says of each task."""
    rows = [line.split(maxsplit=4) for line in printed.split("\n\n")[0].splitlines()[1:]]
    return {row[0]: f"{row[1]}/{row[3]} {row[4]}" for row in rows}


def test_a_solved_notebook_passes(tmp_path, capsys):
    assert run(solved(), tmp_path) == 0
    printed = capsys.readouterr().out
    assert table(printed) == {"halve": "2/2 passed", "thirds": "1/1 passed"}
    assert "3 of 3 visible checks pass." in printed


def test_an_untouched_notebook_is_not_attempted(tmp_path, capsys):
    assert run(released(), tmp_path) == 1
    printed = capsys.readouterr().out
    assert table(printed) == {"halve": "0/2 not attempted", "thirds": "0/1 not attempted"}
    assert "Traceback" not in printed and "NotImplementedError" not in printed


def test_a_failed_check_shows_expected_and_got(tmp_path, capsys):
    assert run(solved(halve="return x"), tmp_path) == 1
    printed = capsys.readouterr().out
    assert table(printed) == {"halve": "1/2 failed", "thirds": "1/1 passed"}
    assert "halve-values: failed\n  given    3.0\n  expected 1.5\n  got      3.0\n" in printed


def test_another_error_names_the_line_of_the_answer(tmp_path, capsys):
    run(solved(halve="y = x\n    return y / nothing"), tmp_path)
    assert "NameError: name 'nothing' is not defined (line 3 of the cell of halve)" in capsys.readouterr().out


def test_an_answer_that_needs_an_unwritten_one_says_so(tmp_path, capsys):
    notebook = solved(thirds="return halve(x)")
    cell_of(notebook, "halve").source = cell_of(released(), "halve").source
    run(notebook, tmp_path)
    printed = capsys.readouterr().out
    assert table(printed) == {"halve": "0/2 not attempted", "thirds": "0/1 failed"}
    assert "thirds-values: failed\n  It needs halve, which is not written yet." in printed


def test_a_kernel_that_needs_an_unwritten_one_says_so(tmp_path, capsys):
    """A compiler's words on a skeleton name the task in the middle of a long text."""
    complaint = 'kernel.cu(9): error: #error "not attempted: write the loop of halve"'
    run(solved(thirds=f"raise RuntimeError({complaint!r})"), tmp_path)
    assert "thirds-values: failed\n  It needs halve, which is not written yet." in capsys.readouterr().out


def test_an_answer_cell_that_does_not_run_is_named(tmp_path, capsys):
    run(solved(halve="return ("), tmp_path)
    assert "The answer cell of halve does not run: SyntaxError" in capsys.readouterr().out


def test_a_deleted_check_is_missed(tmp_path, capsys):
    notebook = solved()
    notebook.cells.remove(cell_of(notebook, "halve-zero"))
    assert run(notebook, tmp_path) == 1
    assert "halve-zero: deleted\n  Take this cell again from the released notebook" in capsys.readouterr().out


def test_an_edited_check_does_not_pass(tmp_path, capsys):
    notebook = solved(halve="return 1")
    cell_of(notebook, "halve-values").source = "print('fine')"
    assert run(notebook, tmp_path) == 1
    assert "halve-values: edited" in capsys.readouterr().out


def test_a_check_of_another_type_does_not_pass(tmp_path, capsys):
    notebook = solved()
    place = notebook.cells.index(cell_of(notebook, "halve-values"))
    metadata = notebook.cells[place].metadata
    notebook.cells[place] = v4.new_markdown_cell(CHECKS["halve-values"], metadata=metadata)
    assert run(notebook, tmp_path) == 1
    assert "halve-values: edited" in capsys.readouterr().out


def test_a_copied_check_counts_once(tmp_path, capsys):
    notebook = solved()
    copy = nbformat.from_dict(cell_of(notebook, "halve-values"))
    copy["id"] = "a-copy"
    notebook.cells.append(copy)
    assert run(notebook, tmp_path) == 0
    assert "3 of 3 visible checks pass." in capsys.readouterr().out


def test_a_tag_skips_no_check(tmp_path):
    notebook = solved(halve="return x")
    cell_of(notebook, "halve-values").metadata.tags = ["skip-execution", "raises-exception"]
    assert run(notebook, tmp_path) == 1


def test_a_kernel_does_not_wait_for_the_runner_to_be_compiled(tmp_path, capsys, monkeypatch):
    """Compiling it takes seconds, on a busy machine more than a cell has: it is there before the first cell."""
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "cache"))
    looks = "from labkit import cache\nfrom labkit.cuda import build\nthere = list(cache.folder().glob('runner-*'))"
    notebook = solved(halve="assert build.runner() in there; return x / 2")
    notebook.cells.insert(1, v4.new_code_cell(looks))
    assert run(notebook, tmp_path) == 0, capsys.readouterr().out


def test_an_endless_loop_is_timed_out_and_the_rest_is_checked(tmp_path, capsys):
    assert run(solved(halve="while True: pass"), tmp_path, "--seconds", "2") == 1
    printed = capsys.readouterr().out
    assert table(printed) == {"halve": "0/2 timed out", "thirds": "1/1 passed"}
    assert "halve-values: timed out\n  It did not end within 2 s." in printed


def test_a_killed_kernel_is_a_crash_and_the_rest_is_checked(tmp_path, capsys):
    assert run(solved(halve="import os; os._exit(3)"), tmp_path) == 1
    printed = capsys.readouterr().out
    assert table(printed) == {"halve": "0/2 crashed", "thirds": "1/1 passed"}
    assert "It ended the Python process." in printed


def test_a_free_cell_that_ends_the_kernel_is_left_out_and_said(tmp_path, capsys):
    notebook = solved()
    notebook.cells.insert(1, v4.new_code_cell("import os; os._exit(1)"))
    assert run(notebook, tmp_path) == 0
    assert "Cell 2 of the notebook was left out: it ended the Python process." in capsys.readouterr().out


def test_sys_exit_is_a_failure(tmp_path, capsys):
    assert run(solved(halve="import sys; sys.exit(0)"), tmp_path) == 1
    assert table(capsys.readouterr().out) == {"halve": "0/2 failed", "thirds": "1/1 passed"}


def test_an_answer_without_a_checksum_counts_as_attempted(tmp_path, capsys):
    notebook = solved(halve="return x")
    del cell_of(notebook, "halve").metadata.nbgrader["checksum"]
    assert run(notebook, tmp_path) == 1
    assert table(capsys.readouterr().out)["halve"] == "1/2 failed"


def test_stripped_metadata_leaves_the_cells_that_are_there(tmp_path):
    notebook = solved()
    del notebook.metadata["lab"], notebook.metadata["kernelspec"]
    assert run(notebook, tmp_path) == 0


def test_a_foreign_kernelspec_does_not_matter(tmp_path):
    notebook = solved()
    notebook.metadata.kernelspec = {"name": "julia-1.9", "display_name": "Julia", "language": "julia"}
    assert run(notebook, tmp_path) == 0


def test_the_file_is_left_as_it_was(tmp_path):
    nbformat.write(solved(), tmp_path / "lab.ipynb")
    before = (tmp_path / "lab.ipynb").read_bytes()
    validate.main(["validate", str(tmp_path / "lab.ipynb")])
    assert (tmp_path / "lab.ipynb").read_bytes() == before


def test_a_file_beside_the_notebook_can_be_read(tmp_path):
    (tmp_path / "half.txt").write_text("0.5")
    assert run(solved(halve="return x * float(open('half.txt').read())"), tmp_path) == 0


NOT_A_LAB = {
    "empty": ("", "not JSON"),
    "no JSON": ("hello", "not JSON"),
    "a list": ("[]", "JSON without cells"),
    "broken cells": (json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": 3}), "cannot read"),
    "no checks": (nbformat.writes(v4.new_notebook(cells=[v4.new_code_cell("1")])), "without check cells"),
}


@pytest.mark.parametrize(("text", "message"), NOT_A_LAB.values(), ids=NOT_A_LAB)
def test_what_is_no_lab_ends_with_2(tmp_path, capsys, text, message):
    path = tmp_path / "lab.ipynb"
    path.write_text(text)
    assert validate.main(["validate", str(path)]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [[], ["validate"], ["check", "x"], ["validate", "a", "b"], ["validate", "--seconds", "0", "x"]]
)
def test_wrong_usage_ends_with_64(arguments):
    with pytest.raises(SystemExit) as ended:
        validate.main(arguments)
    assert ended.value.code == 64


def test_a_missing_file_and_a_folder_are_wrong_usage(tmp_path, capsys):
    assert validate.main(["validate", str(tmp_path / "no.ipynb")]) == 64
    assert validate.main(["validate", str(tmp_path)]) == 64
    assert "got no such file" in (printed := capsys.readouterr().err) and "got a folder" in printed


@pytest.mark.parametrize("place", ["submitted", "autograded"])
def test_a_submission_is_refused_with_the_command_to_use(tmp_path, capsys, place):
    folder = tmp_path / place / "ada" / "lab02_formats"
    folder.mkdir(parents=True)
    assert run(solved(halve="open('ran', 'w')"), folder) == 64
    assert f"autograder check {folder / 'lab.ipynb'} --lab lab02_formats" in capsys.readouterr().err
    assert not (folder / "ran").exists()


def test_a_folder_of_ones_own_called_submitted_is_fine(tmp_path):
    folder = tmp_path / "submitted"
    folder.mkdir()
    assert run(solved(), folder) == 0


def test_a_collected_copy_elsewhere_is_refused(tmp_path):
    (tmp_path / "timestamp.txt").write_text("2026-11-30 00:00:00 UTC")
    assert run(solved(), tmp_path) == 64


def test_help_has_an_example(capsys):
    with pytest.raises(SystemExit) as ended:
        validate.main(["validate", "--help"])
    assert ended.value.code == 0
    assert "labkit validate lab02_formats.ipynb" in capsys.readouterr().out


def test_without_the_parts_that_run_notebooks_the_message_names_them(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "nbclient", None)
    monkeypatch.delitem(sys.modules, "labkit.visible", raising=False)
    assert run(solved(), tmp_path) == 3
    assert "expected nbclient, nbformat and ipykernel beside labkit" in capsys.readouterr().err


def test_interrupt_ends_with_130_and_leaves_no_kernel(tmp_path):
    nbformat.write(solved(halve="open('began', 'w').close()\n    while True: pass"), tmp_path / "lab.ipynb")
    command = [sys.executable, "-m", "labkit.validate", "validate", str(tmp_path / "lab.ipynb")]
    process = psutil.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "began").exists():
        assert process.poll() is None
        time.sleep(0.05)
    kernels = process.children(recursive=True)
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=60)
    assert process.returncode == 130, complaint
    assert complaint == "labkit validate: interrupted\n"
    _, alive = psutil.wait_procs(kernels, timeout=10)
    assert kernels and not alive
