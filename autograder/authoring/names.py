"""Which names a piece of Python binds, which it needs, and what its imports mean."""

import ast
import builtins
import symtable
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

LINE_LENGTH = 100
KERNEL_NAMES = frozenset(dir(builtins)) | {"display", "get_ipython", "__name__", "__doc__"}


@dataclass(frozen=True, order=True)
class Import:
    """One imported name: `import module as alias`, or `from module import name as alias`."""

    module: str
    name: str | None
    alias: str | None = None

    @property
    def root(self) -> str:
        """The package that must be installed."""
        return self.module.split(".")[0]

    def __str__(self) -> str:
        return f"import {self.part}" if self.name is None else f"from {self.module} import {self.part}"

    @property
    def part(self) -> str:
        """The text behind `import`."""
        what = self.name or self.module
        return f"{what} as {self.alias}" if self.alias else what


def loaded_names(text: str) -> set[str]:
    """Return the names that a text takes from its surroundings, builtins included."""
    top = symtable.symtable(text, "cell", "exec")
    loaded = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_referenced()}
    for table in _inner_tables(top):
        loaded |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global() and symbol.is_referenced()}
    return loaded


def bound_names(text: str) -> set[str]:
    """Return the names that a text binds at its top level."""
    top = symtable.symtable(text, "cell", "exec")
    bound = {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported() or s.is_namespace()}
    for table in _inner_tables(top):
        bound |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_declared_global()}
    return bound


def missing_names(text: str, known: Iterable[str]) -> list[str]:
    """Return the names that a text needs and neither it, the kernel nor `known` has, sorted."""
    return sorted(loaded_names(text) - bound_names(text) - KERNEL_NAMES - set(known))


def imports_of(node: ast.AST) -> Iterator[tuple[str, Import]]:
    """Yield (bound name, import) for each name of an import statement; nothing for another node."""
    if isinstance(node, ast.Import):
        for item in node.names:
            bound = item.asname or item.name.split(".")[0]
            yield bound, Import(item.name, None, item.asname)
    elif isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        for item in node.names:
            yield item.asname or item.name, Import(module, item.name, item.asname)


def all_imports(tree: ast.AST) -> Iterator[Import]:
    """Yield every import of a tree, those inside functions too."""
    for node in ast.walk(tree):
        for _, found in imports_of(node):
            yield found


def render_imports(imports: Iterable[Import]) -> str:
    """Return import statements in the order that ruff keeps: standard library, then the others."""
    unique = set(imports)
    ours = {found for found in unique if found.root not in sys.stdlib_module_names}
    return "\n\n".join(text for text in (_render_section(unique - ours), _render_section(ours)) if text)


def _render_section(imports: set[Import]) -> str:
    plain = [f"import {found.part}" for found in sorted(imports, key=_key) if found.name is None]
    modules = sorted({found.module for found in imports if found.name is not None})
    grouped = {module: sorted((f for f in imports if f.module == module and f.name), key=_key) for module in modules}
    return "\n".join(plain + [_render_from(module, [f.part for f in parts]) for module, parts in grouped.items()])


def _render_from(module: str, parts: list[str]) -> str:
    line = f"from {module} import {', '.join(parts)}"
    if len(line) <= LINE_LENGTH:
        return line
    return f"from {module} import (\n" + "".join(f"    {part},\n" for part in parts) + ")"


def _key(found: Import) -> tuple[str, int, str, str]:
    name = found.name or ""
    kind = 0 if name.isupper() else 1 if name[:1].isupper() else 2
    return (found.module, kind, name, found.alias or "")


def _inner_tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    for child in table.get_children():
        yield child
        yield from _inner_tables(child)
