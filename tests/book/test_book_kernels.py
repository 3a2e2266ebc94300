"""Chapter 5 says what is so: its kernels, its messages, and each number in its text that no cell computes."""

import functools
import itertools
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import fp4kv.kernels
import numpy as np
import pytest
from fp4kv.kernel_bytes import decode_attention_traffic, parts_traffic, quantise_pack_traffic
from labkit.cuda import KernelError, LaunchError, RawKernel
from labkit.formats import GROUP_LENGTH
from pictures import banks, complaints, half_warp, kernel_traffic, roofline

BOOK = Path(__file__).resolve().parents[2] / "book"
CHAPTER = (BOOK / "kernels.md").read_text(encoding="utf-8")
ORDERS = (0, 1, 2, 3)
FLOAT64_SUM = 900 * 2.0**-53  # relative, of 900 roundings
LENGTH_OF_TELLING_LINES = 20  # shorter ones, as a brace, stand in every program


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    monkeypatch.setattr("labkit.cuda.kernels.cupy_module", lambda: None)


@pytest.fixture(scope="module")
def traffic():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("labkit.cuda.kernels.cupy_module", lambda: None)
        rows, error = kernel_traffic.attention()
        return {row.name: row for row in kernel_traffic.quantise_and_back() + rows}, error


def source(name: str) -> str:
    """Return the text of a kernel that the chapter shows."""
    return re.search(rf'^{name} = r"""(.*?)"""', CHAPTER, re.M | re.S)[1]


def numbers(n: int) -> np.ndarray:
    return np.random.default_rng(n).normal(size=n).astype(np.float32)


def run_amax(code: str, x: np.ndarray, *, order: int = 0) -> tuple[np.ndarray, RawKernel]:
    groups = np.full(-(-x.size // 32), np.nan, np.float32)
    kernel = RawKernel(code, "amax")
    kernel((-(-x.size // 256),), (256,), (x, groups, np.int32(x.size)), order=order)
    return groups, kernel


def run_transpose(row_floats: int) -> tuple[np.ndarray, RawKernel]:
    x, y = np.arange(1024, dtype=np.float32), np.zeros(1024, np.float32)
    kernel = RawKernel(source("TRANSPOSE").replace("33", str(row_floats)), "transpose")
    kernel((1,), (256,), (x, y))
    return y, kernel


def combine(*parts: tuple[float, float, float]) -> tuple[float, float, float]:
    """Return m, z and u of parts taken together, as the theorem has it for two."""
    m = max(part[0] for part in parts)
    z, u = (sum(np.exp(part[0] - m) * part[i] for part in parts) for i in (1, 2))
    return m, z, u


def log_sum_exp(logits: np.ndarray) -> float:
    """Call the function of that name that the chapter shows."""
    (cell,) = (cell for cell in re.findall(r"```\{code-cell\}[^\n]*\n(.*?)```", CHAPTER, re.S) if "def log_sum" in cell)
    names: dict[str, Any] = {"np": np}
    exec(compile(cell[: cell.index("\nlogits = ")], "kernels.md", "exec"), names)
    return float(names["log_sum_exp"](logits))


def test_group_by_hand_is_that_of_the_reference():
    group = np.zeros(GROUP_LENGTH, np.float32)
    group[:4] = 0.5, -1.7, 3.2, 6.6
    packed, scales = fp4kv.kernels.quantise_pack(group)
    assert packed.tolist() == [0xB1, 0x75, 0, 0, 0, 0, 0, 0]
    assert fp4kv.quantise_e2m1(group).scales.tolist() == [1.125]
    assert scales.size == 1


def test_each_exchange_doubles_who_knows():
    assert [len(half_warp.lanes_that_know(n)) for n in range(5)] == [1, 2, 4, 8, 16]
    assert half_warp.lanes_that_know(2) == {3, 7, 11, 15}


def test_bytes_of_quantise_and_pack_are_as_derived():
    per_element = 4 + Fraction(1, 2) + Fraction(1, 16)
    assert per_element == Fraction(73, 16)
    assert quantise_pack_traffic(1600).total == 1600 * per_element
    assert round((128 + 32 + 32) / (128 + 16 + 2), 2) == 1.32


def test_sectors_of_strided_reads():
    assert kernel_traffic.strided_sectors() == {1: 4, 2: 8, 4: 16, 8: 32, 16: 32}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("n", [1, 31, 32, 33, 900, 1024])
def test_sibling_is_right_for_every_length_and_order(n, order):
    x = numbers(n)
    groups, _ = run_amax(source("AMAX"), x, order=order)
    padded = np.append(x, np.zeros(-n % 32, np.float32)).reshape(-1, 32)
    assert np.array_equal(groups, np.abs(padded).max(axis=1))


def test_each_maximum_costs_a_sector():
    _, kernel = run_amax(source("AMAX"), numbers(900))
    reads, writes = (kernel.report.total("global", verb) for verb in ("reads", "writes"))
    assert (reads.bytes, reads.sectors) == (3600, 113)
    assert (writes.bytes, writes.sectors) == (29 * 4, 29)


def test_python_float_is_refused():
    code = 'extern "C" __global__ void put(float* x, float number) { x[0] = number; }'
    with pytest.raises(LaunchError, match="8 bytes"):
        RawKernel(code, "put")((1,), (1,), (np.zeros(1, np.float32), 0.5))


@pytest.mark.parametrize(("row_floats", "rounds"), [(32, 31), (33, 0), (36, 3)])
def test_conflicts_of_a_tile_are_counted_as_drawn(row_floats, rounds):
    turned, kernel = run_transpose(row_floats)
    assert np.array_equal(turned.reshape(32, 32), np.arange(1024).reshape(32, 32).T)
    assert kernel.report.bank_conflicts == 32 * rounds
    assert banks.extra_rounds(row_floats) == rounds


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_parts_combine_to_the_whole_in_every_order(order):
    logits, values = 300 + 50 * numbers(300).astype(float), numbers(301)[:300].astype(float)
    parts = []
    for cut in np.split(np.arange(300), (7, 8, 200)):
        weights = np.exp(logits[cut] - logits[cut].max())
        parts.append((logits[cut].max(), weights.sum(), weights @ values[cut]))
    _, z, u = functools.reduce(combine, (parts[i] for i in order))
    p = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    assert abs(u / z - p @ values) <= 4 * FLOAT64_SUM * (p @ np.abs(values))


@pytest.mark.parametrize("offset", [-1000, 0, 1000])
def test_running_sum_needs_no_second_pass(offset):
    logits = offset + 10 * numbers(900).astype(float)
    assert abs(log_sum_exp(logits) - np.logaddexp.reduce(logits)) <= 3 * FLOAT64_SUM * (1 + abs(offset))


def test_parts_by_hand_combine_as_solved():
    _, z, u = combine((3, 2, 4), (3 + np.log(2), 1, 5))
    assert (z, u) == pytest.approx((2, 7), rel=1e-15)
    assert u / z == pytest.approx(3.5, rel=1e-15)
    assert (4 + 5) / (2 + 1) == 3


def test_empty_part_counts_for_nothing_and_two_make_nan():
    empty = (-np.inf, 0.0, 0.0)
    assert combine(empty, (3.0, 2.0, 4.0)) == (3, 2, 4)
    with np.errstate(invalid="ignore"):
        assert np.isnan(combine(empty, empty)[1])


def test_unfused_paths_cost_what_the_text_says():
    packed = Fraction(9, 16)
    assert packed + 8 == 8 + Fraction(9, 16)
    assert round(float((packed + 8) / packed), 1) == 15.2
    assert packed + 4 == 4 + Fraction(9, 16)
    assert list(roofline.PATHS.values()) == [2, packed, packed + 4, packed + 8]


def test_parts_of_256_tokens_cost_11_per_cent():
    tokens, heads, kv_heads, width = 1024, 8, 2, 128
    cache = decode_attention_traffic([tokens], heads, kv_heads, width).read - 4 * heads * width - 4
    share = parts_traffic([tokens], heads, width, tokens, 4).total / cache
    assert cache == Fraction(9, 8) * tokens * width * kv_heads
    assert share == pytest.approx(8 * 4 * 130 / (1.125 * 256 * 128))
    assert round(100 * share) == 11
    assert round(8 / 1.125, 1) == 7.1


def test_arithmetic_is_the_limit_on_one_gpu_and_not_on_the_other():
    assert roofline.ridge("H200") < roofline.operations_per_byte(4) < roofline.ridge("H100")
    for name, rate in roofline.BANDWIDTH.items():
        assert f"{rate / 1e12:g} TB/s" in CHAPTER, name
    assert f"{roofline.FLOAT32_RATE / 1e12:g} Tflop/s" in CHAPTER


def test_kernels_move_what_the_caption_says(traffic):
    factor = {name: (row.moved or row.asked) / row.least for name, row in traffic[0].items()}
    assert factor["quantise_pack"] == pytest.approx((128 + 32 + 32) / (128 + 16 + 2), rel=1e-3)
    assert factor["dequantise"] == pytest.approx((32 + 32 + 256) / (32 + 4 + 256), rel=1e-3)
    assert factor["decode_attention"] < 1.4
    assert round(factor["each query head alone"] / factor["decode_attention"], 1) == 3.5
    assert round(factor["dequantised first"]) == 15


def test_attention_is_within_its_tolerance(traffic):
    assert traffic[1] < 1


WRONG = {
    "no check at the end": ("AMAX", (" && i < n", ""), "out_of_bounds", "groups[i / 32] = most;"),
    "lanes mixed up": ("AMAX", ("0xffffffffu", "0x0000ffffu"), "warp_call", "0x0000ffffu"),
    "missing barrier": ("TRANSPOSE", ("    __syncthreads();\n", ""), "race", "tile[row]"),
    "two writers": ("PACK", ("", ""), "race", "packed[i / 2] |="),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("slip", WRONG)
def test_each_slip_is_found_and_its_line_named(slip, order):
    name, edit, kind, line = WRONG[slip]
    code = source(name).replace(*edit) if edit[0] else source(name)
    args, block = {
        "AMAX": ((numbers(900), np.zeros(29, np.float32), np.int32(900)), (4, 256)),
        "TRANSPOSE": ((np.zeros(1024, np.float32), np.zeros(1024, np.float32)), (1, 256)),
        "PACK": ((np.array([1, 11, 5, 7], np.uint8), np.zeros(2, np.uint8)), (1, 4)),
    }[name]
    with pytest.raises(KernelError) as caught:
        RawKernel(code, name.lower())((block[0],), (block[1],), args, order=order)
    assert kind in {fault.kind for fault in caught.value.faults}
    assert any(line in code.split("\n")[fault.line - 1] for fault in caught.value.faults if fault.line)


def test_page_shows_each_kind_of_fault_once_within_its_width():
    code = source("PACK")
    text = complaints.complaint(code, "pack", (1, 4), (np.array([1, 11, 5, 7], np.uint8), np.zeros(2, np.uint8)))
    assert text.count("Race:") == 1
    assert max(map(len, text.splitlines())) <= complaints.WIDTH


def test_right_kernel_is_no_example_of_a_wrong_one():
    args = (numbers(900), np.zeros(29, np.float32), np.int32(900))
    with pytest.raises(AssertionError, match="expected a fault"):
        complaints.complaint(source("AMAX"), "amax", (4, 256), args)


def test_swapped_halves_and_wrong_distance_break_no_rule():
    code = r"""
    extern "C" __global__ void swapped(const unsigned char* codes, unsigned char* packed) {
        packed[threadIdx.x] = codes[2 * threadIdx.x] << 4 | codes[2 * threadIdx.x + 1];
    }
    extern "C" __global__ void largest_of_16(const float* x, float* largest) {
        float most = x[threadIdx.x];
        for (int apart = 16; apart > 0; apart /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, apart));
        if (threadIdx.x % 16 == 0) largest[threadIdx.x / 16] = most;
    }"""
    packed, largest = np.zeros(1, np.uint8), np.zeros(2, np.float32)
    RawKernel(code, "swapped")((1,), (1,), (np.array([0x1, 0xB], np.uint8), packed))
    RawKernel(code, "largest_of_16")((1,), (32,), (np.arange(32, dtype=np.float32), largest))
    assert packed.tolist() == [0x1B]
    assert largest.tolist() == [31, 31]


def test_lanes_that_return_before_a_shuffle_are_waited_for():
    line = "    float most = i < n"
    with pytest.raises(KernelError) as caught:
        run_amax(source("AMAX").replace(line, "    if (i >= n) return;\n" + line), numbers(900))
    assert caught.value.kind == "deadlock"


def test_bytes_of_fp8_are_as_solved():
    assert round(4 + 1 + 1 / 32, 2) == 5.03
    assert round((33 / 32) / (9 / 16), 2) == 1.83


def loops() -> list[tuple[str, str]]:
    """Return each telling line of the loops that students write, without spaces and comments, and its kernel."""
    found = []
    for name in ("QUANTISE_PACK", "DEQUANTISE", "DECODE_ATTENTION"):
        text = getattr(fp4kv.kernels, name)
        for loop in re.findall(r"### BEGIN SOLUTION\n(.*?)// ### END SOLUTION", text, re.S):
            lines = (re.sub(r"\s|//.*", "", line) for line in loop.splitlines())
            found += [(name, line) for line in lines if len(line) > LENGTH_OF_TELLING_LINES]
    return found


def test_no_line_of_the_tasks_loops_stands_in_the_book():
    text = re.sub(r"\s", "", "".join(path.read_text(encoding="utf-8") for path in BOOK.glob("*.md")))
    assert len(loops()) > 20
    assert [(name, line) for name, line in loops() if line in text] == []
