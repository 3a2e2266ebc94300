"""Write environment.yml from the pins in pyproject.toml: `python tools/pins.py [--check]`."""

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEAD = """\
# One environment for students and authors. Written by tools/pins.py from pyproject.toml and
# labs/labkit/pyproject.toml: edit the pins there.
#
#     conda env create -f environment.yml && conda activate fp4kv
#
name: fp4kv
channels:
  - conda-forge
dependencies:
  - python=3.11
  - pip
  - pip:
"""
MARKED_TITLES = {
    "gpu": "kernels on an NVIDIA GPU: take the mark off the next line",
    "models": "real pretrained weights (labkit.models): take the marks off",
}
TITLES = {
    "dependencies": "the labs, the reference library, the autograder",
    "validate": "the student's own check",
    "kernels": "NVIDIA's compiler, for the lab on kernels; it needs no GPU",
    "book": "the book",
    "oracles": "independent implementations that tests and benchmarks compare with",
    "test": "tests, formatting, types",
}


def pins() -> dict[str, list[str]]:
    """Return the pins of every group, each package once, in the order of the files."""
    root = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    kit = tomllib.loads((ROOT / "labs/labkit/pyproject.toml").read_text())["project"]
    groups = {
        "dependencies": [*kit["dependencies"], *root["dependencies"]],
        "validate": kit["optional-dependencies"]["validate"],
        "kernels": kit["optional-dependencies"]["kernels"],
        **root["optional-dependencies"],
    }
    seen: set[str] = set()
    found: dict[str, list[str]] = {}
    for name, group in groups.items():
        found[name] = [pin for pin in dict.fromkeys(group) if pin not in seen]
        seen |= set(group)
    return found


def marked_lines() -> list[str]:
    """Return the lines of the extras that are not installed unless one takes their marks off."""
    kit = tomllib.loads((ROOT / "labs/labkit/pyproject.toml").read_text())["project"]
    installed = {pin for group in pins().values() for pin in group}
    lines = []
    for name, title in MARKED_TITLES.items():
        lines += [f"      # {title}"]
        lines += [f"      # - {pin}" for pin in kit["optional-dependencies"][name] if pin not in installed]
    return lines


def environment() -> str:
    """Return the text of environment.yml."""
    lines = ["      - ./labs/labkit"]
    for name, group in pins().items():
        lines += [f"      # {TITLES[name]}", *(f"      - {pin}" for pin in group)]
    return HEAD + "\n".join([*lines, *marked_lines()]) + "\n"


def main() -> int:
    """Write the file, or with --check say whether it is up to date."""
    path, text = ROOT / "environment.yml", environment()
    if "--check" in sys.argv[1:]:
        return 0 if path.read_text() == text else 1
    path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
