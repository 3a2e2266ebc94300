"""Drawings and raster pictures: true ones stay, with nothing in them that could run or be fetched."""

import base64
import io

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from autograder.display import pictures as module
from autograder.display.pictures import SVG, pictures

OPEN = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="9">'


def drawn(form):
    """Return a plot as Matplotlib writes it."""
    figure, buffer = Figure(), io.BytesIO()
    figure.subplots().plot([1, 2], [3, 4])
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "x"}):
        figure.savefig(buffer, format=form)
    return buffer.getvalue()


def test_a_plot_stays_a_drawing():
    found = pictures({SVG: drawn("svg").decode()})[SVG]
    assert found.startswith("<svg") and found.count("<path") > 5 and "<text" in found and "xlink:href" in found


def test_cleaning_twice_changes_nothing():
    once = pictures({SVG: drawn("svg").decode()})
    assert pictures(once) == once


@pytest.mark.parametrize(("form", "mime"), [("png", "image/png"), ("jpg", "image/jpeg")])
def test_a_plot_stays_a_picture(form, mime):
    encoded = base64.b64encode(drawn(form)).decode()
    assert pictures({mime: encoded}) == {mime: encoded}


@pytest.mark.parametrize(
    "live",
    [
        "<script>alert(1)</script>",
        "<g onload='alert(1)'/>",
        "<a href='javascript:alert(1)'><path/></a>",
        "<image href='https://evil.example/x.png'/>",
        "<image xlink:href='//evil.example/x.png'/>",
        "<use xlink:href='https://evil.example/x.svg#a'/>",
        "<foreignObject><iframe xmlns='http://www.w3.org/1999/xhtml' src='https://evil.example'/></foreignObject>",
        "<style>@import url(https://evil.example/x.css);</style>",
        "<set attributeName='href' to='javascript:alert(1)'/>",
        "<html:script xmlns:html='http://www.w3.org/1999/xhtml'>alert(1)</html:script>",
        "<?xml-stylesheet href='https://evil.example/x.css'?>",
    ],
)
def test_what_is_live_in_a_drawing_is_taken_out(live):
    found = pictures({SVG: f"{OPEN}<path d='M0 0'/>{live}</svg>"})[SVG]
    assert "path" in found
    for word in ("alert", "evil", "script", "iframe"):
        assert word not in found, found


@pytest.mark.parametrize(
    "text",
    [
        "<svg/>",
        "<html xmlns='http://www.w3.org/1999/xhtml'/>",
        f"{OPEN}",
        "",
        "<!DOCTYPE svg [<!ENTITY a 'b'>]>" + OPEN + "&a;</svg>",
        "<!DOCTYPE svg [<!ENTITY a SYSTEM 'file:///etc/passwd'>]>" + OPEN + "&a;</svg>",
        OPEN + "<g>" * 100_000 + "</g>" * 100_000 + "</svg>",
        "<?xml version='1.0' encoding='nothing'?>" + OPEN + "</svg>",
        "\ud800" + OPEN + "</svg>",
        7,
        None,
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_is_no_drawing_is_dropped(text):
    assert pictures({SVG: text}) == {}


def test_a_huge_drawing_is_dropped(monkeypatch):
    monkeypatch.setattr(module, "MAX_SVG_CHARACTERS", 100)
    assert pictures({SVG: f"{OPEN}</svg>"}) != {}
    assert pictures({SVG: f"{OPEN}{' ' * 100}</svg>"}) == {}
