"""Searching published files for what students must not read: answers, hidden cases, mark schemes.

Text is compared as a stream of tokens, so that neither indentation, line breaks, quotes, comments
nor HTML's tags and entities hide a copy. A secret is found by any `WINDOW` tokens of it in a row,
or by the whole of it when it is shorter.
"""

import ast
import html
import io
import json
import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import jupytext

from autograder.authoring.names import imports_of
from autograder.authoring.reference import Module
from autograder.authoring.scope import REFERENCE
from autograder.authoring.source import read_source
from autograder.course import Course
from autograder.lab import check_files, load_checks

WINDOW = 32
LEAST = 6  # shorter bodies, `return x / 2`, say nothing
LEAST_CASES = 4  # numbers in a literal that make it a list of cases
TOKEN = re.compile(r"\d+\.\d+|\w+|[^\w\s]")
TAG = re.compile(r"<[^<>]*>")
COMMENT = re.compile(r"#[^\n]*")
C_COMMENT = re.compile(r"(?<!:)//[^\n]*|/\*.*?\*/", re.DOTALL)  # not what follows `https:`
LOOP = re.compile(r"// ### BEGIN SOLUTION(.*?)// ### END SOLUTION", re.DOTALL)  # of a kernel's text
SCHEME = re.compile(r"BEGIN MARK SCHEME(.*?)### END MARK SCHEME", re.DOTALL)
STUDENT = "student"


@dataclass(frozen=True)
class Secret:
    """Something that no published file may hold."""

    name: str
    tokens: tuple[str, ...]


@dataclass(frozen=True)
class Leak:
    """A secret found in a file."""

    path: Path
    secret: str


def find_leaks(course: Course, folder: Path) -> list[Leak]:
    """Return what of a course's secrets the files of a folder hold, by file and name."""
    index = _Index(secrets_of(course))
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return [Leak(path, name) for path in files for name in sorted(index.found_in(path))]


def secrets_of(course: Course) -> list[Secret]:
    """Return the bodies of all references and answers, the hidden cases, and the mark schemes."""
    found = [secret for path in sorted((course.solutions / REFERENCE).rglob("*.py")) for secret in _reference(path)]
    for name in course.lab_names():
        found += [*_answers(course, name), *_planted(course, name), *_hidden(course, name), *_schemes(course, name)]
    public = " ".join(tokens_of((course.labs / "labkit/src/labkit/formats.py").read_text(encoding="utf-8")))
    return [secret for secret in found if " ".join(secret.tokens) not in public]


def tokens_of(text: str) -> list[str]:
    """Return the tokens by which texts are compared: one kind of quotes, no trailing commas."""
    tokens = TOKEN.findall(text.replace("'", '"'))
    closing = {")", "]", "}"}
    return [
        token for token, after in zip(tokens, [*tokens[1:], ""], strict=False) if token != "," or after not in closing
    ]


class _Index:
    """All secrets, prepared so that a file is read once."""

    def __init__(self, secrets: Iterable[Secret]) -> None:
        self.windows: dict[tuple[str, ...], str] = {}
        self.short: dict[str, str] = {}
        for secret in secrets:
            if len(secret.tokens) < WINDOW:
                self.short[f" {' '.join(secret.tokens)} "] = secret.name
            for window in _windows(secret.tokens):
                self.windows[window] = secret.name

    def found_in(self, path: Path) -> set[str]:
        """Return the names of the secrets in a file; a file that is no text holds none."""
        try:
            text = path.read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            return set()
        names: set[str] = set()
        for view in views(text, path.suffix):
            tokens = tokens_of(view)
            names |= {self.windows[window] for window in _windows(tuple(tokens)) if window in self.windows}
            joined = f" {' '.join(tokens)} "
            names |= {name for short, name in self.short.items() if short in joined}
        return names


def views(text: str, suffix: str) -> Iterator[str]:
    """Yield the readings of a file: as it stands, without comments, without HTML, with strings unescaped."""
    readings = {text}
    if "<" in text or "&" in text:
        readings.add(html.unescape(TAG.sub("", text)))
    if suffix == ".ipynb":
        readings.add(_notebook_text(text))
    readings |= {reading.replace("\\n", "\n").replace('\\"', '"') for reading in readings if "\\" in reading}
    readings |= {COMMENT.sub("", reading) for reading in readings if "#" in reading}
    readings |= {C_COMMENT.sub("", reading) for reading in readings if C_COMMENT.search(reading)}
    yield from readings


def _notebook_text(text: str) -> str:
    cells = json.loads(text).get("cells", [])
    return "\n".join("".join(cell.get("source", "")) for cell in cells)


def _windows(tokens: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    return (tokens[start : start + WINDOW] for start in range(len(tokens) - WINDOW + 1))


def _reference(path: Path) -> Iterator[Secret]:
    """Yield the body of each function of a module of the reference, each kernel's loop, each private constant."""
    module = Module.read(path)
    yield from _bodies_of(module.text, path.stem)
    yield from _loops_of(module.text, path.stem)
    for name, node in module.definitions.items():
        if name.startswith("_") and not name.startswith("__") and isinstance(node, ast.Assign | ast.AnnAssign):
            yield _secret(f"{path.stem}: {name}", ast.get_source_segment(module.text, node) or "")


def _bodies_of(text: str, where: str) -> list[Secret]:
    """Return the body of each function, without docstring and comments."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        body = node.body[1:] if ast.get_docstring(node) else node.body
        if body:
            lines = text.splitlines()[body[0].lineno - 1 : node.end_lineno]
            found.append(_secret(f"{where}: {node.name}", "\n".join(lines)))
    return [secret for secret in found if len(secret.tokens) >= LEAST]


def _loops_of(text: str, where: str) -> Iterator[Secret]:
    """Yield what stands between the markers of each kernel's text, without comments."""
    module = Module(text, where)
    for name, node in module.definitions.items():
        if isinstance(node, ast.Assign | ast.AnnAssign):
            code = ast.get_source_segment(text, node) or ""
            loops = LOOP.findall(code)
            found = [Secret(f"{where}: {name}", tuple(tokens_of(C_COMMENT.sub("", loop)))) for loop in loops]
            yield from (secret for secret in found if len(secret.tokens) >= LEAST)


def _secret(name: str, code: str) -> Secret:
    tokens = tokens_of(_without_comments(code))
    plain = [
        t
        for t, before in zip(tokens, ["", *tokens], strict=False)
        if t != STUDENT and not (t == "." and before == STUDENT)
    ]
    return Secret(name, tuple(plain))


def _without_comments(code: str) -> str:
    """Return code without its comments; a `#` in a string stays."""
    lines = code.splitlines(keepends=True)
    try:
        found = [
            t for t in tokenize.generate_tokens(io.StringIO(f"if 1:\n{code}\n").readline) if t.type == tokenize.COMMENT
        ]
    except (tokenize.TokenError, IndentationError):
        found = []
    for token in found:
        row, start = token.start[0] - 2, token.start[1]
        lines[row] = lines[row][:start] + "\n"
    return "".join(lines)


def _answers(course: Course, name: str) -> Iterator[Secret]:
    for cell in read_source(course.solutions / f"{name}.py"):
        if cell.role == "answer" and not any(list(imports_of(node)) for node in cell.parse().body):
            yield from _bodies_of(cell.text, f"{name}: {cell.name}")
            yield from _loops_of(cell.text, f"{name}: {cell.name}")


def _planted(course: Course, name: str) -> Iterator[Secret]:
    """Yield the bodies of the right answers among the planted ones."""
    path = course.solutions / "planted" / f"{name}.py"
    for cell in jupytext.read(path, fmt="py:percent").cells if path.is_file() else ():
        if "right" in cell.metadata:
            where = f"planted/{name}.py: {cell.metadata.get('name')}"
            yield from _bodies_of(cell.source, where)
            yield from _loops_of(cell.source, where)


def _schemes(course: Course, name: str) -> Iterator[Secret]:
    for cell in read_source(course.solutions / f"{name}.py"):
        for scheme in SCHEME.findall(cell.text):
            yield Secret(f"{name}: mark scheme of {cell.name}", tuple(tokens_of(scheme)))


def _hidden(course: Course, name: str) -> Iterator[Secret]:
    """Yield each function of the checks that is not revealed, each list of cases, each number with a name."""
    path = course.solutions / "checks" / f"{name}.py"
    revealed = {check.run.__name__ for check in load_checks(path) if check.reveal}
    for file in check_files(path):
        yield from _hidden_in(file, file.relative_to(course.solutions).as_posix(), revealed)


def _hidden_in(path: Path, where: str, revealed: set[str]) -> Iterator[Secret]:
    text = path.read_text(encoding="utf-8")
    yield from (secret for secret in _bodies_of(text, where) if secret.name.split(": ")[-1] not in revealed)
    tree = ast.parse(text)
    hidden = [node for node in tree.body if getattr(node, "name", "") not in revealed]
    for node in (inner for outer in hidden for inner in ast.walk(outer)):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node in tree.body and _count_numbers(node):
            yield _secret(f"{where}: line {node.lineno}", ast.get_source_segment(text, node) or "")
        if isinstance(node, ast.List | ast.Tuple | ast.Dict | ast.Set) and _count_numbers(node) >= LEAST_CASES:
            yield _secret(f"{where}: cases in line {node.lineno}", ast.get_source_segment(text, node) or "")


def _count_numbers(node: ast.AST) -> int:
    return sum(isinstance(inner, ast.Constant) and isinstance(inner.value, int | float) for inner in ast.walk(node))
