"""Feedback pages: the verdict is there, nothing is live, nothing is fetched, nothing hidden is told."""

import json
import re

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbgrader.api import Gradebook

from autograder.errors import UsageError
from autograder.gradebook.entrance import grade_folder
from autograder.gradebook.feedback import write_feedback

LAB = "lab01_halves"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
LIVE_TAGS = {"script", "iframe", "object", "embed", "link", "base", "form", "svg", "math", "video", "audio", "source"}
COLOURS = re.compile(r"(?:(?:background-)?color: rgb\([\d, ]+\);? ?)*")
LOCAL_LINK = re.compile(r"#|https?://|mailto:")


def cell_of(notebook, cell_id):
    return next(cell for cell in notebook.cells if cell.id == cell_id)


def grade_notebook(course, notebook, student="ada"):
    folder = course.submitted / student / LAB
    folder.mkdir(parents=True)
    (folder / f"{LAB}.ipynb").write_text(json.dumps(notebook))
    return grade_folder(course, LAB, student, folder)


def page_of(course, student="ada"):
    (path,) = write_feedback(course, LAB, [student])
    assert path == course.feedback / student / LAB / f"{LAB}.html"
    return path.read_text(encoding="utf-8")


def assert_dead(page):
    """Fail on anything in a page that runs, or is fetched when it is opened; plain links are neither."""
    soup = BeautifulSoup(page, "html.parser")
    for tag in soup.find_all(True):
        assert tag.name not in LIVE_TAGS, str(tag)[:200]
        for name, value in tag.attrs.items():
            assert not name.startswith("on") and name not in {"srcset", "action", "background", "poster"}, tag
            assert name != "style" or COLOURS.fullmatch(value), tag
            assert name != "src" or value.startswith("data:image/"), tag
            assert name != "href" or LOCAL_LINK.match(value), tag
        if tag.name == "style":
            assert not re.search(r"@import|url\(\s*['\"]?(?:\w+:)?//", tag.text), tag.text[:200]


def text_of(page):
    return BeautifulSoup(page, "html.parser").body.get_text()


@pytest.mark.sandbox
def test_page_shows_verdicts_points_and_comments(released_course, solved):
    cell_of(solved, "halvings").source = "def halvings():\n    return 4"
    cell_of(solved, "halve").source = "def halve(x):\n    return x"
    grade_notebook(released_course, solved)
    with Gradebook(f"sqlite:///{released_course.root}/gradebook.db", "fp4kv") as book:
        book.find_grade("explain-why", LAB, LAB, "ada").manual_score = 1.5
        book.find_comment("explain-why", LAB, LAB, "ada").manual_comment = "Well **said** <script>x</script>"
        book.db.commit()
    page = page_of(released_course)
    assert "(Score: 1.5 / 8.0)" in page
    assert "halvings-count: failed, 0 of 1 points" in page
    for part in ("expected 3", "got      4", "halve-values: failed, 0 of 2 points", "Well <strong>said</strong>"):
        assert part in page, part
    assert "a hidden case gave another" in page
    outline = BeautifulSoup(page, "html.parser").find(id="toc")
    listed = [item.get_text() for item in outline.find_all("ul")[0].find_all("li")]
    lost = ["halve-values", "halve-refuses", "halve_all-values", "halvings-count"]
    assert [text.split(":")[0] for text in listed] == lost
    assert "explain-why: 1.5 of " in outline.get_text()
    for hidden in ("3.25", "-1.125", "17.5", "40.625"):
        assert hidden not in text_of(page), hidden


@pytest.mark.sandbox
def test_page_is_dead_whatever_was_handed_in(released_course, solved):
    evil = "<script>alert(1)</script><img src=https://evil.example/x.png onerror=alert(1)>"
    cell_of(
        solved, "explain-why-answer"
    ).source = f"{evil}\n\n![x](https://evil.example/y.png) [x](javascript:alert(1))"
    cell_of(solved, "halve-run-1").source = (
        f"# {evil}\nprint({evil!r})\ndisplay({{'text/html': {evil!r}, 'text/plain': {evil!r}}}, raw=True)\n"
        f"display({{'application/javascript': 'alert(1)', 'image/svg+xml': '<svg onload=alert(1)>'}}, raw=True)\n"
        f"class E(Exception): pass\nraise E({evil!r})"
    )
    solved.cells += [nbformat.v4.new_raw_cell(evil), nbformat.v4.new_markdown_cell(evil)]
    solved.metadata["title"] = evil
    grade_notebook(released_course, solved)
    page = page_of(released_course)
    assert_dead(page)
    assert "evil.example" in text_of(page)
    assert "default-src 'none'" in page


@pytest.mark.sandbox
def test_page_keeps_true_pictures(released_course, solved):
    cell_of(solved, "halve-run-1").source = f"display({{'image/png': '{PNG}', 'text/plain': 'a plot'}}, raw=True)"
    answer = cell_of(solved, "explain-why-answer")
    answer.source = "![mine](attachment:mine.png)"
    answer["attachments"] = {"mine.png": {"image/png": PNG}}
    grade_notebook(released_course, solved)
    assert page_of(released_course).count(f'src="data:image/png;base64,{PNG}"') == 2


@pytest.mark.sandbox
def test_page_names_repairs(released_course, solved):
    solved.cells = [cell for cell in solved.cells if cell.id != "halve-values"]
    grade_notebook(released_course, solved)
    assert "halve-values: was deleted, restored" in page_of(released_course)


@pytest.mark.sandbox
def test_pages_are_written_for_all_and_again(released_course, solved):
    for student in ("ada", "bob"):
        grade_notebook(released_course, solved, student)
    assert [path.parts[-3] for path in write_feedback(released_course, LAB)] == ["ada", "bob"]
    assert [path.parts[-3] for path in write_feedback(released_course, LAB)] == ["ada", "bob"]


def test_nothing_graded_is_wrong_usage(released_course):
    with pytest.raises(UsageError, match="autograder grade lab01_halves"):
        write_feedback(released_course, LAB)


@pytest.mark.sandbox
def test_a_student_who_was_not_graded_is_wrong_usage(released_course, solved):
    grade_notebook(released_course, solved)
    with pytest.raises(UsageError, match="bob"):
        write_feedback(released_course, LAB, ["bob"])
