"""Show computed numbers as a table with heads that a screen reader can follow."""

import html

from IPython.display import display


def show_table(head: list[str], rows: list[list[str]], caption: str) -> None:
    """Display a table; the first cell of each row is its head."""
    columns = "".join(f'<th scope="col">{html.escape(cell)}</th>' for cell in head)
    body = "".join(table_row(row) for row in rows)
    markup = (
        '<div class="pst-scrollable-table-container" tabindex="0" role="region" aria-label="table">'
        f'<table class="table numbers"><caption>{html.escape(caption)}</caption>'
        f"<thead><tr>{columns}</tr></thead><tbody>{body}</tbody></table></div>"
    )
    display({"text/html": markup, "text/plain": caption}, raw=True)


def table_row(row: list[str]) -> str:
    """Return one row of HTML."""
    first, *rest = (html.escape(cell) for cell in row)
    return f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>'
