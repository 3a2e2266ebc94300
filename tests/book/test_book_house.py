"""What stands between the theme and the pages: colours, mended HTML, the store of executed chapters."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from coursebook import accessibility, descriptions, mathematics, styles
from docutils import nodes
from docutils.utils import new_document
from labkit import plotting
from labkit.expect import Mismatch, expect_codes

from autograder.cli import autograder as command_line
from autograder.outcome import STATUSES

BOOK = Path(__file__).resolve().parents[2] / "book"
TEXT_CONTRAST, GRAPHICS_CONTRAST = 4.5, 3.0  # WCAG 2.2, success criteria 1.4.3 and 1.4.11
QUIET_LINES = {"grid", "soft"}  # behind the data: not needed to understand a figure


def themes() -> dict[str, dict[str, str]]:
    """Return the colours of each theme by variable."""
    text = (BOOK / "assets" / "css" / "tokens.css").read_text(encoding="utf-8")
    blocks = re.findall(r'data-theme="(\w+)"\] \{(.*?)\n\}', text, re.DOTALL)
    return {name: dict(re.findall(r"--([\w-]+): (#\w{6});", body)) for name, body in blocks}


def luminance(colour: str) -> float:
    """Return the relative luminance of `#rrggbb` (WCAG 2.2)."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def load_build() -> ModuleType:
    spec = importlib.util.spec_from_file_location("book_build", BOOK / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_contrast_of_black_and_white_is_21():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_colour_of_the_plots_has_a_variable(theme):
    assert [name for name in plotting.COLOURS if f"course-{name}" not in themes()[theme]] == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_stand_out_from_the_page(theme):
    colours = themes()[theme]
    page = colours["pst-color-background"]
    words = {
        name: contrast(colours[f"pst-color-{name}"], page) for name in ("text-base", "text-muted", "link", "heading")
    }
    marks = {
        name: contrast(value, page)
        for name, value in colours.items()
        if name.startswith("course-") and name.removeprefix("course-") not in QUIET_LINES
    }
    assert {name: value for name, value in words.items() if value < TEXT_CONTRAST} == {}
    assert {name: value for name, value in marks.items() if value < GRAPHICS_CONTRAST} == {}


@pytest.mark.parametrize(
    ("broken", "whole"),
    [
        ('<i class="fa-solid fa-list"></i>', '<i class="fa-solid fa-list" aria-hidden="true"></i>'),
        ('<div role="doc-biblioentry">', '<div role="listitem">'),
        ('<summary aria-label="Toggle hidden content">', "<summary>"),
        ('<section class="lemma-content" id="proof-content">', '<section class="lemma-content">'),
        ('<section id="exercise-content">', '<section class="exercise-content">'),
        (
            '<div class="proof admonition" id="proof">\n<p>Proof. Split it.</p>',
            '<div class="proof admonition" role="group" aria-label="Proof"><p><em>Proof.</em> Split it.</p>',
        ),
        ('<p class="far">as it was</p>', '<p class="far">as it was</p>'),
    ],
)
def test_mending_names_what_has_no_name_and_does_it_once(broken, whole):
    assert accessibility.mended(broken) == whole
    assert accessibility.mended(whole) == whole


def test_description_is_cut_between_words():
    text = "word " * 60
    short = descriptions.shortened(text)
    assert len(short) <= descriptions.LONGEST + 2
    assert short.endswith("word …")
    assert descriptions.shortened("a short one") == "a short one"


def test_bundle_mends_paths_and_drops_unused_icons(tmp_path):
    (tmp_path / "css").mkdir()
    sheet = '/* note */ .a { src: url("../fonts/x.woff2") } .fa-bars:before{content:"b"}.fa-rocket:before{content:"r"}'
    (tmp_path / "css" / "a.css").write_text(sheet)
    bundled = styles.sheet_for_bundle(tmp_path, "css/a.css", {"fa-bars"})
    assert "url(fonts/x.woff2)" in bundled
    assert "note" not in bundled
    assert ".fa-bars" in bundled
    assert ".fa-rocket" not in bundled


def test_executed_chapters_are_kept_until_their_code_changes(tmp_path, monkeypatch):
    build = load_build()
    kept, stale = tmp_path / ".jupyter_cache" / "global.db", tmp_path / "html" / "reports" / "formats.err.log"
    for path in (kept, stale):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    monkeypatch.setattr(build, "code_digest", lambda: "one")
    build.refresh_store(tmp_path)
    assert not kept.exists(), "a store of unknown code was trusted"
    assert not stale.exists()
    kept.parent.mkdir()
    kept.touch()
    build.refresh_store(tmp_path)
    assert kept.exists(), "the same code asked for another execution"
    monkeypatch.setattr(build, "code_digest", lambda: "two")
    build.refresh_store(tmp_path)
    assert not kept.exists(), "a change of the library left old results in the book"


def test_key_of_the_store_covers_library_labkit_and_pictures():
    build = load_build()
    names = {path.relative_to(build.PROJECT).as_posix() for path in build.code_files()}
    assert {"solutions/fp4kv/__init__.py", "labs/labkit/src/labkit/formats.py", "book/pictures/snr.py"} <= names
    assert any(name.endswith(".npz") for name in names)


def test_build_is_strict():
    build = load_build()
    assert {"-n", "-W", "--all"} <= set(build.command(BOOK))


def test_message_that_students_read_about_is_the_real_one():
    with pytest.raises(Mismatch) as caught:
        expect_codes(np.array(1, np.uint8), np.array(2, np.uint8), given=0.75)
    text = (BOOK / "students.md").read_text(encoding="utf-8")
    assert "\n".join(caught.value.lines()) in text


def test_statuses_that_students_read_about_are_all_there_are():
    text = (BOOK / "students.md").read_text(encoding="utf-8")
    assert [status for status in STATUSES if f"| `{status}` |" not in text] == []


def test_commands_of_the_pages_exist():
    commands = set(re.findall(r"autograder ([a-z-]+)", (BOOK / "instructors.md").read_text(encoding="utf-8")))
    assert commands - set(command_line.commands) == set()
    unnamed = set(command_line.commands) - commands - {"sample-class", "new-lab"}  # for authors
    assert unnamed == set()


@pytest.mark.parametrize(
    ("formula", "after", "unbroken"),
    [("2^k", ". Then", ["2^k."]), ("2^k", " then", []), ("a" * 40, ". Then", [])],
    ids=["short", "no punctuation", "long"],
)
def test_full_stop_stays_with_a_short_formula(formula, after, unbroken):
    tree = new_document("page")
    tree += nodes.paragraph("", "", nodes.Text("It is "), nodes.math(formula, formula), nodes.Text(after))
    text = tree.astext()
    mathematics.keep_punctuation(None, tree)
    assert [node.astext() for node in tree.findall(nodes.inline)] == unbroken
    assert tree.astext() == text
