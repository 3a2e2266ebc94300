"""Wall time of a class: `autograder grade` beside one plain `nbgrader autograde`, both in one run.

    python bench/grading.py [--lab lab02_formats] [--seconds 0 0.5 1]

Sixteen mixed submissions: untouched, perfect and six with one misconception each, twice. Their own cells
are emptied but for the first, which computes for the given number of seconds, so that the time of the cells
is known. The plain side is nbgrader as installed, one process, with none of this project's configuration; it
runs the visible cases only. Our side has sandbox and judge on, and runs every hidden check. The fixed cost is
what a line through the wall times has at zero; the slope is wall time for each second that cells compute.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
import numpy as np

from autograder.authoring.release import release
from autograder.classroom.plan import read_outcomes
from autograder.classroom.sample_class import TROUBLE, Sample, make_class
from autograder.course import Course
from autograder.judging.environments import environment_for
from autograder.lab import load_lab

CLASS_SIZE = 16
SPIN = "import time as _time\n_end = _time.process_time() + {seconds}\nwhile _time.process_time() < _end:\n    pass\n"
SCRIPTS = Path(sys.executable).parent


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--lab", default="lab02_formats")
    parser.add_argument("--seconds", type=float, nargs="+", default=[0.0, 0.5, 1.0])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        ours = prepare_ours(Path(folder, "ours"), options.lab)
        plain = prepare_plain(Path(folder, "plain"), ours, options.lab)
        samples = mixed_class(ours, options.lab)
        times = {"autograder grade": [], "nbgrader autograde": []}
        for seconds in options.seconds:
            hand_in(samples, options.lab, seconds, ours.submitted, plain / "submitted")
            times["autograder grade"].append(grade_ours(ours, options.lab))
            times["nbgrader autograde"].append(grade_plain(plain, options.lab))
    show(options.seconds, times)


def prepare_ours(root: Path, lab: str) -> Course:
    """Return a course with the lab released and its sandbox's environment built."""
    course = Course.find(root)
    release(course, lab)
    environment_for(course, load_lab(course, lab).header.packages, lab)
    return course


def prepare_plain(root: Path, ours: Course, lab: str) -> Path:
    """Return a folder where nbgrader, as it comes, has released the same source."""
    shutil.copytree(ours.source, root / "source")
    run_plain(root, "generate_assignment", lab)
    return root


def mixed_class(course: Course, lab: str) -> list[Sample]:
    """Return sixteen submissions that plain nbgrader can grade too: nobody loops, crashes or tears the file."""
    kinds = [sample for sample in make_class(course, lab) if sample.id not in TROUBLE and sample.expected is not None]
    repeats = -(-CLASS_SIZE // len(kinds))
    named = [Sample(f"{kind.id}-{turn}", kind.notebook, kind.expected) for turn in range(repeats) for kind in kinds]
    return named[:CLASS_SIZE]


def hand_in(samples: list[Sample], lab: str, seconds: float, *folders: Path) -> None:
    """Write the class to both courses, each notebook computing for so many seconds."""
    for sample in samples:
        notebook = nbformat.reads(sample.notebook.decode(), 4)
        free = [c for c in notebook.cells if c.cell_type == "code" and "nbgrader" not in c.metadata]
        for cell in free[1:]:
            cell.source = "# emptied"  # an empty cell would count as a deleted one, and be restored
        free[0].source += "\n" + SPIN.format(seconds=seconds)
        for folder in folders:
            path = folder / sample.id / lab / f"{lab}.ipynb"
            path.parent.mkdir(parents=True, exist_ok=True)
            nbformat.write(notebook, path)


def grade_ours(course: Course, lab: str) -> float:
    """Return the seconds of one `autograder grade` of the class, after its scores were looked at."""
    with clock() as elapsed:
        command = [SCRIPTS / "autograder", "grade", lab, "--force", "--course", course.root]
        done = subprocess.run(command, capture_output=True, text=True)
    graded = [outcome for outcome in read_outcomes(course, lab) if outcome.state == "graded"]
    if done.returncode not in (0, 1) or len(graded) != CLASS_SIZE:
        raise SystemExit(f"autograder grade: expected {CLASS_SIZE} graded, got {len(graded)}\n{done.stderr}")
    return elapsed[0]


def grade_plain(root: Path, lab: str) -> float:
    """Return the seconds of one plain `nbgrader autograde` of the class."""
    with clock() as elapsed:
        run_plain(root, "autograde", lab, "--force")
    graded = len(list(root.glob(f"autograded/*/{lab}/{lab}.ipynb")))
    if graded != CLASS_SIZE:
        raise SystemExit(f"nbgrader autograde: expected {CLASS_SIZE} graded, got {graded}")
    return elapsed[0]


def run_plain(root: Path, *arguments: str) -> None:
    """Run nbgrader in a folder, without any configuration but its defaults."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "AUTOGRADER"))}
    environment |= {"JUPYTER_NO_CONFIG": "1", "PATH": f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}"}
    command = [SCRIPTS / "nbgrader", *arguments]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"nbgrader {arguments[0]}: expected it to succeed\n{done.stderr[-2000:]}")


@contextmanager
def clock() -> Iterator[list[float]]:
    """Give a list that holds the seconds of the block once it has ended."""
    elapsed: list[float] = []
    begun = time.perf_counter()
    yield elapsed
    elapsed.append(time.perf_counter() - begun)


def show(seconds: list[float], times: dict[str, list[float]]) -> None:
    """Print wall times, the lines through them, and the ratio of the two sides."""
    print(f"{CLASS_SIZE} submissions, {os.cpu_count()} cores; seconds of wall time\n")
    heads = [f"{each:g} s of cells" for each in seconds]
    print(f"{'':20}", *(f"{head:>14}" for head in heads), f"{'fixed':>10}", f"{'per second':>12}")
    for side, walls in times.items():
        slope, fixed = np.polyfit(np.array(seconds) * CLASS_SIZE, walls, 1) if len(seconds) > 1 else (np.nan, np.nan)
        print(f"{side:20}", *(f"{wall:14.1f}" for wall in walls), f"{fixed:10.1f}", f"{slope:12.2f}")
    ours, plain = times.values()
    print(f"{'times less':20}", *(f"{b / a:14.2f}" for a, b in zip(ours, plain, strict=True)))
    print("\nfixed: at no computing cells at all, the whole class; per second: of all cells together")


if __name__ == "__main__":
    main()
