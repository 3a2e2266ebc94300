"""What a hidden check asks is not seen outside: after the curtain only verdicts leave."""

import pytest

pytestmark = pytest.mark.sandbox

SEEN = ("27182818", "54365636", "2.7182818", "5.4365636")  # the hidden input, and twice of it
TELL = {
    "prints": "print(x)",
    "prints to stderr": "import sys; print(x, file=sys.stderr, flush=True)",
    "writes to descriptors": "import os; os.write(1, repr(x).encode()); os.write(2, repr(x).encode())",
    "displays": "display(x)",
    "raises": "raise ValueError(x)",
    "raises a class of that name": "raise type(repr(x), (Exception,), {})",
    "raises not implemented": "raise NotImplementedError(x)",
    "returns": "return x",
    "returns a class of that name": "return type(repr(x), (), {})()",
    "returns text": "return repr(x)",
    "returns a key": "return {repr(x): 1}",
    "warns": "import warnings; warnings.warn(repr(x))",
    "logs": "import logging; logging.error(repr(x))",
    "exits": "import sys; sys.exit(repr(x))",
    "dies with words": "import os, sys; os.write(2, repr(x).encode()); os._exit(1)",
    "aborts": "import faulthandler, os; faulthandler.enable(); print(x, flush=True); os.abort()",
    "prints later": "import threading; threading.Timer(0.2, print, [x]).start()",
    "sends an output of an earlier cell": "kernel = get_ipython().kernel\n"
    "    kernel.session.send(kernel.iopub_socket, 'stream', {'name': 'stdout', 'text': repr(x)}, parent=PARENT)",
    "forges a reply to a later call": "kernel = get_ipython().kernel\n"
    "    kernel.session.send(kernel.shell_stream, 'judge_reply', {'text': repr(x)}, parent=PARENT, ident=IDENT)",
    "names a process": "import ctypes; ctypes.CDLL(None).prctl(15, repr(x).encode()[:15], 0, 0, 0)",
}
DOUBLE = """
import os
kernel = get_ipython().kernel
PARENT = dict(kernel.get_parent())
IDENT = kernel._parent_ident.get("shell", [])
def double(x):
    if np.max(x) < 1000: return 2 * x
    TELL
    return 2 * x
"""


def assert_unseen(trial) -> None:
    assert not [number for number in SEEN if number in trial.text], trial.text


@pytest.mark.parametrize("way", TELL)
def test_hidden_input_is_not_told(try_cells, way):
    trial = try_cells(DOUBLE.replace("TELL", TELL[way]))
    assert_unseen(trial)
    assert trial.status["double-shown"] == "passed", trial.text
    assert trial.points("total") == 3, trial.text


def test_hidden_messages_are_the_same_for_every_way_to_fail(try_cells):
    ways = ["raise ValueError('a')", "return 'b'", "return x", "raise type('c', (KeyError,), {})", "return object()"]
    messages = {try_cells(DOUBLE.replace("TELL", way)).message["double-hidden"] for way in ways}
    assert messages == {
        "double: Large numbers are doubled.\na hidden case gave another result than expected\n"
        "hint     also large numbers"
    }


def test_kernel_that_is_started_after_the_curtain_stays_behind_it(try_cells):
    """Whatever a hidden call leaves behind, the cells of the next kernel cannot bring it out."""
    double = DOUBLE.replace("TELL", "open('/tmp/x', 'w').write(repr(x)); os._exit(1)")
    speak = "import glob\nfor path in glob.glob('/tmp/x') + glob.glob('/w/*'): print(open(path).read())\n"
    trial = try_cells(double, before=speak, after=speak + "print('cells ran')")
    assert_unseen(trial)
    assert trial.status["double-hidden"] == "crashed"
    assert trial.printed(9) == "cells ran\n"
    assert trial.judgement.notes == []


def test_revealed_checks_run_before_any_hidden_one(try_cells):
    double = "seen = []\ndef double(x):\n    seen.append(x)\n    return repr(seen) if len(seen) > 1 else 2 * x\n"
    trial = try_cells(double, total="def total(x):\n    raise ValueError(seen)\n")
    assert_unseen(trial)
    assert trial.points("double") == 1, trial.text


def test_time_of_a_hidden_check_is_rounded_to_powers_of_two(try_cells):
    trial = try_cells(DOUBLE.replace("TELL", "import time; time.sleep(0.3)"))
    seconds = {result.id: result.seconds for result in trial.judgement.results}
    assert seconds["double-hidden"] in (1.0, 2.0, 4.0)
    assert seconds["double-shown"] < 1
    assert trial.judgement.seconds % 1 == 0, "the time of all would tell what was rounded off"


def test_revealed_check_shows_input_expected_got_and_hint(try_cells):
    trial = try_cells("def double(x):\n    return x + 1\n")
    lines = trial.message["double-shown"].split("\n")
    assert lines[0] == "double: Each number is doubled."
    assert [line.split()[0] for line in lines[1:]] == ["given", "expected", "got", "hint"]


def test_revealed_error_names_the_call(try_cells):
    trial = try_cells("def double(x):\n    raise KeyError('nö')\n")
    assert "given    double([" in trial.message["double-shown"]
    assert "got      KeyError: 'nö'" in trial.message["double-shown"]


def test_words_of_a_student_are_made_printable_and_short(try_cells):
    trial = try_cells("def double(x):\n    raise ValueError('\\x1b[31m\\u202e<script>\\r\\n' + 'x' * 10_000)\n")
    message = trial.message["double-shown"]
    assert len(message) < 1000
    assert all(line.isprintable() for line in message.split("\n"))
