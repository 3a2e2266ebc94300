"""One style sheet in place of fourteen, without the icon rules that no page uses."""

import hashlib
import os
import re
import shutil
from pathlib import Path
from typing import Any

BUNDLE = "bundle.css"
THEME_SHEETS = ("styles/theme.css", "styles/pydata-sphinx-theme.css")  # the theme links these from its templates

COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
IMPORT = re.compile(r"@import [^;]+;")
RELATIVE_URL = re.compile(r"url\((['\"]?)(?!data:|https?:|#|/)([^)'\"]+)\1\)")
ICON_RULE = re.compile(r"(?:\.fa-[a-z0-9-]+:+before,?)+\{[^}]*\}")
ICON_NAME = re.compile(r"fa-[a-z0-9-]+")
TRUETYPE = re.compile(r",url\([^)]*\.ttf\) format\(\"truetype\"\)")
# The theme's scripts swap these in while one reads.
ICONS_OF_SCRIPTS = {"fa-compress", "fa-expand", "fa-xmark", "fa-chevron-down", "fa-chevron-right"}


def register(app: Any) -> None:
    """Register with Sphinx."""
    app.connect("html-page-context", link_bundle, priority=950)
    app.connect("build-finished", write_bundle, priority=950)


def link_bundle(app: Any, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Note the sheets that a page asks for, and let it ask for the bundle instead."""
    sheets = app.__dict__.setdefault("bundled_sheets", dict.fromkeys(THEME_SHEETS))
    for sheet in context.get("css_files", []):
        sheets[str(getattr(sheet, "filename", sheet)).removeprefix("_static/").split("?")[0]] = None
    context["css_files"] = [f"_static/{BUNDLE}"]


def write_bundle(app: Any, exception: Exception | None) -> None:
    """Write the bundle, and the small icon fonts over the theme's."""
    if exception or app.builder.format != "html":
        return
    static, out = Path(app.outdir) / "_static", Path(app.outdir)
    icons = used_icons(out)
    names = ["basic.css", *(name for name in app.bundled_sheets if name != "basic.css")]
    missing = [name for name in names if not (static / name).is_file()]
    if missing:
        raise FileNotFoundError(f"style sheets: expected {', '.join(missing)} in {static}, found none")
    css = "\n".join(sheet_for_bundle(static, name, icons) for name in names)
    (static / BUNDLE).write_text(css, encoding="utf-8")
    for page in out.rglob("*.html"):
        stamp_bundle(page, hashlib.sha256(css.encode()).hexdigest()[:8])
    for font in (static / "icons").glob("*.woff2"):
        for target in static.rglob(f"webfonts/{font.name}"):
            shutil.copyfile(font, target)


def used_icons(out: Path) -> set[str]:
    """Return the icon classes that stand in the pages, and those that scripts put there."""
    pages = (page.read_text(encoding="utf-8") for page in out.rglob("*.html"))
    return ICONS_OF_SCRIPTS.union(*(ICON_NAME.findall(text) for text in pages))


def sheet_for_bundle(static: Path, name: str, icons: set[str]) -> str:
    """Return one sheet with its paths made right for the bundle's folder, and no unused icon."""
    folder = Path(name).parent
    css = COMMENT.sub("", (static / name).read_text(encoding="utf-8"))
    css = RELATIVE_URL.sub(lambda match: f"url({os.path.normpath(folder / match[2])})", css)
    css = TRUETYPE.sub("", IMPORT.sub("", css))
    css = ICON_RULE.sub(lambda match: match[0] if icons.intersection(ICON_NAME.findall(match[0])) else "", css)
    return re.sub(r"\s*\n\s*", "\n", css)


def stamp_bundle(page: Path, digest: str) -> None:
    """Add the bundle's digest to its link, so that a browser does not keep an old one."""
    text = page.read_text(encoding="utf-8")
    stamped = re.sub(rf"{re.escape(BUNDLE)}(\?v=\w+)?", f"{BUNDLE}?v={digest}", text)
    if stamped != text:
        page.write_text(stamped, encoding="utf-8")
