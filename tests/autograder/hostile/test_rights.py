"""Right answers lose no mark to anything that is allowed."""

import pytest

pytestmark = pytest.mark.sandbox

HARMLESS = {
    "warning": "import warnings\nwarnings.warn('careful')",
    "stderr": "import sys\nprint('progress', file=sys.stderr)",
    "logging": "import logging\nlogging.basicConfig(level=0)\nlogging.error('odd')",
    "display": "from IPython.display import HTML, Markdown, display\n"
    "display(HTML('<b>x</b>'), Markdown('*x*'), np.ones(3))",
    "plot": "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()",
    "plot with magic": "%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.hist([1, 2, 2]);",
    "timeit": "%timeit -n 2 -r 2 np.ones(10)",
    "cell magic": "%%time\nnp.ones(3)",
    "writefile": "%%writefile note.txt\nhello",
    "shell": "!echo hello; ls /nowhere\nlines = !echo a; echo b\nassert lines == ['a', 'b']",
    "bash magic": "%%bash\necho hello",
    "pip": "!pip install numpy\n%pip --version",
    "load_ext": "%load_ext autoreload\n%autoreload 2",
    "failing magic": "%no_such_magic",
    "error": "1 / 0",
    "syntax error": "def broken(:",
    "non-ASCII": "größe = 'Ünïcødé – 漢字 🎓'\nprint(größe)\nλ = 2",
    "lone surrogate": "print('\\ud800')",
    "control characters": "print('\\x00\\x1b[31mred\\x1b[0m\\r\\x08')",
    "help": "np.ones?",
    "last expression": "2.0",
    "widgets of text": "class Rich:\n    def _repr_html_(self): return '<script>alert(1)</script>'\nRich()",
    "progress": "from IPython.display import clear_output\n"
    "for n in range(3):\n    clear_output(wait=True)\n    print(n)",
    "threads": "from concurrent.futures import ThreadPoolExecutor\n"
    "with ThreadPoolExecutor(4) as pool: list(pool.map(abs, range(9)))",
    "processes": "import multiprocessing as m\nwith m.get_context('fork').Pool(2) as pool: print(pool.map(abs, [-1]))",
    "asyncio": "import asyncio\nawait asyncio.sleep(0.01)",
    "seed and print options": "np.random.seed(1)\nnp.set_printoptions(precision=2)\nnp.seterr(all='raise')",
    "temporary files": "import tempfile\nwith tempfile.TemporaryFile() as f: f.write(b'x')\n"
    "open('here.txt', 'w').write('x')",
    "names of ours": "check = student = cases = judge = values = None",
    "reload": "import importlib\nimportlib.reload(np) if False else None",
    "reset of warnings": "import warnings\nwarnings.simplefilter('error')",
}


@pytest.mark.parametrize("cell", HARMLESS)
def test_harmless_cell_costs_nothing(try_cells, cell):
    trial = try_cells(before=HARMLESS[cell], between=HARMLESS[cell])
    assert (trial.points("double"), trial.points("total")) == (3, 3), trial.text
    assert not trial.judgement.notes


ANSWERS = {
    "prints and warns": "import sys, warnings\ndef double(x):\n    print('doubling')\n    print('!', file=sys.stderr)\n"
    "    warnings.warn('x')\n    return 2 * x",
    "displays": "def double(x):\n    display(x)\n    return 2 * x",
    "plots": "def double(x):\n    import matplotlib.pyplot as plt\n    plt.plot(x)\n    return 2 * x",
    "slow": "import time\ndef double(x):\n    time.sleep(0.4)\n    return 2 * x",
    "a lambda": "double = lambda x: x + x",
    "an object": "class Doubler:\n    def __call__(self, x): return x + x\ndouble = Doubler()",
    "partial": "from functools import partial\ndouble = partial(np.multiply, 2, dtype='f4')\n"
    "double = lambda x: np.multiply(2, x)",
    "a decorated one": "from functools import lru_cache, wraps\ndef plain(f):\n    return wraps(f)(lambda x: f(x))\n"
    "@plain\ndef double(x): return 2 * x",
    "a list": "def double(x): return [2 * float(item) for item in x]",
    "a tuple of scalars": "def double(x): return tuple(2 * item for item in x)",
    "a subclass": "class Mine(np.ndarray): pass\ndef double(x): return (2 * x).view(Mine)",
    "a view": "def double(x): return np.stack([2 * x, x])[0]",
    "reversed twice": "def double(x): return (2 * x)[::-1][::-1]",
    "big-endian": "def double(x): return (2 * x).astype(x.dtype.newbyteorder('>'))",
    "read-only": "def double(x):\n    found = 2 * x\n    found.flags.writeable = False\n    return found",
    "changes its input": "def double(x):\n    x *= 2\n    return x",
    "keeps state": "calls = 0\ndef double(x):\n    global calls\n    calls += 1\n    return 2 * x",
    "imports a file beside": "from helper import twice\ndef double(x): return twice(x)",
    "non-ASCII names": "def verdöpple(größe): return größe + größe\ndouble = verdöpple",
    "starts a process": "import subprocess\ndef double(x):\n    subprocess.run(['true'])\n    return 2 * x",
    "catches what it raises": "def double(x):\n    try: raise KeyError\n    except KeyError: return 2 * x",
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_right_answer_counts_however_it_is_written(try_cells, answer):
    trial = try_cells(ANSWERS[answer], files={"helper.py": b"def twice(x):\n    return 2 * x\n"})
    assert (trial.points("double"), trial.points("total")) == (3, 3), trial.text
    assert set(trial.message.values()) == {""}


LATER = {
    "deleted": "del np, double, total, helper",
    "changed": "np = helper = double = 0",
    "builtins hidden": "float = len = sum = None",
    "reset": "%reset -f",
    "large": "big = np.zeros(1 << 21)\ndel np",
}


ODD = {
    "no names": "get_ipython().user_ns |= {1: 2, 'double-shown': 3, '': None}",
    "lies about its class": "class Odd:\n    __class__ = property(lambda self: 1 / 0)\nodd = Odd()",
    "lies about its size": "class Odd(np.ndarray):\n    nbytes = property(lambda self: 1 / 0)\n"
    "odd = np.zeros(3).view(Odd)",
}


@pytest.mark.parametrize("odd", ODD)
def test_odd_global_costs_later_answers_nothing(try_cells, odd):
    trial = try_cells(before=ODD[odd], between=ODD[odd])
    assert (trial.points("double"), trial.points("total")) == (3, 3), trial.text


@pytest.mark.parametrize("later", LATER)
def test_later_cell_takes_nothing_from_an_answer(try_cells, later):
    double = "def helper(x):\n    return np.add(x, x)\ndef double(x):\n    return helper(x)"
    trial = try_cells(double, after=LATER[later])
    assert (trial.points("double"), trial.points("total")) == (3, 3), trial.text


def test_helper_may_be_defined_after_the_check(try_cells):
    trial = try_cells("def double(x): return helper(x)", after="def helper(x):\n    return x + x")
    assert trial.points("double") == 3, trial.text


def test_cell_that_makes_errors_of_warnings_costs_other_answers_nothing(try_cells):
    strict = "import warnings\nwarnings.simplefilter('error')\nnp.seterr(all='raise')"
    careless = "def double(x):\n    np.float32(1e-30) * np.float32(1e-30)\n    return 2 * x"
    talkative = "def total(x):\n    warnings.warn('careful')\n    return float(np.sum(x))"
    trial = try_cells(careless, talkative, before=strict)
    assert (trial.points("double"), trial.points("total")) == (3, 3), trial.text


def test_answer_may_make_errors_of_warnings_itself(try_cells):
    double = """
np.seterr(all="raise")
def double(x):
    try:
        np.float32(1) / np.float32(0)
    except FloatingPointError:
        return 2 * x
"""
    trial = try_cells(double)
    assert trial.points("double") == 3, trial.text


def test_outputs_are_kept_as_plain_data(try_cells):
    trial = try_cells(
        before="print('out')\nimport sys\nprint('err', file=sys.stderr)\n1 + 1",
        between="import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()",
        after="1 / 0",
    )
    kinds = [(output["output_type"], output.get("name", "")) for output in trial.judgement.outputs[1]]
    assert sorted(kinds) == [("execute_result", ""), ("stream", "stderr"), ("stream", "stdout")]
    (figure,) = trial.judgement.outputs[5]
    assert "image/png" in figure["data"]
    assert trial.judgement.outputs[9][0]["ename"] == "ZeroDivisionError"


def test_outputs_make_a_valid_notebook(try_cells):
    import nbformat

    trial = try_cells(before="print('\\ud800')\ndisplay(1)\n1", after="1 / 0")
    for index, outputs in trial.judgement.outputs.items():
        trial.notebook.cells[index].outputs = [nbformat.from_dict(output) for output in outputs]
    nbformat.validate(trial.notebook)
    assert nbformat.writes(trial.notebook).encode("utf-8")


def test_without_sandbox_the_verdict_is_the_same(try_cells):
    trial = try_cells("def double(x):\n    return 3 * x\n", sandbox="none", files={"helper.py": b"x = 1\n"})
    assert (trial.points("double"), trial.points("total")) == (0, 3), trial.text
