"""Faulty kernels: each is caught by the runner, at its line, whatever the seed; one line repairs each."""

import numpy as np
import pytest
from labkit.cuda import KernelError, RawKernel
from labkit.launches import run
from labkit.suspects.lab05 import SUSPECTS, make_case, mistake

SEEDS = range(5)

CAUGHT = {
    "missing_barrier": ("race", "found[threadIdx.x] = fmaxf"),
    "partial_block": ("out_of_bounds", "scale[threadIdx.x] = scales["),
    "lane_mix_up": ("warp_call", "__shfl_xor_sync(half_warp"),
    "swapped_nibbles": ("assertion", "assert("),
}

REPAIRS = {
    "missing_barrier": ("+ half]);\n", "+ half]);\n        __syncthreads();\n"),
    "partial_block": ("threadIdx.x < 4)", "threadIdx.x < 4 && 64 * blockIdx.x + 16 * threadIdx.x < n)"),
    "lane_mix_up": ("distance = 16", "distance = 8"),
    "swapped_nibbles": ("first << 4 | second", "first | second << 4"),
}


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    """Only the CPU run catches anything."""
    monkeypatch.setattr("labkit.cuda.kernels.cupy_module", lambda: None)


def test_every_suspect_has_a_case_and_an_answer():
    assert SUSPECTS.keys() == CAUGHT.keys() == REPAIRS.keys()


@pytest.mark.parametrize("name", SUSPECTS)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_runner_names_kind_and_line(name, seed):
    case = make_case(name, np.random.default_rng(seed))
    with pytest.raises(KernelError) as caught:
        run(RawKernel(SUSPECTS[name], case.launch.kernel), case.launch)
    kind, text = CAUGHT[name]
    assert caught.value.kind == kind
    assert caught.value.line is not None
    assert text in SUSPECTS[name].splitlines()[caught.value.line - 1]


@pytest.mark.parametrize("name", SUSPECTS)
@pytest.mark.parametrize("seed", SEEDS)
def test_one_line_repairs_it(name, seed):
    wrong, right = REPAIRS[name]
    assert SUSPECTS[name].count(wrong) == 1
    case = make_case(name, np.random.default_rng(seed))
    assert mistake(SUSPECTS[name], case)
    assert mistake(SUSPECTS[name].replace(wrong, right), case) == ""


def test_a_wrong_value_is_a_mistake_too():
    name = "swapped_nibbles"
    without = SUSPECTS[name].replace("    assert((packed[j] & 15u) == first);\n", "")
    assert mistake(without, make_case(name, np.random.default_rng(0))).startswith("expected ")


def test_an_unknown_suspect_is_refused():
    with pytest.raises(ValueError, match=r"name: expected one of missing_barrier, .*, got 'another'"):
        make_case("another", np.random.default_rng(0))
