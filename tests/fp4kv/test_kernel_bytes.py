"""The least traffic of each kernel against the sizes of the arrays that it reads and writes."""

import numpy as np
import pytest
from fp4kv.kernel_bytes import (
    Traffic,
    decode_attention_traffic,
    dequantise_traffic,
    packed_bytes,
    parts_traffic,
    quantise_pack_traffic,
    unfused_attention_traffic,
)
from fp4kv.kernel_cases import AttentionCase, attention_cases
from labkit.launches import plan_decode_attention, plan_dequantise, plan_quantise_pack

CASES = list(attention_cases(np.random.default_rng(3)))
FULL = [case._replace(lengths=np.full_like(case.lengths, case.k_packed.shape[2])) for case in CASES]


def geometry(case: AttentionCase) -> tuple[list[int], int, int, int]:
    """Return lengths, query heads, KV heads and width."""
    return case.lengths.tolist(), case.q.shape[1], case.k_packed.shape[1], case.q.shape[2]


@pytest.mark.parametrize("n_groups", [0, 1, 37])
def test_quantise_pack_reads_its_input_once_and_writes_its_outputs_once(n_groups: int) -> None:
    x = np.zeros((n_groups, 16), np.float32)
    _, (packed, scales) = plan_quantise_pack(x)
    assert quantise_pack_traffic(x.size) == Traffic(x.nbytes, packed.nbytes + scales.nbytes)
    _, back = plan_dequantise(packed, scales)
    assert dequantise_traffic(x.size) == Traffic(packed.nbytes + scales.nbytes, back.nbytes)


@pytest.mark.parametrize("case", FULL, ids=lambda case: str(case.q.shape))
def test_attention_over_a_full_cache_reads_all_of_its_inputs_once(case: AttentionCase) -> None:
    _, output = plan_decode_attention(*case)
    read = sum(array.nbytes for array in case[:-1])
    assert decode_attention_traffic(*geometry(case)) == Traffic(read, output.nbytes)


@pytest.mark.parametrize("case", FULL, ids=lambda case: str(case.q.shape))
def test_parts_of_a_full_cache_are_the_arrays_between_the_two_launches(case: AttentionCase) -> None:
    (_, combine), _ = plan_decode_attention(*case)
    between = sum(array.nbytes for array in combine.args[:3])
    lengths, heads, _, width = geometry(case)
    traffic = parts_traffic(lengths, heads, width, case.k_packed.shape[2], case.n_parts)
    assert traffic == Traffic(between, between)


def test_tokens_beyond_a_length_cost_nothing() -> None:
    assert decode_attention_traffic([5, 0], 4, 2, 16).read == 2 * packed_bytes(5 * 2 * 16) + 4 * 2 * 4 * 16 + 8
    assert parts_traffic([33, 0], 4, 16, max_tokens=64, n_parts=2) == parts_traffic([64], 4, 16, 64, 2)


def test_more_query_heads_of_a_group_read_no_more_of_the_cache() -> None:
    one, eight = (decode_attention_traffic([1000], heads, 1, 64) for heads in (1, 8))
    assert eight.read - one.read == 7 * 64 * 4
    assert eight.written - one.written == 7 * 64 * 4


def test_dequantising_first_moves_the_cache_as_float32_twice_more() -> None:
    fused, unfused = (traffic([1000], 8, 2, 64) for traffic in (decode_attention_traffic, unfused_attention_traffic))
    cache_as_floats = 2 * 1000 * 2 * 64 * 4
    assert unfused.read - fused.read == unfused.written - fused.written == cache_as_floats
    assert unfused.total / fused.total == pytest.approx((9 / 16 + 8) / (9 / 16), rel=0.05)
