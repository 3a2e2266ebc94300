"""Benchmarks are run by hand and rarely: what they import must still be there."""

import ast
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
BENCHMARKS = sorted((PROJECT / "bench").glob("*.py"))


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.name)
def test_what_a_benchmark_imports_is_there(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(path.parent), *sys.path])
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            exec(compile(ast.Module([statement], []), str(path), "exec"), {"__name__": path.stem})
