"""Scripts that do not block the page, and none that it does not use."""

from pathlib import Path
from typing import Any

from sphinx.builders.html._assets import _JavaScript

# They only wait for the page or for a click. `documentation_options.js` is read by inline scripts and stays.
DEFERRED = {
    "doctools.js",
    "sphinx_highlight.js",
    "clipboard.min.js",
    "copybutton.js",
    "design-tabs.js",
    "sphinx-book-theme.js",
    "togglebutton.js",
    "searchtools.js",
    "language_data.js",
}
# Icons are a small font; a source map helps nobody who reads.
DEAD = ("scripts/fontawesome.js", "scripts/*.map", "styles/*.map", "webfonts/*.ttf", "vendor/**/*.ttf")


def register(app: Any) -> None:
    """Register with Sphinx."""
    app.connect("html-page-context", defer, priority=900)
    app.connect("build-finished", remove_dead, priority=900)


def defer(app: Any, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Let every script wait that may."""
    context["script_files"] = [deferred(script) for script in context.get("script_files", [])]
    context["default_mode"] = "auto"


def deferred(script: Any) -> Any:
    """Return the script with `defer` where its name is in the list, else as it is."""
    name = Path(str(getattr(script, "filename", None) or "").split("?")[0]).name
    if name not in DEFERRED:
        return script
    return _JavaScript(script.filename, priority=script.priority, **{**script.attributes, "defer": "defer"})


def remove_dead(app: Any, exception: Exception | None) -> None:
    """Delete what the theme copies and no page asks for."""
    if exception or app.builder.format != "html":
        return
    for pattern in DEAD:
        for path in (Path(app.outdir) / "_static").glob(pattern):
            path.unlink()
