"""Formulas as MathML, which browsers draw without a script.

Stands in for MathJax, which pages would have to load from another host. A formula that cannot be
converted is shown as it was typed.
"""

from latex2mathml.converter import convert
from nbconvert.filters.markdown_mistune import InvalidNotebook, IPythonRenderer

MAX_CHARACTERS = 1000
"""A longer formula is no formula; it would only cost time."""
TAGS = frozenset(
    [
        *("math", "mrow", "mi", "mn", "mo", "ms", "mtext", "mspace", "mstyle", "mpadded", "mphantom", "menclose"),
        *("mfrac", "msqrt", "mroot", "msub", "msup", "msubsup", "munder", "mover", "munderover"),
        *("mtable", "mtr", "mtd", "mmultiscripts", "mprescripts", "none"),
    ]
)
ATTRIBUTES = {
    "math": {"display"},
    "mo": {"stretchy", "fence", "form", "minsize", "maxsize"},
    "mover": {"accent"},
    "munder": {"accentunder"},
    "mtd": {"columnalign"},
    "mi": {"mathvariant"},
    "mspace": {"width"},
}
"""What MathML needs of a sanitiser; nothing here links, loads or runs."""


def as_mathml(formula: str, *, is_block: bool = False) -> str | None:
    """Return a LaTeX formula as MathML, not yet sanitised; None if it cannot be converted.

    >>> as_mathml("x")
    '<math xmlns="http://www.w3.org/1998/Math/MathML" display="inline"><mrow><mi>x</mi></mrow></math>'
    """
    if len(formula) > MAX_CHARACTERS:
        return None
    text = formula.replace("<", r"\lt ").replace(">", r"\gt ")
    try:
        return str(convert(text, display="block" if is_block else "inline"))
    except Exception:  # the parser of another project on a text of anybody's: whatever it raises, the text is shown
        return None


class FormulaRenderer(IPythonRenderer):  # type: ignore[misc]  # nbconvert has no types here
    """nbconvert's renderer of Markdown, with formulas as MathML; a picture that is not there stops no page."""

    def image(self, text: str, url: str, title: str | None = None) -> str:
        """Return a picture, or the words that stand for it."""
        try:
            return str(super().image(text, url, title))
        except InvalidNotebook:
            return str(self.text(f"[picture missing: {text}]"))

    def inline_math(self, body: str) -> str:
        """Return a formula in a line."""
        return as_mathml(body) or str(super().inline_math(body))

    def block_math(self, body: str) -> str:
        """Return a formula of its own."""
        return as_mathml(body, is_block=True) or str(super().block_math(body))

    def latex_environment(self, name: str, body: str) -> str:
        """Return an environment, for instance `align`."""
        whole = rf"\begin{{{name}}}{body}\end{{{name}}}"
        return as_mathml(whole, is_block=True) or str(super().latex_environment(name, body))
