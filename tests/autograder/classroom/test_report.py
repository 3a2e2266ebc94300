"""The instructor's page: numbers that are right, texts that are inert, nothing from another host."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from autograder import cli
from autograder.classroom import report, roster
from autograder.classroom.histogram import histogram
from autograder.classroom.roster import Person
from autograder.errors import UsageError
from autograder.lab import load_lab
from autograder.outcome import CheckResult, Outcome

LAB = "lab01_halves"
LIVE = '<script>alert(1)</script><img src="https://example.org/x.png">'


class Page(HTMLParser):
    """Collects what a browser would load or run, the table headers, and the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags, self.addresses, self.headers_without_scope, self.text = [], [], 0, ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "href", "data", "action", "srcset")]
        self.headers_without_scope += tag == "th" and "scope" not in attributes

    def handle_data(self, data):
        self.text += data


def outcome(lab, student: str, statuses: dict[str, str], **fields) -> Outcome:
    checks = [
        CheckResult(
            c.id, c.points if statuses.get(c.id, "passed") == "passed" else 0.0, c.points, statuses.get(c.id, "passed")
        )
        for c in lab.checks
    ]
    return Outcome(student, LAB, "h", lab.version, "graded", checks, **fields)


@pytest.fixture
def course(released_course):
    """A class of four outcomes on file: full marks, two misconceptions, one not gradable; one who did nothing."""
    lab = load_lab(released_course, LAB)
    roster.enter(released_course, [Person("ada", "Ada", "A"), Person("eve")])
    found = [
        outcome(lab, "ada", {}),
        outcome(lab, "bo", {"halve-refuses": "failed"}, notes=[LIVE], suspicions=[f"cell 3 mentions {LIVE}"]),
        outcome(lab, "cy", {"halve-refuses": "failed", "halve_all-values": "timed_out"}),
        Outcome("di", LAB, "h", lab.version, "not_graded", reason=f"not JSON {LIVE}", fault="submission"),
    ]
    found[1].checks[1].message = LIVE
    for each in found:
        each.write(released_course.outcome_file(LAB, each.student))
    return released_course


@pytest.fixture
def page(course) -> Page:
    return Page(report.page(report.gather(course, LAB)))


def test_checks_are_counted_by_status(course):
    checks = {check.id: check for check in report.gather(course, LAB).checks}

    assert [(checks[id].passed, checks[id].graded) for id in ("halve-values", "halve-refuses", "halve_all-values")] == [
        (3, 3),
        (1, 3),
        (2, 3),
    ]
    assert checks["halve_all-values"].others == [("timed out", 1)]
    assert checks["halve-refuses"].losers == ["bo", "cy"]


def test_the_most_lost_check_comes_first_with_its_misconception(course, page):
    found = report.gather(course, LAB)

    assert [check.id for check in found.misunderstood] == ["halve-refuses", "halve_all-values"]
    assert "halves infinity" in page.text


def test_who_attempted_nothing_has_misunderstood_nothing(course):
    lab = load_lab(course, LAB)
    outcome(lab, "fay", {check.id: "failed" for check in lab.checks}).write(course.outcome_file(LAB, "fay"))

    found = report.gather(course, LAB)

    assert found.n_idle == 1
    assert not any("fay" in check.losers for check in found.checks)
    assert [check.id for check in found.misunderstood] == ["halve-refuses", "halve_all-values"]
    assert "1 who passed no check at all" in Page(report.page(found)).text


def test_who_was_not_graded_is_named_with_the_reason_and_has_no_points(course, page):
    found = report.gather(course, LAB)

    assert [(row.student, row.points_text) for row in found.not_graded] == [("di", "–")]
    assert "not JSON" in page.text


def test_who_handed_in_nothing_is_named(course, page):
    assert [mark.student for mark in report.gather(course, LAB).missing] == ["eve"]
    assert "Handed in nothing" in page.text


def test_who_was_graded_by_other_checks_is_marked(course):
    old = replace(outcome(load_lab(course, LAB), "ada", {}), lab_version="older")
    old.write(course.outcome_file(LAB, "ada"))

    (row,) = [row for row in report.gather(course, LAB).rows if row.student == "ada"]

    assert row.is_stale
    assert any("other checks" in remark for remark in row.remarks)


def test_what_students_wrote_is_text(page):
    assert "script" not in page.tags
    assert "img" not in page.tags
    assert page.text.count("<script>alert(1)</script>") >= 3


def test_the_page_loads_nothing(page, course):
    assert page.addresses == []
    assert not re.search(r"@import|url\(", report.page(report.gather(course, LAB)))
    assert "link" not in page.tags


def test_tables_tell_a_screen_reader_what_their_headers_head(page):
    assert page.tags.count("th") > 10
    assert page.headers_without_scope == 0


def test_the_picture_is_described_in_words(course):
    html = report.page(report.gather(course, LAB))

    assert re.search(r'<svg [^>]*role="img" aria-label="students by points: [^"]+"', html)


def test_a_class_that_was_not_graded_has_no_report(released_course):
    with pytest.raises(UsageError, match="autograder grade"):
        report.gather(released_course, LAB)


def test_the_command_writes_the_page_and_prints_the_class(course, capsys):
    assert cli.run(["report", LAB, "--course", str(course.root)]) == 0

    told = capsys.readouterr().out
    assert (course.private / "reports" / f"{LAB}.html").is_file()
    for word in ("ada", "not graded", "halve-refuses", "1 / 3"):
        assert word in told


@pytest.mark.parametrize(
    ("totals", "max_score", "counts"),
    [
        ([], 10, [0] * 10),
        ([0, 0.99, 1, 9.99, 10], 10, [2, 1, 0, 0, 0, 0, 0, 0, 0, 2]),
        ([0], 0, [1] + [0] * 9),
    ],
    ids=["nobody", "edges", "a lab without points"],
)
def test_histogram_counts_everyone_once(totals, max_score, counts):
    assert [bar.count for bar in histogram(totals, max_score).bars] == counts
