"""What is published, where it may go, and that no disguise of a secret gets out."""

import html
import json
import textwrap

import nbformat
import pytest
from nbformat import v4

from autograder.authoring.build import build
from autograder.authoring.leaks import find_leaks, secrets_of
from autograder.authoring.publish import MARKER, publish
from autograder.course import Course
from autograder.errors import CourseError, UsageError

LAB = "lab01_halves"


@pytest.fixture
def course(small_course: Course) -> Course:
    """The small course with its labs and a book built."""
    build(small_course)
    book = small_course.project / "book/_build/html"
    book.mkdir(parents=True)
    (book / "index.html").write_text("<p>The book</p>")
    (small_course.project / "environment.yml").write_text("name: course\n")
    (small_course.project / "LICENSE").write_text("MIT\n")
    return small_course


def test_publish_writes_the_list_of_what_is_allowed(course, tmp_path):
    (course.labs / "labkit/tests").mkdir()
    (course.labs / "labkit/tests/test_secret.py").write_text("")
    (course.labs / LAB / "notes.txt").write_text("")
    target = tmp_path / "public"
    files = {path.relative_to(target).as_posix() for path in publish(course, target)}
    labkit = {name for name in files if name.startswith("labs/labkit/src/labkit/")}
    assert {"labs/labkit/src/labkit/expect.py", "labs/labkit/src/labkit/py.typed"} <= labkit
    assert files - labkit == {
        "book/index.html", "environment.yml", "LICENSE", f"labs/{LAB}/{LAB}.ipynb", "labs/labkit/pyproject.toml",
    }  # fmt: skip
    on_disk = {path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()}
    assert on_disk == files | {MARKER}


def test_publishing_again_removes_what_is_gone_and_keeps_what_is_not_ours(course, tmp_path):
    target = tmp_path / "public"
    (course.project / "book/_build/html/old").mkdir()
    (course.project / "book/_build/html/old/page.html").write_text("")
    publish(course, target)
    (target / ".git").mkdir()
    (target / ".git/config").write_text("[core]")
    (course.project / "book/_build/html/old/page.html").unlink()
    publish(course, target)
    assert not (target / "book/old").exists()
    assert (target / ".git/config").read_text() == "[core]"


def test_targets_are_refused(course, tmp_path):
    full = tmp_path / "full"
    full.mkdir()
    (full / "thesis.txt").write_text("")
    file = tmp_path / "file"
    file.write_text("")
    for target, reason in [
        (course.project / "public", "apart from the project"),
        (course.project, "apart from the project"),
        (tmp_path, "apart from the project"),
        (full, "expected an empty folder"),
        (file, "got the file"),
    ]:
        with pytest.raises(UsageError, match=reason):
            publish(course, target)
    assert [path.name for path in full.iterdir()] == ["thesis.txt"]


def test_a_marker_that_names_files_outside_removes_none_of_them(course, tmp_path):
    target = tmp_path / "public"
    target.mkdir()
    (tmp_path / "thesis.txt").write_text("")
    (target / MARKER).write_text(json.dumps(["../thesis.txt"]))
    publish(course, target)
    assert (tmp_path / "thesis.txt").exists()


@pytest.mark.parametrize("missing", ["book/_build/html/index.html", f"labs/{LAB}/{LAB}.ipynb", "environment.yml"])
def test_a_missing_part_is_named(course, tmp_path, missing):
    (course.project / missing).unlink()
    with pytest.raises(CourseError, match=r"expected .* found none; run: "):
        publish(course, tmp_path / "public")
    assert not (tmp_path / "public").exists()


def test_a_link_is_refused(course, tmp_path):
    (course.project / "book/_build/html/answers.html").symlink_to(course.solutions / f"{LAB}.py")
    with pytest.raises(CourseError, match="expected plain files to publish, got a link"):
        publish(course, tmp_path / "public")


def test_a_leak_stops_publishing_and_is_named(course, tmp_path):
    solved = course.solutions / LAB / f"{LAB}.ipynb"
    (course.labs / LAB / f"{LAB}.ipynb").write_bytes(solved.read_bytes())
    with pytest.raises(CourseError) as caught:
        publish(course, tmp_path / "public")
    message = str(caught.value)
    for name in (
        "halves: _refuse_infinite",
        "halves: halve_all",
        f"{LAB}: halvings: halvings",
        "mark scheme of explain-why",
    ):
        assert f"labs/{LAB}/{LAB}.ipynb: " in message and name in message
    assert not (tmp_path / "public").exists()


def test_secrets_are_answers_hidden_cases_tolerances_and_schemes(course):
    names = {secret.name.split(" in line")[0].split(": line")[0] for secret in secrets_of(course)}
    references = {f"halves: {name}" for name in ("_HALF", "_refuse_infinite", "halve", "halve_all")}
    own = {f"{LAB}: halvings: halvings", f"{LAB}: mark scheme of explain-why"}
    hidden = {f"checks/{LAB}.py{part}" for part in ("", ": cases", ": halves", ": refuses", ": halves_all")}
    assert names == references | own | hidden


BODY = 'if not np.isfinite(x):\n    raise ValueError(f"x: expected a finite number, got {x}")\n'
CASES = "for x in [3.25, -1.125, 17.5, 40.625]:\n"


def notebook_with(source: str) -> str:
    return nbformat.writes(v4.new_notebook(cells=[v4.new_code_cell(source)]))


def highlighted(source: str) -> str:
    """Return code as a book shows it: each word in a tag, entities for what is special."""
    words = [f'<span class="n">{html.escape(word)}</span>' for word in source.split(" ")]
    return "<pre>" + " ".join(words) + "</pre>"


DISGUISES = {
    "plain": ("page.md", lambda code: code),
    "indented": ("page.md", lambda code: textwrap.indent(code, "        ")),
    "on one line": ("page.txt", lambda code: " ".join(code.split())),
    "other quotes": ("page.py", lambda code: code.replace('"', "'")),
    "spread out": ("page.py", lambda code: code.replace("(", "(\n    ").replace(")", ",\n)")),
    "commented": ("page.py", lambda code: code.replace("\n", "  # so it is\n")),
    "in a notebook": ("page.ipynb", notebook_with),
    "in HTML": ("page.html", highlighted),
    "in a script's string": ("page.js", lambda code: f"let answer = {json.dumps(code)};"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "disguise"), DISGUISES.values(), ids=DISGUISES)
@pytest.mark.parametrize(("secret", "found"), [(BODY, "halves: _refuse_infinite"), (CASES, f"checks/{LAB}.py: cases")])
def test_no_disguise_hides_a_secret(course, tmp_path, name, disguise, secret, found):
    folder = tmp_path / "published"
    folder.mkdir()
    (folder / name).write_text(
        "Before.\n\n" + disguise(secret) + "\n\nAfter." if name != "page.ipynb" else disguise(secret)
    )
    assert any(leak.secret.startswith(found) for leak in find_leaks(course, folder))


def test_a_tolerance_is_found_by_its_name_and_value(course, tmp_path):
    (tmp_path / "published").mkdir()
    (tmp_path / "published/page.md").write_text("We allow `_HALF_TOLERANCE = 1.25e-13`.")
    assert [leak.secret for leak in find_leaks(course, tmp_path / "published")] == [f"checks/{LAB}.py: line 12"]


def test_signatures_docstrings_and_visible_cases_are_no_secrets(course):
    assert find_leaks(course, course.labs) == []


def test_a_part_of_a_long_answer_is_found(course, tmp_path):
    lines = [f"    total = total * {number} + x - {number * number}" for number in range(20, 40)]
    module = course.solutions / "fp4kv/halves.py"
    module.write_text(module.read_text() + '\n\ndef _long(x):\n    """Do it."""\n    total = 0\n' + "\n".join(lines))
    (tmp_path / "published").mkdir()
    (tmp_path / "published/page.md").write_text("\n".join(lines[7:13]))
    assert [leak.secret for leak in find_leaks(course, tmp_path / "published")] == ["halves: _long"]
