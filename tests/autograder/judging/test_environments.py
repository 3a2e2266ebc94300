"""One environment for each allow-list: pinned, shared, complete or not there."""

import shutil
import subprocess
from pathlib import Path

import pytest

from autograder.course import Course
from autograder.errors import CourseError, SandboxError
from autograder.judging import environments
from autograder.judging.environments import environment_for, forbidden_for, labkit_files, pin_of

PACKAGES = ("numpy", "matplotlib", "jaxtyping")


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, project: Path) -> Course:
    """A course whose project has a labkit with three given modules, and an empty folder of environments."""
    root = tmp_path / "project"
    shutil.copytree(project / "labs/labkit/src/labkit", root / "labs/labkit/src/labkit")
    given = root / "labs/labkit/src/labkit/given"
    given.mkdir(exist_ok=True)
    for name in ("__init__.py", "lab01.py", "lab02.py", "lab03.py"):
        (given / name).write_text("")
    shutil.copy(project / "constraints.txt", root)
    monkeypatch.setenv("AUTOGRADER_ENVIRONMENTS", str(tmp_path / "environments"))
    return Course(root / "course", root)


@pytest.fixture
def base(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Build the layer of packages as an empty environment; returns the pins it was asked for."""
    asked: list[list[str]] = []

    def build(target: Path, pins: list[str], constraints: Path) -> None:
        asked.append(pins)
        with environments._made_beside(target) as folder:
            (folder / "lib/python3.11/site-packages").mkdir(parents=True)
            (folder / "bin").mkdir()
            (folder / "bin/tool").write_text(f"#!{target}/bin/python\n")
            (folder / "bin/python").symlink_to(environments._base_python())

    monkeypatch.setattr(environments, "_build_base", build)
    return asked


def test_environment_is_built_once(own, base):
    first = environment_for(own, PACKAGES, "lab02_formats")
    assert environment_for(own, reversed(PACKAGES), "lab02_formats") == first
    assert len(base) == 1
    assert [pin.partition("==")[0] for pin in base[0]] == ["ipykernel", *sorted(PACKAGES)]
    assert not [path for path in first.parent.iterdir() if path.name.startswith(".lab-")]


def test_change_of_labkit_needs_no_package_index(own, base):
    first = environment_for(own, PACKAGES, "lab02_formats")
    (own.labs / "labkit/src/labkit/formats.py").write_text("CHANGED = True\n")
    second = environment_for(own, PACKAGES, "lab02_formats")
    assert second != first
    assert len(base) == 1
    assert (second / "lib/python3.11/site-packages/labkit/formats.py").read_text() == "CHANGED = True\n"
    assert "CHANGED" not in (first / "lib/python3.11/site-packages/labkit/formats.py").read_text()


def test_scripts_name_the_environment_they_are_in(own, base):
    prefix = environment_for(own, PACKAGES, "lab02_formats")
    assert (prefix / "bin/tool").read_text() == f"#!{prefix}/bin/python\n"


def test_change_of_a_pin_builds_another(own, base):
    environment_for(own, ("numpy",), "lab02_formats")
    text = (own.project / "constraints.txt").read_text()
    (own.project / "constraints.txt").write_text(text.replace("numpy==", "numpy==9"))
    environment_for(own, ("numpy",), "lab02_formats")
    assert [pins[1].startswith("numpy==9") for pins in base] == [False, True]


@pytest.mark.parametrize(
    ("lab", "visible"),
    [("lab01_x", set()), ("lab02_x", {"lab01.py"}), ("lab09_x", {"lab01.py", "lab02.py", "lab03.py"})],
)
def test_given_parts_of_earlier_labs_are_visible_only(own, lab, visible):
    names = {Path(name).name for name, _ in labkit_files(own, lab) if "/given/lab" in name}
    assert names == visible


def test_given_parts_are_hidden_where_no_lab_is_named(own):
    assert not [name for name, _ in labkit_files(own) if "/given/lab" in name]


def test_package_without_a_pin_is_our_fault(own):
    assert pin_of(own, "Jupyter_Client").startswith("Jupyter_Client==")
    with pytest.raises(CourseError, match=r"expected a pin for left-pad in constraints\.txt"):
        environment_for(own, ("left-pad",))


def test_failure_of_pip_is_the_machines_and_leaves_nothing(own, monkeypatch):
    monkeypatch.setattr(environments, "pin_of", lambda course, name: f"{name}==0.0.0.0")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    with pytest.raises(SandboxError, match=r"(?s)expected it to be built, got from .*-m pip install.*ERROR"):
        environment_for(own, ("numpy",))
    assert {path.name for path in own.environments.iterdir()} == {".lock"}


def test_folder_that_cannot_be_written_is_named(own, monkeypatch):
    monkeypatch.setenv("AUTOGRADER_ENVIRONMENTS", "/etc/hostname/below-a-file")
    with pytest.raises(SandboxError, match="set AUTOGRADER_ENVIRONMENTS"):
        environment_for(own, PACKAGES)


def test_package_that_answers_a_lab_is_allowed_only_where_it_is_listed():
    assert {"fp4kv", "autograder", "nbgrader", "ml_dtypes", "torch"} <= set(forbidden_for(PACKAGES))
    assert set(forbidden_for(PACKAGES)) - set(forbidden_for(("numpy", "ml-dtypes"))) == {"ml_dtypes"}


def test_real_environment_has_what_the_lab_allows_and_no_answer(project):
    prefix = environment_for(Course(project / "course", project), PACKAGES, "lab02_formats")
    script = (
        "import importlib.util, sys\nfor name in sys.argv[1].split(): __import__(name)\n"
        "print([name for name in sys.argv[2].split() if importlib.util.find_spec(name)])"
    )
    allowed = "numpy matplotlib jaxtyping ipykernel labkit labkit.formats labkit.expect"
    done = subprocess.run(
        [prefix / "bin/python", "-I", "-c", script, allowed, " ".join(forbidden_for(PACKAGES))],
        capture_output=True,
        text=True,
    )
    assert done.stdout == "[]\n", done.stderr
