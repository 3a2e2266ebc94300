"""Correct kernels are never accused, under every thread order; broken ones are caught, with kind and line."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from labkit import cuda
from labkit.cuda.source import kernels_of
from labkit.given import lab02

_SPEC = importlib.util.spec_from_file_location("corpus_cases", Path(__file__).with_name("cases.py"))
assert _SPEC is not None and _SPEC.loader is not None
cases = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(cases)

CLOSE = {"rtol": 1e-5, "atol": 1e-6}
"""Of float32 sums of some thousand terms in another order, as corpus/README.md states it."""

CORRECT, BROKEN = cases.all_cases("correct"), cases.all_cases("broken")


def name_of(case: Any) -> str:
    return str(case.path.stem)


def launch(case: Any, order: int) -> list[Any]:
    """Run a case in one thread order and return its arguments afterwards."""
    kernel = cuda.RawKernel(case.code, case.kernel, case.options)
    arguments = case.make_arguments()
    kernel(case.grid, case.block, tuple(arguments), shared_mem=case.shared, order=order, limit_s=case.limit_s)
    return arguments


def expected(case: Any, expression: str) -> Any:
    """Compute what a parameter must hold, from what the parameters held before the launch."""
    names: dict[str, Any] = {"np": np, "given": lab02} | dict(zip(parameters(case), case.make_arguments(), strict=True))
    for name, definition in case.let:
        names[name] = eval(definition, names)
    return eval(expression, names)


def result(case: Any, arguments: list[Any], name: str) -> Any:
    return arguments[parameters(case).index(name)]


def parameters(case: Any) -> tuple[str, ...]:
    return next(kernel.parameters for kernel in kernels_of(case.code) if kernel.name == case.kernel)


@pytest.mark.parametrize("case", CORRECT, ids=name_of)
def test_a_correct_kernel_runs_clean_in_every_order(case: Any) -> None:
    for order in case.orders:
        arguments = launch(case, order)
        for name, expression in case.equals:
            np.testing.assert_array_equal(
                result(case, arguments, name), expected(case, expression), f"{name}, order {order}"
            )
        for name, expression in case.close:
            np.testing.assert_allclose(
                result(case, arguments, name), expected(case, expression), **CLOSE, err_msg=f"{name}, order {order}"
            )


@pytest.mark.parametrize("case", BROKEN, ids=name_of)
def test_a_broken_kernel_is_caught_with_kind_and_line(case: Any) -> None:
    said = []
    for order in (case.orders[0], *case.orders):
        with pytest.raises(cuda.CudaError) as caught:
            launch(case, order)
        error = caught.value
        assert error.kind in case.expect, f"{error.kind}: {error}"
        if case.lines:
            assert error.line in case.lines, str(error)
        for words in case.says:
            assert words in str(error)
        said.append(str(error))
    assert said[0] == said[1], "the same launch says two different things"


def test_the_corpus_is_large_enough() -> None:
    assert len(CORRECT) >= 40
    assert len(BROKEN) >= 80
