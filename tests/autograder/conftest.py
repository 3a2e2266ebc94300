"""A project of one small lab, complete enough to build, release, validate and publish."""

import shutil
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from autograder.authoring.assemble import assemble
from autograder.authoring.release import release
from autograder.course import Course

PACKAGE = '''"""A reference library of two tasks."""

from fp4kv.halves import halve, halve_all

__all__ = ["halve", "halve_all"]
'''

LIBRARY = '''"""The tasks of the small lab."""

import numpy as np
from jaxtyping import Float

# What halving multiplies by.
_HALF = 0.5


def halve(x: float) -> float:
    """Return half of a finite number.

    Raises
    ------
    ValueError
        If it is NaN or infinite.
    """
    _refuse_infinite(x)
    # exact, as long as the result is no subnormal
    return x * _HALF


def _refuse_infinite(x: float) -> None:
    """Raise a ValueError unless x is finite."""
    if not np.isfinite(x):
        raise ValueError(f"x: expected a finite number, got {x}")


def halve_all(x: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return half of each number."""
    return np.array([halve(item) for item in x])
'''

SOURCE = '''# ---
# lab:
#   title: Halves
#   packages: [numpy, jaxtyping]
#   minutes: 5
#   solved_seconds: 10
#   points: {explain-why: 2}
# ---

# %% [markdown]
# # Halves (8 points)

# %%
from labkit.expect import expect_raises, expect_values

greeting = "hello"

# %% [markdown]
# ## `halve` (3 points)

# %% answer="halve"
from fp4kv import halve

# %%
print(greeting, halve(3.0))

# %% check="halve-values"
"""Half of a number."""
expect_values(halve(3.0), 1.5, given=3.0)

# %% check="halve-refuses"
"""Infinity is refused."""
expect_raises(ValueError, lambda: halve(float("inf")), given=float("inf"))

# %% [markdown]
# ## `halve_all` (2 points)

# %% answer="halve_all"
from fp4kv import halve_all

# %% check="halve_all-values"
"""Half of each number."""
expect_values(halve_all(np.array([3.0, 5.0])), np.array([1.5, 2.5]), given=[3.0, 5.0])

# %% [markdown]
# ## `halvings` (1 point)

# %% answer="halvings"
def halvings() -> int:
    """Return how often 8 can be halved before it is 1."""
    return len([8, 4, 2])

# %% check="halvings-count"
"""The number of halvings."""
expect_values(halvings(), 3, given="nothing")

# %% [markdown] task="explain-why"
# ## Explain (2 points)
#
# Why is a half exact?
#
# ### BEGIN MARK SCHEME
# - 2: it is a power of two
# ### END MARK SCHEME
'''

CHECKS = '''"""Hidden checks of the small lab."""

import numpy as np
from labkit.expect import expect_close, expect_raises, expect_values

from autograder.checks import Registry

checks = Registry()
check = checks.check

# One rounding in float64, so that an answer may divide or multiply.
_HALF_TOLERANCE = 1.25e-13


@check("halve-values", points=2, catches="does not halve")
def halves(student, cases):
    """Half of a number."""
    for x in [3.25, -1.125, 17.5, 40.625]:
        expect_close(student.halve(x), x / 2, _HALF_TOLERANCE, given=x)


@check("halve-refuses", points=1, catches="halves infinity")
def refuses(student, cases):
    """Infinity is refused."""
    expect_raises(ValueError, lambda: student.halve(-np.inf), given=-np.inf)


@check("halve_all-values", points=2, catches="halves one", uses=("halve",))
def halves_all(student, cases):
    """Half of each number."""
    x = cases.rng.normal(size=13)
    expect_values(student.halve_all(x), x / 2, given=x)


@check("halvings-count", points=1, catches="miscounts", reveal=True)
def counts(student, cases):
    """The number of halvings."""
    expect_values(student.halvings(), 3, given="nothing")
'''

LAB = "lab01_halves"


@pytest.fixture
def small_course(tmp_path: Path, project: Path) -> Course:
    """A course beside a project of one lab, `lab01_halves`: two references, one answer of its own, one task."""
    return write_small_course(tmp_path / "project", project)


@pytest.fixture(scope="session")
def released_template(tmp_path_factory: pytest.TempPathFactory, project: Path) -> Path:
    """The project of `small_course`, released: made once, copied by `released_course`."""
    course = write_small_course(tmp_path_factory.mktemp("released") / "project", project)
    release(course, LAB)
    return course.project


@pytest.fixture
def released_course(tmp_path: Path, released_template: Path) -> Course:
    """The course of `small_course` with its lab released and in the gradebook."""
    root = tmp_path / "project"
    shutil.copytree(released_template, root)
    return Course(root / "course", root)


@pytest.fixture
def solved(released_course: Course) -> NotebookNode:
    """The released notebook with every answer in it, the one to the question too."""
    answers = {cell.id: cell.source for cell in assemble(released_course, LAB).cells}
    notebook = nbformat.read(released_course.release / LAB / f"{LAB}.ipynb", 4)
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("solution"):
            cell.source = answers[cell.id]
        if cell.id == "explain-why-answer":
            cell.source = "A half is a power of two."
    return notebook


def write_small_course(root: Path, project: Path) -> Course:
    """Write the project of the small lab into a folder and return its course, which is empty."""
    files = {
        "solutions/fp4kv/__init__.py": PACKAGE,
        "solutions/fp4kv/halves.py": LIBRARY,
        f"solutions/{LAB}.py": SOURCE,
        f"solutions/checks/{LAB}.py": CHECKS,
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for name in ("nbgrader_config.py", "constraints.txt"):
        shutil.copy(project / name, root)
    shutil.copytree(
        project / "labs/labkit", root / "labs/labkit", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
    )
    return Course(root / "course", root)
