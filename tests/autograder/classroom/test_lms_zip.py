"""Zips as Canvas and Moodle make them: who gets which file, what is refused, what late means."""

import stat
import zipfile
from datetime import datetime

import pytest

from autograder import cli
from autograder.classroom import collect, lms_zip, roster
from autograder.classroom.lms_zip import parse_name
from autograder.classroom.roster import Person
from autograder.errors import UsageError

LAB = "lab01_halves"
FILE = f"{LAB}.ipynb"


@pytest.fixture
def course(released_course):
    """A released course with two students who have numbers in the LMS."""
    roster.enter(released_course, [Person("ada", lms_user_id="11"), Person("bo", lms_user_id="22")])
    return released_course


@pytest.fixture
def pack(tmp_path):
    """Write a zip of (name or ZipInfo, text) pairs and return its path."""

    def pack(*entries):
        path = tmp_path / "submissions.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for name, text in entries:
                entry = zipfile.ZipInfo(name) if isinstance(name, str) else name  # 1980: a zip without times
                archive.writestr(entry, text, zipfile.ZIP_DEFLATED)
        return path

    return pack


def dated(name: str, *moment: int) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(name, date_time=(*moment, 0, 0, 0)[:6])


def collected(course) -> dict[str, str]:
    """Return the text of each file in course/submitted, by its path there."""
    return {
        path.relative_to(course.submitted).as_posix(): path.read_text()
        for path in sorted(course.submitted.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize(
    ("name", "lms_id", "file", "late"),
    [
        ("lovelaceada_11_902_lab01_halves.ipynb", "11", FILE, False),
        ("lovelaceada_LATE_11_902_lab01_halves.ipynb", "11", FILE, True),
        ("lovelaceada_11_902_lab01_halves-2.ipynb", "11", FILE, False),
        ("lovelaceada_11_902_my notes_v2.txt", "11", "my notes_v2.txt", False),
        ("Ada Lovelace_11_assignsubmission_file_/lab01_halves.ipynb", "11", FILE, False),
        ("Ada Lovelace_11_assignsubmission_file/lab01_halves.ipynb", "11", FILE, False),
        ("Group A/Ada Lovelace_11_assignsubmission_file_lab01_halves.ipynb", "11", FILE, False),
    ],
)
def test_parse_name_finds_student_and_file(name, lms_id, file, late):
    attempt = parse_name(zipfile.ZipInfo(name))

    assert (attempt.lms_id, attempt.name, attempt.late) == (lms_id, file, late)


@pytest.mark.parametrize(
    "name",
    [
        FILE,
        "lovelaceada_lab01_halves.ipynb",
        "Ada_11_assignsubmission_file_/../../ada/evil.ipynb",
        "Ada_11_onlinetext.html",
    ],
)
def test_parse_name_knows_no_other(name):
    assert parse_name(zipfile.ZipInfo(name)) is None


def test_each_student_gets_their_file(course, pack):
    found = lms_zip.from_zip(
        course, LAB, pack((f"a_11_1_{FILE}", "Ada's"), (f"Bo B_22_assignsubmission_file_/{FILE}", "Bo's"))
    )

    assert (found.collected, found.refused) == (["ada", "bo"], [])
    assert collected(course) == {f"ada/{LAB}/{FILE}": "Ada's", f"bo/{LAB}/{FILE}": "Bo's"}


def test_the_latest_attempt_wins_whatever_the_order(course, pack):
    path = pack(
        (f"a_11_30_{LAB}-2.ipynb", "third"),
        (f"a_11_10_{FILE}", "first"),
        (f"a_11_20_{LAB}-1.ipynb", "second"),
        ("a_11_31_notes.txt", "beside"),
    )

    lms_zip.from_zip(course, LAB, path)

    assert collected(course) == {f"ada/{LAB}/{FILE}": "third", f"ada/{LAB}/notes.txt": "beside"}


def test_collecting_again_replaces_the_whole_submission(course, pack):
    lms_zip.from_zip(course, LAB, pack((f"a_11_1_{FILE}", "old"), ("a_11_2_left over.txt", "old")))
    lms_zip.from_zip(course, LAB, pack((f"a_11_3_{FILE}", "new")))

    assert collected(course) == {f"ada/{LAB}/{FILE}": "new"}


def test_an_older_zip_does_not_undo_a_newer_attempt(course, pack):
    lms_zip.from_zip(course, LAB, pack((dated(f"a_11_2_{FILE}", 2026, 5, 2), "new")))
    found = lms_zip.from_zip(course, LAB, pack((dated(f"a_11_1_{FILE}", 2026, 5, 1), "old")))

    assert found.collected == []
    assert "ada" in found.refused[0]
    assert collected(course)[f"ada/{LAB}/{FILE}"] == "new"


def test_the_time_of_the_latest_file_is_when_it_was_handed_in(course, pack):
    lms_zip.from_zip(
        course, LAB, pack((dated(f"a_11_1_{FILE}", 2026, 5, 1), "x"), (dated("a_11_2_b.py", 2026, 5, 2), "x"))
    )

    assert collected(course)[f"ada/{LAB}/timestamp.txt"] == "2026-05-02 00:00:00.000000 UTC\n"


@pytest.mark.parametrize(
    ("name", "moment", "expected"),
    [
        (f"a_LATE_11_1_{FILE}", (2026, 5, 1), "2026-05-20 12:00:01.000000 UTC\n"),
        (f"a_LATE_11_1_{FILE}", (2026, 6, 1), "2026-06-01 00:00:00.000000 UTC\n"),
        (f"a_LATE_11_1_{FILE}", (1980, 1, 1), "2026-05-20 12:00:01.000000 UTC\n"),
        (f"a_11_1_{FILE}", (2026, 5, 1), "2026-05-01 00:00:00.000000 UTC\n"),
    ],
    ids=["late by its name", "late by both", "late without a time", "in time"],
)
def test_what_the_lms_calls_late_is_after_the_due_date(name, moment, expected, course, pack):
    collect.set_due(course, LAB, "2026-05-20T14:00+02:00")

    lms_zip.from_zip(course, LAB, pack((dated(name, *moment), "x")))

    assert collected(course)[f"ada/{LAB}/timestamp.txt"] == expected


def test_a_zip_without_times_gives_none(course, pack):
    lms_zip.from_zip(course, LAB, pack((dated(f"a_11_1_{FILE}", 1980, 1, 1), "x")))

    assert set(collected(course)) == {f"ada/{LAB}/{FILE}"}


def test_the_late_time_reaches_the_gradebook_as_nbgrader_reads_it(course, pack):
    from nbgrader.utils import parse_utc

    collect.set_due(course, LAB, "2026-05-20T12:00")
    lms_zip.from_zip(course, LAB, pack((dated(f"a_LATE_11_1_{FILE}", 2026, 5, 1), "x")))

    assert parse_utc(collected(course)[f"ada/{LAB}/timestamp.txt"].strip()) == datetime(2026, 5, 20, 12, 0, 1)


def link(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    return entry


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("no_such_shape.ipynb", "Canvas or Moodle"),
        (f"../../../a_11_1_{FILE}/../../evil.ipynb", "Canvas or Moodle"),
        (link(f"a_11_1_{FILE}"), "link"),
        ("a_11_1_timestamp.txt", "file name"),
        (f"a_99_1_{FILE}", "lms_user_id"),
    ],
    ids=["no LMS", "a path out", "a link", "a forged time", "a stranger"],
)
def test_what_cannot_be_taken_is_refused_and_harms_nobody(entry, reason, course, pack):
    found = lms_zip.from_zip(course, LAB, pack((entry, "/etc/passwd"), (f"b_22_5_{FILE}", "Bo's")))

    assert found.collected == ["bo"]
    assert len(found.refused) == 1
    assert reason in found.refused[0][1]
    assert collected(course) == {f"bo/{LAB}/{FILE}": "Bo's"}


def test_a_path_in_a_canvas_name_never_leaves_the_folder(course, pack):
    lms_zip.from_zip(course, LAB, pack((f"../../a_11_1_{FILE}", "x")))

    assert set(collected(course)) == {f"ada/{LAB}/{FILE}"}


def test_a_bomb_is_refused_by_what_it_unpacks_to(course, pack):
    found = lms_zip.from_zip(course, LAB, pack((f"a_11_1_{FILE}", b"\0" * (40 << 20)), (f"b_22_5_{FILE}", "Bo's")))

    assert found.collected == ["bo"]
    assert "32 MiB" in found.refused[0][1]


def test_a_bomb_that_lies_about_its_size_is_cut_off(course, pack):
    path = pack((f"a_11_1_{FILE}", b"\0" * (40 << 20)), (f"b_22_5_{FILE}", "Bo's"))
    data = path.read_bytes()
    path.write_bytes(data.replace((40 << 20).to_bytes(4, "little"), (1 << 10).to_bytes(4, "little")))

    found = lms_zip.from_zip(course, LAB, path)

    assert found.collected == ["bo"]
    assert found.refused[0][0] == f"a_11_1_{FILE}"


def test_litter_of_archives_is_left_out_in_silence(course, pack):
    found = lms_zip.from_zip(course, LAB, pack((f"__MACOSX/._a_11_1_{FILE}", "x"), (".DS_Store", "x")))

    assert (found.collected, found.refused) == ([], [])


def test_what_is_no_zip_is_wrong_usage(course, tmp_path):
    path = tmp_path / "not.zip"
    path.write_text("no zip")

    with pytest.raises(UsageError, match="expected a zip"):
        lms_zip.from_zip(course, LAB, path)


def test_the_command_lists_what_it_refused_and_leaves_with_1(course, pack, capsys):
    path = pack((f"a_11_1_{FILE}", "Ada's"), ("stray.txt", "x"))

    assert cli.run(["collect", LAB, str(path), "--course", str(course.root)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "collected 1 submissions",
        "refused stray.txt: expected a name as Canvas or Moodle give it",
    ]
