"""The book's own Sphinx extension: light, self-contained, accessible pages, and tasks from the source.

Each module does one thing and registers itself; together with the templates in `book/_templates`
they are all that stands between the theme and the page.
"""

from typing import Any

from coursebook import accessibility, descriptions, mathematics, plain_text, scripts, styles, tasks


def setup(app: Any) -> dict[str, bool]:
    """Register every part with Sphinx."""
    app.add_config_value("comments_config", {}, "html")  # Jupyter Book sets it for an extension that we leave out
    for part in (accessibility, descriptions, mathematics, plain_text, scripts, styles, tasks):
        part.register(app)
    return {"parallel_read_safe": True, "parallel_write_safe": False}
