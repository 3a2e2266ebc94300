"""The doctor tries the machine, and says how to get what is missing."""

import shutil

import pytest

from autograder import doctor
from autograder.course import Course
from autograder.doctor import examine
from autograder.errors import SandboxError

pytestmark = pytest.mark.sandbox


@pytest.fixture
def course(project, tmp_path) -> Course:
    return Course(tmp_path / "course", project)


def by_name(findings):
    return {finding.name: finding for finding in findings}


def test_healthy_machine_has_all_that_grading_needs(course):
    found = examine(course)
    assert not [finding for finding in found if finding.needed and not finding.ok]
    assert {"sandbox", "no network", "no files of the host", "limits", "database", "course"} <= set(by_name(found))
    assert any(finding.name.startswith("environment of") for finding in found)


def test_what_later_labs_need_is_not_needed_now(course):
    found = by_name(examine(course))
    for name in ("C++ compiler", "NVRTC", "GPU", "exchange", "control groups"):
        assert not found[name].needed, name
        assert found[name].ok or found[name].remedy, name


def test_a_kernel_is_compiled_and_run_where_those_of_students_are(course):
    """The course has a lab with kernels, so grading needs it."""
    found = by_name(examine(course))
    assert found["kernels in the sandbox"].needed
    assert "compiled in " in found["kernels in the sandbox"].text
    assert "reads a kernel too" in found["NVRTC in the sandbox"].text


def test_a_missing_compiler_is_told_with_its_remedy(course, monkeypatch):
    def lacks(*arguments):
        raise SandboxError("kernels: expected a machine that compiles them, got: C++ compiler: expected g++, got none")

    monkeypatch.setattr(doctor, "try_kernel", lacks)
    finding = by_name(examine(course))["kernels in the sandbox"]
    assert (finding.ok, finding.needed) == (False, True)
    assert "expected g++" in finding.text
    assert "apt-get install g++" in finding.remedy


def test_missing_bubblewrap_is_told_with_its_remedy(course, monkeypatch):
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name, **where: None if name == "bwrap" else which(name, **where))
    finding = by_name(examine(course))["sandbox"]
    assert (finding.ok, finding.needed) == (False, True)
    assert "bwrap" in finding.text
    assert "apt-get install bubblewrap" in finding.remedy


def test_environment_that_cannot_be_built_is_told(course, monkeypatch):
    def fail(*arguments):
        raise SandboxError("environment: pip said no")

    monkeypatch.setattr(doctor, "environment_for", fail)
    failed = [finding for finding in examine(course) if not finding.ok and finding.needed]
    assert failed
    assert all("pip said no" in finding.text for finding in failed)


def test_holes_that_the_probe_sees_are_told(course, monkeypatch):
    def leaky(course, prefix, forbidden):
        return {
            "uid": 0,
            "interfaces": ["eth0", "lo"],
            "network": "connected",
            "shown": ["/home"],
            "files": ["/usr/fp4kv"],
            "writable": ["/usr"],
            "imports": ["fp4kv"],
            "limits": {"memory": False, "disk": True, "processes": True},
        }

    monkeypatch.setattr(doctor, "_look_from_inside", leaky)
    found = by_name(examine(course))
    broken = {name for name, finding in found.items() if finding.needed and not finding.ok}
    assert broken >= {"no network", "no files of the host", "limits"}
    assert any(name.startswith("environment of") for name in broken)
    assert "/usr/fp4kv" in found["no files of the host"].text
    assert "memory" in found["limits"].text


def test_database_that_does_not_answer_is_told(course, monkeypatch):
    monkeypatch.setattr(doctor, "_examine_sandboxes", lambda course: iter(()))
    course.root.mkdir()
    (course.root / "gradebook.db").mkdir()
    finding = by_name(examine(course))["database"]
    assert (finding.ok, finding.needed) == (False, True)
    assert "db_url" in finding.remedy
