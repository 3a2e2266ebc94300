"""The builder on a project of its own: what it writes, and every reason for which it refuses."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from autograder.authoring.assemble import assemble
from autograder.authoring.build import build, generated
from autograder.course import Course
from autograder.errors import CourseError, UsageError

LAB = "lab01_halves"


def source_of(course: Course) -> Path:
    return course.solutions / f"{LAB}.py"


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {path.name}"
    path.write_text(text.replace(old, new))


def built(course: Course, folder: str) -> dict[str, nbformat.NotebookNode]:
    build(course)
    notebook = nbformat.read(course.project / folder / LAB / f"{LAB}.ipynb", 4)
    return {cell.id: cell for cell in notebook.cells}


def test_build_writes_both_forms_and_then_nothing(small_course):
    assert [(change.path.parts[-3], change.kind) for change in build(small_course)] == [
        ("labs", "new"),
        ("solutions", "new"),
    ]
    assert build(small_course) == []


def test_build_gives_the_same_bytes_in_another_process(small_course):
    texts = {str(path): text for path, text in generated(small_course, LAB).items()}
    program = (
        "import sys, pathlib; from autograder.course import Course; from autograder.authoring.build import build;"
        "build(Course(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))"
    )
    subprocess.run([sys.executable, "-c", program, small_course.root, small_course.project], check=True)
    assert {path: Path(path).read_text() for path in texts} == texts


def test_check_reports_a_difference_and_writes_nothing(small_course):
    build(small_course)
    path = small_course.labs / LAB / f"{LAB}.ipynb"
    path.write_text(path.read_text() + " ")
    assert [(change.path, change.kind) for change in build(small_course, check=True)] == [(path, "changed")]
    assert path.read_text().endswith(" ")
    assert build(small_course) and not build(small_course, check=True)


def test_a_notebook_without_source_is_stale(small_course):
    build(small_course)
    old = small_course.labs / "lab09_gone" / "lab09_gone.ipynb"
    old.parent.mkdir()
    old.write_text("{}")
    assert [(change.path, change.kind) for change in build(small_course, check=True)] == [(old, "stale")]
    build(small_course)
    assert not old.exists()


def test_an_unknown_lab_is_wrong_usage(small_course):
    with pytest.raises(UsageError, match=f"expected one of {LAB}, got 'lab09_gone'"):
        build(small_course, ["lab09_gone"])


def test_solution_holds_the_reference_and_its_private_parts(small_course):
    cell = built(small_course, "solutions")["halve"]
    assert cell.source.startswith("def halve(x: float) -> float:\n")
    body = cell.source.split("### BEGIN SOLUTION\n")[1].split("### END SOLUTION")[0]
    assert body.startswith("    _refuse_infinite(x)\n    # exact, as long")
    assert "# What halving multiplies by.\n_HALF = 0.5\n" in body
    assert "def _refuse_infinite(x: float) -> None:" in body


def test_solution_defines_what_the_reference_defines(small_course):
    reference = ast.parse((small_course.solutions / "fp4kv/halves.py").read_text())
    solved = ast.parse(built(small_course, "solutions")["halve"].source)
    wanted = {ast.dump(node) for node in reference.body if "halve_all" not in ast.dump(node)}
    assert {ast.dump(node) for node in solved.body} == {
        node for node in wanted if "Import" not in node[:6] and "Expr" not in node[:4]
    }


def test_stub_keeps_signature_docstring_and_length_only(small_course):
    lines = built(small_course, "labs")["halve"].source.splitlines()
    assert lines[0] == "def halve(x: float) -> float:"
    assert lines[-2:] == [
        "    # Our answer has 7 lines.",
        '    raise NotImplementedError("halve: replace this line by your answer")',
    ]
    assert ast.get_docstring(ast.parse("\n".join(lines)).body[0]).startswith("Return half of a finite number.")


def test_release_holds_no_answer_and_no_mark_scheme(small_course):
    text = "\n".join(cell.source for cell in built(small_course, "labs").values())
    for secret in (
        "_HALF",
        "_refuse_infinite",
        "[8, 4, 2]",
        "power of two",
        "MARK SCHEME",
        "SOLUTION",
        "np.array([halve",
    ):
        assert secret not in text, secret


def test_import_cell_merges_the_source_and_the_references(small_course):
    cell = built(small_course, "labs")["imports"]
    assert cell.source == (
        "import numpy as np\nfrom jaxtyping import Float\nfrom labkit.expect import expect_raises, expect_values\n\n"
        'greeting = "hello"'
    )


def test_import_cell_is_added_where_the_source_has_none(small_course):
    source = source_of(small_course)
    edit(
        source, 'from labkit.expect import expect_raises, expect_values\n\ngreeting = "hello"\n', 'greeting = "hello"\n'
    )
    text = source.read_text()
    text = text.replace("expect_values(", "print(").replace("expect_raises(ValueError, ", "print(")
    source.write_text(re.sub(r", given=.*\)", ")", text))
    cells = built(small_course, "labs")
    assert list(cells)[1:3] == ["imports", "halves-run-1"]
    assert cells["imports"].source == "import numpy as np\nfrom jaxtyping import Float"


def test_ids_come_from_grade_ids_and_sections(small_course):
    assert list(built(small_course, "labs")) == [
        "halves-text-1", "imports", "halve-text-1", "halve", "halve-run-1", "halve-values", "halve-refuses",
        "halve-all-text-1", "halve_all", "halve_all-values", "halvings-text-1", "halvings", "halvings-count",
        "explain-why", "explain-why-answer",
    ]  # fmt: skip


def test_metadata_is_nbgraders(small_course):
    cells = built(small_course, "labs")
    check = cells["halve-values"].metadata
    assert (check.deletable, check.editable) == (False, False)
    wanted = {"grade": True, "locked": True, "solution": False, "task": False, "points": 2, "schema_version": 3}
    assert {key: check.nbgrader[key] for key in wanted} == wanted
    assert cells["explain-why"].metadata.nbgrader.task and cells["explain-why"].metadata.nbgrader.points == 2
    assert cells["explain-why-answer"].metadata == {}


def test_notebook_opens_without_a_kernel_dialog(small_course):
    build(small_course)
    notebook = nbformat.read(small_course.labs / LAB / f"{LAB}.ipynb", 4)
    assert notebook.metadata.kernelspec == {
        "display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3",
    }  # fmt: skip
    assert notebook.metadata.language_info == {"name": "python"}
    assert notebook.metadata.lab.checks == ["halve-values", "halve-refuses", "halve_all-values", "halvings-count"]


@pytest.mark.slow
def test_release_is_what_nbgraders_own_command_makes(small_course, project, monkeypatch):
    build(small_course)
    source = small_course.source / LAB / f"{LAB}.ipynb"
    source.parent.mkdir(parents=True)
    source.write_bytes((small_course.solutions / LAB / f"{LAB}.ipynb").read_bytes())
    command = [
        Path(sys.executable).with_name("nbgrader"),
        "generate_assignment",
        LAB,
        f"--CourseDirectory.root={small_course.root}",
    ]
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    done = subprocess.run(command, cwd=small_course.project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    released = small_course.release / LAB / f"{LAB}.ipynb"
    assert released.read_bytes() == (small_course.labs / LAB / f"{LAB}.ipynb").read_bytes()


REFUSED = {
    "repeated id": (
        '# %% check="halve-refuses"', '# %% check="halve-values"',
        "each id once, got 'halve-values' again",
    ),
    "unknown attribute": ('# %% check="halve-refuses"', '# %% check="halve-refuses" points=3', "header, got 'points'"),
    "two roles": (
        '# %% check="halve-refuses"', '# %% check="halve-refuses" answer="x"',
        "at most one of answer, check, task",
    ),
    "text as check": (
        '# %% check="halve-refuses"', '# %% [markdown] check="halve-refuses"',
        "expected a code cell, got a markdown",
    ),
    "bad check id": (
        '# %% check="halve-refuses"', '# %% check="halve.refuses"',
        "form <task>-<property>, got 'halve.refuses'",
    ),
    "check not registered": ('# %% check="halve-refuses"', '# %% check="halve-other"', "registered, got 'halve-other'"),
    "answer without check": (
        '# %% check="halvings-count"', "# %%",
        "a check cell for each id registered, got none for halvings-count",
    ),
    "check before its answer": (
        '# %% answer="halvings"', "# %%",
        "expected an answer 'halvings' before its check, got none",
    ),
    "check without docstring": ('"""Half of each number."""\n', "", "expected a docstring that says what is checked"),
    "task without points": (
        'task="explain-why"', 'task="explain-how"',
        "for each id in the header's points, got none for explain-why",
    ),
    "mark scheme left open": (
        "# ### END MARK SCHEME\n", "",
        "one mark scheme between BEGIN and END, got BEGIN MARK SCHEME",
    ),
    "marker in an answer": ("    return len", "    ### BEGIN SOLUTION\n    return len", "no marker of nbgrader"),
    "generated test": (
        "print(greeting", "### AUTOTEST x\nprint(greeting",
        "no generated test of nbgrader's, got AUTOTEST",
    ),
    "wrong points in a heading": (
        "`halve` (3 points)", "`halve` (4 points)",
        "'halve' to show 3 points, the sum of its section, got 4",
    ),
    "wrong points in the title": ("# Halves (8 points)", "# Halves (7 points)", "'Halves' to show 8 points"),
    "unknown name in a check": (
        "expect_values(halvings()", "expect_valuse(halvings()",
        "answered earlier, got 'expect_valuse'",
    ),
    "private part in a check": (
        '"""Infinity is refused."""', '"""Infinity is refused."""\n_refuse_infinite(1)',
        "got '_refuse_infinite'",
    ),
    "task answered later": ("print(greeting, halve(3.0))", "print(halve_all)", "got 'halve_all'"),
    "package not allowed": (
        'greeting = "hello"', "import torch",
        "imports of jaxtyping, numpy, labkit or the standard library, got `import torch`",
    ),
    "package in a function": ("    return len", "    import torch\n    return len", "got `import torch`"),
    "reference in a free cell": ("print(greeting, halve(3.0))", "import fp4kv", "got `import fp4kv`"),
    "no such part of labkit": (
        "from labkit.expect import expect_raises,", "from labkit.expect import expect_rises as expect_raises,",
        "names that labkit has",
    ),
    "given part of this lab": ('greeting = "hello"', "from labkit.given import lab01", "given parts of earlier labs"),
    "decorator on an answer": (
        "def halvings", "@print\ndef halvings",
        "halvings: expected no decorator on a task, got @print",
    ),
    "answer that is another": (
        "from fp4kv import halve_all", "from fp4kv import halve",
        "`from fp4kv import halve_all` and nothing else",
    ),
    "answer with more in it": ("def halvings", "import math\ndef halvings", "definitions only in an answer"),
    "not Python": (
        "print(greeting, halve(3.0))", "print(greeting,",
        "expected Python, got '(' was never closed in its line 1",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message"), REFUSED.values(), ids=REFUSED)
def test_builder_refuses(small_course, old, new, message):
    edit(source_of(small_course), old, new)
    with pytest.raises(CourseError, match=re.escape(message)) as caught:
        assemble(small_course, LAB)
    assert str(caught.value).startswith(f"{LAB}.py:") or "halvings" in str(caught.value)


REFERENCE_REFUSED = {
    "decorator": ("def halve(x", "@print\ndef halve(x", "halve: expected no decorator on a task, got @print"),
    "no docstring": ('    """Return half of each number."""\n', "", "halve_all: expected a docstring"),
    "no body": (
        "    return np.array([halve(item) for item in x])\n", "",
        "halve_all: expected a body after the docstring",
    ),
    "package not allowed": ("return np.array(", "return torch.tensor(", "standard library, got `import torch`"),
    "public part of the module": (
        "_refuse_infinite(x)\n    #", "refuse_all(x)\n    #",
        "'refuse_all' in halve (halves.py)",
    ),
    "unknown name": ("return x * _HALF", "return x * HALF", "'HALF' in halve (halves.py)"),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message"), REFERENCE_REFUSED.values(), ids=REFERENCE_REFUSED)
def test_builder_refuses_a_reference(small_course, old, new, message):
    module = small_course.solutions / "fp4kv/halves.py"
    edit(module, old, new)
    module.write_text(module.read_text().replace("import numpy as np\n", "import numpy as np\nimport torch\n"))
    module.write_text(module.read_text() + "\n\ndef refuse_all(x):\n    pass\n")
    with pytest.raises(CourseError, match=re.escape(message)):
        assemble(small_course, LAB)


def test_a_reference_may_call_a_task_answered_earlier_only(small_course):
    parts = source_of(small_course).read_text().split("# %% [markdown]\n# ## ")
    source_of(small_course).write_text("# %% [markdown]\n# ## ".join([parts[0], parts[2], parts[1], *parts[3:]]))
    checks = small_course.solutions / "checks" / f"{LAB}.py"
    edit(checks, ', uses=("halve",)', "")
    with pytest.raises(CourseError, match=re.escape("'halve' in halve_all (halves.py)")):
        assemble(small_course, LAB)
