"""Reading a submission's folder: what counts, what is left out, what cannot be read at all."""

import os
import socket

import pytest

from autograder.errors import SubmissionError
from autograder.intake import folder as intake_folder
from autograder.intake.folder import Submission, read_folder, read_notebook


def test_read_folder_returns_files_by_relative_path(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "lab.ipynb").write_bytes(b"{}")
    (tmp_path / "sub" / "helper.py").write_bytes(b"x = 1")
    found = read_folder(tmp_path)
    assert found.files == {"lab.ipynb": b"{}", "sub/helper.py": b"x = 1"}
    assert found.notes == ()


def test_read_folder_leaves_out_what_archives_and_collect_add(tmp_path):
    for name in (".ipynb_checkpoints", "__MACOSX", "__pycache__"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "lab.ipynb").write_bytes(b"{}")
    for name in ("timestamp.txt", ".DS_Store"):
        (tmp_path / name).write_bytes(b"2026-01-01")
    assert read_folder(tmp_path) == Submission({}, ())


@pytest.mark.parametrize("kind", ["link", "dangling", "link to a folder", "pipe", "socket"])
def test_read_folder_notes_and_leaves_out(tmp_path, kind):
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "solution.ipynb").write_bytes(b"{}")
    folder = tmp_path / "submission"
    folder.mkdir()
    odd = folder / "lab.ipynb"
    if kind == "link":
        odd.symlink_to(secret / "solution.ipynb")
    elif kind == "dangling":
        odd.symlink_to(secret / "nothing")
    elif kind == "link to a folder":
        odd.symlink_to(secret)
    elif kind == "pipe":
        os.mkfifo(odd)
    else:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(odd))
    found = read_folder(folder)
    assert found.files == {}
    assert len(found.notes) == 1 and "lab.ipynb" in found.notes[0] and "left out" in found.notes[0]


def test_a_submission_that_is_a_link_is_refused(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(SubmissionError, match="expected a folder, got a link"):
        read_folder(tmp_path / "link")


def test_a_submission_that_is_missing_is_refused(tmp_path):
    with pytest.raises(SubmissionError, match="expected a folder, got nothing"):
        read_folder(tmp_path / "nobody")


def test_large_files_are_left_out_and_the_others_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(intake_folder, "MAX_FILE_BYTES", 10)
    (tmp_path / "large.bin").write_bytes(b"0" * 11)
    (tmp_path / "small.bin").write_bytes(b"0" * 10)
    found = read_folder(tmp_path)
    assert list(found.files) == ["small.bin"]
    assert "large.bin" in found.notes[0]


def test_all_files_together_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(intake_folder, "MAX_TOTAL_BYTES", 15)
    for name in ("a.bin", "b.bin"):
        (tmp_path / name).write_bytes(b"0" * 10)
    assert list(read_folder(tmp_path).files) == ["a.bin"]


def test_many_files_cannot_push_the_notebook_out(tmp_path, monkeypatch):
    monkeypatch.setattr(intake_folder, "MAX_FILES", 3)
    for number in range(9):
        (tmp_path / f"a{number}").write_bytes(b"")
    (tmp_path / "lab.ipynb").write_bytes(b"{}")
    found = read_folder(tmp_path)
    assert "lab.ipynb" in found.files and len(found.files) == 3


def test_deep_folders_are_left_out(tmp_path):
    deep = tmp_path.joinpath(*"abcdefgh")
    deep.mkdir(parents=True)
    (deep / "lab.ipynb").write_bytes(b"{}")
    found = read_folder(tmp_path)
    assert found.files == {} and "nested deeper" in found.notes[0]


@pytest.mark.parametrize("name", [b"\xe9t\xe9.txt", b"new\nline.txt", b"bell\x07.txt"])
def test_names_that_are_no_text_are_left_out(tmp_path, name):
    with open(os.path.join(os.fsencode(tmp_path), name), "wb"):  # noqa: PTH118, PTH123  (pathlib takes no bytes)
        pass
    found = read_folder(tmp_path)
    assert found.files == {} and "not printable" in found.notes[0]
    found.notes[0].encode("utf-8")


def test_names_are_normalised(tmp_path):
    (tmp_path / "u\u0308bung.txt").write_bytes(b"1")
    assert read_folder(tmp_path).files == {"\u00fcbung.txt": b"1"}


def test_digest_tells_names_and_bytes_apart():
    digests = {Submission(files).digest for files in ({"ab": b"c"}, {"a": b"bc"}, {"a": b"", "b": b"c"}, {})}
    assert len(digests) == 4
    assert Submission({"a": b"1", "b": b"2"}).digest == Submission({"b": b"2", "a": b"1"}, ("note",)).digest


def test_read_notebook_takes_one_file(tmp_path):
    path = tmp_path / "mine.ipynb"
    path.write_bytes(b"{}")
    assert read_notebook(path).files == {"mine.ipynb": b"{}"}


@pytest.mark.parametrize("name", ["pipe", "/dev/zero"])
def test_read_notebook_waits_for_no_pipe_and_no_device(tmp_path, name):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SubmissionError, match=r"which is a (pipe|device)"):
        read_notebook(tmp_path / name)


def test_folder_that_cannot_be_listed_costs_itself_alone(tmp_path, monkeypatch):
    """Its listing is refused here by a patch: root may list everything."""
    (tmp_path / "lab.ipynb").write_bytes(b"{}")
    (tmp_path / "locked").mkdir()
    locked, entries = (tmp_path / "locked").stat().st_ino, intake_folder._entries

    def refusing(folder):
        if os.fstat(folder).st_ino == locked:
            raise PermissionError(13, "Permission denied")
        return entries(folder)

    monkeypatch.setattr(intake_folder, "_entries", refusing)
    found = read_folder(tmp_path)
    assert found.files == {"lab.ipynb": b"{}"}
    assert found.notes == ("'locked': left out, it cannot be listed (Permission denied)",)
    with pytest.raises(SubmissionError, match="expected a readable folder"):
        read_folder(tmp_path / "locked")


def test_read_notebook_refuses_an_oversize_file(tmp_path, monkeypatch):
    monkeypatch.setattr(intake_folder, "MAX_NOTEBOOK_BYTES", 3)
    path = tmp_path / "mine.ipynb"
    path.write_bytes(b"1234")
    with pytest.raises(SubmissionError, match="clear its outputs"):
        read_notebook(path)
