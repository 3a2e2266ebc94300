"""Correct kernels are never accused, under every thread order; broken ones are caught, with kind and line."""

import importlib.util
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from labkit import cuda
from labkit.cuda.gpu import cupy_module
from labkit.cuda.source import kernels_of
from labkit.given import lab02

_SPEC = importlib.util.spec_from_file_location("corpus_cases", Path(__file__).with_name("cases.py"))
assert _SPEC is not None and _SPEC.loader is not None
cases = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(cases)

FEWEST_CORRECT, FEWEST_BROKEN, FEWEST_ORDERS = 40, 80, 3
ORDERS_OF_BROKEN = 2  # a fault that the natural order shows is told in its words in every other
# expf of the C library and np.exp differ by up to 2 units in the last place, 2.4e-7; a float32 sum of a hundred terms
# in another order by up to 100 · 2^-24 = 6e-6 of the sum of magnitudes. No case of `close` sums more, or cancels.
CLOSE = {"rtol": 1e-5, "atol": 1e-6}

CORRECT, BROKEN = cases.all_cases("correct"), cases.all_cases("broken")
HAS_GPU = cupy_module() is not None
on_the_cpu = pytest.mark.skipif(HAS_GPU, reason="a GPU runs kernels unchecked: the CPU run alone finds faults")


def name_of(case: Any) -> str:
    return str(case.path.stem)


def on_device(arguments: list[Any]) -> list[Any]:
    """Move arrays to where kernels run; one array that is passed twice stays one."""
    moved = {id(value): cuda.xp.asarray(value) for value in arguments if isinstance(value, np.ndarray)}
    return [moved.get(id(value), value) for value in arguments]


def launch(case: Any, order: int, checked: bool = True) -> list[Any]:
    """Run a case in one thread order and return its arguments afterwards."""
    kernel = cuda.RawKernel(case.code, case.kernel, case.options)
    arguments = on_device(case.make_arguments())
    extras: dict[str, Any] = {"order": order, "limit_s": case.limit_s, "checked": checked}
    kernel(case.grid, case.block, tuple(arguments), shared_mem=case.shared, **extras)
    return arguments


def parameters(case: Any) -> tuple[str, ...]:
    return next(kernel.parameters for kernel in kernels_of(case.code) if kernel.name == case.kernel)


def expected(case: Any, stated: list[tuple[str, str]]) -> list[tuple[int, str, Any]]:
    """Compute what parameters must hold, from what they held before the launch: position, name, value of each."""
    names = parameters(case)
    known: dict[str, Any] = {"np": np, "given": lab02} | dict(zip(names, case.make_arguments(), strict=True))
    for name, definition in case.let:
        known[name] = eval(definition, known)
    return [(names.index(name), name, eval(expression, known)) for name, expression in stated]


@cache
def error_of(name: str, order: int, attempt: int) -> cuda.CudaError | None:
    """Launch a broken kernel; `attempt` tells launches apart that are the same in all else."""
    del attempt
    try:
        launch(next(case for case in BROKEN if name_of(case) == name), order)
    except cuda.CudaError as error:
        return error
    return None


def require_results(case: Any, after: list[Any], where: str) -> None:
    for position, name, value in expected(case, case.equals):
        np.testing.assert_array_equal(cuda.asnumpy(after[position]), value, f"{name}, {where}")
    for position, name, value in expected(case, case.close):
        np.testing.assert_allclose(cuda.asnumpy(after[position]), value, **CLOSE, err_msg=f"{name}, {where}")


@pytest.mark.parametrize("case", CORRECT, ids=name_of)
def test_a_correct_kernel_runs_clean_and_right_in_every_order(case: Any) -> None:
    for order in case.orders[: 1 if HAS_GPU else None]:
        require_results(case, launch(case, order), f"order {order}")


@on_the_cpu
@pytest.mark.parametrize("case", CORRECT, ids=name_of)
def test_a_correct_kernel_is_right_unchecked_too(case: Any) -> None:
    require_results(case, launch(case, order=0, checked=False), "unchecked")


@on_the_cpu
@pytest.mark.parametrize("case", BROKEN, ids=name_of)
def test_a_broken_kernel_is_caught_with_kind_and_line(case: Any) -> None:
    for order in case.orders[:ORDERS_OF_BROKEN]:
        error = error_of(name_of(case), order, 0)
        assert error is not None, f"order {order} ran clean"
        assert error.kind in case.expect, f"order {order}: {error.kind}: {error}"
        if case.lines:
            assert error.line in case.lines, f"order {order}: {error}"
        for words in case.says:
            assert words in str(error), f"order {order}"


@on_the_cpu
@pytest.mark.parametrize("case", BROKEN, ids=name_of)
def test_a_broken_kernel_gets_the_same_message_every_time(case: Any) -> None:
    first, second = (str(error_of(name_of(case), case.orders[0], attempt)) for attempt in (0, 1))
    assert first == second


def test_the_corpus_is_large_enough() -> None:
    assert len(CORRECT) >= FEWEST_CORRECT
    assert len(BROKEN) >= FEWEST_BROKEN


def test_the_corpus_has_every_kind_of_fault() -> None:
    promised = (cases.CORPUS / "README.md").read_text().partition("Kinds:")[2]
    kinds = set(re.findall(r"`([a-z_]+)`(?=[ ,.])", promised))
    assert {kind for case in BROKEN for kind in case.expect} == kinds


def test_a_correct_case_states_a_result_and_no_fault() -> None:
    for case in CORRECT:
        assert case.equals or case.close, case.path.name
        assert not (case.expect or case.says or case.lines), case.path.name
        assert len(set(case.orders)) >= FEWEST_ORDERS, case.path.name


def test_a_broken_case_states_a_fault_and_no_result() -> None:
    for case in BROKEN:
        assert case.expect, case.path.name
        assert not (case.equals or case.close or case.let), case.path.name


@pytest.mark.parametrize("header", ["// kernel: f", "// about: x", "// about: x\n// kernel: f\n// grids: 1"])
def test_reading_a_case_refuses_a_wrong_header(header: str, tmp_path: Path) -> None:
    path = tmp_path / "case.cu"
    path.write_text(header + "\nint x;\n")
    with pytest.raises(ValueError, match=r"case\.cu: expected"):
        cases.read(path)
