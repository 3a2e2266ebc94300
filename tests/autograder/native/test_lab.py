"""A lab with the text of a kernel as its task, from source to verdict, by the command that an instructor uses."""

import json
from pathlib import Path

import nbformat
import pytest

from autograder import cli
from autograder.authoring.assemble import assemble
from autograder.authoring.build import build
from autograder.course import Course

pytestmark = pytest.mark.sandbox

LAB = "lab01_halves"
LIBRARY = '''"""A kernel and its reference."""

TWICE = r"""
extern "C" __global__ void twice(const float* x, float* y, int n) {
    const int first = blockIdx.x * blockDim.x + threadIdx.x;
    // ### BEGIN SOLUTION
    for (int i = first; i < n; i += gridDim.x * blockDim.x) {
        y[i] = 2.0f * x[i];
    }
    // ### END SOLUTION
}
"""


def halve(x):
    """Return half of x."""
    return x / 2
'''
SOURCE = '''# ---
# lab:
#   title: Kernels
#   packages: [numpy, matplotlib, jaxtyping]
#   minutes: 5
#   solved_seconds: 10
#   limits: {call_seconds: 1.5}
# ---

# %% [markdown]
# # Kernels (7 points)

# %% answer="halve"
from fp4kv import halve

# %% answer="twice"
from fp4kv import TWICE

# %% check="twice-shown"
"""Each number is doubled."""
assert "twice" in TWICE

# %% check="twice-hidden"
"""Each number of a ragged array is doubled, in every order."""

# %% check="twice-traffic"
"""Each number is read once and written once."""

# %% check="halve-values"
"""Half of what the kernel doubled."""
'''
CHECKS = '''"""Checks of a kernel."""

import numpy as np
from labkit.expect import expect_values

from autograder.checks import Registry

checks = Registry()
check = checks.check
SECRET_SIZE = 1237


def launch(x, y, n_blocks=3):
    return ("twice", (n_blocks,), (128,), (x, y, np.int32(x.size)))


@check("twice-shown", points=1, catches="does not double", reveal=True)
def doubles(student, cases):
    """Each number is doubled."""
    x = np.arange(40, dtype=np.float32)
    y = np.full_like(x, np.nan)
    for run in cases.native.run(student.text("TWICE"), launch(x, y), orders=2):
        expect_values(run[y], 2 * x, given=x)


@check("twice-hidden", points=2, catches="misses the end", hint="the last block is not full")
def doubles_all(student, cases):
    """Each number of a ragged array is doubled, in every order."""
    x = cases.rng.normal(size=SECRET_SIZE).astype(np.float32)
    y = np.full_like(x, np.nan)
    for run in cases.native.run(student.text("TWICE"), launch(x, y), orders=4):
        expect_values(run[y], 2 * x, given=x)
    (run,) = cases.native.run(student.text("TWICE"), launch(x, y), checked=False)
    expect_values(run[y], 2 * x, given=x)


@check("twice-traffic", points=2, catches="reads twice", reveal=True)
def moves_little(student, cases):
    """Each number is read once and written once."""
    x = np.arange(256, dtype=np.float32)
    y = np.full_like(x, np.nan)
    (run,) = cases.native.run(student.text("TWICE"), launch(x, y))
    expect_values(run[y], 2 * x, given=x)
    expect_values(run.traffic[0].global_bytes, 2 * x.nbytes, given="bytes moved")


@check("halve-values", points=2, catches="does not halve", uses=("twice",))
def halves(student, cases):
    """Half of what the kernel doubled."""
    x = np.arange(40, dtype=np.float32)
    y = np.full_like(x, np.nan)
    (run,) = cases.native.run(student.text("TWICE"), launch(x, y))
    expect_values(student.halve(run[y]), x, given=x)
'''


@pytest.fixture(scope="module")
def course(tmp_path_factory, project) -> Course:
    """A project of one lab with one kernel, built."""
    root = tmp_path_factory.mktemp("kernels")
    files = {
        "solutions/fp4kv/__init__.py": "from fp4kv.library import TWICE, halve\n",
        "solutions/fp4kv/library.py": LIBRARY,
        f"solutions/{LAB}.py": SOURCE,
        f"solutions/checks/{LAB}.py": CHECKS,
        "constraints.txt": (project / "constraints.txt").read_text(),
        "nbgrader_config.py": (project / "nbgrader_config.py").read_text(),
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "labs").mkdir()
    (root / "labs/labkit").symlink_to(project / "labs/labkit")
    made = Course(root / "course", root)
    build(made)
    return made


@pytest.fixture
def checked(course, tmp_path, capsys, monkeypatch):
    """Return the results, by id, of the solved notebook with its kernel changed, and the whole printed text."""
    monkeypatch.chdir(course.project)

    def run(change, *options: str, later: str = "") -> tuple[int, dict[str, dict], str]:
        notebook = nbformat.read(course.labs / LAB / f"{LAB}.ipynb", 4)
        solved = {cell.id: cell.source for cell in assemble(course, LAB).cells}
        for cell in notebook.cells:
            cell.source = solved[cell.id]
            if cell.id == "twice":
                cell.source = change(cell.source)
        after = next(index for index, cell in enumerate(notebook.cells) if cell.id == "twice-shown")
        notebook.cells.insert(after + 1, nbformat.v4.new_code_cell(later))
        path = Path(tmp_path, f"{LAB}.ipynb")
        nbformat.write(notebook, path)
        status = cli.run(["check", str(path), "--lab", LAB, "--json", "--course", str(course.root), *options])
        printed = capsys.readouterr().out
        return status, {result["id"]: result for result in json.loads(printed)["checks"]}, printed

    return run


def statuses(results: dict[str, dict]) -> list[str]:
    return [results[id]["status"] for id in ("twice-shown", "twice-hidden", "twice-traffic", "halve-values")]


def test_the_solved_lab_has_full_marks(checked):
    status, results, _ = checked(lambda source: source)
    assert statuses(results) == ["passed"] * 4, results
    assert status == 0


def test_the_released_kernel_is_not_attempted_and_what_needs_it_is_skipped(course, checked):
    released = nbformat.read(course.labs / LAB / f"{LAB}.ipynb", 4)
    stub = next(cell.source for cell in released.cells if cell.id == "twice")
    status, results, _ = checked(lambda _: stub)
    assert statuses(results) == ["failed", "failed", "failed", "skipped"]
    assert results["twice-shown"]["message"].endswith("not attempted: the loop of twice is still to be written")
    assert "needs twice, which was not attempted" in results["halve-values"]["message"]
    assert status == 1


def test_a_fault_is_quoted_by_a_revealed_check_and_named_by_a_hidden_one(checked):
    _, results, printed = checked(lambda source: source.replace("i < n", "i <= n"))
    assert statuses(results) == ["failed"] * 4
    shown, hidden = results["twice-shown"]["message"], results["twice-hidden"]["message"]
    assert "reads x[40], but x has 40 elements" in shown
    assert "got      an access beyond the end of an array" in hidden
    assert "line 6   y[i] = 2.0f * x[i];" in hidden and "hint     the last block" in hidden
    assert "1237" not in printed, "a hidden size is told"


def test_wrong_values_and_needless_reads_lose_their_own_checks(checked):
    _, results, _ = checked(lambda source: source.replace("2.0f * x[i]", "x[i]; y[i] += x[i]"))
    assert statuses(results) == ["passed", "passed", "failed", "passed"]
    _, results, _ = checked(lambda source: source.replace("2.0f * x[i]", "2.5f * x[i]"))
    assert statuses(results) == ["failed"] * 4


def test_the_compilers_words_are_quoted_by_every_check(checked):
    _, results, _ = checked(lambda source: source.replace("y[i] =", "y[i] = missing +"))
    assert statuses(results) == ["failed"] * 4
    for result in results.values():
        assert "was not declared" in result["message"]


def test_a_kernel_of_another_name_is_told_by_every_check(checked):
    _, results, _ = checked(lambda source: source.replace("void twice", "void double_all"))
    assert statuses(results) == ["failed"] * 4
    for result in results.values():
        assert "which has double_all; got 'twice'" in result["message"]


def test_a_refusal_names_line_and_rule(checked):
    _, results, _ = checked(lambda source: source.replace("2.0f * x[i];", '2.0f * x[i]; asm("nop");'))
    assert statuses(results) == ["failed"] * 4
    assert "refused  asm: assembler is not graded" in results["twice-hidden"]["message"]


@pytest.mark.parametrize("value", ["17", "b'bytes'", "'x' * 10**6", "object()"])
def test_a_constant_that_is_no_text_of_a_kernel_fails(checked, value):
    _, results, _ = checked(lambda _: f"TWICE = {value}")
    assert statuses(results) == ["failed"] * 4
    assert "expected TWICE to be a text of at most" in results["twice-shown"]["message"]


def test_a_text_that_changes_between_checks_is_told_to_a_person(checked):
    """One text for the checks of values and another for those of speed would each be right where it is asked."""
    _, results, printed = checked(lambda source: source, later="TWICE = TWICE.replace('2.0f', '2.5f')")
    assert statuses(results) == ["passed", "failed", "failed", "failed"]
    suspicions = json.loads(printed)["suspicions"]
    assert any("twice-hidden: TWICE is another text than in an earlier check" in text for text in suspicions)


def test_a_kernel_that_never_ends_times_out(checked):
    _, results, _ = checked(lambda source: source.replace("i += gridDim", "i += 0 * gridDim"))
    assert statuses(results) == ["timed_out"] * 4


def test_a_lab_without_walls_runs_kernels_too(checked):
    status, results, _ = checked(lambda source: source, "--sandbox", "none")
    assert (status, statuses(results)) == (0, ["passed"] * 4)
