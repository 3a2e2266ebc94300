"""How the code reads, where a rule can be a test: lengths, names, docstrings, words."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

MAX_FUNCTION_LINES = 40
MAX_MODULE_LINES = 300
MEDIAN_FUNCTION_LINES = 8
BANNED_NAMES = {"utils", "helpers", "common", "misc", "manager"}
ROOMS = ("solutions/fp4kv", "solutions/checks", "labs/labkit", "autograder", "book", "tools", "bench")


def tracked(project: Path, *patterns: str) -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z", *patterns], cwd=project, capture_output=True, check=True)
    return [project / name for name in listed.stdout.decode().split("\0") if name and (project / name).exists()]


def our_code(project: Path) -> list[Path]:
    return [path for path in tracked(project, "*.py") if str(path.relative_to(project)).startswith(ROOMS)]


def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def visible_functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return the functions that others can call: of the module or of its classes, not those inside functions."""
    module = ast.parse(path.read_text(encoding="utf-8"))
    bodies = [module.body, *(node.body for node in module.body if isinstance(node, ast.ClassDef))]
    return [node for body in bodies for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
    return (node.end_lineno or 0) - first.lineno + 1


def test_no_function_is_longer_than_a_screen(project):
    long = {
        f"{path.relative_to(project)}:{node.lineno} {node.name}: {body_lines(node)} lines"
        for path in our_code(project)
        for node in functions(path)
        if body_lines(node) > MAX_FUNCTION_LINES
    }
    assert not long


def test_most_functions_are_short(project):
    lengths = sorted(body_lines(node) for path in our_code(project) for node in functions(path))
    assert lengths[len(lengths) // 2] <= MEDIAN_FUNCTION_LINES
    assert lengths[len(lengths) * 9 // 10] <= 25


def test_no_module_is_longer_than_a_sitting(project):
    lengths = {str(path.relative_to(project)): len(path.read_text().splitlines()) for path in our_code(project)}
    assert not {name: lines for name, lines in lengths.items() if lines > MAX_MODULE_LINES}


def test_no_module_has_a_name_that_says_nothing(project):
    assert not [path for path in our_code(project) if BANNED_NAMES & set(path.with_suffix("").parts)]


def test_public_functions_have_docstrings(project):
    bare = {
        f"{path.relative_to(project)}:{node.lineno} {node.name}"
        for path in our_code(project)
        for node in visible_functions(path)
        if not node.name.startswith("_") and not ast.get_docstring(node) and len(node.body) > 1
    }
    assert not bare


def test_no_error_is_swallowed_without_a_word(project):
    silent = {
        f"{path.relative_to(project)}:{node.lineno}"
        for path in our_code(project)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or getattr(node.type, "id", "") in {"Exception", "BaseException"})
        and all(isinstance(line, ast.Pass | ast.Continue) for line in node.body)
    }
    assert not silent


@pytest.mark.parametrize("mark", ["TO" + "DO", "FIX" + "ME", "XX" + "X"])
def test_nothing_is_left_to_do(project, mark):
    texts = [path for path in tracked(project) if path.suffix in {".py", ".md", ".sh", ".js", ".css", ".toml", ".yml"}]
    marked = re.compile(rf"\b{mark}\b")
    assert not [path for path in texts if marked.search(path.read_text(encoding="utf-8"))]


def test_notebooks_in_git_have_no_outputs(project):
    import nbformat

    executed = {
        str(path.relative_to(project))
        for path in tracked(project, "*.ipynb")
        for cell in nbformat.read(path, 4).cells
        if cell.cell_type == "code" and (cell.outputs or cell.execution_count)
    }
    assert not executed
