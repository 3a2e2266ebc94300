"""The Python environments that sandboxes show: one for each allow-list, built once.

Two layers. `packages-<digest>` is a virtual environment with ipykernel and the allowed packages at
the versions of constraints.txt; making it needs a package index. `lab-<digest>` is the same by
hard links, with the course's own labkit, trimmed to what that lab may see; making it needs
nothing. Both are made beside their place and renamed, so a name that is there is complete.

Where there is a C++ compiler, the second layer holds labkit's runner of CUDA kernels too, compiled when nothing of a
student's was near: in a sandbox it takes no time of a notebook's, and nobody can change it.
"""

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from autograder.course import Course
from autograder.errors import CourseError, SandboxError

LABKIT = "labkit"
KERNEL = "ipykernel"
LAYOUT = "2"  # part of every digest: raise it when what is built changes
PRIVATE = ("fp4kv", "autograder", "nbgrader")
ANSWERS = ("ml_dtypes", "torch", "torchao")  # packages that answer some lab: there only where a lab lists them
GIVEN_LAB = re.compile(r"lab(\d\d)")
RUNNERS = "runners"  # beside the environments: labkit's runner for each version of it and of the compiler
COMPILER_PATH = "/usr/bin"  # where a sandbox looks for it, after its own environment
PIP_MINUTES = 30


def environment_for(course: Course, packages: Sequence[str], lab: str = "") -> Path:
    """Return the environment with these packages and labkit, as the lab may see it.

    `labkit.given.labMM` is there only for M below the lab's own number; without a lab, none is.

    Raises
    ------
    CourseError
        If a package has no pin in constraints.txt.
    SandboxError
        If it must be built and pip fails; the text ends with what pip said.
    """
    names = sorted({name for name in packages if name != LABKIT})
    pins = [pin_of(course, name) for name in (KERNEL, *names)]
    base = course.environments / f"packages-{_digest(LAYOUT, sys.version, _base_python(), *pins, _constraints(course))}"
    labkit = labkit_files(course, lab)
    contents = [f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}" for name, path in labkit]
    contents.append(_compiler())
    target = course.environments / f"lab-{_digest(base.name, *contents)}"
    if not target.is_dir():
        with _building(course.environments):
            if not base.is_dir():
                _build_base(base, pins, course.project / "constraints.txt")
            if not target.is_dir():
                _add_labkit(base, target, labkit)
    return target


def forbidden_for(packages: Sequence[str]) -> list[str]:
    """Return the modules that no sandbox of a lab with these packages may be able to import."""
    listed = {_canonical(name) for name in packages}
    return [*PRIVATE, *(name for name in ANSWERS if _canonical(name) not in listed)]


def pin_of(course: Course, name: str) -> str:
    """Return `name==version` as constraints.txt has it.

    Raises
    ------
    CourseError
        If it has none: an environment that is not pinned grades differently tomorrow.
    """
    for line in _constraints(course).splitlines():
        package, _, version = line.partition("==")
        if _canonical(package) == _canonical(name) and version:
            return f"{name}=={version.strip()}"
    raise CourseError(
        f"packages: expected a pin for {name} in constraints.txt, found none; add the line {name}==VERSION"
    )


def labkit_files(course: Course, lab: str = "") -> list[tuple[str, Path]]:
    """Return the files of labkit that a lab may see: (relative name, path), in order."""
    root = course.labs / LABKIT / "src"
    number = GIVEN_LAB.match(lab)
    limit = int(number[1]) if number else 0
    found = []
    for path in sorted((root / LABKIT).rglob("*")):
        relative = path.relative_to(root)
        is_given = relative.parts[1:2] == ("given",) and len(relative.parts) > 2
        given = GIVEN_LAB.match(relative.parts[2]) if is_given else None
        if path.is_file() and "__pycache__" not in relative.parts and not (given and int(given[1]) >= limit):
            found.append((relative.as_posix(), path))
    if not found:
        raise CourseError(f"labkit: expected its files in {root}, found none")
    return found


def _build_base(target: Path, pins: list[str], constraints: Path) -> None:
    """Build the layer of packages; wheels only, so that nothing of a package runs here."""
    with _made_beside(target) as folder:
        _run([_base_python(), "-m", "venv", "--copies" if os.name == "nt" else "--symlinks", str(folder)])
        pip = [f"{folder}/bin/python", "-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _run([*pip, "--only-binary", ":all:", "--constraint", str(constraints), *pins])
        _run([f"{folder}/bin/python", "-I", "-m", "compileall", "-qq", str(folder / "lib")], may_fail=True)
        _point_scripts(folder, folder, target)


def _add_labkit(base: Path, target: Path, labkit: list[tuple[str, Path]]) -> None:
    """Build the layer of one lab."""
    with _made_beside(target) as folder:
        shutil.copytree(base, folder, symlinks=True, copy_function=os.link, dirs_exist_ok=True)
        _point_scripts(folder, base, target)
        (site,) = folder.glob("lib/python3*/site-packages")
        for name, source in labkit:
            (site / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, site / name)
        _run([f"{folder}/bin/python", "-I", "-m", "compileall", "-qq", str(site / LABKIT)], may_fail=True)
        _add_runner(folder, target.parent / RUNNERS)


def _add_runner(folder: Path, kept: Path) -> None:
    """Put labkit's runner, compiled once for all labs, where labkit looks for it; without a compiler there is none."""
    if not _compiler():
        return
    kept.mkdir(mode=0o700, exist_ok=True)
    variables = {"PATH": COMPILER_PATH, "LABKIT_CACHE": str(kept)}
    command = [f"{folder}/bin/python", "-I", "-c", "from labkit.cuda import build; print(build.runner())"]
    runner = Path(_run(command, may_fail=True, **variables).strip())
    if runner.parent == kept:
        (folder / "share" / LABKIT).mkdir(parents=True, exist_ok=True)
        shutil.copyfile(runner, folder / "share" / LABKIT / runner.name)
        (folder / "share" / LABKIT / runner.name).chmod(0o755)


def _compiler() -> str:
    """Return what tells the sandboxes' C++ compiler from another version of it; nothing if there is none."""
    found = shutil.which("g++", path=COMPILER_PATH)
    if not found:
        return ""
    status = Path(found).resolve().stat()
    return f"{found} {status.st_size} {status.st_mtime_ns}"


def _point_scripts(folder: Path, old: Path, new: Path) -> None:
    """Let the scripts in bin name the interpreter where it will be; each is written anew, no link is changed."""
    for script in (folder / "bin").iterdir():
        if script.is_symlink() or not script.is_file():
            continue
        data = script.read_bytes()
        if str(old).encode() in data:
            mode = script.stat().st_mode
            script.unlink()
            script.write_bytes(data.replace(str(old).encode(), str(new).encode()))
            script.chmod(mode)


@contextlib.contextmanager
def _made_beside(target: Path) -> Iterator[Path]:
    """Give a folder to fill; it takes the target's name at the end, or goes."""
    folder = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        yield folder
        folder.chmod(0o755)
        folder.rename(target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _building(folder: Path) -> Iterator[None]:
    """Hold the one lock under which environments are built."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("w")
    except OSError as error:
        raise SandboxError(
            f"environments: expected a folder to build in, got {error}; "
            "set AUTOGRADER_ENVIRONMENTS to one that you may write"
        ) from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(command: list[str], may_fail: bool = False, **variables: str) -> str:
    """Run a command and return what it printed."""
    removed = ("PYTHONPATH", "PYTHONHOME", "LABKIT_CXX")
    environment = {name: value for name, value in os.environ.items() if name not in removed} | variables
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, umask=0o022, timeout=60 * PIP_MINUTES
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxError(f"environment: expected {command[0]} to run, got {error}") from None
    if done.returncode and not may_fail:
        words = "\n".join(line for line in done.stderr.splitlines() if not line.startswith("WARNING"))
        raise SandboxError(
            f"environment: expected it to be built, got from {' '.join(command[:6])} …:\n{words[-2000:]}"
        )
    return done.stdout


def _base_python() -> str:
    """Return the interpreter below any virtual environment."""
    return str(Path(getattr(sys, "_base_executable", "") or sys.executable).resolve())


def _constraints(course: Course) -> str:
    path = course.project / "constraints.txt"
    if not path.is_file():
        raise CourseError(f"constraints: expected {path}, found none")
    return path.read_text(encoding="utf-8")


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
