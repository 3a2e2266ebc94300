"""A description for each page: the beginning of its first paragraph."""

import html
from typing import Any

from docutils import nodes

SHORTEST, LONGEST = 40, 157


def register(app: Any) -> None:
    """Register with Sphinx."""
    app.connect("html-page-context", describe, priority=900)


def describe(app: Any, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Add the description to the page's meta tags."""
    text = first_paragraph(tree) if tree is not None else ""
    if text:
        tag = f'<meta name="description" content="{html.escape(shortened(text), quote=True)}" />'
        context["metatags"] = f"{context.get('metatags', '')}\n{tag}\n"


def first_paragraph(tree: nodes.document) -> str:
    """Return the text of the first paragraph that is more than a label, else nothing."""
    for paragraph in tree.findall(nodes.paragraph):
        text = " ".join(paragraph.astext().split())
        if len(text) >= SHORTEST:
            return text
    return ""


def shortened(text: str) -> str:
    """Return at most `LONGEST` characters, cut between words."""
    return text if len(text) <= LONGEST else text[:LONGEST].rsplit(" ", 1)[0] + " …"
