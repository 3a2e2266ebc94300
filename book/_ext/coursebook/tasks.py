"""The `task` directive: a task's signature and docstring, read from the reference and never its body.

```{task} encode_e2m1
```

The source is parsed, not imported and not run, so the page cannot show more than this text.
"""

import ast
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

REFERENCE = Path(__file__).parents[3] / "solutions" / "fp4kv"


def register(app: Any) -> None:
    """Register with Sphinx."""
    app.add_directive("task", TaskDirective)


class TaskDirective(SphinxDirective):
    """Show one task; `task-NAME` is the label of its box."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return a box with the task's stub."""
        name = self.arguments[0]
        module, text = find_task(REFERENCE, name)
        self.env.note_dependency(str(module))
        box = nodes.container(classes=["task"], names=[f"task-{name}"])
        self.state.document.note_explicit_target(box)
        title = nodes.paragraph(classes=["task-title"])
        title += [nodes.Text("Task "), nodes.literal(text=name), nodes.Text(": "), *inline(first_sentence(text))]
        opened = nodes.raw("", "<details><summary>Signature and contract</summary>", format="html")
        closed = nodes.raw("", "</details>", format="html")
        box += [title, opened, nodes.literal_block(text, text, language="python"), closed]
        return [box]


def find_task(reference: Path, name: str) -> tuple[Path, str]:
    """Return the module that defines a task, and the task's stub.

    Raises
    ------
    ExtensionError
        If no module of the reference defines a function of that name.
    """
    for module in sorted(reference.rglob("*.py")):
        source = module.read_text(encoding="utf-8")
        for node in ast.parse(source).body:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                return module, stub(source, node)
    raise ExtensionError(f"task: expected a function of fp4kv, got {name!r}")


def first_sentence(stub: str) -> str:
    """Return the first line of a stub's docstring."""
    return next(line.strip().strip('"') for line in stub.splitlines() if line.lstrip().startswith('"""'))


def inline(text: str) -> list[nodes.Node]:
    """Return text with what stands between backticks as code."""
    parts = enumerate(text.split("`"))
    return [nodes.literal(text=part) if is_code % 2 else nodes.Text(part) for is_code, part in parts]


def stub(source: str, function: ast.FunctionDef) -> str:
    """Return the lines of a function from `def` to the end of its docstring.

    Raises
    ------
    ExtensionError
        If the function has no docstring: a task must say what it asks for.
    """
    if ast.get_docstring(function) is None:
        raise ExtensionError(f"task: expected a docstring in {function.name}, got none")
    last = function.body[0].end_lineno
    return "\n".join(source.splitlines()[function.lineno - 1 : last])
