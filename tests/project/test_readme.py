"""The README's commands exist, and its first two come before any other."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

BLOCK = re.compile(r"^```(?:sh|console|bash)\n(.*?)^```", re.S | re.M)


def commands(path: Path) -> list[str]:
    blocks = BLOCK.findall(path.read_text(encoding="utf-8"))
    return [line.split("#")[0].strip() for block in blocks for line in block.splitlines() if line.split("#")[0].strip()]


def test_readme_begins_with_the_two_commands(project):
    assert commands(project / "README.md")[:2] == ["make course", "make test"]


def test_readme_sections_stand_in_order(project):
    headings = re.findall(r"^## (.+)$", (project / "README.md").read_text(), re.M)
    wanted = ["Two commands", "For a reader", "For a student", "For an instructor", "For an author"]
    assert [heading for heading in headings if heading in wanted] == wanted
    assert headings[0] == "Two commands"


def test_make_verbs_in_the_documents_exist(project):
    verbs = set(re.findall(r"^([a-z]+):.*##", (project / "Makefile").read_text(), re.M))
    assert verbs == {"help", "course", "test", "lint", "book", "labs", "bench"}
    for document in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"):
        used = set(re.findall(r"\bmake ([a-z]+)\b(?=[`\n])", (project / document).read_text()))
        assert used <= verbs, f"{document} names {used - verbs}"


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"])
def test_autograder_commands_in_the_documents_exist(project, document):
    from autograder.cli import autograder

    used = set(re.findall(r"`?autograder ([a-z]+(?:-[a-z]+)*)", "\n".join(commands(project / document))))
    assert used <= set(autograder.commands), f"{document} names {used - set(autograder.commands)}"


def test_ci_runs_the_readme_test_command(project):
    assert (project / ".ci/run").read_text().rstrip().endswith("make test")
    checked = subprocess.run(["bash", "-n", project / ".ci/run"], check=False)
    assert checked.returncode == 0


def test_local_links_in_the_documents_resolve(project):
    for document in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"):
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)", (project / document).read_text()):
            assert (project / target).exists(), f"{document} links to {target}"


def test_picture_is_what_its_writer_draws(project):
    done = subprocess.run([sys.executable, project / "tools/picture.py", "--check"], check=False)
    assert done.returncode == 0, "book/assets/course.svg differs: run python tools/picture.py"
