"""The forms in which a task can stand: several functions, a class, a constant, the text of a kernel."""

import ast
import subprocess
import sys

import nbformat
import pytest
from labkit.validate import NOT_WRITTEN
from nbformat import v4

from autograder.authoring.build import released_text
from autograder.authoring.names import Import, loaded_names, missing_names, render_imports
from autograder.authoring.reference import Module, find_module, public_text, solution_text
from autograder.authoring.stubs import stub
from autograder.errors import CourseError

CLASS = '''class Counter:
    """Counts what it is shown."""

    limit: int = 3

    def __init__(self, start: int = 0) -> None:
        """Begin at a number."""
        self._count = start

    @property
    def count(self) -> int:
        """The number so far."""
        return self._rounded()

    def _rounded(self) -> int:
        return self._count
'''

KERNEL = '''DOUBLE = r"""
extern "C" __global__ void twice(float *x, int n) {
    int i = threadIdx.x;
    // ### BEGIN SOLUTION
    if (i < n) x[i] *= 2;
    // ### END SOLUTION
}
"""
'''


PAIR = '''def one():
    """One."""
    return _unit()

def two():
    """Two."""
    return _unit() * 2

def _unit():
    return 1
'''


def released(name: str, solution: str) -> str:
    """Return the released text of an answer cell."""
    fields = {"grade_id": name, "grade": False, "solution": True, "locked": False, "schema_version": 3, "task": False}
    cell = v4.new_code_cell(solution, id=name, metadata={"nbgrader": fields})
    notebook = v4.new_notebook(
        cells=[cell], metadata={"kernelspec": {"name": "python3", "language": "python", "display_name": "x"}}
    )
    return nbformat.reads(released_text(notebook, "lab"), 4).cells[0].source


def test_a_class_keeps_its_face_and_loses_its_bodies():
    solution = solution_text(Module(CLASS, "here"), ["Counter"])
    assert ast.dump(ast.parse(solution)) == ast.dump(ast.parse(CLASS))
    text = released("Counter", solution)
    assert "_rounded" not in text and "self._count = start" not in text
    for kept in ("limit: int = 3", "@property", "def __init__(self, start: int = 0)", '"""The number so far."""'):
        assert kept in text
    assert text.count('raise NotImplementedError("Counter: replace this line by your answer")') == 2
    ast.parse(text)


def test_a_kernel_with_its_own_markers_gets_a_stub_that_does_not_compile():
    solution = solution_text(Module(KERNEL, "here"), ["DOUBLE"])
    assert solution == KERNEL.strip()
    text = released("double", solution)
    assert "x[i] *= 2" not in text and "int i = threadIdx.x;" in text
    assert '    #error "not attempted: write the loop of double"\n' in text
    ast.parse(text)


def test_the_students_check_knows_the_stubs_message():
    assert NOT_WRITTEN.match(stub("halve", "").split('"')[1])[1] == "halve"


def test_a_plain_constant_is_cut_whole():
    solution = solution_text(Module("# The answer.\nLIMITS = {'low': 1}\n", "here"), ["LIMITS"])
    assert solution == "### BEGIN SOLUTION\n# The answer.\nLIMITS = {'low': 1}\n### END SOLUTION"
    assert released("LIMITS", solution) == stub("LIMITS", solution)


def test_several_functions_share_their_private_parts():
    solution = solution_text(Module(PAIR, "here"), ["one", "two"])
    namespace: dict[str, object] = {}
    exec(solution, namespace)
    assert namespace["one"]() == 1 and namespace["two"]() == 2
    assert solution.count("def _unit()") == 1
    stubs = released("one", solution)
    assert "_unit" not in stubs and stubs.count("raise NotImplementedError") == 2


def test_private_parts_beside_markers_of_ones_own_are_refused():
    text = 'TEXT = """\n### BEGIN SOLUTION\n### END SOLUTION\n""" + _more\n_more = ""\n'
    with pytest.raises(CourseError, match="no private parts beside a text with markers of its own"):
        solution_text(Module(text, "here"), ["TEXT"])


def test_unbalanced_markers_in_a_constant_are_refused():
    with pytest.raises(CourseError, match="expected balanced BEGIN/END SOLUTION in a constant, got BEGIN SOLUTION"):
        solution_text(Module('TEXT = "### BEGIN SOLUTION"\n', "here"), ["TEXT"])


def test_public_text_binds_what_a_student_has():
    solution = solution_text(Module(CLASS, "here"), ["Counter"])
    assert "_rounded" not in public_text(solution)
    ast.parse(public_text(solution))


@pytest.fixture
def package(tmp_path):
    """A package whose `encode` is passed on twice before it is defined."""
    files = {
        "__init__": "from .codes import encode",
        "codes": "from lib.deep.inner import encode",
        "deep/inner": "def encode(): ...",
    }
    for name, text in files.items():
        path = tmp_path / "lib" / f"{name}.py"
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)
    return tmp_path


def test_a_reference_is_found_through_re_exports(package):
    assert find_module(package, "lib", "encode").where == "inner.py"


def test_a_reference_that_is_not_there_is_named(package):
    with pytest.raises(CourseError, match="lib: expected a function, class or constant 'decode', found none"):
        find_module(package, "lib", "decode")
    with pytest.raises(CourseError, match=r"expected a module lib\.other under .*, found none"):
        find_module(package, "lib.other", "decode")


def test_a_reference_from_another_package_is_refused(package):
    (package / "lib/codes.py").write_text("from ml_dtypes import encode")
    with pytest.raises(CourseError, match="expected 'encode' from the package itself, got encode of ml_dtypes"):
        find_module(package, "lib", "encode")


NEEDS = {
    "a name in a function": ("def f():\n    return a", {"a"}),
    "an argument is not": ("def f(a):\n    return a", set()),
    "a default": ("def f(x=a):\n    return x", {"a"}),
    "an annotation": ("def f(x: a) -> b:\n    return x", {"a", "b"}),
    "a comprehension": ("[x for x in a]", {"a"}),
    "a variable of an outer function": ("def f():\n    a = 1\n    def g():\n        return a\n    return g", set()),
    "a decorator": ("@a\ndef f():\n    return 1", {"a"}),
    "a class's base": ("class C(a):\n    y = b", {"a", "b"}),
    "a lambda": ("f = lambda x: x + a", {"a"}),
    "a global that it sets": ("def f():\n    global a\n    a = 1", set()),
    "a builtin": ("print(len([]))", set()),
    "an import inside": ("def f():\n    import a\n    return a", set()),
    "a walrus": ("(a := 1) + a", set()),
    "an exception's name": ("try:\n    pass\nexcept ValueError as a:\n    print(a)", set()),
}  # fmt: skip


@pytest.mark.parametrize(("text", "names"), NEEDS.values(), ids=NEEDS)
def test_missing_names(text, names):
    assert set(missing_names(text, [])) == names


def test_loaded_names_count_builtins():
    assert loaded_names("print(a)") == {"print", "a"}


def test_imports_are_in_the_order_that_ruff_keeps(tmp_path):
    imports = [
        Import("numpy", None, "np"), Import("labkit.formats", "E2M1_MAX"), Import("labkit.formats", "ScaleRule"),
        Import("labkit.formats", "round_up"), Import("math", None), Import("collections.abc", "Iterator"),
        Import("jaxtyping", "Float"), Import("labkit", "formats"), Import("labkit.suspects", "lab02", "suspects"),
    ]  # fmt: skip
    path = tmp_path / "cell.py"
    path.write_text(render_imports(imports) + "\n")
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "I", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_long_imports_are_broken_one_name_a_line():
    text = render_imports([Import("labkit.formats", f"CONSTANT_{number:02}") for number in range(12)])
    assert text.startswith("from labkit.formats import (\n    CONSTANT_00,\n") and text.endswith(",\n)")
