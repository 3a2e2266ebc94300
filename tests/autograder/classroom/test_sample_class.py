"""The made-up class: who is in it, what each deserves, and that a real class is never mixed with it."""

import json

import pytest

from autograder import cli
from autograder.authoring.planted import read_planted
from autograder.classroom import fleet, sample_class
from autograder.classroom.fleet import Where
from autograder.errors import CourseError, UsageError
from autograder.lab import load_lab

LAB = "lab01_halves"

PLANTED = """# Planted answers of the small lab.

# %% wrong="halve" name="doubles" loses="halve-values halve_all-values"
# Doubles instead.
def halve(x):
    if not np.isfinite(x):
        raise ValueError("x: expected a finite number")
    return x * 2

# %% wrong="halve" name="lets_infinity_through" loses="halve-refuses"
# Halves infinity too.
def halve(x):
    return x / 2

# %% wrong="halve_all" name="first_only" loses="halve_all-values"
# Halves the first number alone.
def halve_all(x):
    return np.concatenate([x[:1] / 2, x[1:]])

# %% wrong="halve_all" name="forgets_to_halve" loses="halve_all-values"
# Returns what came.
def halve_all(x):
    return x.copy()

# %% wrong="halvings" name="counts_the_one" loses="halvings-count"
# Counts the last number too.
def halvings():
    return 4

# %% wrong="halvings" name="counts_bits" loses="halvings-count"
# Counts the bits of eight minus two.
def halvings():
    return (8).bit_length() - 2

# %% right="halve" name="by_division"
# Divides.
def halve(x):
    if not np.isfinite(x):
        raise ValueError("x: expected a finite number")
    return x / 2
"""


@pytest.fixture
def course(released_course):
    """The released course with planted answers and limits that are met soon."""
    planted = released_course.solutions / "planted" / f"{LAB}.py"
    planted.parent.mkdir()
    planted.write_text(PLANTED)
    source = released_course.solutions / f"{LAB}.py"
    source.write_text(
        source.read_text().replace("#   points:", "#   limits: {call_seconds: 4, memory_bytes: 536870912}\n#   points:")
    )
    assert cli.run(["build", LAB, "--course", str(released_course.root)]) == 0
    return released_course


def test_planted_answers_say_task_mistake_and_loss(course):
    answers = read_planted(course.solutions / "planted" / f"{LAB}.py")

    assert [answer.name for answer in answers if answer.is_right] == ["by_division"]
    assert (answers[0].task, answers[0].mistake) == ("halve", "Doubles instead.")
    assert answers[0].loses == ("halve-values", "halve_all-values")


@pytest.mark.parametrize(
    "head", ['wrong="halve" name="x"', 'right="halve" name="x" loses="halve-values"', 'wrong="halve"']
)
def test_a_planted_answer_that_does_not_say_what_it_is_is_our_fault(head, tmp_path):
    path = tmp_path / "lab.py"
    path.write_text(f"# %% {head}\nx = 1\n")

    with pytest.raises(CourseError, match=r"lab\.py"):
        read_planted(path)


def test_the_class_has_every_kind(course):
    expected = {sample.id: sample.expected for sample in sample_class.make_class(course, LAB)}

    assert expected == {
        "untouched": 0,
        "perfect": 6,
        "doubles": 2,
        "first_only": 4,
        "counts_the_one": 5,
        "lets_infinity_through": 5,
        "forgets_to_halve": 4,
        "counts_bits": 5,
        "crash": 5,
        "endless-loop": 5,
        "memory-hog": 5,
        "cheat": 5,
        "torn": None,
    }


def test_trouble_is_made_in_a_task_that_no_other_answer_calls(course):
    lab = load_lab(course, LAB)
    answers = {
        "halve": "def halve(x): ...",
        "halve_all": "def halve_all(x): return halve(x)",
        "halvings": "x = halve_all",
    }

    assert sample_class.lonely_task(lab, answers) == "halvings"


def test_a_lab_whose_tasks_all_need_each_other_is_our_fault(course):
    with pytest.raises(CourseError, match="no other answer calls"):
        sample_class.lonely_task(load_lab(course, LAB), {"halve": "halve_all", "halve_all": "halve"})


def test_a_real_class_is_not_mixed_with_a_made_up_one(course):
    (course.submitted / "ada" / LAB).mkdir(parents=True)

    with pytest.raises(UsageError, match="ada"):
        sample_class.write(course, LAB)


def test_verify_tells_a_wrong_score_from_a_right_one(course, capsys):
    sample_class.write(course, LAB)

    assert cli.run(["sample-class", LAB, "--verify", "--course", str(course.root)]) == 1
    assert "nothing" in capsys.readouterr().out


@pytest.mark.sandbox
@pytest.mark.slow
def test_each_of_the_class_gets_what_it_deserves(course):
    sample_class.write(course, LAB)

    run = fleet.grade_lab(course, LAB, where=Where(workers=2))

    assert [row for row in sample_class.verify(course, LAB) if not row.is_right] == []
    statuses = {outcome.student: {check.id: check.status for check in outcome.checks} for outcome in run.outcomes}
    spoiled = {kind: statuses[kind]["halvings-count"] for kind in sample_class.TROUBLE}
    assert spoiled == {
        "crash": "crashed",
        "endless-loop": "timed_out",
        "memory-hog": "out_of_memory",
        "cheat": "failed",
    }
    assert json.loads(course.outcome_file(LAB, "torn").read_text())["fault"] == "submission"
