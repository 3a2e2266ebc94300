"""A class of made-up submissions whose scores are known beforehand, from any lab's planted answers.

Untouched, perfect, six with one misconception each, and five that no class is without: a crash, an
endless loop, a memory hog, a cheat, a torn file. The four troublemakers spoil one task that no
other answer needs, so what they deserve is the maximum less the checks that call it.
"""

import copy
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import nbformat
from nbformat import NotebookNode

from autograder.authoring.names import loaded_names
from autograder.authoring.planted import Planted, read_planted
from autograder.classroom.plan import read_outcome
from autograder.course import Course
from autograder.errors import CourseError, UsageError
from autograder.lab import Lab, load_lab

N_MISCONCEPTIONS = 6
MARKERS = re.compile(r"^\s*### (?:BEGIN|END) SOLUTION[^\n]*\n?", re.MULTILINE)

CRASH = """
import os


def {task}(*args, **kwargs):
    os._exit(1)
"""
ENDLESS_LOOP = """
def {task}(*args, **kwargs):
    while True:
        pass
"""
MEMORY_HOG = """
def {task}(*args, **kwargs):
    kept = []
    while True:
        kept.append(b"\\xff" * (64 << 20))
"""
CHEAT = """
import builtins

import numpy


class Anything:
    def __eq__(self, other):
        return True

    def __array__(self, *args, **kwargs):
        return numpy.zeros(1)


def agree(*args, **kwargs):
    return True


numpy.array_equal = numpy.allclose = builtins.all = agree
numpy.testing.assert_array_equal = numpy.testing.assert_allclose = agree
get_ipython().showtraceback = agree


def {task}(*args, **kwargs):
    print("score: 100 of 100")
    return Anything()
"""
TROUBLE = {"crash": CRASH, "endless-loop": ENDLESS_LOOP, "memory-hog": MEMORY_HOG, "cheat": CHEAT}


@dataclass(frozen=True)
class Sample:
    """One made-up submission: its bytes, and the score it must get; None if it cannot be graded."""

    id: str
    notebook: bytes
    expected: float | None

    @property
    def expected_text(self) -> str:
        """The expectation as a person reads it."""
        return "not graded" if self.expected is None else f"{self.expected:g}"


@dataclass(frozen=True)
class Verified:
    """What a made-up submission should get beside what it got."""

    id: str
    expected: str
    got: str

    @property
    def is_right(self) -> bool:
        """Whether they are the same."""
        return self.expected == self.got


def make_class(course: Course, name: str) -> list[Sample]:
    """Return the class of a lab.

    Raises
    ------
    CourseError
        If the lab has no solved notebook, no planted answers, or no task that stands alone.
    """
    lab = load_lab(course, name)
    solved = _solved_answers(course, lab)
    wrong = _misconceptions(lab, read_planted(course.solutions / "planted" / f"{name}.py"))
    full = sum(check.points for check in lab.checks)
    samples = [Sample("untouched", _bytes(lab.released), 0.0), Sample("perfect", _hand_in(lab, solved), full)]
    for answer in wrong:
        lost = sum(lab.checks[check].points for check in answer.loses)
        samples.append(Sample(answer.name, _hand_in(lab, solved | {answer.task: answer.source}), full - lost))
    task = lonely_task(lab, solved)
    left = full - _cost(lab, task)[1]
    for kind, source in TROUBLE.items():
        answers = solved | {task: source.format(task=task).strip()}
        samples.append(Sample(kind, _hand_in(lab, answers, without=task), left))
    return [*samples, Sample("torn", samples[1].notebook[: len(samples[1].notebook) // 2], None)]


def write(course: Course, name: str) -> list[Sample]:
    """Write the class to course/submitted.

    Raises
    ------
    UsageError
        If others have handed in: a real class is not mixed with a made-up one.
    """
    samples = make_class(course, name)
    strangers = {student for student, _ in course.submissions(name)} - {sample.id for sample in samples}
    if strangers:
        raise UsageError(
            f"{name}: expected a course without submissions, found those of {', '.join(sorted(strangers)[:5])}; "
            "name another one with --course"
        )
    for sample in samples:
        path = course.submitted / sample.id / name / f"{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(sample.notebook)
    return samples


def verify(course: Course, name: str) -> list[Verified]:
    """Return what each of the class should get and what it got."""
    return [
        Verified(sample.id, sample.expected_text, _got(course, name, sample.id)) for sample in make_class(course, name)
    ]


def lonely_task(lab: Lab, answers: Mapping[str, str]) -> str:
    """Return a task that no other answer calls, the one with the fewest checks."""
    needed = {id: loaded_names(source) for id, source in answers.items()}
    tasks = {check.task for check in lab.checks}
    alone = [
        task
        for task in sorted(tasks & set(answers))
        if not any(task in needed[other] for other in answers if other != task)
    ]
    if not alone:
        raise CourseError(f"{lab.name}: expected a task that no other answer calls, found none")
    return min(alone, key=lambda task: _cost(lab, task))


def _cost(lab: Lab, task: str) -> tuple[int, float]:
    """Return how many checks call a task, and the points that they are worth."""
    points = [check.points for check in lab.checks if task in check.names]
    return len(points), sum(points)


def _got(course: Course, name: str, student: str) -> str:
    outcome = read_outcome(course, name, student)
    if outcome is None:
        return "nothing"
    return f"{outcome.score:g}" if outcome.state == "graded" else "not graded"


def _misconceptions(lab: Lab, planted: list[Planted]) -> list[Planted]:
    """Return wrong answers, each to another task as long as there are tasks, those worth most first."""
    worth = {check.task: sum(other.points for other in lab.checks if other.task == check.task) for check in lab.checks}
    rounds: Counter[str] = Counter()
    ranked = []
    for answer in planted:
        if not answer.is_right:
            rounds[answer.task] += 1
            ranked.append(((rounds[answer.task], -worth[answer.task]), answer))
    by_name: dict[str, Planted] = {}  # a name is the student's id: the first answer keeps it
    for _, answer in sorted(ranked, key=lambda pair: pair[0]):
        by_name.setdefault(answer.name, answer)
    if len(by_name) < N_MISCONCEPTIONS:
        raise CourseError(f"planted answers: expected {N_MISCONCEPTIONS} wrong ones with different names")
    return list(by_name.values())[:N_MISCONCEPTIONS]


def _solved_answers(course: Course, lab: Lab) -> dict[str, str]:
    path = course.solutions / lab.name / f"{lab.name}.ipynb"
    if not path.is_file():
        raise CourseError(f"solved notebook: expected {path}, found none; run: autograder build {lab.name}")
    cells = nbformat.read(path, 4).cells
    return {_grade_id(cell): MARKERS.sub("", cell.source) for cell in cells if _is_answer(cell)}


def _hand_in(lab: Lab, answers: Mapping[str, str], without: str = "") -> bytes:
    """Return the released notebook with answers in it, and no cell of its own that shows `without`."""
    notebook = copy.deepcopy(lab.released)
    for cell in notebook.cells:
        if _is_answer(cell):
            cell.source = answers.get(_grade_id(cell), cell.source)
        elif without and cell.cell_type == "code" and not _grade_id(cell) and without in cell.source:
            cell.source = "# taken out"  # an empty cell would count as deleted, and be restored
    return _bytes(notebook)


def _bytes(notebook: NotebookNode) -> bytes:
    text: str = nbformat.writes(notebook, version=4)
    return text.encode()


def _is_answer(cell: NotebookNode) -> bool:
    marks = cell.metadata.get("nbgrader", {})
    return bool(cell.cell_type == "code" and marks.get("solution") and not marks.get("locked"))


def _grade_id(cell: NotebookNode) -> str:
    return str(cell.metadata.get("nbgrader", {}).get("grade_id", ""))
