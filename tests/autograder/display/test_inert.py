"""Nothing of a submission is live: Markdown, outputs, pictures, names."""

import base64
import re

import pytest
from jinja2 import Environment

from autograder.display import formulas
from autograder.display.inert import (
    MAX_TEXT,
    fenced,
    inert_attachments,
    inert_markdown,
    inert_outputs,
    inert_text,
    render_markdown,
    sanitise,
)

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(8)).decode()

ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<svg/onload=alert(1)>",
    "<iframe src='javascript:alert(1)'></iframe>",
    "<a href='javascript:alert(1)'>x</a>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt&#58;alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "![x](https://evil.example/track.png)",
    "![x](//evil.example/track.png)",
    "![x](data:image/svg+xml;base64,PHN2Zy8+)",
    "[ref]: https://evil.example/x.png\n\n![ref]",
    "<style>@import 'https://evil.example'</style>",
    "<p style='background:url(https://evil.example)'>x</p>",
    "<form action=https://evil.example><input name=x><button class='mark-graded'>ok</button></form>",
    "<div id='statusmessage' class='full-credit'>x</div>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=alert(1)&gt;'>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "```\n<script>alert(1)</script>\n```",
    "`<script>`",
    "$<script>alert(1)</script>$",
    "$$\n<img src=x onerror=alert(1)>\n$$",
    "\\begin{align}<script>alert(1)</script>\\end{align}",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<base href='https://evil.example/'>",
    "<link rel=stylesheet href='https://evil.example/x.css'>",
    "<object data='x'></object><embed src='x'>",
    "<xmp><p title='</xmp><script>alert(1)</script>'>",
    "$\\text{<script>alert(1)</script>}$",
    "$\\text{<img src=x onerror=alert(1)>}$",
    "$\\href{javascript:alert(1)}{x}$",
    "$\\style{background:url(https://evil.example)}{x}$",
    "$\\class{mark-graded}{x}$",
    '![$\\text{a" onerror=alert(1) b}$](x.png)',
    "<math><mtext><img src=x onerror=alert(1)></mtext></math>",
    "<math><annotation-xml encoding='text/html'><script>alert(1)</script></annotation-xml></math>",
]
MATHML = set().union(*formulas.ATTRIBUTES.values())
TAGS = re.compile(r"<\s*([a-z0-9]+)([^>]*)>", re.I)
HARMLESS = {
    "p",
    "pre",
    "code",
    "em",
    "strong",
    "a",
    "img",
    "div",
    "span",
    "h1",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
}


def render(source, attachments=None):
    """Return what a template of nbconvert's makes of a Markdown cell."""
    environment = Environment()
    environment.filters["markdown2html"] = render_markdown
    template = environment.from_string("{{ cell.source | markdown2html }}")
    return template.render(cell={"source": source, "attachments": attachments or {}})


def assert_inert(page):
    for tag, attributes in TAGS.findall(page):
        assert tag.lower() in HARMLESS | formulas.TAGS, (tag, page)
        for name, value in re.findall(r'([a-z-]+)="([^"]*)"', attributes, re.I):
            assert name in {"href", "src", "alt", "title", "class", "rel", "align", *MATHML}, (name, page)
            if name == "src":
                assert value.startswith(("data:image/png", "data:image/jpeg", "data:image/gif")), page
            if name == "href":
                assert value.startswith(("http://", "https://", "mailto:", "#")), page
            if name == "class":
                assert "credit" not in value and "mark" not in value, page


@pytest.mark.parametrize("attack", ATTACKS)
def test_rendered_markdown_is_inert(attack):
    assert_inert(render(attack))


@pytest.mark.parametrize("attack", ATTACKS)
def test_broken_markdown_is_inert_under_any_renderer(attack):
    from nbconvert.filters import markdown2html

    page = markdown2html(inert_markdown(attack))
    assert not re.search(
        r"<(script|svg|iframe|style|form|object|embed|meta|base|link|math|noscript|xmp)", page, re.I
    ), page
    assert "onerror=" not in "".join(tag for tag in re.findall(r"<[a-z][^>]*>", page, re.I) if "img" not in tag)


@pytest.mark.parametrize("attack", ATTACKS)
def test_fenced_text_is_inert(attack):
    assert_inert(render(fenced(attack)))


def test_a_fence_holds_fences():
    page = render(fenced("```\n# no heading\n````\n*x*"))
    assert "<h1" not in page and "<em" not in page


def test_ordinary_markdown_renders():
    page = render(
        "# Why\n\n**bold** `a < b` [link](https://example.org)\n\n| a |\n|---|\n| 1 |\n\n```python\nx = 1\n```"
    )
    for part in ("<h1>", "<strong>bold</strong>", "a &lt; b", 'href="https://example.org"', "<td", "x"):
        assert part in page, part


@pytest.mark.parametrize("source", ["so $2^{-9} < 1$ is", "$$2^{-9} < 1$$", "\\begin{align}2^{-9} < 1\\end{align}"])
def test_formulas_are_drawn(source):
    page = render(source)
    assert "<msup><mn>2</mn>" in page and "&lt;" in page and "$" not in page


@pytest.mark.parametrize("formula", ["a^b^c", "{" * 400, "x" * 2000, "\\begin{nothing}"])
def test_formulas_that_cannot_be_drawn_are_shown_as_typed(formula):
    assert f"${formula}$" in render(f"${formula}$")


def test_attached_pictures_are_shown():
    page = render("![a](attachment:a.png)", {"a.png": {"image/png": PNG}})
    assert f'src="data:image/png;base64,{PNG}"' in page


def test_a_picture_that_is_not_there_stops_no_page():
    assert "[picture missing: plot]" in render("![plot](attachment:plot.png)")


def test_attachments_that_are_no_pictures_are_dropped():
    svg = base64.b64encode(b"<svg/>").decode()
    given = {"a": {"image/png": PNG}, "b": {"image/png": svg}, "c": {"image/svg+xml": svg}, "d": {"text/html": "<b>"}}
    assert inert_attachments(given) == {"a": {"image/png": PNG}}


@pytest.mark.parametrize(
    ("output", "data"),
    [
        ({"text/html": "<b>", "text/plain": "b"}, {"text/plain": "b"}),
        ({"image/png": PNG, "text/plain": "fig"}, {"text/plain": "fig", "image/png": PNG}),
        ({"image/png": base64.b64encode(b"GIF89a").decode()}, {"text/plain": ""}),
        ({"image/png": '" onload="alert(1)'}, {"text/plain": ""}),
        ({"image/svg+xml": "<svg/>", "text/plain": "s"}, {"text/plain": "s"}),
        ({"image/svg+xml": "<html/>", "application/javascript": "1"}, {"text/plain": ""}),
        ({"image/png": 7, "text/plain": ["a"]}, {"text/plain": "['a']"}),
    ],
    ids=str,
)
def test_displayed_data_keep_text_and_true_pictures(output, data):
    (found,) = inert_outputs([{"output_type": "display_data", "data": output, "metadata": {"x": 1}}])
    assert found.data == data and found.metadata == {}


def test_streams_and_errors_are_text():
    found = inert_outputs(
        [
            {"output_type": "stream", "name": "evil", "text": "a\x00b"},
            {
                "output_type": "error",
                "ename": "E",
                "evalue": None,
                "traceback": ["\x1b[31mred\x1b[0m", "\x1b[2J"] * 100,
            },
            {"output_type": "update_display_data"},
            {},
        ]
    )
    assert [(f.output_type, f.get("name")) for f in found] == [("stream", "stdout"), ("error", None)]
    assert found[0].text == "a\ufffdb"
    assert found[1].traceback[0] == "\x1b[31mred\x1b[0m" and "\x1b" not in found[1].traceback[1]
    assert len(found[1].traceback) == 60


def test_long_text_is_cut():
    text = inert_text("x" * (MAX_TEXT + 5))
    assert len(text) < MAX_TEXT + 20 and text.endswith("[cut here]\n")


def test_half_characters_are_replaced():
    inert_text("\ud800").encode("utf-8")


def test_sanitise_keeps_coloured_code():
    page = '<div class="highlight"><pre><span class="kn evil">import</span></pre></div>'
    assert sanitise(page) == page.replace(" evil", "")
