"""A task that is the text of a kernel: the constant `TWICE`, with the id `twice` and checks `twice-…`."""

import ast
from pathlib import Path

import nbformat
import pytest

from autograder.authoring.assemble import assemble
from autograder.authoring.build import build
from autograder.authoring.leaks import find_leaks
from autograder.authoring.release import release
from autograder.course import Course
from autograder.errors import CourseError
from autograder.intake import take_in
from autograder.intake.folder import Submission

LAB = "lab01_halves"
STUB = '#error "not attempted: write the loop of twice"'

KERNELS = '''"""A reference of one kernel, and the NumPy function of the same name."""

TWICE = r"""
extern "C" __global__ void twice(float* x, int n) {
    const int first = blockIdx.x * blockDim.x + threadIdx.x;
    // Double each element from `first` on, a grid further each time.
    // ### BEGIN SOLUTION
    for (int i = first; i < n; i += gridDim.x * blockDim.x) {
        x[i] *= 2.0f;   // one rounding
    }
    // ### END SOLUTION
}
"""
"""Kernel `twice(x, n)`."""


def twice(x):
    """Return the double."""
    return 2 * x
'''
CELLS = '''

# %% [markdown]
# ## `twice` (1 point)

# %% answer="twice"
from fp4kv.kernels import TWICE

# %%
print(TWICE)

# %% check="twice-values"
"""Each element is doubled."""
assert "twice" in TWICE
'''
CHECK = '''

@check("twice-values", points=1, catches="does not double")
def doubles(student, cases):
    """Each element is doubled."""
    student.text("TWICE")
'''


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


@pytest.fixture
def kernel_course(small_course: Course) -> Course:
    """The small course with a kernel after its other tasks."""
    (small_course.solutions / "fp4kv/kernels.py").write_text(KERNELS)
    source = small_course.solutions / f"{LAB}.py"
    source.write_text(source.read_text().replace("# # Halves (8 points)", "# # Halves (9 points)"))
    append(source, CELLS)
    append(small_course.solutions / f"checks/{LAB}.py", CHECK)
    return small_course


def cells_of(course: Course, folder: str) -> dict[str, nbformat.NotebookNode]:
    build(course)
    notebook = nbformat.read(course.project / folder / LAB / f"{LAB}.ipynb", 4)
    return {cell.id: cell for cell in notebook.cells}


def test_a_kernels_cell_is_called_after_its_constant_in_lower_case(kernel_course):
    cell = cells_of(kernel_course, "solutions")["twice"]
    assert cell.metadata.nbgrader.grade_id == "twice"
    (assignment,) = ast.parse(cell.source).body
    assert assignment.targets[0].id == "TWICE"


def test_the_released_kernel_is_a_skeleton_that_no_compiler_takes(kernel_course):
    text = cells_of(kernel_course, "labs")["twice"].source
    assert f"    {STUB}\n}}" in text and "SOLUTION" not in text
    assert "const int first" in text and "Double each element" in text
    assert "2.0f" not in text and "one rounding" not in text


def test_nbgrader_releases_the_same_bytes(kernel_course):
    build(kernel_course)
    release(kernel_course, LAB)
    released = kernel_course.release / LAB / f"{LAB}.ipynb"
    assert released.read_bytes() == (kernel_course.labs / LAB / f"{LAB}.ipynb").read_bytes()


def test_later_cells_have_the_constant_and_not_the_function_of_the_same_name(kernel_course):
    source = kernel_course.solutions / f"{LAB}.py"
    source.write_text(source.read_text().replace("print(TWICE)", "print(twice)"))
    with pytest.raises(CourseError, match=r"expected names of .*, got 'twice'"):
        build(kernel_course)


def test_a_kernel_may_stand_in_the_lab_itself(kernel_course):
    source = kernel_course.solutions / f"{LAB}.py"
    kernel = KERNELS[KERNELS.index("TWICE") : KERNELS.index('"""Kernel')]
    source.write_text(source.read_text().replace("from fp4kv.kernels import TWICE\n", kernel))
    assert STUB in cells_of(kernel_course, "labs")["twice"].source


def test_an_import_of_another_kernel_is_refused(kernel_course):
    source = kernel_course.solutions / f"{LAB}.py"
    source.write_text(source.read_text().replace("import TWICE", "import THRICE"))
    with pytest.raises(CourseError, match=r"expected `from fp4kv import twice` .*, or its constant TWICE"):
        build(kernel_course)


@pytest.mark.parametrize(
    "copy",
    [
        "for(int i=first;i<n;i+=gridDim.x*blockDim.x){x[i]*=2.0f;}",
        "for (int i = first; i < n; // step\n i += gridDim.x * blockDim.x) { /* here */ x[i] *= 2.0f; }",
        "<pre>for (int i = first; i &lt; n; i += gridDim.x * blockDim.x) {\n x[i] *= 2.0f;\n}</pre>",
    ],
    ids=["without blanks", "with comments", "in a page"],
)
def test_a_loop_is_found_wherever_it_is_published(kernel_course, tmp_path, copy):
    public = tmp_path / "public"
    public.mkdir()
    (public / "page.html").write_text(copy)
    assert [leak.secret for leak in find_leaks(kernel_course, public)] == ["kernels: TWICE"]


def test_the_release_of_a_kernel_leaks_nothing(kernel_course):
    build(kernel_course)
    assert find_leaks(kernel_course, kernel_course.labs) == []
    assert "kernels: TWICE" in {leak.secret for leak in find_leaks(kernel_course, kernel_course.solutions / LAB)}


def test_intake_keeps_a_kernel(kernel_course):
    build(kernel_course)
    released = nbformat.read(kernel_course.labs / LAB / f"{LAB}.ipynb", 4)
    submitted = nbformat.from_dict(released)
    answers = {cell.id: cell.source for cell in assemble(kernel_course, LAB).cells}
    for cell in submitted.cells:
        cell.source = answers.get(cell.id, cell.source)
    submission = Submission.of({f"{LAB}.ipynb": nbformat.writes(submitted).encode()})
    taken = {cell.id: cell for cell in take_in(submission, released, LAB).notebook.cells}
    assert taken["twice"].source == answers["twice"]
