"""What a check may do, and whose fault it is when it cannot."""

from typing import NamedTuple

import numpy as np
import pytest
from labkit.expect import expect_raises, expect_values
from labkit.formats import QuantisedE2M1, ScaleRule

from autograder.errors import CourseError, SandboxError, SubmissionError, UsageError
from autograder.sandbox import watchdog

pytestmark = pytest.mark.sandbox


def test_check_without_a_cell_is_bound_at_the_end(ask):
    result, _ = ask(lambda student, cases: expect_values(student.task(2), 4, given=2), "task = lambda x: 2 * x")
    assert (result.status, result.points) == ("passed", 1)


def test_named_tuples_and_enumerations_arrive_as_what_they_are(ask):
    def check(student, cases):
        sent = QuantisedE2M1(np.zeros(16, np.uint8), np.ones(1, np.float32), 1.0)
        kind, rule, back = student.task(sent, ScaleRule.GROUP)
        assert (kind, rule) == ("QuantisedE2M1", True)
        assert type(back) is tuple
        assert back[0].dtype == np.uint8

    source = """
from labkit.formats import ScaleRule
def task(q, rule):
    return type(q).__name__, rule is ScaleRule.GROUP, q
"""
    assert ask(check, source)[0].status == "passed"


def test_keyword_arguments_and_several_functions(ask):
    def check(student, cases):
        expect_values(student.task(2, power=student.other()), 8, given=2)

    source = "def other(): return 3\ndef task(x, power): return x ** power"
    assert ask(check, source, uses=("other",))[0].status == "passed"


def test_arguments_come_back_where_a_check_asks_for_them(ask):
    def check(student, cases):
        x = np.arange(3.0)
        value, (after,) = student.task.and_arguments(x)
        expect_values(value, 1, given=x)
        expect_values(after, x, given=x, hint="the input is left as it was")

    assert ask(check, "def task(x): return 1")[0].status == "passed"
    result, _ = ask(check, "def task(x):\n    x[1] = 9\n    return 1")
    assert result.status == "failed"
    assert "the input is left as it was" in result.message


def test_objects_that_stay_inside_can_be_called(ask):
    def check(student, cases):
        ring = student.task(2)
        ring.append(np.arange(2.0))
        ring.append(np.arange(3.0))
        expect_values(ring.total(), 4.0, given=2)
        expect_values(ring.get("size"), 2, given=2)
        assert ring.kind == "Ring"
        expect_values(student.other(ring), 2, given=2)

    source = """
class Ring:
    def __init__(self, size): self.size, self.items = size, []
    def append(self, x): self.items.append(x)
    def total(self): return float(sum(map(np.sum, self.items)))
task = Ring
def other(ring): return len(ring.items)
"""
    assert ask(check, source, uses=("other",))[0].status == "passed"


def test_object_that_is_no_data_is_called_by_its_own_name(ask):
    source = "class Ring: pass\ndef task(x): return Ring()"
    result, _ = ask(lambda student, cases: expect_values(student.task(1), 1, given=1), source)
    assert "got      an object of type Ring" in result.message


def test_expected_error_is_recognised_across_the_wall(ask):
    def check(student, cases):
        expect_raises(ValueError, lambda: student.task(np.nan), given=np.nan, naming="nan")

    good = "class Odd(ValueError): pass\ndef task(x): raise Odd(f'got {x}')"
    assert ask(check, good)[0].status == "passed"
    for wrong in ("def task(x): return x", "def task(x): raise ValueError('no')", "def task(x): raise KeyError('nan')"):
        assert ask(check, wrong)[0].status == "failed", wrong


def test_lost_kernel_is_no_expected_error(ask):
    def check(student, cases):
        expect_raises(Exception, lambda: student.task(), given=None)

    assert ask(check, "import os\ndef task(): os._exit(1)")[0].status == "crashed"


def test_missing_function_that_a_check_uses_is_skipped(ask):
    def check(student, cases):
        expect_values(student.task(student.other()), 1, given=0)

    for other in ("", "def other(): raise NotImplementedError"):
        result, _ = ask(check, f"{other}\ndef task(x): return x", uses=("other",))
        assert (result.status, result.points) == ("skipped", 0), other
        assert "needs other" in result.message


def test_task_that_calls_an_unattempted_one_fails(ask):
    def check(student, cases):
        expect_values(student.task(), 1, given=0)

    result, _ = ask(check, "def other(): raise NotImplementedError\ndef task(): return other()")
    assert result.status == "failed"
    assert "or a task that it calls" in result.message


def test_check_that_cannot_read_a_value_blames_the_value_and_tells_a_person(ask):
    def check(student, cases):
        _codes, _scales = student.task()

    result, judgement = ask(check, "def task(): return None")
    assert result.status == "failed"
    assert "another kind" in result.message
    assert "could not read a value (TypeError)" in "".join(judgement.suspicions)


def test_check_that_fails_before_any_value_is_our_fault(ask):
    with pytest.raises(CourseError, match=r"task-property: expected the check to run, got ZeroDivisionError"):
        ask(lambda student, cases: 1 / 0, "def task(): return 1")


def test_check_that_calls_what_it_does_not_name_is_our_fault(ask):
    with pytest.raises(CourseError, match="name it in uses="):
        ask(lambda student, cases: student.other(), "def other(): return 1")


def test_argument_that_cannot_travel_is_our_fault(ask):
    with pytest.raises(CourseError, match="expected data"):
        ask(lambda student, cases: student.task(object()), "def task(x): return 1")


def test_named_tuple_of_a_checks_own_arrives_as_a_tuple(ask):
    class Pair(NamedTuple):
        left: int
        right: int

    def check(student, cases):
        expect_values(student.task(Pair(1, 2)), 3, given=(1, 2))

    assert ask(check, "def task(pair):\n    assert type(pair) is tuple\n    return sum(pair)")[0].status == "passed"


ENDLESS = """
import os, socket, threading, time
def flood(descriptor):
    frame = b"\\x03" + (1 << 24).to_bytes(8, "big") + bytes(1 << 24)  # more frames follow, says each
    for _ in range(200):
        rest = memoryview(frame)
        while rest:
            try: rest = rest[os.write(descriptor, rest):]
            except BlockingIOError: time.sleep(0.001)
def task():
    for name in os.listdir("/proc/self/fd"):
        try:
            if socket.socket(fileno=os.dup(int(name))).getpeername() is not None:
                threading.Thread(target=flood, args=(int(name),), daemon=True).start()
        except OSError: pass
    time.sleep(60)
"""


@pytest.mark.slow
def test_message_without_end_does_not_fill_our_memory(ask, monkeypatch):
    monkeypatch.setattr(watchdog, "OWN_GROWTH_BYTES", 64 << 20)
    result, _ = ask(lambda student, cases: student.task(), ENDLESS)
    assert result.status == "crashed"
    assert "too much sent to the judge" in result.message


def test_same_seed_gives_the_same_inputs(ask):
    seen = []

    def check(student, cases):
        seen.append(cases.rng.integers(1 << 30))
        expect_values(student.task(), 1, given=0)

    for seed in (b"a", b"a", b"b"):
        ask(check, "def task(): return 1", seeds=lambda check, seed=seed: seed)
    assert seen[0] == seen[1] != seen[2]


def test_machine_without_bubblewrap_is_no_zero(ask, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxError, match="bwrap"):
        ask(lambda student, cases: None, "")


def test_kernel_that_does_not_start_is_no_zero(ask, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").symlink_to("/bin/false")
    with pytest.raises(SandboxError, match=r"(kernel|sandbox): expected it to start"):
        ask(lambda student, cases: None, "", prefix=tmp_path)


def test_too_many_files_are_the_submissions_fault(ask):
    with pytest.raises(SubmissionError, match="files: expected at most"):
        ask(lambda student, cases: None, "", files={"big": bytes(100 << 20)})


def test_unknown_sandbox_is_wrong_usage(ask):
    with pytest.raises(UsageError, match="sandbox: expected one of"):
        ask(lambda student, cases: None, "", sandbox="docker")
