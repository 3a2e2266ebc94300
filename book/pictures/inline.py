"""Show a figure as one inline SVG that serves light, dark and print through CSS variables."""

import hashlib
import html
import io
import re

import matplotlib as mpl
import matplotlib.pyplot as plt
from IPython.display import display
from labkit import plotting
from matplotlib.figure import Figure

# What a colour of the plots is called in the style sheet `css/tokens.css`.
VARIABLES = {colour: f"--course-{name}" for name, colour in plotting.COLOURS.items()}

WIDTH_INCHES = 5.2  # words of 11 points stay above 10 pixels when a screen of 400 pixels shrinks the figure

IDENTIFIER = re.compile(r'\b(id|xlink:href|href)="(#?)([^"]+)"')
REFERENCE = re.compile(r"url\(#([^)]+)\)")
METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)


def show(figure: Figure, alt: str) -> None:
    """Display a figure inline with its alternative text, and close it."""
    figure.set_size_inches(WIDTH_INCHES, figure.get_figheight())
    fit_legends(figure)
    display({"text/html": f'<div class="course-plot">{themed_svg(figure, alt)}</div>', "text/plain": alt}, raw=True)
    plt.close(figure)


def fit_legends(figure: Figure) -> None:
    """Give a legend above the panels as many columns as fit: a wider one would shrink the figure and its words."""
    for legend in figure.legends:
        handles, labels = legend.legend_handles, [text.get_text() for text in legend.get_texts()]
        legend.remove()
        for columns in range(len(labels), 0, -1):
            fitted = figure.legend(handles, labels, loc="outside upper center", ncols=columns)
            figure.draw_without_rendering()
            if fitted.get_window_extent().width <= figure.bbox.width or columns == 1:
                break
            fitted.remove()


def themed_svg(figure: Figure, alt: str) -> str:
    """Return a figure as SVG with a role, a name, ids of its own, and colours from the page."""
    key = "f" + hashlib.sha256(alt.encode()).hexdigest()[:6]
    svg = METADATA.sub("", plain_svg(figure, key))
    svg = IDENTIFIER.sub(rf'\1="\2{key}-\3"', svg)
    svg = REFERENCE.sub(rf"url(#{key}-\1)", svg)
    for colour, variable in VARIABLES.items():
        svg = svg.replace(colour.lower(), f"var({variable})")
    head, rest = svg.split(">", 1)
    name = f'<title id="{key}-title">{html.escape(alt)}</title>'
    return f'{head} role="img" aria-labelledby="{key}-title">{name}{rest}'


def plain_svg(figure: Figure, key: str) -> str:
    """Return matplotlib's SVG, text as text, the same bytes on every run."""
    target = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": key}):
        figure.savefig(
            target, format="svg", transparent=True, bbox_inches="tight", metadata={"Date": None, "Creator": None}
        )
    text = target.getvalue()
    return text[text.index("<svg") :]
