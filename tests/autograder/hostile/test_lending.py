"""What a check lends is used across the wall as it was declared, while the loan lasts, and by nothing else."""

import re
import time

import numpy as np
import pytest
from labkit.expect import expect_close, expect_values
from labkit.replay import ToyNetwork, swa_forward

from autograder.errors import CourseError
from autograder.judging.kernel import GRACE_SECONDS
from autograder.limits import Limits

pytestmark = pytest.mark.sandbox

IN_HASTE = Limits(notebook_seconds=60, call_seconds=2)
OVERHEAD_SECONDS = 15  # a kernel's start on a busy machine, and its end
METHODS, ATTRIBUTES = ("embed", "rows", "attend", "logits"), ("window", "kinds")
TOKENS = np.arange(12)
MOST_CALLS = 1000


class Counting(ToyNetwork):
    """A network that counts the tokens fed to it."""

    def __init__(self):
        super().__init__(layers=3, window=4)
        self.n_embedded = 0

    def embed(self, tokens):
        """Feed tokens."""
        hidden = super().embed(tokens)
        self.n_embedded += len(tokens)
        return hidden


@pytest.fixture
def lending(ask):
    """Judge a function that is given a network; return result, judgement and the networks, the newest last."""

    def run(source, n_embedded, *others, **options):
        networks = []

        def check(student, cases):
            networks.append(Counting())
            lent = cases.lend(networks[-1], methods=METHODS, attributes=ATTRIBUTES, max_calls=MOST_CALLS)
            student.task(lent, TOKENS)
            expect_values(networks[-1].n_embedded, n_embedded, given=TOKENS)

        return *ask(check, source, *others, **options), networks

    return run


FORWARD = """
from labkit.replay import swa_forward
def task(network, tokens):
    return swa_forward(network, tokens).logits
"""


def check_forward(student, cases):
    """The logits are those of the judge's own network."""
    network = Counting()
    found = student.task(cases.lend(network, methods=METHODS, attributes=ATTRIBUTES), TOKENS)
    assert network.n_embedded == len(TOKENS)
    expect_close(found, swa_forward(ToyNetwork(layers=3, window=4), TOKENS).logits, 0, given=TOKENS)


@pytest.mark.parametrize("sandbox", ["bubblewrap", "none"])
def test_lent_network_runs_as_if_it_were_inside(ask, sandbox):
    result, judgement = ask(check_forward, FORWARD, sandbox=sandbox)
    assert (result.status, judgement.suspicions) == ("passed", []), result.message


def test_loans_may_stand_anywhere_among_the_arguments(ask):
    def check(student, cases):
        networks = [Counting() for _ in range(3)]
        first, second, third = (cases.lend(network, methods=("embed",)) for network in networks)
        student.task([first, {"key": (second,)}], named=third)
        assert [network.n_embedded for network in networks] == [1, 2, 3]

    source = """
def task(parts, named):
    for n, network in enumerate([parts[0], parts[1]["key"][0], named]):
        network.embed(np.arange(n + 1))
"""
    assert ask(check, source)[0].status == "passed"


def test_thing_that_is_not_lent_does_not_travel(ask):
    with pytest.raises(CourseError, match=r"expected data, a value that a call returned, or cases.lend"):
        ask(lambda student, cases: student.task(Counting()), "def task(x): return 1")


WRONG_USE = {
    "embeds": ("network.embeds(tokens)", r"AttributeError: Counting: expected one of attend, .*, window, got embeds"),
    "counter": ("network.n_embedded", r"AttributeError: Counting: expected one of attend, .* got n_embedded"),
    "list": ("network.embed(list(tokens))", r"TypeError: Counting.embed: expected arguments that it can use, got list"),
    "floats": ("network.embed(tokens / 2)", r"TypeError: tokens: expected integers, got float64"),
    "range": ("network.embed(tokens + 64)", r"ValueError: tokens: expected 0 to 63, got \d+"),
    "function": ("network.embed(lambda: tokens)", r"TypeError: Counting.embed: expected numbers, .* got function"),
    "itself": ("network.embed(network)", r"TypeError: Counting.embed: expected numbers, .* got Counting is not data"),
    "too much": ("network.embed(np.zeros(10**6, int))", r"ValueError: Counting.embed: expected arguments of at most"),
    "too often": (
        "[network.embed(tokens[:1]) for _ in range(1001)]",
        r"RuntimeError: Counting: expected at most 1000 calls, got more",
    ),
}


@pytest.mark.parametrize("use", WRONG_USE)
def test_wrong_use_is_said_where_the_check_reveals(lending, use):
    body, text = WRONG_USE[use]
    result, _, _ = lending(f"def task(network, tokens): {body}", 0)
    assert result.status == "failed"
    lines = result.message.splitlines()
    assert lines[1].startswith("given    task(Counting, ["), result.message
    assert re.match(f"got      {text}", lines[2]), result.message


def test_wrong_use_is_not_said_where_the_check_is_hidden(lending):
    for body, _ in WRONG_USE.values():
        result, _, _ = lending(f"def task(network, tokens): {body}", 0, reveal=False)
        assert (result.status, result.message.splitlines()[1:]) == (
            "failed",
            ["a hidden case gave another result than expected"],
        )


def test_error_of_a_lent_object_may_be_caught(lending):
    source = """
def task(network, tokens):
    for wrong in (tokens / 2, tokens + 64, [1], None):
        try: network.embed(wrong)
        except (TypeError, ValueError): network.embed(tokens[:1])
"""
    result, judgement, _ = lending(source, 4)
    assert result.status == "passed", result.message
    assert judgement.suspicions == ["task-property: Counting.embed failed (AttributeError); look at what it was given"]


def test_cell_that_makes_errors_of_warnings_feeds_no_token_twice(lending):
    source = """
import warnings
warnings.simplefilter("error")
np.seterr(all="raise")
def task(network, tokens):
    network.embed(tokens)
    return np.float64(1) / np.zeros(1)
"""
    result, _, networks = lending(source, 12)
    assert result.status == "passed", result.message
    assert [network.n_embedded for network in networks] == [12]


def test_stand_in_that_was_kept_is_refused_in_every_later_call(ask):
    networks = []

    def check(student, cases):
        networks.append(Counting())
        if len(networks) == 1:
            assert student.task(cases.lend(networks[0], methods=METHODS)) == "kept"
            found = student.task(None)  # a call that lends nothing
        else:
            found = student.task(cases.lend(networks[-1], methods=METHODS))
        assert found == "RuntimeError: the loan is over: it ends with the call that it was given to"

    def second(student, cases):
        check(student, cases)

    source = """
kept = []
def task(network):
    if not kept:
        kept.append(network)
        network.embed(np.arange(3))
        return "kept"
    try: return kept[0].embed(np.arange(3))
    except Exception as error: return f"{type(error).__name__}: {error}"
"""
    _, judgement = ask(check, source, second)
    assert [result.status for result in judgement.results] == ["passed", "passed"]
    assert [network.n_embedded for network in networks] == [3, 0]


def test_object_that_a_call_left_inside_keeps_the_loan_while_it_is_called(ask):
    network = Counting()

    def check(student, cases):
        session = student.task(cases.lend(network, methods=METHODS))
        session.feed(np.arange(2))
        assert network.n_embedded == 2
        assert student.other(session) == 3
        assert network.n_embedded == 5
        assert session.get("refused") == 0
        assert student.other(None) == "RuntimeError"  # finds the session in a global, and is not given it
        assert network.n_embedded == 5

    source = """
class Session:
    refused = 0
    def __init__(self, network): self.network = network
    def feed(self, tokens): return len(self.network.embed(tokens))
def task(network):
    global session
    session = Session(network)
    return session
def other(given):
    try: return session.feed(np.arange(3))
    except Exception as error: return type(error).__name__
"""
    result, _ = ask(check, source, uses=("other",))
    assert result.status == "passed", result.message


THREAD = """
import threading, time
said = []
def feed(network):
    while len(said) < 50:
        try: network.embed(np.arange(1000)); time.sleep(0.001)
        except Exception as error: said.append(str(error)); time.sleep(0.02)
def task(network):
    if not said: threading.Thread(target=feed, args=(network,), daemon=True).start()
    time.sleep(0.2)
    return sorted(set(said))
"""


def test_thread_that_goes_on_feeds_only_while_its_call_runs(ask):
    def check(student, cases):
        first, second = Counting(), Counting()
        assert student.task(cases.lend(first, methods=METHODS)) == []
        n_fed = first.n_embedded
        assert n_fed > 0
        time.sleep(0.2)
        found = student.task(cases.lend(second, methods=METHODS))
        assert found == ["the loan is over: it ends with the call that it was given to"]
        assert (first.n_embedded, second.n_embedded) == (n_fed, 0)

    result, judgement = ask(check, THREAD.replace("1000", "10"))
    assert (result.status, judgement.suspicions) == ("passed", []), result.message


def test_threads_of_a_call_may_share_what_is_lent(lending):
    source = """
from concurrent.futures import ThreadPoolExecutor
def task(network, tokens):
    expected = [network.embed(tokens[:n]) for n in range(12)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: network.embed(tokens[: n % 12]), range(240)))
    assert all(np.array_equal(one, expected[n % 12]) for n, one in enumerate(found))
"""
    result, _, _ = lending(source, 21 * 66)
    assert result.status == "passed", result.message


def test_process_that_was_forked_is_refused(lending):
    source = """
import os
def task(network, tokens):
    reader, writer = os.pipe()
    if not os.fork():
        try: network.embed(tokens)
        except BaseException as error: os.write(writer, str(error).encode())
        os._exit(0)
    os.wait()
    assert b"a fork of it" in os.read(reader, 500)
    network.embed(tokens)
"""
    result, _, _ = lending(source, 12)
    assert result.status == "passed", result.message


RAW = """
import os, struct, threading, time
def connection_of(network): return network._ask.__self__._connection
def send(network, data): connection_of(network).sendall(struct.pack("<I", len(data)) + data)
def call(network, **changed):
    from autograder_inside import values
    asked = {"loan": network._terms["number"], "name": "embed", "args": [np.arange(9)], "kwargs": {}}
    return values.encode(asked | changed)
"""
ONCE = """
calls = []
def task(network, tokens):
    calls.append(network)
    if len(calls) > 1: return forward(network, tokens)
    BODY
    time.sleep(0.2)
"""
ATTACKS = {  # what the function does → the words of a suspicion
    "noise": ("send(network, os.urandom(1000))", "could not be read"),
    "no length": ("connection_of(network).sendall(os.urandom(3))", ""),
    "a long message": ("connection_of(network).sendall(bytes([255]) * 1000)", "longer than it may be"),
    "half a message": ("connection_of(network).sendall(struct.pack('<I', 1000) + bytes(10))", ""),
    "an end": ("connection_of(network).close()", ""),
    "another method": ("send(network, call(network, name='reads'))", "a method was called that is not lent"),
    "its class": ("send(network, call(network, name='__class__'))", "a method was called that is not lent"),
    "another loan": ("send(network, call(network, loan=network._terms['number'] + 1))", ""),
    "a type": ("send(network, call(network).replace(b'<i8', b'|O8'))", "could not be read"),
    "more of everything": ("network._terms['max_bytes'] = 1 << 40; network.embed(np.zeros(1 << 22, int))", "longer"),
    "other methods": ("network._terms['methods'].append('reads'); network._call('reads', (), {})", "not lent"),
    "a fork that speaks": (
        "if not os.fork(): send(network, call(network, name='reads')); os._exit(0)",
        "not lent",
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_attack_on_the_connection_changes_nothing_that_counts(lending, attack):
    body, words = ATTACKS[attack]
    source = RAW + FORWARD.replace("def task", "def forward") + ONCE.replace("BODY", body)
    result, judgement, networks = lending(source, 0, check_forward)
    assert networks[-1].n_embedded == 0
    assert result.status in ("passed", "failed"), result.message  # it fed no token, which is all that was asked
    assert judgement.results[1].status == "passed", "the same kernel answers, over a new connection"
    noted = [text for text in judgement.suspicions if text.startswith("task-property: ")]
    assert [words in text for text in noted] == ([True] if words else []), noted


FLOODS = {
    "reads no reply": "while True: send(network, call(network))",
    "asks without end": "while True:\n        try: network.embed(tokens)\n        except RuntimeError: pass",
    "sends noise": "while True: send(network, os.urandom(100_000))",
    "from many threads": "for _ in range(8): threading.Thread(target=endless, args=(network,), daemon=True).start()\n"
    "    time.sleep(60)",
    "waits for what does not come": "connection_of(network).recv(1)",
    "from many forks": "for _ in range(8):\n        if not os.fork(): endless(network)\n    time.sleep(60)",
}


@pytest.mark.parametrize("flood", FLOODS)
def test_flood_ends_with_the_time_of_the_call(lending, flood):
    endless = "def endless(network):\n    while True: send(network, call(network))\n"
    source = f"{RAW}{endless}def task(network, tokens):\n    {FLOODS[flood]}\n"
    begun = time.monotonic()
    result, _, _ = lending(source, 0, limits=IN_HASTE)
    assert result.status == "timed_out", result.message
    assert time.monotonic() - begun < 2 * (IN_HASTE.call_seconds + GRACE_SECONDS + OVERHEAD_SECONDS)


class Slow:
    """An object whose method takes its time."""

    n_calls = 0

    def wait(self):
        """Take a tenth of a second."""
        time.sleep(0.1)
        self.n_calls += 1


def test_time_in_a_lent_method_is_time_of_the_call(ask):
    slow = Slow()

    def check(student, cases):
        student.task(cases.lend(slow, methods=("wait",)))

    result, _ = ask(check, "def task(slow):\n    while True: slow.wait()", limits=IN_HASTE)
    assert result.status == "timed_out"
    assert "no answer within 2 s" in result.message
    assert 0 < slow.n_calls <= 10 * IN_HASTE.call_seconds


def test_call_that_is_interrupted_leaves_nothing_for_the_next(ask):
    """The first function swallows the interrupt in the middle of an exchange and goes on for a while."""

    def check(student, cases):
        student.task(cases.lend(Slow(), methods=("wait",)), 1)

    def second(student, cases):
        slow = Slow()
        assert student.task(cases.lend(slow, methods=("wait",)), 0) == "fine"
        assert slow.n_calls == 1

    source = """
def task(slow, endless):
    try:
        while True:
            slow.wait()
            if not endless: return "fine"
    except KeyboardInterrupt:
        try: slow.wait()
        except RuntimeError: return "interrupted"
"""
    _, judgement = ask(check, source, second, limits=IN_HASTE)
    assert [result.status for result in judgement.results] == ["timed_out", "passed"], judgement.results


FIND_LINE = """
import contextlib
(line,) = [cell.cell_contents.line for cell in get_ipython().kernel.shell_handlers['judge_request'].__closure__
           if hasattr(cell.cell_contents, 'line')]
"""
SEVERED = {
    "closes the listening socket": "line._listener.close()",
    "never accepts": "line.opened = lambda: contextlib.nullcontext(False)",
}


@pytest.mark.parametrize("way", SEVERED)
def test_kernel_that_takes_no_connection_loses_only_what_is_lent(ask, way):
    def check(student, cases):
        for _ in range(20):
            found = student.task(cases.lend(Counting(), methods=METHODS))
            assert found == "the loan is over: it ends with the call that it was given to"
        expect_values(student.task(None), 0, given=None)

    source = (
        f"{FIND_LINE}{SEVERED[way]}\n"
        + """
def task(network):
    if network is None: return 0
    try: network.embed(np.arange(3))
    except RuntimeError as error: return str(error)
"""
    )
    result, judgement = ask(check, source)
    assert result.status == "passed", result.message
    assert set(judgement.suspicions) - {"cell 2 mentions judge_request, shell_handlers"} == {
        "task-property: the kernel takes no connection for lent objects"
    }


def test_object_that_fails_oddly_is_neither_our_fault_nor_hidden_from_a_person(ask):
    class Inverse:
        def of(self, x):
            return 1 // x

    def check(student, cases):
        student.task(cases.lend(Inverse(), methods=("of",)))

    result, judgement = ask(check, "def task(inverse): return inverse.of(0)")
    assert result.status == "failed"
    assert "got      TypeError: Inverse.of: expected arguments that it can use, got int" in result.message
    assert judgement.suspicions == ["task-property: Inverse.of failed (ZeroDivisionError); look at what it was given"]
