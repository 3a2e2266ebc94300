"""What comes back from a launch is the student's: whatever it is, it ends in a value or a fault."""

import re

import numpy as np
import pytest

from autograder.errors import CourseError, SandboxError
from autograder.limits import Limits
from autograder.native import runs
from autograder.native.booth import Ended
from autograder.native.faults import KINDS, STATUSES, NativeFault, of_compilation, of_launch
from autograder.native.runs import Native

SOURCE = 'extern "C" __global__ void k(float* x) {\n    x[0] = 1;\n}'
COUNTS = dict.fromkeys(runs.COUNTS, 3)


@pytest.fixture
def answered(tmp_path, monkeypatch):
    """A function that runs a kernel whose launch gives an answer, and returns what the check would see."""

    def run(answer):
        native = Native(tmp_path, Limits(), "bubblewrap", lambda: 60.0)
        native.compiled[SOURCE, ("k",), True] = {}
        monkeypatch.setattr(runs, "ask", lambda *_: answer)
        return native.run(SOURCE, ("k", (1,), (1,), (np.zeros(2, np.float32),)))

    return run


GARBAGE = [
    {},
    {"runs": 5},
    {"runs": []},
    {"runs": [None]},
    {"runs": [{"arrays": 1, "traffic": []}]},
    {"runs": [{"arrays": [np.zeros(2, np.float32)], "traffic": []}]},
    {"runs": [{"arrays": [np.zeros(3, np.float32)], "traffic": [[]]}]},
    {"runs": [{"arrays": [np.zeros(2, np.float64)], "traffic": [[]]}]},
    {"runs": [{"arrays": ["text"], "traffic": [[]]}]},
    {"runs": [{"arrays": [], "traffic": [[]]}]},
    {
        "runs": [
            {"arrays": [np.zeros(2, np.float32)], "traffic": [[{"space": "local", "verb": "reads", "counts": COUNTS}]]}
        ]
    },
    {"runs": [{"arrays": [np.zeros(2, np.float32)], "traffic": [[{"space": [], "verb": "reads", "counts": COUNTS}]]}]},
    {
        "runs": [
            {"arrays": [np.zeros(2, np.float32)], "traffic": [[{"space": "global", "verb": "reads", "counts": {}}]]}
        ]
    },
    {
        "runs": [
            {
                "arrays": [np.zeros(2, np.float32)],
                "traffic": [[{"space": "global", "verb": "reads", "counts": COUNTS | {"bytes": float("inf")}}]],
            }
        ]
    },
    {"error": 3},
    {"error": {}},
    {"error": {"kind": "missing_tool", "text": "forged", "line": None}},
    {"error": {"kind": ["race"], "line": "7", "text": {"deep": []}}},
]


GARBAGE += [
    {
        "runs": [
            {
                "arrays": [np.zeros(2, np.float32)],
                "traffic": [[{"space": "global", "verb": "reads", "counts": COUNTS | {"bytes": count}}]],
            }
        ]
    }
    for count in (-1, 10**400, 1 << 53, 1.0, True, "3", None, np.zeros(2))
]


@pytest.mark.parametrize("answer", GARBAGE, ids=range(len(GARBAGE)))
def test_a_malformed_answer_is_a_fault_and_no_error_of_ours(answered, answer):
    with pytest.raises(NativeFault) as fault:
        answered(answer)
    assert fault.value.status in {"crashed", "failed"}
    assert fault.value.hidden


def test_an_answer_of_the_right_form_is_data(answered):
    after = np.array([1, 2], np.float32)
    lines = [{"space": "global", "verb": "reads", "counts": COUNTS}] * 2
    (run,) = answered({"runs": [{"arrays": [after], "traffic": [lines]}]})
    assert run._after[0] is after
    assert run.traffic[0]["global", "reads"]["bytes"] == run.traffic[0].global_bytes == 6
    assert run.traffic[0].moved_bytes == 6 * 32


@pytest.mark.parametrize("status", ["timed_out", "crashed", "out_of_memory"])
def test_a_sandbox_that_ended_gives_its_status(answered, status):
    with pytest.raises(NativeFault) as fault:
        answered(Ended(status, "why"))
    assert fault.value.status == status


@pytest.mark.parametrize("kind", KINDS)
def test_a_hidden_check_says_kind_and_line_and_nothing_that_was_reported(kind):
    error = {"kind": kind, "line": 2, "text": "x[1234567] of a secret array\n  in thread (99, 0, 0)"}
    fault = of_launch(error, SOURCE)
    assert fault.hidden == [f"got      {KINDS[kind]}", "line 2   x[0] = 1;"]
    assert "1234567" in " ".join(fault.revealed)


def test_every_kind_of_fault_in_the_corpus_has_words(project):
    texts = [path.read_text() for path in (project / "tests/labkit/cuda/corpus/broken").glob("*.cu")]
    kinds = {kind for text in texts for kind in re.findall(r"^// expect: (\w+)", text, re.M)}
    assert len(kinds) > 15
    assert kinds <= {*KINDS, *STATUSES}


@pytest.mark.parametrize("line", [0, 4, -1, 10**9, "2", True, None, 2.0])
def test_a_line_that_is_none_is_not_quoted(line):
    assert len(of_launch({"kind": "race", "line": line, "text": ""}, SOURCE).hidden) == 1


def test_a_kind_that_is_made_up_is_not_quoted():
    fault = of_launch({"kind": "the secret is 42", "line": None, "text": ""}, SOURCE)
    assert fault.hidden == ["got      a fault"]


def test_a_compilation_that_ends_in_an_unforeseen_way_is_the_sources_failure():
    said = {"kind": "unreadable", "line": None, "text": "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff"}
    fault = of_compilation(said, SOURCE)
    assert (fault.status, fault.hidden) == ("crashed", ["got      the compiler ended without a result"])


@pytest.mark.parametrize("kind", ["missing_tool", "runner"])
def test_a_machine_that_cannot_compile_is_no_verdict(kind):
    with pytest.raises(SandboxError, match="no g\\+\\+"):
        of_compilation({"kind": kind, "line": None, "text": "no g++"}, SOURCE)


@pytest.mark.parametrize("spoil", [lambda x: x[::2], lambda x: x.T], ids=["strided", "transposed"])
def test_a_view_is_refused_before_anything_runs(tmp_path, spoil):
    native = Native(tmp_path, Limits(), "bubblewrap", lambda: 60.0)
    with pytest.raises(CourseError, match="expected whole arrays"):
        native.run(SOURCE, ("k", (1,), (1,), (spoil(np.zeros((4, 4), np.float32)),)))


def test_arrays_that_overlap_are_refused(tmp_path):
    native, x = Native(tmp_path, Limits(), "bubblewrap", lambda: 60.0), np.zeros(8, np.float32)
    with pytest.raises(CourseError, match="expected whole arrays"):
        native.run(SOURCE, ("k", (1,), (1,), (x[:4], x[2:6])))
