"""A lab's checks in one file or in parts beside it: order, repeated ids, and the version that they give."""

import pytest

from autograder.authoring.build import build
from autograder.checks import Registry
from autograder.errors import CourseError
from autograder.lab import load_checks, load_lab

LAB = "lab01_halves"
PART = '''"""One part."""

from autograder.checks import Registry

checks = Registry()


@checks.check("halve-{name}", points=1, catches="nothing")
def nothing(student, cases):
    """Nothing is checked in {name}."""
'''
WHOLE = """from autograder.checks import Registry

from .first import checks as first
from .second import checks as second

checks = Registry(second, first)
"""


def write_parts(folder, *names):
    (folder / LAB).mkdir(parents=True)
    for part, name in zip(("first", "second"), names, strict=True):
        (folder / LAB / f"{part}.py").write_text(PART.format(name=name))
    (folder / f"{LAB}.py").write_text(WHOLE)
    return folder / f"{LAB}.py"


def test_parts_come_in_the_order_in_which_they_are_named(tmp_path):
    registry = load_checks(write_parts(tmp_path, "apples", "pears"))
    assert [check.id for check in registry] == ["halve-pears", "halve-apples"]


def test_a_part_of_another_course_is_not_taken_for_ours(tmp_path):
    load_checks(write_parts(tmp_path / "theirs", "apples", "pears"))
    registry = load_checks(write_parts(tmp_path / "ours", "plums", "figs"))
    assert [check.id for check in registry] == ["halve-figs", "halve-plums"]


def test_two_parts_with_one_id_are_refused(tmp_path):
    with pytest.raises(CourseError, match="expected each id once, got 'halve-apples' twice"):
        load_checks(write_parts(tmp_path, "apples", "apples"))


def test_a_check_made_elsewhere_is_added_once():
    made = Registry()
    made.check("halve-apples", points=1, catches="nothing")(documented)
    registry = Registry(made)
    with pytest.raises(CourseError, match="expected each id once"):
        registry.add(made["halve-apples"])


def documented():
    """Nothing is checked here: a stand-in for a check's function."""


def test_a_change_in_a_part_changes_the_version(small_course):
    build(small_course, [LAB])
    before = load_lab(small_course, LAB).versions["checks"]
    part = small_course.solutions / "checks" / LAB / "extra.py"
    part.parent.mkdir()
    part.write_text("EXTRA = 1\n")
    between = load_lab(small_course, LAB).versions["checks"]
    part.write_text("EXTRA = 2\n")
    after = load_lab(small_course, LAB).versions["checks"]
    assert len({before, between, after}) == 3
