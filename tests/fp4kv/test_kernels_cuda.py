"""The reference kernels against their NumPy references: one list of cases, on the CPU and, if there is one, a GPU."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from fp4kv.kernel_bytes import decode_attention_traffic, dequantise_traffic, parts_traffic, quantise_pack_traffic
from fp4kv.kernel_cases import E4M3_BYTES, AttentionCase, adversarial_groups, attention_cases
from fp4kv.kernel_tolerance import decode_attention_tolerance
from fp4kv.kernels import (
    DECODE_ATTENTION,
    DEQUANTISE,
    QUANTISE_PACK,
    decode_attention,
    dequantise_packed,
    quantise_pack,
)
from labkit import cuda
from labkit.cuda.gpu import cupy_module
from labkit.device_code import DEVICE_CODE
from labkit.expect import Mismatch, expect_bytes, expect_close, expect_values
from labkit.launches import Launch, plan_decode_attention, plan_dequantise, plan_quantise_pack, run

from autograder.authoring.planted import Planted, read_planted

PROJECT = Path(__file__).resolve().parents[2]
ORDERS = (0, 1, 2, 3)  # of threads and blocks: natural, reversed, two shuffled
RAGGED = (1, 2, 3, 15, 16, 17, 33)  # groups: half a warp left over, a block of 16 just filled, one more
CASES = list(attention_cases(np.random.default_rng(11)))
EVERY_BYTE_AND_SCALE = (
    np.tile(np.arange(256, dtype=np.uint8), (E4M3_BYTES, 1)),
    np.arange(E4M3_BYTES, dtype=np.uint8)[:, None].repeat(32, axis=1),
)
LARGE = (2, 8, 2, 512, 128, (512, 300), 4)  # batch, query heads, KV heads, tokens, width, lengths, parts

# What the transactions move, sectors of 32 bytes whether all of it is wanted or not, over the least that must be moved.
# quantise_pack: a warp stores 16 bytes of codes and 2 of scales, a sector for each: (128 + 64) / (128 + 18) = 1.32.
QUANTISE_FACTOR = 1.35
# dequantise: a warp loads 32 bytes of codes and 4 of scales, a sector for each: (32 + 32 + 256) / (32 + 4 + 256) = 1.1.
DEQUANTISE_FACTOR = 1.15
# decode_attention: a warp loads 128 bytes of codes and 16 of scales: (128 + 32) / 144 = 1.11; the rest are queries and
# parts: each part reads the queries again, and in combine_parts each of 4 warps reads the maxima twice.
ATTENTION_FACTOR = 1.3


TASKS = ("quantise_pack", "dequantise", "decode_attention")
PLANTED = [answer for answer in read_planted(PROJECT / "solutions/planted/lab05_kernel.py") if answer.task in TASKS]
RIGHT = [answer for answer in PLANTED if answer.is_right]
# The cases below look at values and faults. What loses nothing but these checks has both right.
OF_TRAFFIC_AND_SIZE = {f"{task}-{ending}" for task in TASKS for ending in ("traffic", "sectors", "large")}
WRONG = [answer for answer in PLANTED if set(answer.loses) - OF_TRAFFIC_AND_SIZE]


def named(answer: Planted) -> str:
    """The name of a planted answer, for the list of tests."""
    return f"{answer.task}-{answer.name}"


class Machine(NamedTuple):
    """Where kernels run: how to get one, how arrays get there and back, which thread orders there are."""

    kernel: Callable[[str, str], Any]
    array: Callable[[np.ndarray], Any]
    numpy: Callable[[Any], np.ndarray]
    orders: tuple[dict[str, int], ...]


@pytest.fixture(scope="module", params=["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def machine(request: pytest.FixtureRequest) -> Iterator[Machine]:
    """The CPU run, on a machine with a GPU too; and CuPy, which needs one."""
    if request.param == "gpu":
        if cupy_module() is None:
            pytest.skip(cuda.what_runs_here())
        cupy = cupy_module()
        yield Machine(cupy.RawKernel, cupy.asarray, cupy.asnumpy, ({},))
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("labkit.cuda.kernels.cupy_module", lambda: None)
        yield Machine(cuda.RawKernel, np.asarray, np.asarray, tuple({"order": order} for order in ORDERS))


def run_quantise(machine: Machine, kernel: Any, x: np.ndarray, **extras: int) -> tuple[np.ndarray, np.ndarray]:
    launch, (packed, scales) = plan_quantise_pack(machine.array(x))
    run(kernel, launch, **extras)
    return machine.numpy(packed), machine.numpy(scales)


def run_dequantise(machine: Machine, kernel: Any, *cache: np.ndarray, **extras: int) -> np.ndarray:
    launch, x = plan_dequantise(*map(machine.array, cache))
    run(kernel, launch, **extras)
    return machine.numpy(x)


def run_attention(machine: Machine, kernels: tuple[Any, Any], case: AttentionCase, **extras: int) -> np.ndarray:
    launches, output = plan_decode_attention(*map(machine.array, case[:-1]), n_parts=case.n_parts)
    for kernel, launch in zip(kernels, launches, strict=True):
        run(kernel, launch, **extras)
    return machine.numpy(output)


def attention_kernels(machine: Machine, code: str = DECODE_ATTENTION) -> tuple[Any, Any]:
    return machine.kernel(code, "decode_attention"), machine.kernel(code, "combine_parts")


def check_quantise(machine: Machine, code: str = QUANTISE_PACK) -> None:
    """Compare bytes and scales of adversarial values and of ragged numbers of groups, under each thread order."""
    kernel = machine.kernel(code, "quantise_pack")
    everything = adversarial_groups()
    for x in (everything, *(everything[-n:] for n in RAGGED)):
        packed, scales = quantise_pack(x)
        for extras in machine.orders:
            found = run_quantise(machine, kernel, x, **extras)
            expect_bytes(found[1], scales, given=f"{x.shape}, {extras}")
            expect_bytes(found[0], packed, given=f"{x.shape}, {extras}")


def check_attention(machine: Machine, code: str = DECODE_ATTENTION) -> None:
    """Compare the output of every case with the exact one, under each thread order."""
    kernels = attention_kernels(machine, code)
    for case in CASES:
        exact, tolerance = decode_attention(*case[:-1]), decode_attention_tolerance(case)
        for extras in machine.orders:
            found = run_attention(machine, kernels, case, **extras)
            assert np.isfinite(found).all(), (case.q.shape, extras)
            expect_close(found, exact, tolerance, given=f"{case.q.shape}, {extras}")


def check_dequantise(machine: Machine, code: str = DEQUANTISE) -> None:
    """Compare numbers of every byte under every scale, and of ragged numbers of groups, under each thread order."""
    kernel = machine.kernel(code, "dequantise")
    for cache in (EVERY_BYTE_AND_SCALE, *(quantise_pack(adversarial_groups()[-n:]) for n in RAGGED)):
        for extras in machine.orders:
            found = run_dequantise(machine, kernel, *cache, **extras)
            expect_values(found, dequantise_packed(*cache), given=f"{cache[0].shape}, {extras}", signed_zeros=True)


def check_planted(machine: Machine, answer: Planted) -> None:
    """Compare what a planted answer computes; what it moves is not looked at."""
    checks = {"quantise_pack": check_quantise, "dequantise": check_dequantise, "decode_attention": check_attention}
    names: dict[str, Any] = {"DEVICE_CODE": DEVICE_CODE}
    exec(answer.source, names)
    checks[answer.task](machine, names[answer.task.upper()])


def test_quantise_pack_is_the_reference_bit_for_bit(machine: Machine) -> None:
    check_quantise(machine)


def test_quantise_pack_goes_round_its_loop(machine: Machine, rng: np.random.Generator) -> None:
    x = rng.normal(size=(37, 48)).astype(np.float32)
    launch, (packed, scales) = plan_quantise_pack(machine.array(x))
    run(machine.kernel(QUANTISE_PACK, "quantise_pack"), launch._replace(grid=(2,), block=(96,)))
    expected = quantise_pack(x)
    expect_bytes(machine.numpy(packed), expected[0], given=x)
    expect_bytes(machine.numpy(scales), expected[1], given=x)


def test_dequantise_is_exact_for_every_byte_under_every_scale(machine: Machine) -> None:
    check_dequantise(machine)


def test_decode_attention_is_within_its_tolerance(machine: Machine) -> None:
    check_attention(machine)


def test_decode_attention_of_no_tokens_is_zero(machine: Machine) -> None:
    case = next(case for case in CASES if 0 in case.lengths)
    found = run_attention(machine, attention_kernels(machine), case)
    expect_values(found[case.lengths == 0], np.zeros_like(case.q[case.lengths == 0]), given=case.lengths)


@pytest.mark.parametrize("n_parts", [1, 2, 5, 1000])
def test_parts_change_rounding_only(machine: Machine, n_parts: int) -> None:
    case = next(case for case in CASES if case.q.shape[2] == 128)._replace(n_parts=n_parts)
    found = run_attention(machine, attention_kernels(machine), case)
    expect_close(found, decode_attention(*case[:-1]), decode_attention_tolerance(case), given=n_parts)


def test_large_logits_neither_overflow_nor_vanish(machine: Machine) -> None:
    for case in CASES:
        loud = case._replace(q=case.q * np.float32(1000))
        found = run_attention(machine, attention_kernels(machine), loud)
        expect_close(found, decode_attention(*loud[:-1]), decode_attention_tolerance(loud), given=str(case.q.shape))


def test_without_a_token_or_an_element_nothing_is_launched(machine: Machine) -> None:
    packed, scales = run_quantise(
        machine, machine.kernel(QUANTISE_PACK, "quantise_pack"), np.zeros((0, 16), np.float32)
    )
    assert packed.shape == (0, 8)
    assert scales.shape == (0, 1)
    x = run_dequantise(machine, machine.kernel(DEQUANTISE, "dequantise"), packed, scales)
    assert x.shape == (0, 16)


@pytest.mark.parametrize(("batch", "tokens"), [(0, 5), (2, 0)])
def test_attention_over_nothing_is_zero_or_nothing(machine: Machine, batch: int, tokens: int) -> None:
    cache = (np.zeros((batch, 1, tokens, 8), np.uint8), np.zeros((batch, 1, tokens, 1), np.uint8)) * 2
    case = AttentionCase(np.ones((batch, 3, 16), np.float32), *cache, np.zeros(batch, np.int32), 2)
    found = run_attention(machine, attention_kernels(machine), case)
    expect_values(found, np.zeros((batch, 3, 16), np.float32), given=(batch, tokens))


@pytest.mark.parametrize("answer", RIGHT, ids=named)
def test_right_answers_written_differently_pass(machine: Machine, answer: Planted) -> None:
    check_planted(machine, answer)


@pytest.fixture
def checked(machine: Machine) -> Machine:
    """The CPU run alone: what a GPU does after a mistake is not defined, and it counts no transactions."""
    if len(machine.orders) == 1:
        pytest.skip("only the CPU run checks every access and counts transactions")
    return machine


@pytest.mark.parametrize("answer", WRONG, ids=named)
def test_cases_convict(checked: Machine, answer: Planted) -> None:
    with pytest.raises((Mismatch, AssertionError, cuda.KernelError)):
        check_planted(checked, answer)


@pytest.mark.parametrize("barrier", range(4))
def test_every_barrier_of_the_loop_is_needed(checked: Machine, barrier: int) -> None:
    pieces = DECODE_ATTENTION.split("__syncthreads();")
    assert len(pieces) == 5
    without = "__syncthreads();".join(
        [*pieces[:barrier], pieces[barrier] + pieces[barrier + 1], *pieces[barrier + 2 :]]
    )
    with pytest.raises(cuda.KernelError, match=r"(?i)race|uninitialised"):
        check_attention(checked, without)


def moved(checked: Machine, code: str, launch: Launch) -> int:
    """Return the bytes that the transactions of a launch move."""
    kernel = checked.kernel(code, launch.kernel)
    run(kernel, launch)
    return int(kernel.report.moved_bytes)


def test_quantise_pack_moves_little_more_than_it_must(checked: Machine) -> None:
    x = np.ones((512, 128), np.float32)
    least = quantise_pack_traffic(x.size).total
    assert least <= moved(checked, QUANTISE_PACK, plan_quantise_pack(x)[0]) <= QUANTISE_FACTOR * least


def test_dequantise_moves_little_more_than_it_must(checked: Machine) -> None:
    cache = quantise_pack(np.ones((512, 128), np.float32))
    least = dequantise_traffic(512 * 128).total
    assert least <= moved(checked, DEQUANTISE, plan_dequantise(*cache)[0]) <= DEQUANTISE_FACTOR * least


def test_decode_attention_reads_each_kv_head_once_for_its_group(checked: Machine) -> None:
    batch, heads, kv_heads, tokens, width, lengths, n_parts = LARGE
    cache = (*quantise_pack(np.ones((batch, kv_heads, tokens, width), np.float32)),) * 2
    q = np.ones((batch, heads, width), np.float32)
    launches, _ = plan_decode_attention(q, *cache, np.array(lengths, np.int32), n_parts=n_parts)
    fused = decode_attention_traffic(lengths, heads, kv_heads, width).total
    least = fused + parts_traffic(lengths, heads, width, tokens, n_parts).total
    assert least <= sum(moved(checked, DECODE_ATTENTION, launch) for launch in launches) <= ATTENTION_FACTOR * least
