"""What a cell or a call loses, it loses alone; the status says how."""

import re

import pytest

from autograder.limits import Limits

pytestmark = pytest.mark.sandbox

DEFINE = "def double(x):\n    return 2 * x\n"
IN_CALL = {  # what the body of `double` does → status of its checks
    "os._exit": ("import os\n    os._exit(0)", "crashed"),
    "segfault": ("import ctypes\n    ctypes.string_at(0)", "crashed"),
    "SIGKILL to itself": ("import os, signal\n    os.kill(os.getpid(), signal.SIGKILL)", "crashed"),
    "SIGKILL to all": (
        "import os, signal\n    os.kill(-1, signal.SIGKILL)",
        "failed",
    ),  # spares the caller, finds nobody else
    "abort": ("import os\n    os.abort()", "crashed"),
    "stack": (
        "import ctypes, sys\n    sys.setrecursionlimit(10**9)\n    f = lambda n: max(map(f, [n]))\n    f(1)",
        "crashed",
    ),
    "endless loop": ("while True: pass", "timed_out"),
    "sleeps": ("import time\n    time.sleep(99)", "timed_out"),
    "swallows interrupts": (
        "import time\n    while True:\n        try: time.sleep(1)\n        except BaseException: continue",
        "timed_out",
    ),
    "ignores signals": (
        "import signal, time\n    for s in set(signal.valid_signals()) - {9, 19}: signal.signal(s, signal.SIG_IGN)\n"
        "    while True: time.sleep(1)",
        "timed_out",
    ),
    "loops in C": ("return max(iter(int, 1))", "timed_out"),
    "memory": ("kept = []\n    while True: kept.append(bytearray(1 << 26))", "out_of_memory"),
    "one huge array": ("return np.ones(1 << 40)", "out_of_memory"),
    "raises KeyboardInterrupt": ("raise KeyboardInterrupt", "failed"),
    "raises SystemExit": ("raise SystemExit(0)", "failed"),
    "endless recursion": ("return double(x)", "failed"),
}


@pytest.mark.parametrize("body", IN_CALL)
def test_call_costs_its_own_checks_alone(try_cells, body):
    source, status = IN_CALL[body]
    trial = try_cells(f"def double(x):\n    {source}\n", patient=status != "timed_out")
    assert trial.status["double-shown"] == trial.status["double-hidden"] == status, trial.text
    assert trial.points("total") == 3
    assert "double: Large numbers are doubled." in trial.message["double-hidden"]


IN_CELL = {  # a cell of its own, between the two tasks: the functions stay usable
    "sys.exit": ("import sys\nsys.exit(0)", ""),
    "quit": ("quit()", ""),
    "exit": ("exit", ""),
    "os._exit": ("import os\nos._exit(0)", "ended the kernel"),
    "segfault": ("import ctypes\nctypes.string_at(0)", "ended the kernel"),
    "SIGKILL to itself": ("import os\nos.kill(os.getpid(), 9)", "ended the kernel"),
    "endless loop": ("while True: pass", "took too long"),
    "swallows interrupts": (
        "import time\nwhile True:\n    try: time.sleep(1)\n    except BaseException: continue",
        "took too long",
    ),
    "memory": ("kept = []\nwhile True: kept.append(bytearray(1 << 26))", "ran out of memory"),
    "memory of children": (
        "import subprocess, sys\n"
        "hog = 'kept = [bytes([n]) * (1 << 20) for n in range(250)]; import time; time.sleep(9)'\n"
        "children = [subprocess.Popen([sys.executable, '-c', hog]) for _ in range(8)]\n"
        "print([child.wait() for child in children])",
        None,
    ),
    "thread bomb": ("import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(9,)).start()", ""),
    "inode bomb": ("import time\nfor n in range(10**7): open(f'/tmp/{n}', 'w').close()", "ended the kernel"),
    "file bomb": ("with open('/tmp/big', 'wb') as f:\n    while True: f.write(bytes(1 << 20))", ""),
    "shared memory": ("with open('/dev/shm/big', 'wb') as f:\n    while True: f.write(bytes(1 << 20))", ""),
    "sparse file": ("import os\nos.truncate(open('sparse', 'wb').fileno(), 1 << 50)", ""),
    "memfd": ("import os\nos.memfd_create('hidden')", ""),
    "stdin": ("input('password? ')", ""),
    "detached child": ("import subprocess\nsubprocess.Popen(['sleep', '98765'], start_new_session=True)", ""),
    "daemon": (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n"
        "    if os.fork() == 0: time.sleep(98765)\n    os._exit(0)",
        "",
    ),
    "stopped": ("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)", "took too long"),
}


@pytest.mark.parametrize("cell", [name for name, (_, words) in IN_CELL.items() if words is not None])
def test_cell_costs_itself_alone(try_cells, cell):
    source, words = IN_CELL[cell]
    trial = try_cells(between=source, patient="took too long" not in words)
    assert (trial.points("double"), trial.points("total")) == (3, 3), trial.text
    assert bool(trial.judgement.notes) == bool(words), trial.text
    assert re.search(words, "".join(trial.judgement.notes)) and re.search(words, trial.printed(5))


def test_fork_bomb_costs_itself_alone(try_cells):
    trial = try_cells(between="import os\nwhile True: os.fork()", patient=False)
    assert (trial.points("double"), trial.points("total")) == (3, 3), trial.text
    # Who meets the limit first, the cell or a child of it, is chance: the cell is stopped, or it prints the error.
    assert re.search("took too long|ran out of memory|Resource temporarily unavailable", trial.text), trial.text


def test_memory_of_children_counts_as_one(try_cells):
    trial = try_cells(between=IN_CELL["memory of children"][0])
    assert (trial.points("double"), trial.points("total")) == (3, 3), trial.text
    assert "-9" in trial.printed(5) or "memory" in trial.printed(5), trial.text


def test_lost_answer_names_what_its_cell_did(try_cells):
    trial = try_cells(DEFINE + "import os\nos._exit(0)")
    assert trial.status["double-shown"] == trial.status["double-hidden"] == "crashed"
    assert "double is not defined: its cell ended the kernel" in trial.message["double-hidden"]
    assert trial.points("total") == 3


def test_answer_that_took_too_long_after_its_function_counts(try_cells):
    trial = try_cells(DEFINE + "while True: pass", patient=False)
    assert (trial.points("double"), trial.points("total")) == (3, 3), trial.text
    assert trial.judgement.notes == ["cell 3 took too long: it was stopped after 2.5 s"]


def test_output_of_50_megabytes_is_cut(try_cells):
    trial = try_cells(before="for _ in range(50): print('x' * (1 << 20))\nprint('the end')")
    assert (trial.points("double"), trial.points("total")) == (3, 3), trial.text
    assert len(trial.printed(1)) < 300_000
    assert "cut" in trial.printed(1)


def test_printing_threads_do_not_starve_the_checks(try_cells):
    threads = "import threading\ndef shout():\n    while True: print('x' * 1000)\n"
    threads += "for _ in range(3): threading.Thread(target=shout, daemon=True).start()"
    trial = try_cells(before=threads)
    assert (trial.points("double"), trial.points("total")) == (3, 3), trial.text


def test_many_outputs_are_cut(try_cells):
    trial = try_cells(before="from IPython.display import display\nfor n in range(3000): display(n)")
    assert (trial.points("double"), trial.points("total")) == (3, 3), trial.text
    assert len(trial.judgement.outputs[1]) < 600


def test_process_that_kills_later_kernels_costs_no_points(try_cells):
    """A crash is asked again in a fresh kernel: what killed the first may have come from elsewhere."""
    later = "import os, threading\nif not os.path.exists('/tmp/once'):\n    open('/tmp/once', 'w')\n"
    trial = try_cells("import os\ncalls = []\n" + "def double(x):\n    return 2 * x\n", after=later)
    assert (trial.points("double"), trial.points("total")) == (3, 3), trial.text


def test_call_that_was_interrupted_spoils_no_later_check(try_cells):
    double = "import time\nbusy = False\ndef double(x):\n    global busy\n    busy = True\n    time.sleep(99)\n"
    trial = try_cells(double, "def total(x):\n    return -1.0 if busy else float(np.sum(x))\n", patient=False)
    assert set(trial.status.values()) == {"timed_out", "passed"}
    assert trial.points("total") == 3


def test_kernel_that_answers_no_call_ends_with_the_time_of_the_notebook(try_cells):
    limits = Limits(cell_seconds=5, call_seconds=1, notebook_seconds=6)
    trial = try_cells(after="get_ipython().kernel.shell_handlers.clear()", limits=limits)
    assert set(trial.status.values()) <= {"timed_out", "not_run"}
    assert trial.judgement.seconds < 60


def test_time_of_a_notebook_ends(try_cells):
    short = Limits(cell_seconds=99, call_seconds=99, notebook_seconds=6)  # far more than a busy machine needs to start
    trial = try_cells("import time\ndef double(x):\n    time.sleep(99)\n", between="time.sleep(99)", limits=short)
    assert trial.status["double-shown"] == "timed_out"
    assert trial.status["total-shown"] == trial.status["total-hidden"] == "not_run"
    assert "the cells from 7 on were not run" in "".join(trial.judgement.notes)


def test_cell_of_many_bytes_is_not_run(try_cells):
    trial = try_cells(before=f"text = '{'x' * (1 << 20)}'")
    assert trial.points("total") == 3
    assert "was not run" in trial.printed(1)
