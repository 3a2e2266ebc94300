"""Make what a submission shows harmless: text stays text, pictures are pictures, nothing else is kept.

Judged notebooks are read in formgrader, in feedback pages and in JupyterLab, by people with more
rights than the student. So only plain text and pictures leave a submission, tags in its
Markdown are broken, and what Markdown renders to is sanitised once more when a page is made.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import nbformat
import nh3
from jinja2 import pass_context
from jinja2.runtime import Context
from nbconvert.filters.markdown_mistune import MarkdownWithMath
from nbformat import NotebookNode
from pygments.token import STANDARD_TYPES

from autograder.display import formulas
from autograder.display.formulas import FormulaRenderer
from autograder.display.pictures import pictures, rasters

MAX_TEXT = 1 << 17
MAX_TRACEBACK_LINES = 60
TAG = re.compile(r"<(?=[A-Za-z/!?])")
BROKEN_TAG = "<\u200b"
"""A `<` and a space of no width: reads as before, begins no tag in any parser."""
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f\ud800-\udfff]")
"""Control characters and half characters; the escape of colour codes (0x1b) and line ends stay."""
ESCAPE = re.compile(r"\x1b(?!\[[0-9;]*m)")
"""An escape that begins no colour: such sequences move cursors and rename windows."""

PICTURE_SOURCE = re.compile(r"data:image/(?:png|jpeg|gif);base64,[A-Za-z0-9+/=\s]*")
ALLOWED_ATTRIBUTES = {"a": {"href", "title"}, "img": {"src", "alt", "title"}, "th": {"align"}, "td": {"align"}}
ALLOWED_CLASSES = {"div": {"highlight"}, "span": {name for name in STANDARD_TYPES.values() if name}}
"""Those of coloured code alone: a page's own scripts find its buttons by class and by id."""


def inert_outputs(outputs: Iterable[Mapping[str, Any]]) -> list[NotebookNode]:
    """Return a cell's outputs with nothing in them but text and pictures that really are pictures."""
    return [node for output in outputs if (node := _inert_output(output)) is not None]


def inert_text(value: Any, limit: int = MAX_TEXT) -> str:
    """Return a value as text that can be written and shown: no control characters, bounded length."""
    text = value if isinstance(value, str) else "" if value is None else str(value)
    clean = ESCAPE.sub("", CONTROL.sub("\ufffd", text[: limit + 1]))
    return clean if len(clean) <= limit else clean[:limit] + "\n[cut here]\n"


def inert_markdown(source: str) -> str:
    """Return Markdown in which no tag begins: what was `<b>` is shown as it was typed."""
    return TAG.sub(BROKEN_TAG, inert_text(source))


def inert_attachments(attachments: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """Return the attachments that are pictures."""
    found = {inert_text(name, 200): rasters(bundle) for name, bundle in attachments.items()}
    return {name: kept for name, kept in found.items() if kept}


def fenced(source: str) -> str:
    """Return Markdown that shows a text as it is: a code block with a fence that the text does not hold."""
    longest = max((len(run) for run in re.findall("`+", source)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{inert_markdown(source)}\n{fence}"


@pass_context
def render_markdown(context: Context, source: str) -> str:
    """Return sanitised HTML of a Markdown text: no scripts, no forms, no pictures from elsewhere.

    A filter for nbconvert's templates: attached pictures come from the cell that is being shown.
    """
    attachments = context.get("cell", {}).get("attachments", {})
    renderer = FormulaRenderer(escape=False, attachments=attachments, exclude_anchor_links=True)
    return sanitise(MarkdownWithMath(renderer=renderer).render(source))


def sanitise(page: str) -> str:
    """Return HTML with only what text needs; a picture stays if its bytes are in the page."""
    return nh3.clean(
        page,
        tags=nh3.ALLOWED_TAGS | formulas.TAGS,
        attributes=ALLOWED_ATTRIBUTES | formulas.ATTRIBUTES,
        allowed_classes=ALLOWED_CLASSES,
        url_schemes={"http", "https", "mailto", "data"},
        attribute_filter=_keep_attribute,
        link_rel="noopener noreferrer nofollow",
    )


def _keep_attribute(tag: str, attribute: str, value: str) -> str | None:
    if tag == "img" and attribute == "src":
        return value if PICTURE_SOURCE.fullmatch(value) else None
    if attribute == "href" and value.strip().lower().startswith("data:"):
        return None
    return value


def _inert_output(content: Mapping[str, Any]) -> NotebookNode | None:
    kind = content.get("output_type")
    if kind == "stream":
        name = "stderr" if content.get("name") == "stderr" else "stdout"
        return nbformat.v4.new_output("stream", name=name, text=inert_text(content.get("text")))
    if kind == "error":
        lines = content.get("traceback")
        shown = lines[:MAX_TRACEBACK_LINES] if isinstance(lines, list) else []
        return nbformat.v4.new_output(
            "error",
            ename=inert_text(content.get("ename"), 100),
            evalue=inert_text(content.get("evalue"), 2000),
            traceback=[inert_text(line, 4000) for line in shown],
        )
    data = content.get("data")
    return nbformat.v4.new_output("display_data", data=_inert_data(data)) if isinstance(data, Mapping) else None


def _inert_data(data: Mapping[str, Any]) -> dict[str, str]:
    return {"text/plain": inert_text(data.get("text/plain"))} | pictures(data)
