"""The pages that show a student's notebook, feedback and formgrader's: nbgrader's templates, made harmless.

One exporter for both, so that no configuration can lose it: Markdown is sanitised when it is rendered,
and our macro stands where nbconvert's would load MathJax from another host.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nbconvert.exporters import HTMLExporter
from traitlets import default

from autograder.display.inert import render_markdown

TEMPLATES = Path(__file__).resolve().parents[1] / "templates"
FORMGRADER = "nbgrader.server_extensions.formgrader.formgrader"


class InertExporter(HTMLExporter):  # type: ignore[misc]  # nbconvert has no types here
    """nbconvert's HTML exporter for notebooks of people who are not trusted."""

    def default_filters(self) -> Iterator[tuple[str, Any]]:
        """Yield nbconvert's filters, with Markdown sanitised."""
        yield from super().default_filters()
        yield "markdown2html", render_markdown

    @default("template_paths")  # type: ignore[untyped-decorator]
    def _template_paths(self, prune: bool = True, root_dirs: list[str] | None = None) -> list[str]:
        usual: list[str] = super()._template_paths(prune, root_dirs)
        # nbgrader's folders too, by the name that ours extends: feedback/index.html.j2
        return [str(TEMPLATES / self.template_name), *usual, *self.extra_template_basedirs]


def use_in_formgrader() -> None:
    """Give formgrader the exporter, if this process runs it: it makes its own as soon as it is configured."""
    if module := sys.modules.get(FORMGRADER):
        module.HTMLExporter = InertExporter  # type: ignore[attr-defined]
