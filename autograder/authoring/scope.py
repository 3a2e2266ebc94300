"""Names in a lab: every one must resolve to what a student has at that cell.

A student has the packages that the header lists, the standard library, `labkit`, the tasks
answered in earlier cells, and what earlier free cells bind. Nothing of the reference library.
"""

import ast
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

from autograder.authoring.names import (
    KERNEL_NAMES,
    Import,
    all_imports,
    bound_names,
    imports_of,
    loaded_names,
    missing_names,
)
from autograder.authoring.reference import Module, public_text
from autograder.authoring.source import Cell, bound_as

REFERENCE = "fp4kv"
GIVEN = re.compile(r"labkit\.given\.lab(\d\d)")


@dataclass
class Scope:
    """What the cells of one lab can name, growing from the first cell to the last."""

    lab: str
    packages: frozenset[str]
    labkit: Path
    imports: dict[str, Import] = field(default_factory=dict)
    answered: set[str] = field(default_factory=set)
    bound: set[str] = field(default_factory=set)

    def add_import(self, cell: Cell, name: str, found: Import) -> None:
        """Put a name into the import cell.

        Raises
        ------
        CourseError
            If the student cannot import it, or the name already means something else.
        """
        self.require_importable(cell, found)
        if self.imports.setdefault(name, found) != found:
            other = self.imports[name]
            raise cell.error(f"one meaning of {name!r} in a lab", f"both {other} and {found}")

    def require_importable(self, cell: Cell, found: Import) -> None:
        """Raise CourseError if a student of this lab cannot import this."""
        if found.name == "*" or found.module.startswith("."):
            raise cell.error("imports by name from packages", f"`{found}`")
        if found.root == "labkit":
            self._require_in_labkit(cell, found)
        elif found.root not in self.packages and found.root not in sys.stdlib_module_names:
            allowed = ", ".join(sorted(self.packages))
            raise cell.error(f"imports of {allowed}, labkit or the standard library", f"`{found}`")

    def resolve_reference(self, cell: Cell, module: Module, name: str, solution: str) -> None:
        """Account for every name in a reference's solution; its imports go to the import cell."""
        for needed in sorted(loaded_names(solution) - bound_names(solution) - KERNEL_NAMES):
            found = module.imports.get(needed)
            if needed in self.answered and (found is None or found.root == REFERENCE):
                continue
            if found is None or found.root == REFERENCE:
                rule = "names of the lab's packages, labkit, private parts of its module, or tasks answered earlier"
                raise cell.error(rule, f"{needed!r} in {name} ({module.where})")
            self.add_import(cell, needed, found)
        self._refuse_inner_imports(cell, ast.parse(solution))
        self._require_attributes(cell, ast.parse(solution), module.imports)

    def resolve_cell(self, cell: Cell, text: str) -> None:
        """Account for every name in a free cell, a check, or an answer that stands in the lab itself."""
        tree = cell.parse_text(text)
        plain = ast.unparse(tree)
        missing = missing_names(plain, {*self.imports, *self.answered, *self.bound})
        if missing:
            rule = "names of the import cell, of earlier cells, or of tasks answered earlier"
            raise cell.error(rule, ", ".join(map(repr, missing)))
        self._refuse_inner_imports(cell, tree)
        self._require_attributes(cell, tree, self.imports)

    def leave(self, cell: Cell, text: str) -> None:
        """Add what a cell binds for those after it: of an answer, only what its stub keeps."""
        if cell.role == "answer":
            kept = {name for name in bound_names(public_text(text)) if not name.startswith("_")}
            self.answered |= {bound_as(cell.name, bound_names(text)), *kept}
        else:
            self.bound |= bound_names(ast.unparse(cell.parse_text(text)))

    def _refuse_inner_imports(self, cell: Cell, tree: ast.AST) -> None:
        for found in all_imports(tree):
            self.require_importable(cell, found)

    def _require_in_labkit(self, cell: Cell, found: Import) -> None:
        whole = f"{found.module}.{found.name}" if found.name else found.module
        given = GIVEN.match(whole)
        if given and int(given[1]) >= int(self.lab[3:5]):
            raise cell.error("given parts of earlier labs", f"`{found}`")
        if not self._exists(found):
            raise cell.error("names that labkit has", f"`{found}`")

    def _require_attributes(self, cell: Cell, tree: ast.AST, imports: dict[str, Import]) -> None:
        """Look up `formats.E2M1_MAX` and the like: attributes of labkit's modules."""
        for node in ast.walk(tree):
            if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
                continue
            found = imports.get(node.value.id)
            if found is None or found.root != "labkit" or found.name is None:
                continue
            module = f"{found.module}.{found.name}"
            if self._file(module) and not self._exists(Import(module, node.attr)):
                raise cell.error("names that labkit has", f"{ast.unparse(node)}")

    def _exists(self, found: Import) -> bool:
        path = self._file(found.module)
        if path is None or found.name is None:
            return path is not None
        module = Module.read(path)
        return found.name in {*module.definitions, *module.imports} or bool(self._file(f"{found.module}.{found.name}"))

    def _file(self, module: str) -> Path | None:
        base = self.labkit.joinpath(*module.split("."))
        candidates = (base / "__init__.py", base.with_name(f"{base.name}.py"))
        return next((path for path in candidates if path.is_file()), None)


def import_names(tree: ast.Module) -> dict[str, Import]:
    """Return what the import statements at the top level of a cell bind."""
    return {name: found for node in tree.body for name, found in imports_of(node)}
