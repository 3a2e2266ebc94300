"""A class on real workers: broken submissions, lost workers, interrupts, second runs, other clusters."""

import contextlib
import copy
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import dask
import nbformat
import psutil
import pytest
from distributed.security import Security
from nbgrader.api import Gradebook

from autograder import cli
from autograder.classroom import cluster, fleet
from autograder.classroom.fleet import Where
from autograder.classroom.payload import pack_task
from autograder.classroom.plan import Task, read_outcomes
from autograder.classroom.worker import grade_bytes
from autograder.errors import CourseError, SandboxError, UsageError
from autograder.intake import read_folder
from autograder.lab import load_lab

LAB = "lab01_halves"
FULL = 6.0
TWO = Where(workers=2)

KILLER_CHECK = '''
import os, signal

from autograder.checks import Registry

checks = Registry()


@checks.check("halve-values", points=2, catches="does not halve")
def halves(student, cases):
    """Half of a number."""
    if student.halve(4.0) == "kill":
        os.kill(os.getpid(), signal.SIGKILL)


@checks.check("halve-refuses", points=1, catches="halves infinity")
def refuses(student, cases):
    """Infinity is refused."""


@checks.check("halve_all-values", points=2, catches="halves one")
def halves_all(student, cases):
    """Half of each number."""


@checks.check("halvings-count", points=1, catches="miscounts")
def counts(student, cases):
    """The number of halvings."""
'''

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]


def hand_in(course, student: str, notebook) -> None:
    path = course.submitted / student / LAB / f"{LAB}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(notebook if isinstance(notebook, bytes) else nbformat.writes(notebook).encode())


def with_answer(notebook, task: str, source: str):
    changed = copy.deepcopy(notebook)
    (cell,) = [cell for cell in changed.cells if cell.metadata.get("nbgrader", {}).get("grade_id") == task]
    cell.source = source
    return changed


@pytest.fixture
def course(released_course, solved):
    """A class of three: one who solved it, one who did nothing, one whose file is torn."""
    hand_in(released_course, "ada", solved)
    hand_in(released_course, "bo", nbformat.read(released_course.release / LAB / f"{LAB}.ipynb", 4))
    hand_in(released_course, "cy", nbformat.writes(solved).encode()[:900])
    return released_course


def scores(outcomes) -> dict[str, float | str]:
    return {o.student: o.score if o.state == "graded" else f"not graded: {o.fault}" for o in outcomes}


CLASS = {"ada": FULL, "bo": 0.0, "cy": "not graded: submission"}


class Onlooker:
    """Remembers what it was told; `act` is called after each outcome."""

    def __init__(self, act=lambda outcome: None) -> None:
        self.n_planned, self.seen, self.act = 0, [], act

    def planned(self, plan) -> None:
        self.n_planned = len(plan.tasks)

    def finished(self, outcome) -> None:
        self.seen.append(outcome.student)
        self.act(outcome)


def test_a_broken_submission_costs_only_itself_and_a_second_run_grades_nothing(course):
    watch = Onlooker()
    first = fleet.grade_lab(course, LAB, where=TWO, watch=watch)
    second = fleet.grade_lab(course, LAB, where=TWO)

    assert scores(first.outcomes) == CLASS
    assert first.graded == dict.fromkeys(CLASS, "new")
    assert (watch.n_planned, sorted(watch.seen)) == (3, sorted(CLASS))
    assert second.graded == {}
    assert scores(second.outcomes) == CLASS
    with Gradebook(course.database_url) as book:
        graded = {s.student.id: s.score for s in book.assignment_submissions(LAB)}
    assert graded == {"ada": FULL, "bo": 0.0}


def test_only_what_changed_is_graded_again(course, solved):
    fleet.grade_lab(course, LAB, where=TWO)
    hand_in(course, "bo", solved)

    again = fleet.grade_lab(course, LAB, where=TWO)

    assert again.graded == {"bo": "submission changed"}
    assert scores(again.outcomes) == CLASS | {"bo": FULL}


def test_regrade_tells_who_changes_by_which_check_and_leaves_the_gradebook_alone(course):
    fleet.grade_lab(course, LAB, where=TWO)
    checks = course.solutions / "checks" / f"{LAB}.py"
    checks.write_text(checks.read_text().replace("expect_raises(ValueError", "(lambda *a, **k: None)(ValueError"))

    changes = fleet.regrade_lab(course, LAB, where=TWO)

    assert [(c.student, c.checks) for c in changes] == [("bo", [("halve-refuses", "failed", "passed", 1.0)])]
    assert scores(read_outcomes(course, LAB)) == CLASS
    kept = fleet.regrade_lab(course, LAB, where=TWO, keep=True)
    assert [c.student for c in kept] == ["bo"]
    assert scores(read_outcomes(course, LAB)) == CLASS | {"bo": 1.0}


def living_workers() -> list[psutil.Process]:
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # a sandbox's process that has just ended, a zombie included
            if "spawn_main" in " ".join(process.cmdline()):
                found.append(process)
    return found


def test_a_worker_that_is_lost_is_replaced_and_nothing_with_it(course, solved):
    for number in range(6):
        hand_in(course, f"s{number}", solved)

    def kill_one(outcome) -> None:
        if len(watch.seen) == 1:
            living_workers()[0].kill()

    watch = Onlooker(kill_one)
    run = fleet.grade_lab(course, LAB, where=TWO, watch=watch)

    assert scores(run.outcomes) == CLASS | {f"s{number}": FULL for number in range(6)}


def test_a_submission_that_kills_its_workers_is_not_graded_and_no_zero(course, solved):
    (course.solutions / "checks" / f"{LAB}.py").write_text(KILLER_CHECK)
    hand_in(course, "killer", with_answer(solved, "halve", "def halve(x):\n    return 'kill'"))

    run = fleet.grade_lab(course, LAB, where=TWO)

    assert scores(run.outcomes) == CLASS | {"bo": FULL - 2, "killer": "not graded: infrastructure"}
    assert "workers in turn were lost" in {o.student: o.reason for o in run.outcomes}["killer"]


def start_grading(course) -> subprocess.Popen:
    command = [sys.executable, "-c", "from autograder.cli import main; main()", "grade", LAB, "--workers", "2"]
    return subprocess.Popen(
        [*command, "--course", str(course.root)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for_an_outcome(course, process) -> None:
    while not read_outcomes(course, LAB) and process.poll() is None:
        time.sleep(0.05)


def family_of(process) -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


def living(processes) -> list[psutil.Process]:
    psutil.wait_procs(processes, timeout=10)
    return [p for p in processes if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


@pytest.fixture
def slow_class(course, solved):
    """Eight more whose import cell takes a second each."""
    for number in range(8):
        slow = copy.deepcopy(solved)
        next(cell for cell in slow.cells if cell.cell_type == "code").source += "\nimport time; time.sleep(1)"
        hand_in(course, f"s{number}", slow)
    return course


@pytest.mark.parametrize(("how", "status"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_an_interrupted_run_loses_nothing_that_was_finished(how, status, slow_class):
    process = start_grading(slow_class)
    wait_for_an_outcome(slow_class, process)
    family = family_of(process)
    os.killpg(process.pid, how) if how == signal.SIGINT else process.send_signal(how)
    _, told = process.communicate(timeout=60)
    finished = {outcome.student: outcome.graded_at for outcome in read_outcomes(slow_class, LAB)}

    assert process.returncode == status, told
    assert "Traceback" not in told
    assert 0 < len(finished) < 11
    assert living(family) == []
    again = fleet.grade_lab(slow_class, LAB, where=TWO)
    assert set(again.graded) == {outcome.student for outcome in again.outcomes} - set(finished)
    assert scores(again.outcomes) == CLASS | {f"s{number}": FULL for number in range(8)}


def test_a_payload_does_not_hold_the_secret(course):
    lab = load_lab(course, LAB)
    task = Task("ada", read_folder(course.submitted / "ada" / LAB), "new")

    data = pack_task(fleet._payload(course, lab, task))

    assert course.secret() not in data
    assert course.secret().hex().encode() not in data


def test_a_worker_refuses_another_version_of_the_lab(course):
    lab = load_lab(course, LAB)
    payload = fleet._payload(course, lab, Task("ada", read_folder(course.submitted / "ada" / LAB), "new"))
    checks = course.solutions / "checks" / f"{LAB}.py"
    checks.write_text(checks.read_text() + "\n# another\n")

    with pytest.raises(CourseError, match=f"expected {LAB} in version {lab.version[:12]}"):
        grade_bytes(pack_task(payload))


SCHEDULER = """
import json, sys, time
from distributed import LocalCluster
from distributed.security import Security

if __name__ == "__main__":
    http = {"dashboard_address": "127.0.0.1:0"}
    with LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        security=Security(**json.loads(sys.argv[1])),
        dashboard_address=None,
        scheduler_kwargs=http,
    ) as cluster:
        print(cluster.scheduler_address, flush=True)
        time.sleep(600)
"""


@pytest.fixture
def scheduler(tmp_path):
    """A scheduler with one worker, a process of its own whose certificates Dask's configuration names."""
    security = Security.temporary()
    names = [
        "tls_ca_file",
        *(f"tls_{role}_{part}" for role in ("client", "scheduler", "worker") for part in ("cert", "key")),
    ]
    script = tmp_path / "scheduler.py"
    script.write_text(SCHEDULER)
    settings = json.dumps({name: getattr(security, name) for name in names} | {"require_encryption": True})
    process = subprocess.Popen([sys.executable, str(script), settings], stdout=subprocess.PIPE, text=True)
    tls = {
        "distributed.comm.tls.ca-file": security.tls_ca_file,
        "distributed.comm.tls.client.cert": security.tls_client_cert,
        "distributed.comm.tls.client.key": security.tls_client_key,
    }
    with process, dask.config.set(tls):
        process.address = process.stdout.readline().strip()
        yield process
        process.kill()


def test_a_running_scheduler_grades_over_tls(course, scheduler):
    run = fleet.grade_lab(course, LAB, where=Where(scheduler=scheduler.address))

    assert scheduler.address.startswith("tls://")
    assert scores(run.outcomes) == CLASS


def test_a_lost_scheduler_is_our_failure_and_what_was_finished_is_kept(course, solved, scheduler):
    for number in range(4):
        hand_in(course, f"s{number}", solved)
    watch = Onlooker(lambda outcome: scheduler.kill())

    with pytest.raises(SandboxError, match="connection was lost"):
        fleet.grade_lab(course, LAB, where=Where(scheduler=scheduler.address), watch=watch)

    assert {outcome.student for outcome in read_outcomes(course, LAB)} == set(watch.seen) != set()


def test_a_scheduler_that_is_not_there_is_wrong_usage(course):
    with pytest.raises(UsageError, match=r"expected a Dask scheduler at tls://127\.0\.0\.1:1"):
        fleet.grade_lab(course, LAB, where=Where(scheduler="tls://127.0.0.1:1"))


def test_the_command_prints_a_list_of_outcomes_and_nothing_else(course, capsys):
    status = cli.run(["grade", LAB, "--json", "--workers", "2", "--course", str(course.root)])

    document = json.loads(capsys.readouterr().out)
    assert status == 2
    assert {item["student"]: item["score"] for item in document} == {"ada": FULL, "bo": 0.0, "cy": 0.0}


@pytest.mark.parametrize(("student", "status"), [("ada", 0), ("bo", 1), ("cy", 2)])
def test_check_says_by_its_status_how_one_notebook_did(student, status, course, capsys):
    notebook = course.submitted / student / LAB / f"{LAB}.ipynb"

    assert cli.run(["check", str(notebook), "--lab", LAB, "--json", "--course", str(course.root)]) == status
    assert json.loads(capsys.readouterr().out)["state"] == ("graded" if status < 2 else "not_graded")
    assert not Path(course.private, "outcomes").exists()


def test_the_local_cluster_answers_nothing_over_http():
    with dask.config.set(cluster.SETTINGS), cluster._client(Where(workers=1), 1) as client:
        port = client.cluster.scheduler.http_server.port
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/json/identity.json")

        assert client.scheduler.address.startswith("tls://")
