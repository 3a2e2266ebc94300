"""Names, roles and icons that the theme and the extensions leave undone, put right as a page is rendered.

What a template of our own can do stands in `book/_templates`; here is what comes out of code.
"""

import re
from collections.abc import Callable
from typing import Any

REPLACEMENTS = (
    # icons are decoration: their buttons have names
    (r'<(i|span) class="((?:fa|theme-switch)[^"]*)"(?![^>]*aria-hidden)', r'<\1 class="\2" aria-hidden="true"'),
    (r'<span class="search-button__kbd-shortcut">', '<span class="search-button__kbd-shortcut" aria-hidden="true">'),
    # a bibliography entry is an item of a list
    (r'role="doc-biblioentry"', 'role="listitem"'),
    # every box of a kind gets the same id
    (r'(<section class="[a-z]+-content") id="proof-content"', r"\1"),
    (r'<section id="(exercise|solution)-content">', r'<section class="\1-content">'),
    (
        r'(<div class="proof admonition") id="proof">\s*<p>Proof\. ',
        r'\1 role="group" aria-label="Proof"><p><em>Proof.</em> ',
    ),
    # the text of a summary is its name
    (r'<summary aria-label="Toggle hidden content">', "<summary>"),
    # buttons that submit nothing
    (r'<button class="(btn btn-sm nav-link pst-navbar-icon theme-switch-button)', r'<button type="button" class="\1'),
)


def register(app: Any) -> None:
    """Register with Sphinx."""
    app.connect("builder-inited", mend_as_rendered)


def mend_as_rendered(app: Any) -> None:
    """Let every page of this build pass through `mended`."""
    if app.builder.format != "html":
        return
    render: Callable[..., str] = app.builder.templates.render
    app.builder.templates.render = lambda *arguments: mended(render(*arguments))


def mended(page: str) -> str:
    """Return a page with every replacement made; doing it twice changes nothing more."""
    for pattern, replacement in REPLACEMENTS:
        page = re.sub(pattern, replacement, page)
    return page
