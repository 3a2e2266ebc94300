"""Taking a task out of a module by `ast`: its public face, its body, and the private parts it needs.

Nothing is imported or run, so the reference library need not even work on this machine.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from autograder.authoring.names import Import, bound_names, imports_of, loaded_names
from autograder.authoring.source import MARKER
from autograder.errors import CourseError

Function = ast.FunctionDef | ast.AsyncFunctionDef
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"


@dataclass(frozen=True)
class Module:
    """A module, or an answer cell of a lab, as text and as tree."""

    text: str
    where: str

    @classmethod
    def read(cls, path: Path) -> "Module":
        """Return the module of a file."""
        return cls(path.read_text(encoding="utf-8"), path.name)

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree."""
        try:
            return ast.parse(self.text)
        except SyntaxError as error:
            raise CourseError(f"{self.where}: expected Python, got {error.msg} in line {error.lineno}") from None

    @cached_property
    def definitions(self) -> dict[str, ast.stmt]:
        """Functions, classes and constants by name, in order of the text."""
        return {name: node for node in self.tree.body for name in _defined(node)}

    @cached_property
    def imports(self) -> dict[str, Import]:
        """What the module's import statements bind."""
        return {name: found for node in self.tree.body for name, found in imports_of(node)}

    def lines(self, first: int, last: int) -> list[str]:
        """Return lines `first` to `last`, counted from 1, both included."""
        return self.text.splitlines()[first - 1 : last]

    def text_of(self, node: ast.stmt) -> str:
        """Return a statement's text with the comment that stands directly above it."""
        first = first_line(node)
        while first > 1 and self.lines(first - 1, first - 1)[0].startswith("#"):
            first -= 1
        return "\n".join(self.lines(first, node.end_lineno or first))

    def private_parts(self, name: str) -> list[str]:
        """Return the private definitions that `name` needs, directly or not, in order of the text."""
        needed: set[str] = set()
        waiting = [name]
        while waiting:
            loaded = loaded_names(self.text_of(self.definitions[waiting.pop()]))
            found = {other for other in loaded if other.startswith("_") and other in self.definitions} - needed
            needed |= found
            waiting += sorted(found)
        return [other for other in self.definitions if other in needed]


def find_module(solutions: Path, module: str, name: str) -> Module:
    """Return the module that defines `name`, following `from … import …` inside the package.

    Raises
    ------
    CourseError
        If there is no such module or it neither defines nor imports the name.
    """
    base = solutions.joinpath(*module.split("."))
    path = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
    if not path.is_file():
        raise CourseError(f"{name}: expected a module {module} under {solutions}, found none")
    found = Module.read(path)
    if name in found.definitions:
        return found
    source = found.imports.get(name)
    if source is None or source.name is None:
        raise CourseError(f"{module}: expected a function, class or constant {name!r}, found none")
    package = module if base.is_dir() else module.rpartition(".")[0]
    origin = f"{package}{source.module}" if source.module.startswith(".") else source.module
    if origin.split(".")[0] != module.split(".")[0] or source.name != name:
        raise CourseError(f"{module}: expected {name!r} from the package itself, got {source.part} of {source.module}")
    return find_module(solutions, origin, name)


def solution_text(module: Module, names: list[str]) -> str:
    """Return a solved answer cell: each name's text, its body between markers.

    The private parts come last, inside the last pair of markers, so that one stub replaces both.

    Raises
    ------
    CourseError
        If a name has decorators, no docstring, or a form that cannot be cut.
    """
    private = {part for name in names for part in module.private_parts(name)}
    parts = [module.text_of(module.definitions[part]) for part in module.definitions if part in private]
    texts = [_cut(module, name, parts if name == names[-1] else []) for name in names]
    if not parts:
        return "\n\n\n".join(texts)
    last, marker = _without_last_marker(texts[-1], module, names[-1])
    return "\n\n\n".join([*texts[:-1], last, *parts]) + "\n" + marker


def public_text(solution: str) -> str:
    """Return what stays of a solved cell when nbgrader has cut the solutions out, without the stub."""
    kept, inside = [], False
    for line in solution.splitlines():
        match = MARKER.search(line)
        if match:
            inside = match[1] == "BEGIN"
            kept += [line[: len(line) - len(line.lstrip())] + "..."] if inside else []
        elif not inside:
            kept.append(line)
    return "\n".join(kept)


def _cut(module: Module, name: str, parts: list[str]) -> str:
    node = module.definitions[name]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        _refuse_decorators(module, name, node)
        return "\n".join(_cut_function(module, node, parts))
    if isinstance(node, ast.ClassDef):
        _refuse_decorators(module, name, node)
        return "\n".join(_cut_class(module, node))
    return _cut_constant(module, node)


def _cut_function(module: Module, node: Function, parts: list[str]) -> list[str]:
    """Return signature, docstring, expected length (private parts included) and the body between markers."""
    if ast.get_docstring(node) is None:
        raise CourseError(f"{module.where}: {node.name}: expected a docstring (students get it), got none")
    if len(node.body) < 2:
        raise CourseError(f"{module.where}: {node.name}: expected a body after the docstring, got none")
    documentation_end = node.body[0].end_lineno or 0
    body = module.lines(documentation_end + 1, node.end_lineno or 0)
    if not body:
        raise CourseError(f"{module.where}: {node.name}: expected the body on lines of its own")
    while body and not body[0].strip():
        body = body[1:]
    indent = " " * node.body[0].col_offset
    head = module.lines(node.lineno, documentation_end)
    return [*head, indent + _length_hint([*body, *"\n".join(parts).splitlines()]), indent + BEGIN, *body, indent + END]


def _cut_class(module: Module, node: ast.ClassDef) -> list[str]:
    """Return a class with the bodies of its public methods cut; private members follow in the last cut."""
    members = [item for item in node.body if isinstance(item, Function)]
    public = [item for item in members if not item.name.startswith("_") or item.name.startswith("__")]
    if ast.get_docstring(node) is None or not public:
        raise CourseError(f"{module.where}: {node.name}: expected a docstring and a public method")
    text = module.lines(node.lineno, first_line(members[0]) - 1)
    for method in public:
        decorators = module.lines(first_line(method), method.lineno - 1)
        text += [*decorators, *_cut_function(module, method, []), ""]
    text, marker = text[:-2], text[-2]
    for member in members:
        if member not in public:
            text += ["", *module.lines(first_line(member), member.end_lineno or 0)]
    return [*text, marker]


def _cut_constant(module: Module, node: ast.stmt) -> str:
    """Return a constant: as it is when its text has markers of its own, else all of it between them."""
    text = module.text_of(node)
    found = [" ".join(match.groups()) for match in MARKER.finditer(text)]
    if not found:
        return f"{BEGIN}\n{text}\n{END}"
    if found != ["BEGIN SOLUTION", "END SOLUTION"] * (len(found) // 2):
        raise CourseError(f"{module.where}: expected balanced BEGIN/END SOLUTION in a constant, got {', '.join(found)}")
    return text


def _without_last_marker(text: str, module: Module, name: str) -> tuple[str, str]:
    head, _, last = text.rpartition("\n")
    if last.strip() != END:
        raise CourseError(f"{module.where}: {name}: expected no private parts beside a text with markers of its own")
    return head, END


def _length_hint(body: list[str]) -> str:
    lines = sum(1 for line in body if line.strip() and not line.lstrip().startswith("#"))
    return f"# Our answer has {lines} line{'' if lines == 1 else 's'}."


def _refuse_decorators(module: Module, name: str, node: Function | ast.ClassDef) -> None:
    if node.decorator_list:
        found = ast.unparse(node.decorator_list[0])
        raise CourseError(f"{module.where}: {name}: expected no decorator on a task, got @{found}")


def first_line(node: ast.stmt) -> int:
    """Return the line on which a statement begins, its decorators included."""
    decorators = getattr(node, "decorator_list", [])
    return min(int(line) for line in [node.lineno, *(decorator.lineno for decorator in decorators)])


def _defined(node: ast.stmt) -> Iterator[str]:
    if not isinstance(node, ast.Import | ast.ImportFrom):
        yield from sorted(bound_names(ast.unparse(node)))
