"""What travels to a worker and back: bytes, whole, and never the secret."""

import nbformat
import pytest

from autograder.classroom.payload import Payload, pack_graded, pack_task, unpack_graded, unpack_task
from autograder.errors import CourseError
from autograder.grading import Graded
from autograder.intake import Submission
from autograder.outcome import CheckResult, Outcome

SUBMISSION = Submission({"lab.ipynb": b"{}", "data/ä.bin": bytes(range(256)), "empty": b""}, ("a link: left out",))


def payload() -> Payload:
    return Payload("/srv/course", "lab02_formats", "0" * 64, "ada", {"encode_e2m1-ties": "00ff"}, SUBMISSION)


def outcome() -> Outcome:
    check = CheckResult("encode_e2m1-ties", 2.0, 2.0, "passed")
    return Outcome("ada", "lab02_formats", "ab", "cd", "graded", [check], notes=["répair"])


def test_a_task_comes_out_as_it_went_in():
    assert unpack_task(pack_task(payload())) == payload()


def test_a_submission_keeps_its_digest_on_the_way():
    assert unpack_task(pack_task(payload())).submission.digest == SUBMISSION.digest


@pytest.mark.parametrize(
    "notebook", [None, nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("é", id="a")])]
)
def test_a_result_comes_out_as_it_went_in(notebook):
    back = unpack_graded(pack_graded(Graded(outcome(), notebook)))

    assert back.outcome == outcome()
    assert back.notebook == notebook


def test_what_is_no_payload_is_our_fault():
    with pytest.raises(CourseError, match="expected a zip"):
        unpack_task(b"\x80\x04N.")
