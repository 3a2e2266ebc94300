"""Who is in the class: a CSV file of students into the gradebook, all lines or none."""

import csv
import io
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from autograder.course import Course
from autograder.errors import UsageError
from autograder.gradebook.marks import opened

STUDENT_ID = re.compile(r"[^\W_][\w.@-]{0,127}")
"""A folder's name, and a part of nbgrader's `student+assignment+time`: no slash, no plus, no leading dot."""

EMAIL = re.compile(r"[^\s@]+@[^\s@]+")
FORMULA = ("=", "+", "-", "@", "\t")
MAX_TEXT = 200

COLUMNS = {
    "id": ("id", "student_id", "SIS Login ID", "Username", "ID number"),
    "first_name": ("first_name", "First name", "first"),
    "last_name": ("last_name", "Surname", "Last name", "last"),
    "email": ("email", "Email address", "Email"),
    "lms_user_id": ("lms_user_id", "lms_id", "ID", "Identifier"),
}
FULL_NAME = ("Student", "Full name")
"""One column with both names: Canvas writes `Last, First`, Moodle `First Last`."""


@dataclass(frozen=True)
class Person:
    """A student as the gradebook keeps one."""

    id: str
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    lms_user_id: str = ""


def read(path: Path) -> list[Person]:
    """Return the students of a CSV file whose columns are named by us, by Canvas or by Moodle.

    Raises
    ------
    UsageError
        If there is no such file, no column of ids, or any line is wrong; every wrong line is named.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"CSV: expected a text file in UTF-8, got {path}: {error}") from None
    reader = csv.DictReader(io.StringIO(text, newline=""))
    columns = _columns(path, list(reader.fieldnames or []))
    numbered = [(reader.line_num, _person(row, columns)) for row in reader if not _is_canvas_extra(row)]
    problems = [f"{path.name}:{line}: {problem}" for line, person in numbered for problem in _problems(person)]
    problems += _duplicates(path, numbered)
    if problems:
        raise UsageError("\n  ".join(["CSV: expected every line to be a student; nothing was entered:", *problems]))
    return [person for _, person in numbered]


def enter(course: Course, people: list[Person]) -> tuple[list[str], list[str]]:
    """Write students to the gradebook; return the ids added and those whose entry changed."""
    added, changed = [], []
    with opened(course) as book:
        known = {student.id: student for student in book.students}
        for person in people:
            fields = {name: value for name, value in vars(person).items() if name != "id" and value}
            old = known.get(person.id)
            if old is None:
                added.append(person.id)
            elif any((getattr(old, name) or "") != value for name, value in fields.items()):
                changed.append(person.id)
            book.update_or_create_student(person.id, **fields)
    return added, changed


def _columns(path: Path, head: list[str]) -> dict[str, str]:
    found = {field: next((name for name in names if name in head), "") for field, names in COLUMNS.items()}
    if not found["id"]:
        raise UsageError(f"{path.name}:1: expected a column of ids ({', '.join(COLUMNS['id'])}), got {', '.join(head)}")
    return {field: name for field, name in found.items() if name}


def _person(row: dict[str, str], columns: dict[str, str]) -> Person:
    values = {field: (row.get(name) or "").strip() for field, name in columns.items()}
    full = next((row[name].strip() for name in FULL_NAME if row.get(name)), "")
    if full and "last_name" not in values:
        last, comma, first = full.partition(",")
        first, last = (first, last) if comma else (full.rpartition(" ")[0], full.rpartition(" ")[2])
        values |= {"first_name": first.strip(), "last_name": last.strip()}
    if "lms_user_id" in values:
        values["lms_user_id"] = values["lms_user_id"].removeprefix("Participant").strip()
    return Person(**values)


def _is_canvas_extra(row: dict[str, str]) -> bool:
    """Return whether a line is one of the two that Canvas adds: possible points, the test student."""
    student = (row.get("Student") or "").strip()
    return student.startswith("Points Possible") or (student == "Student, Test" and not row.get("SIS Login ID"))


def _problems(person: Person) -> list[str]:
    found = []
    if not STUDENT_ID.fullmatch(person.id):
        found.append(f"id: expected letters, digits and . _ @ -, a letter or digit first, got {person.id!r}")
    for field in ("first_name", "last_name", "email", "lms_user_id"):
        value = getattr(person, field)
        if not value.isprintable() or len(value) > MAX_TEXT or set(value) & set("<>") or value.startswith(FORMULA):
            found.append(f"{field}: expected plain text without < and >, not a formula, got {value[:40]!r}")
    if person.email and not EMAIL.fullmatch(person.email):
        found.append(f"email: expected name@host, got {person.email!r}")
    return found


def _duplicates(path: Path, numbered: list[tuple[int, Person]]) -> list[str]:
    found = []
    for field in ("id", "lms_user_id"):
        counts = Counter(getattr(person, field) for _, person in numbered)
        for line, person in numbered:
            value = getattr(person, field)
            if value and counts[value] > 1:
                found.append(f"{path.name}:{line}: {field}: expected each once, got {value!r} {counts[value]} times")
    return found
