"""Nothing that runs in the kernel changes a score: a wrong answer stays wrong, a right one right."""

import pytest

pytestmark = pytest.mark.sandbox

WRONG = "def double(x):\n    return 3 * x\n"
SHELL = "shell = get_ipython()\n"

PATCHES = {
    "run_cell wrapped": SHELL
    + "run_cell = shell.run_cell\n"
    + "def wrapped(*args, **kwargs):\n    result = run_cell(*args, **kwargs)\n    result.error_in_exec = None\n"
    + "    return result\nshell.run_cell = wrapped",
    "run_cell_async replaced": SHELL
    + "original = type(shell).run_cell_async\n"
    + "async def replaced(self, *args, **kwargs):\n    kwargs['store_history'] = False\n"
    + "    return await original(self, *args, **kwargs)\ntype(shell).run_cell_async = replaced",
    "input transformer": SHELL + "shell.input_transformers_post.append(lambda lines: lines or ['pass\\n'])",
    "AST transformer": "import ast\n"
    + SHELL
    + "class NoAssert(ast.NodeTransformer):\n    def visit_Assert(self, node):\n        return ast.Pass()\n"
    + "shell.ast_transformers.append(NoAssert())",
    "showtraceback": SHELL + "shell.showtraceback = lambda *a, **k: print('passed')\n"
    "type(shell)._showtraceback = lambda *a: None",
    "display formatters": SHELL + "formatter = shell.display_formatter.formatters['text/plain']\n"
    "for kind in (bool, int, float, str, np.ndarray):\n    formatter.for_type(kind, lambda v, p, c: p.text('1'))",
    "session.send": SHELL
    + "session = shell.kernel.session\nsend = session.send\n"
    + "def forged(stream, kind, *args, **kwargs):\n"
    + "    if kind == 'judge_reply':\n        kwargs['buffers'] = [b'passed']\n"
    + "    return send(stream, kind, *args, **kwargs)\nsession.send = forged",
    "numpy.testing": "import numpy.testing as t\n"
    "for name in dir(t):\n    if name.startswith('assert'):\n        setattr(t, name, lambda *a, **k: None)",
    "numpy.array_equal": "np.array_equal = np.allclose = np.all = lambda *a, **k: True",
    "builtins": "import builtins\nbuiltins.all = builtins.any = lambda *a: True\nbuiltins.AssertionError = SystemError",
    "labkit.expect": "import labkit.expect as e\n"
    "for name in dir(e):\n    if name.startswith('expect'):\n        setattr(e, name, lambda *a, **k: None)",
    "points printed": "print('2.0')\n2.0",
    "points displayed": "from IPython.display import display\ndisplay({'points': 3})\nfor _ in range(3): display(2.0)",
    "check functions shadowed": "doubles = doubles_large_numbers = lambda *a: None\nchecks = {}",
}


@pytest.mark.parametrize("patch", PATCHES)
def test_wrong_answer_stays_wrong(try_cells, patch):
    trial = try_cells(WRONG, before=PATCHES[patch])
    assert (trial.points("double"), trial.points("total")) == (0, 3), trial.text
    assert trial.status["double-hidden"] == "failed"
    assert "expected" in trial.message["double-shown"]


RETURNED = {
    "equals everything": "class Yes:\n    def __eq__(self, other): return True\n    __hash__ = None\n"
    "    __ne__ = lambda self, other: False\n    __array__ = lambda self, *a, **k: np.zeros(3)\n"
    "    dtype, shape = np.dtype('f4'), (4,)\ndef double(x): return Yes()",
    "array that equals everything": "class Yes(np.ndarray):\n"
    "    def __eq__(self, other): return np.ones(self.shape, bool)\n"
    "    __ne__ = lambda self, other: np.zeros(self.shape, bool)\ndef double(x): return np.zeros_like(x).view(Yes)",
    "str that equals everything": "class Yes(str):\n    __eq__ = lambda self, other: True\n"
    "    __hash__ = str.__hash__\n"
    "def double(x): return Yes('x')",
    "float that equals everything": "class Yes(float):\n    __eq__ = lambda self, other: True\n"
    "    __hash__ = float.__hash__\ndef double(x): return [Yes(0)] * len(x)",
    "array that lies about its shape": "class Liar(np.ndarray):\n    shape = property(lambda self: (1 << 40,))\n"
    "    tobytes = lambda self, *a: b''\ndef double(x): return np.zeros_like(x).view(Liar)",
    "masked": "def double(x): return np.ma.masked_array(2 * x, mask=True)",
    "objects": "def double(x): return np.array([None] * len(x), object)",
    "pickle": "import pickle\ndef double(x): return pickle.dumps(2 * x)",
    "not a number": "def double(x): return x * np.nan",
    "nothing": "def double(x): print(2 * x)",
    "mutated input": "def double(x):\n    x *= 0\n    return x",
    "a generator": "def double(x): return (2 * item for item in x)",
    "text": "def double(x): return str(2 * x)",
    "deep": "def double(x):\n    found = []\n    for _ in range(100_000): found = [found]\n    return found",
    "endless": "def double(x):\n    found = []\n    found.append(found)\n    return found",
    "huge": "def double(x): return np.zeros(40 << 20, 'u1')",
    "huge integer": "def double(x): return 10 ** 10_000",
    "many": "def double(x): return [0] * 1_000_000",
    "raises": "def double(x): raise ValueError('2 * x')",
    "raises what prints nothing": "class Odd(Exception):\n    def __str__(self): raise SystemExit\n"
    "def double(x): raise Odd",
    "exits": "import sys\ndef double(x): sys.exit(0)",
}


@pytest.mark.parametrize("returned", RETURNED)
def test_odd_value_is_a_mismatch(try_cells, returned):
    trial = try_cells(RETURNED[returned])
    assert (trial.points("double"), trial.points("total")) == (0, 3), trial.text
    assert trial.status["double-shown"] == trial.status["double-hidden"] == "failed"
    assert trial.message["double-shown"].startswith("double: Each number is doubled.\n")
    assert all(line.isprintable() for line in trial.message["double-shown"].split("\n"))


FORGED = {
    "not a value": "b'nothing'",
    "no frame": None,
    "sizes": "b'AV01' + (200_000).to_bytes(4, 'little') + b'\\xff' * 8",
    "brackets": "head(b'[' * 3_000_000)",
    "nested": "head(b'[' * 900 + b']' * 900)",
    "a type": """head(b'{"dict": [["value", {"record": ["os", "system", ["true"]]}]]}')""",
    "a dtype": """head(b'{"dict": [["value", {"array": ["O", [1], 0]}]]}', b'8' * 8)""",
    "one buffer twice": """head(b'[{"bytes": 0}, {"bytes": 0}]', b'8' * 8)""",
    "a negative buffer": """head(b'{"dict": [["value", {"array": ["<f4", [4], -9]}]]}', b'8' * 16)""",
    "colliding keys": "colliding",
    "no answer": """head(b'{"dict": []}')""",
    "odd kinds": """head(b'{"dict": [["kinds", 3], ["text", []]]}')""",
}
FORGE = """
import struct
kernel = get_ipython().kernel
genuine = kernel.shell_handlers["judge_request"]
def head(text, *buffers):
    sizes = [len(text), *map(len, buffers)]
    return b"AV01" + struct.pack(f"<I{len(sizes)}Q", len(sizes), *sizes) + text + b"".join(buffers)
pairs = ",".join(f"[{n * (2**61 - 1)}, 0]" for n in range(9999))
colliding = head(('{"dict": [' + pairs + "]}").encode())
def forge(stream, identities, message):
    if b"total" in b"".join(bytes(part) for part in message["buffers"]):
        return genuine(stream, identities, message)
    kernel.session.send(stream, "judge_reply", {}, parent=message, ident=identities, buffers=BUFFERS)
kernel.shell_handlers["judge_request"] = forge
"""


@pytest.mark.parametrize("forged", FORGED)
def test_forged_reply_is_only_another_value(try_cells, forged):
    buffers = f"[{FORGED[forged]}]" if FORGED[forged] else "[]"
    trial = try_cells(after=FORGE.replace("BUFFERS", buffers))
    assert (trial.points("double"), trial.points("total")) == (0, 3), trial.text
    assert trial.status["double-shown"] == trial.status["double-hidden"] == "failed"


def test_array_that_changes_after_it_was_returned_is_read_once(try_cells):
    double = """
import threading
def double(x):
    found = 3 * x
    def later():
        for _ in range(100_000):
            found[:] = 2 * x
            found[:] = 4 * x
    threading.Thread(target=later, daemon=True).start()
    return found[::-1]
"""
    trial = try_cells(double)
    assert (trial.points("double"), trial.points("total")) == (0, 3), trial.text


def test_functions_are_bound_where_their_check_stands(try_cells):
    trial = try_cells(after="double = total = None")
    assert (trial.points("double"), trial.points("total")) == (3, 3), trial.text


def test_answer_after_its_check_comes_too_late(try_cells):
    trial = try_cells("", after="def double(x):\n    return 2 * x")
    assert (trial.points("double"), trial.points("total")) == (0, 3), trial.text
    assert "not attempted" in trial.message["double-shown"]


def test_untouched_stub_was_not_attempted(try_cells):
    trial = try_cells("def double(x):\n    raise NotImplementedError")
    assert trial.status["double-shown"] == "failed"
    assert "not attempted" in trial.message["double-shown"]
    assert "not attempted" in trial.message["double-hidden"]
    assert trial.points("total") == 3


def test_suspicious_cells_are_named_and_cost_nothing(try_cells):
    trial = try_cells(before="shell = get_ipython()\nrun_cell = shell.run_cell")
    assert trial.points("double") + trial.points("total") == 6
    assert trial.judgement.suspicions == ["cell 2 mentions run_cell"]
