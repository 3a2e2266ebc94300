"""The book for readers without a browser: one Markdown file per page and `llms.txt`, a list of them.

Source: https://llmstxt.org describes the list.
"""

import shutil
from pathlib import Path
from typing import Any


def register(app: Any) -> None:
    """Register with Sphinx."""
    app.connect("build-finished", write_plain_text, priority=900)


def write_plain_text(app: Any, exception: Exception | None) -> None:
    """Copy each page's source beside its HTML and list the titles."""
    if exception or app.builder.format != "html":
        return
    out = Path(app.outdir)
    lines = [f"# {app.config.html_title}", ""]
    for page in sorted(app.env.found_docs):
        target = out / f"{page}.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(app.env.doc2path(page), target)
        lines.append(f"- [{app.env.titles[page].astext()}]({page}.md)")
    (out / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
