"""The parts of the sandbox: command line, groups, filter, watchdog, and a killed grader."""

import os
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from autograder.errors import SandboxError, SubmissionError
from autograder.limits import Limits
from autograder.sandbox import groups, privileges, room, seccomp, view
from autograder.sandbox.room import Room, pack, rlimits

PREFIX = Path(sys.prefix)


def test_filter_refuses_and_allows_by_number():
    """Run the filter's own instructions on paper: each refused number, and two that are allowed."""
    for machine, (architecture, numbers) in seccomp.MACHINES.items():
        refused = {*numbers.values(), *seccomp.EVERYWHERE.values()}
        for number in refused:
            assert run_filter(machine, architecture, number) == seccomp.REFUSE, (machine, number)
        for number in {0, 1, 60, 63, 64} - refused:
            assert run_filter(machine, architecture, number) == seccomp.ALLOW, (machine, number)
        assert run_filter(machine, architecture, 1 | seccomp.X32_BIT) == seccomp.REFUSE
        assert run_filter(machine, architecture ^ 1, 1) == seccomp.KILL


def run_filter(machine, architecture, number):
    lines = list(struct.iter_unpack("<HBBI", seccomp.program(machine)))
    loaded, at = 0, 0
    while True:
        code, yes, no, operand = lines[at]
        if code == seccomp.RETURN:
            return operand
        if code == seccomp.LOAD:
            loaded = {0: number, 4: architecture}[operand]
        else:
            holds = loaded == operand if code == seccomp.JUMP_EQUAL else loaded >= operand
            at += yes if holds else no
        at += 1


def test_filter_is_empty_for_a_machine_whose_numbers_are_not_known():
    assert seccomp.program("riscv64") == b""


def test_command_shows_nothing_writable_and_no_network():
    command = view.bwrap_command(PREFIX, Limits(), 9, "/tmp/stage")
    assert "--bind" not in command
    assert "--dev-bind" not in command
    assert "--share-net" not in command
    assert command[command.index("--remount-ro", command.index("--chdir") - 2) + 1] == "/"
    assert {"--unshare-all", "--disable-userns", "--die-with-parent", "--new-session", "--clearenv"} <= set(command)


def test_packages_of_the_base_installation_are_hidden():
    hidden = view.hidden_folders(PREFIX)
    assert str(view.base_of(PREFIX) / f"lib/python3.{sys.version_info.minor}/site-packages") in hidden
    assert not [folder for folder in hidden if Path(folder).is_relative_to(PREFIX)]


def test_environment_without_interpreter_is_an_error_of_the_machine(tmp_path):
    with pytest.raises(SandboxError, match="expected an interpreter"):
        view.base_of(tmp_path)


def test_root_gets_another_uid_for_each_sandbox():
    uids = {privileges.next_uid() for _ in range(50)}
    assert len(uids) == 50
    assert min(uids) >= privileges.FIRST_UID


def test_files_are_packed_or_refused():
    assert b"hello" in pack({"a/b.txt": b"hello"}, Limits())
    for files in ({"../x": b""}, {"/x": b""}, {"x": bytes(65 << 20)}, {f"{n}": b"x" for n in range(20_000)}):
        with pytest.raises(SubmissionError, match="files: expected"):
            pack(files, Limits())


def test_processes_are_limited_only_where_the_uid_is_the_sandboxs_own():
    assert "RLIMIT_NPROC" in rlimits(Limits())
    assert "RLIMIT_NPROC" not in rlimits(Limits(), own_uid=False)


def test_without_bubblewrap_there_is_no_room(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxError, match="expected the program bwrap"):
        Room(PREFIX, Limits())


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine whose control groups are plain files; returns how to describe it."""

    def describe(kind: str, options: str, own: str) -> Path:
        top = tmp_path / "cgroup"
        top.mkdir(exist_ok=True)
        (tmp_path / "mounts").write_text(f"none {top} {kind} {options} 0 0\nproc /proc proc rw 0 0\n")
        (tmp_path / "own").write_text(own)
        monkeypatch.setattr(groups, "MOUNTS", tmp_path / "mounts")
        monkeypatch.setattr(groups, "OWN", tmp_path / "own")
        return top

    return describe


def delegate(folder: Path, controllers: str, enabled: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {
        "cgroup.controllers": controllers,
        "cgroup.subtree_control": enabled,
        "cgroup.procs": "",
    }.items():
        (folder / name).write_text(text)


def test_version_2_group_lies_below_the_nearest_that_delegates(machine):
    top = machine("cgroup2", "rw", "0::/user/session\n")
    delegate(top, "memory pids", "memory pids")
    delegate(top / "user", "memory pids cpu", "")
    delegate(top / "user/session", "cpu", "")
    assert list(groups._parents_v2()) == [top / "user", top]
    assert (top / "user/cgroup.subtree_control").read_text() == "+memory +pids"


def test_version_2_group_gets_every_limit(machine, monkeypatch):
    top = machine("cgroup2", "rw", "0::/\n")
    delegate(top, "memory pids", "memory pids")
    make = Path.mkdir

    def make_with_knobs(path, *arguments, **options):
        make(path, *arguments, **options)
        for knob in ("memory.max", "memory.swap.max", "pids.max", "cgroup.procs"):
            (path / knob).write_text("")
        (path / "memory.events").write_text("oom 1\noom_kill 1\n")

    monkeypatch.setattr(Path, "mkdir", make_with_knobs)
    group = groups.ControlGroup.create("room", Limits(memory_bytes=1000, processes=5))
    assert group.version == 2
    assert int((top / "room/memory.max").read_text()) == 1000 + groups.SPARE_BYTES
    assert (top / "room/memory.swap.max").read_text() == "0"
    assert int((top / "room/pids.max").read_text()) == 5 + groups.SPARE_PROCESSES
    assert group.counts_memory()
    assert group.ran_out_of_memory()


def test_group_that_can_limit_nothing_is_not_kept(machine):
    top = machine("cgroup", "rw,memory", "4:memory:/\n")
    group = groups.ControlGroup.create("room", Limits())
    assert group.folders == []
    assert group.command() == []
    assert not (top / "room").exists()


def test_machine_without_groups_has_none(machine):
    machine("tmpfs", "rw", "")
    group = groups.ControlGroup.create("room", Limits())
    assert (group.folders, group.counts_memory(), group.ran_out_of_memory(), group.members()) == ([], False, False, [])
    group.remove()


@pytest.mark.skipif(os.getuid() != 0, reason="only root may make a group on every machine")
def test_group_of_this_machine_counts_and_goes():
    name = f"autograder-test-{os.getpid()}"
    group = groups.ControlGroup.create(name, Limits())
    if not group.folders:
        pytest.skip("this machine gives root no control group")
    process = subprocess.Popen([*group.command(), "sleep", "60"])
    while len(group.members()) < 1:
        time.sleep(0.01)
    assert groups.find(name).folders
    group.remove()
    assert process.wait(timeout=10) == -signal.SIGKILL
    assert not groups.find(name).folders


GRADER = """
import sys, tempfile
from pathlib import Path
tempfile.tempdir = sys.argv[2]
from autograder.judging.kernel import Kernel
from autograder.limits import Limits
kernel = Kernel({}, Limits(), Path(sys.argv[1]))
room = kernel._room
print(room.init_pid, room.folder, flush=True)
kernel.run('''import os, signal, subprocess, time
subprocess.Popen(["sleep", "600"], start_new_session=True)
for s in set(signal.valid_signals()) - {9, 19}: signal.signal(s, signal.SIG_IGN)
while True: time.sleep(1)''', 600)
"""


@pytest.mark.sandbox
def test_killed_grader_leaves_no_process_and_the_next_removes_its_folder(monkeypatch):
    import tempfile

    home = Path(tempfile.mkdtemp(prefix="at-", dir="/tmp"))
    grader = subprocess.Popen([sys.executable, "-c", GRADER, sys.prefix, str(home)], stdout=subprocess.PIPE, text=True)
    pid, folder = grader.stdout.readline().split()
    inside = psutil.Process(int(pid))
    while not any("600" in child.cmdline() for child in inside.children(recursive=True)):
        time.sleep(0.05)
    sleepers = inside.children(recursive=True)
    grader.kill()
    grader.communicate()
    _, alive = psutil.wait_procs([inside, *sleepers], timeout=10)
    assert not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]

    monkeypatch.setattr(tempfile, "tempdir", str(home))
    assert room.sweep() == []  # it might be a room that is being made
    monkeypatch.setattr(room, "SWEEP_AFTER_SECONDS", 0)
    assert room.sweep() == [Path(folder).name]
    assert not groups.find(Path(folder).name).folders
    home.rmdir()


def test_room_in_use_is_not_swept(monkeypatch, tmp_path):
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", tempfile.mkdtemp(prefix="at-", dir="/tmp"))
    monkeypatch.setattr(room, "SWEEP_AFTER_SECONDS", 0)
    living = Room(PREFIX, Limits())
    assert room.sweep() == []
    living.remove()
    assert not living.folder.exists()
    Path(tempfile.tempdir).rmdir()
