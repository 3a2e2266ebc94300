"""Say what this machine can do, by trying, and how to get what it lacks."""

import importlib.util
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.course import Course
from autograder.errors import AutograderError
from autograder.gradebook import nbgrader_course
from autograder.judging.environments import environment_for, forbidden_for
from autograder.judging.kernel import Kernel
from autograder.lab import Header, read_header
from autograder.limits import Limits, MiB
from autograder.native.trial import try_kernel
from autograder.sandbox import seccomp, sweep
from autograder.sandbox.groups import ControlGroup

KERNEL_PACKAGE = "nvidia-cuda-nvrtc"  # a lab that lists it has kernels
USUAL_PACKAGES = ("numpy", "matplotlib", "jaxtyping")
TRIED_LIMITS = Limits(memory_bytes=768 * MiB, disk_bytes=64 * MiB, file_bytes=64 * MiB, processes=48)
PROBE_SECONDS = 60
PROBE = "from autograder_inside.probe import report\nimport json\nprint(report(json.loads({asked!r})))"
NAMESPACES = (
    "as root: apt-get install bubblewrap; where user namespaces are off: "
    "sysctl -w kernel.unprivileged_userns_clone=1 user.max_user_namespaces=15000"
)


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. `needed` says whether grading needs it now."""

    name: str
    ok: bool
    needed: bool
    text: str
    remedy: str = ""


def examine(course: Course) -> list[Finding]:
    """Return the findings, those that grading needs first.

    The sandbox is tried from inside: network, files of the host, forbidden packages, limits. What
    killed graders left behind is removed.
    """
    swept = sweep()
    sandboxes = [*_examine_sandboxes(course), *_examine_kernels(course)]
    found = [*sandboxes, *_examine_course(course), *_examine_machine()]
    if swept:
        found.append(Finding("leftovers", True, False, f"removed {len(swept)} rooms of graders that were killed"))
    return sorted(found, key=lambda finding: not finding.needed)


def _examine_sandboxes(course: Course) -> Iterator[Finding]:
    """Look from inside at the environment of every distinct list of packages."""
    seen: set[Path] = set()
    for lab, packages in _allow_lists(course):
        name = f"environment of {lab or 'a lab'}"
        try:
            prefix = environment_for(course, packages, lab)
        except AutograderError as error:
            yield Finding(name, False, True, str(error), "see the text of pip above; a package index must be reachable")
            continue
        if prefix not in seen:
            seen.add(prefix)
            yield from _examine_sandbox(course, prefix, name, forbidden_for(packages))


def _allow_lists(course: Course) -> list[tuple[str, tuple[str, ...]]]:
    labs = [(name, read_header(course.solutions / f"{name}.py").packages) for name in course.lab_names()]
    return labs or [("", USUAL_PACKAGES)]


def _examine_sandbox(course: Course, prefix: Path, environment: str, forbidden: list[str]) -> Iterator[Finding]:
    try:
        seen = _look_from_inside(course, prefix, forbidden)
    except AutograderError as error:
        yield Finding("sandbox", False, True, str(error), NAMESPACES)
        return
    yield Finding("sandbox", True, True, f"bubblewrap starts a kernel; inside it has uid {seen['uid']}")
    outside = seen["network"] == "connected" or seen["interfaces"] not in ([], ["lo"])
    yield Finding("no network", not outside, True, f"a connection from inside: {seen['network']}", NAMESPACES)
    visible = [*seen["shown"], *seen["files"], *(f"{path} (writable)" for path in seen["writable"])]
    text = f"visible inside: {', '.join(visible)}" if visible else "no course, solution, check or gradebook is visible"
    yield Finding("no files of the host", not visible, True, text, "move them out of the folders that are shown")
    text = f"can be imported: {', '.join(seen['imports'])}" if seen["imports"] else "no answer can be imported"
    yield Finding(environment, not seen["imports"], True, text, "take them off the lab's packages; remove its folder")
    loose = [name for name, holds in seen["limits"].items() if not holds]
    text = f"not held: {', '.join(loose)}" if loose else "memory, disk and processes are limited"
    yield Finding("limits", not loose, True, text, "use Linux 5.14 or newer, or grade as root")


def _look_from_inside(course: Course, prefix: Path, forbidden: list[str]) -> dict[str, Any]:
    private = [course.solutions, course.private / "secret", course.submitted, course.project / "autograder"]
    hidden = [Path(path) for path in ("/home", "/root/.ssh", "/etc/passwd", "/etc/shadow")] + private
    files = ("fp4kv", "gradebook.db", "outcome.json", *(f"{name}.py" for name in course.lab_names()))
    asked: dict[str, Any] = {
        "hidden_paths": [str(path) for path in hidden if not prefix.is_relative_to(path)],
        "forbidden": forbidden,
        "forbidden_files": files,
        "memory_bytes": TRIED_LIMITS.memory_bytes,
        "disk_bytes": TRIED_LIMITS.disk_bytes,
        "processes": TRIED_LIMITS.processes,
    }
    kernel = Kernel({}, TRIED_LIMITS, prefix)
    try:
        _, outputs = kernel.run(PROBE.format(asked=json.dumps(asked)), PROBE_SECONDS)
    finally:
        kernel.end()
    try:
        found: dict[str, Any] = json.loads("".join(output.get("text", "") for output in outputs))
    except ValueError:
        raise AutograderError(f"probe: expected a report from inside, got {outputs}") from None
    return found


def _examine_kernels(course: Course) -> Iterator[Finding]:
    """Compile and run a kernel where those of a student are: for the first lab that has any."""
    headers = {name: read_header(course.solutions / f"{name}.py") for name in course.lab_names()}
    for name, header in headers.items():
        if KERNEL_PACKAGE in header.packages:
            yield from _examine_kernel(course, name, header)
            return


def _examine_kernel(course: Course, lab: str, header: Header) -> Iterator[Finding]:
    name, missing = "kernels in the sandbox", "as root: apt-get install g++"
    try:
        prefix = environment_for(course, header.packages, lab)
        trial = try_kernel(prefix, header.limits)
    except AutograderError as error:
        yield Finding(name, False, True, str(error), missing)
        return
    seconds = f"compiled in {trial.compile_seconds:.1f} s, run in {trial.run_seconds:.1f} s"
    yield Finding(name, True, True, f"{seconds}, every access checked")
    text = f"NVRTC {trial.nvrtc} reads a kernel too" if trial.nvrtc else "no NVRTC: g++ alone reads a kernel"
    remedy = f"remove {prefix}; it is built again with {KERNEL_PACKAGE}, from a package index"
    yield Finding("NVRTC in the sandbox", bool(trial.nvrtc), False, text, remedy)


def _examine_course(course: Course) -> Iterator[Finding]:
    yield _tried("database", lambda: _open_database(course), True, "check CourseDirectory.db_url in nbgrader_config.py")
    folder = next(path for path in (course.root, *course.root.parents) if path.exists())
    text = f"{course.root} can be written" if os.access(folder, os.W_OK) else f"{folder} cannot be written"
    yield Finding(
        "course", os.access(folder, os.W_OK), True, text, f"chown -R $USER {folder}, or name another: --course DIR"
    )
    exchange = _exchange(course)
    text = (
        f"{exchange} can be written"
        if os.access(exchange, os.W_OK)
        else f"{exchange} cannot be written, or is not there"
    )
    remedy = f"as root: install -d -m 0777 {exchange} (only for nbgrader's own release and collect)"
    yield Finding("exchange", os.access(exchange, os.W_OK), False, text, remedy)


def _open_database(course: Course) -> str:
    """Connect to the gradebook, or see that its file can be made."""
    from sqlalchemy import create_engine
    from sqlalchemy.engine import make_url

    directory = nbgrader_course.course_directory(course, nbgrader_course.read_config(course))
    url = make_url(directory.db_url)
    if url.get_backend_name() == "sqlite" and url.database and not Path(url.database).exists():
        return f"{url.render_as_string()} will be made"
    engine = create_engine(url)
    try:
        engine.connect().close()
    finally:
        engine.dispose()
    return f"{url.render_as_string()} answers"


def _exchange(course: Course) -> Path:
    from nbgrader.exchange.default import Exchange

    return Path(Exchange(config=nbgrader_course.read_config(course)).root)


def _examine_machine() -> Iterator[Finding]:
    group = ControlGroup.create(f"autograder-doctor-{os.getpid()}", TRIED_LIMITS)
    text = (
        f"version {group.version}" if group.counts_memory() else "none: memory of a whole sandbox is polled, not held"
    )
    yield Finding(
        "control groups", group.counts_memory(), False, text, "grade as root, or in a systemd session with Delegate=yes"
    )
    group.remove()
    known = bool(seccomp.program())
    text = "known for this machine" if known else "not known for this machine"
    yield Finding("system-call filter", known, False, text, "the namespaces hold without it")
    compiler = shutil.which("g++")
    yield Finding(
        "C++ compiler", bool(compiler), False, compiler or "no g++ (kernel labs)", "as root: apt-get install g++"
    )
    yield _tried("NVRTC", _find_nvrtc, False, "pip install nvidia-cuda-nvrtc (kernel labs: compile check)")
    yield _tried("GPU", _find_gpu, False, "none is needed: labs have a path without one")


def _tried(name: str, attempt: Callable[[], str], needed: bool, remedy: str) -> Finding:
    """Return what an attempt said, or its error as the finding."""
    try:
        return Finding(name, True, needed, attempt())
    except Exception as error:  # a diagnosis reports whatever goes wrong
        return Finding(name, False, needed, str(error) or type(error).__name__, remedy)


def _find_nvrtc() -> str:
    for package in ("nvidia.cuda_nvrtc", "nvidia.cu13", "nvidia.cu12"):
        try:
            spec = importlib.util.find_spec(package)
        except ModuleNotFoundError:
            continue
        folders = list(spec.submodule_search_locations or []) if spec else []
        for library in (path for folder in folders for path in Path(folder).rglob("libnvrtc.so*")):
            return str(library)
    raise FileNotFoundError("no libnvrtc (kernel labs)")


def _find_gpu() -> str:
    if shutil.which("nvidia-smi") is None:
        raise FileNotFoundError("no nvidia-smi (kernel labs: bonus)")
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=30)
    cupy = "with CuPy" if importlib.util.find_spec("cupy") else "without CuPy"
    if listed.returncode:
        raise OSError(listed.stdout.strip() or listed.stderr.strip())
    return f"{listed.stdout.strip()} {cupy}"
