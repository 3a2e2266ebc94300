"""`autograder new-lab NAME`: a lab that builds and grades as it is written, to be rewritten piece by piece."""

import re
from pathlib import Path
from string import Template

from autograder.course import Course
from autograder.errors import UsageError

NAME = re.compile(r"lab\d\d_[a-z][a-z0-9_]*")
TEMPLATES = Path(__file__).resolve().parents[1] / "templates"
PARTS = {"source": "", "checks": "checks", "planted": "planted"}


def new_lab(course: Course, name: str) -> list[Path]:
    """Write source, checks and planted answers of a new lab; return the files.

    Raises
    ------
    UsageError
        If the name is not of the form labNN_noun, or the lab or its number is taken.
    """
    if not NAME.fullmatch(name):
        raise UsageError(f"name: expected labNN_noun in lower case, got {name!r}")
    taken = [other for other in course.lab_names() if other[:5] == name[:5]]
    if taken:
        raise UsageError(f"name: expected a number that no lab has, got {name!r} beside {taken[0]!r}")
    texts = {course.solutions / folder / f"{name}.py": _text(part, name) for part, folder in PARTS.items()}
    for path in texts:
        if path.exists():
            raise UsageError(f"name: expected a lab without files, got {path}")
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(texts)


def _text(part: str, name: str) -> str:
    template = Template((TEMPLATES / f"new_lab.{part}.txt").read_text(encoding="utf-8"))
    return template.substitute(title=name.split("_", 1)[1].replace("_", " ").capitalize())
