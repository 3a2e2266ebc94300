"""The examples in docstrings of both packages give what they print."""

import doctest
import importlib
import pkgutil

import fp4kv
import labkit
import pytest

MODULES = sorted(
    module.name
    for package in (fp4kv, labkit)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not module.name.startswith("labkit.given.")
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_every_task_has_an_example() -> None:
    finder = doctest.DocTestFinder()
    bare = [name for name in fp4kv.__all__ if not any(test.examples for test in finder.find(getattr(fp4kv, name)))]
    assert not bare
