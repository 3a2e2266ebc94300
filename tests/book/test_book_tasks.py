"""The chapters show every task by signature and docstring, read from the source, and no body."""

import ast
import html
import re

import fp4kv
import pytest
from bs4 import BeautifulSoup
from coursebook import tasks
from sphinx.errors import ExtensionError


def bodies() -> dict[str, list[str]]:
    """Return, for each function of the reference, private ones too, the lines of its body that say something."""
    found = {}
    for module in sorted(tasks.REFERENCE.rglob("*.py")):
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                statements = node.body[1:] if ast.get_docstring(node) else node.body
                found[node.name] = [line for part in statements for line in ast.unparse(part).splitlines()]
    return found


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


def test_stub_ends_where_the_docstring_ends():
    source = 'def double(x: int) -> int:\n    """Return 2 x.\n\n    Always.\n    """\n    return 2 * x\n'
    assert tasks.stub(source, ast.parse(source).body[0]) == source.split("\n    return")[0]


def test_stub_refuses_a_task_that_says_nothing():
    source = "def double(x):\n    return 2 * x\n"
    with pytest.raises(ExtensionError, match="docstring in double"):
        tasks.stub(source, ast.parse(source).body[0])


def test_unknown_task_is_refused():
    with pytest.raises(ExtensionError, match="got 'encode_e5m2'"):
        tasks.find_task(tasks.REFERENCE, "encode_e5m2")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.xdist_group("book")
class TestBuilt:
    """What stands in the built pages."""

    @pytest.mark.parametrize("name", fp4kv.__all__)
    def test_task_is_shown_as_in_the_source(self, built, name):
        box_id = f"task-{name.replace('_', '-')}"
        mark = f'id="{box_id}"'
        (text,) = [text for path in built.glob("*.html") if mark in (text := path.read_text(encoding="utf-8"))]
        box = BeautifulSoup(text, "html.parser").find(id=box_id)
        assert box.pre.get_text().strip() == tasks.find_task(tasks.REFERENCE, name)[1].strip()

    def test_pages_hold_no_body_of_the_reference(self, built):
        published = [path for path in built.rglob("*") if path.suffix in {".html", ".md", ".js", ".txt", ".ipynb"}]
        texts = {
            path: squeezed(html.unescape(re.sub(r"<[^>]+>", "", path.read_text(encoding="utf-8"))))
            for path in published
        }
        assert len(texts) > 15
        leaking = [
            f"{name} in {path.relative_to(built)}"
            for name, lines in bodies().items()
            for path, text in texts.items()
            if "_static" not in path.parts and squeezed("".join(lines)) in text
        ]
        assert not leaking

    def test_search_for_bodies_would_find_one(self):
        lines = bodies()["decode_e2m1"]
        planted = "<pre>" + html.escape("\n    ".join(lines)) + "</pre>"
        assert squeezed("".join(lines)) in squeezed(html.unescape(re.sub(r"<[^>]+>", "", planted)))
