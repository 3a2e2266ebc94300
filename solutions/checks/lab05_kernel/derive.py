"""Checks of the section *derive*: bytes, times, and two parts of a softmax made one."""

from typing import Any

import numpy as np
from fp4kv.kernel_bytes import decode_attention_traffic, quantise_pack_traffic, unfused_attention_traffic
from labkit.expect import Mismatch, expect_close, plain_array
from labkit.softmax_parts import Part

from autograder.checks import Registry

from .inputs import CLOSE, as_number

checks = Registry()
check = checks.check

HALF_BYTES, SINGLE_BYTES = 2, 4


@check(
    "quantise_bytes-both_ways",
    points=2,
    catches="counts one direction, takes a byte for each code, or forgets the scales",
    hint="read: 4 bytes for each element; written: half a byte for each, and a byte for each 16",
)
def it_reads_floats_and_writes_codes_and_scales(student: Any, cases: Any) -> None:
    """Floats are read once, codes and scales are written once."""
    for n_elements in [16, *(16 * int(n) for n in cases.rng.integers(2, 1 << 20, 4))]:
        got = as_number(student.quantise_bytes(n_elements), "bytes")
        expect_close(got, float(quantise_pack_traffic(n_elements).total), CLOSE, given=n_elements)


def _geometry(cases: Any) -> tuple[int, int, int]:
    """Return tokens, KV heads and width."""
    return int(cases.rng.integers(100, 5000)), int(cases.rng.integers(2, 9)), 16 * int(cases.rng.integers(1, 17))


def _cache_bytes(n_tokens: int, kv_heads: int, width: int) -> float:
    """Return the bytes that a cache adds, with one query head for each KV head or with many."""
    many, none = (decode_attention_traffic([n], kv_heads, kv_heads, width).total for n in (n_tokens, 0))
    return float(many - none)


@check(
    "fused_bytes-cache",
    points=1,
    catches="reads keys alone, or forgets the scales",
    hint="keys and values: half a byte for each element and a byte for each 16",
)
def keys_and_values_are_read_once(student: Any, cases: Any) -> None:
    """Packed keys and values of every token are read once, with their scales."""
    for n_tokens, kv_heads, width in (_geometry(cases) for _ in range(4)):
        many, none = (as_number(student.fused_bytes(n, kv_heads, kv_heads, width), "bytes") for n in (n_tokens, 0))
        given = f"{n_tokens} tokens, {kv_heads} heads of width {width}, less the same without a token"
        expect_close(many - none, _cache_bytes(n_tokens, kv_heads, width), CLOSE, given=given)


@check(
    "fused_bytes-group",
    points=1,
    catches="reads the cache once for each query head",
    hint="query heads of a group read the same KV head: it comes from memory once",
)
def a_group_of_query_heads_reads_its_kv_head_once(student: Any, cases: Any) -> None:
    """Query heads that share a KV head read it once together."""
    for group in (4, 8):
        n_tokens, kv_heads, width = _geometry(cases)
        found = [
            as_number(student.fused_bytes(n_tokens, heads, kv_heads, width), "bytes")
            - as_number(student.fused_bytes(0, heads, kv_heads, width), "bytes")
            for heads in (kv_heads, group * kv_heads)
        ]
        given = f"what {n_tokens} tokens add: {group} query heads for each KV head, less 1"
        expect_close(found[1] - found[0], 0.0, CLOSE, given=given)


@check(
    "fused_bytes-queries",
    points=1,
    catches="forgets the queries or the output",
    hint="each query head reads `width` floats and writes as many",
)
def queries_are_read_and_outputs_written(student: Any, cases: Any) -> None:
    """Each query head reads its query and writes its output, in float32."""
    for _, kv_heads, width in (_geometry(cases) for _ in range(3)):
        got = as_number(student.fused_bytes(0, 4 * kv_heads, kv_heads, width), "bytes")
        expected = float(2 * SINGLE_BYTES * 4 * kv_heads * width)
        expect_close(got, expected, CLOSE, given=f"no token, {4 * kv_heads} query heads of width {width}")


@check(
    "unfused_bytes-three_times",
    points=2,
    catches="counts the decoded cache once, or drops the packed one",
    hint="packed cache in, decoded cache out, decoded cache in again",
)
def the_cache_moves_three_times(student: Any, cases: Any) -> None:
    """The packed cache is read, the decoded one is written, and read again."""
    for n_tokens, kv_heads, width in (_geometry(cases) for _ in range(4)):
        many, none = (
            as_number(student.unfused_bytes(n, kv_heads, kv_heads, width, SINGLE_BYTES), "bytes") for n in (n_tokens, 0)
        )
        expected = [unfused_attention_traffic([n], kv_heads, kv_heads, width).total for n in (n_tokens, 0)]
        given = f"{n_tokens} tokens, {kv_heads} heads of width {width}, 4 bytes, less the same without a token"
        expect_close(many - none, float(expected[0] - expected[1]), CLOSE, given=given)


@check(
    "unfused_bytes-size",
    points=1,
    catches="takes 4 bytes for each decoded number, whatever the size",
    hint="`float_bytes` for each decoded number, written and read: keys and values",
)
def decoded_numbers_have_a_size(student: Any, cases: Any) -> None:
    """Each byte of a decoded number moves twice, for keys and for values."""
    for _ in range(3):
        n_tokens, kv_heads, width = _geometry(cases)
        single, half = (
            as_number(student.unfused_bytes(n_tokens, kv_heads, kv_heads, width, size), "bytes")
            for size in (SINGLE_BYTES, HALF_BYTES)
        )
        expected = float(2 * 2 * 2 * n_tokens * kv_heads * width)
        given = f"4 bytes less 2, {n_tokens} tokens, {kv_heads} heads of width {width}"
        expect_close(single - half, expected, CLOSE, given=given)


def _expect_time(student: Any, n_bytes: int, n_operations: int, bandwidth: float, peak: float, expected: float) -> None:
    got = as_number(student.roofline_seconds(n_bytes, n_operations, bandwidth, peak), "seconds")
    given = {"n_bytes": n_bytes, "n_operations": n_operations, "bandwidth": bandwidth, "peak": peak}
    expect_close(got / expected, 1.0, CLOSE, given=given)


@check(
    "roofline_seconds-memory",
    points=1,
    catches="adds the two times, or takes the shorter one",
    hint="bytes over bandwidth, if that takes longer than the operations",
)
def memory_sets_the_time_of_few_operations(student: Any, cases: Any) -> None:
    """A kernel with few operations for each byte takes as long as its bytes."""
    for _ in range(3):
        n_bytes, bandwidth = int(cases.rng.integers(10**6, 10**9)), float(cases.rng.uniform(1e11, 4e12))
        _expect_time(student, n_bytes, 2 * n_bytes, bandwidth, 50 * bandwidth, n_bytes / bandwidth)


@check(
    "roofline_seconds-arithmetic",
    points=1,
    catches="forgets that arithmetic takes time too",
    hint="operations over their rate, if that takes longer than the bytes",
)
def arithmetic_sets_the_time_of_many_operations(student: Any, cases: Any) -> None:
    """A kernel with many operations for each byte takes as long as its operations."""
    for _ in range(3):
        n_bytes, bandwidth = int(cases.rng.integers(10**6, 10**9)), float(cases.rng.uniform(1e11, 4e12))
        _expect_time(student, n_bytes, 300 * n_bytes, bandwidth, 50 * bandwidth, 6 * n_bytes / bandwidth)


def _part(logits: np.ndarray, values: np.ndarray) -> Part:
    weights = np.exp(logits - logits.max())
    return Part(float(logits.max()), float(weights.sum()), weights @ values)


def _expect_merged(student: Any, logits: np.ndarray, values: np.ndarray, cut: int) -> None:
    """Compare the softmax of two parts merged with that of the whole."""
    parts = _part(logits[:cut], values[:cut]), _part(logits[cut:], values[cut:])
    got = student.merge_parts(*parts)
    if not isinstance(got, tuple | list) or len(got) != 3:
        raise Mismatch("a Part: largest, total, output", f"a {type(got).__name__}")
    whole = _part(logits, values)
    tolerance, given = CLOSE * len(logits), str(parts)
    expect_close(as_number(got[0], "the largest logit"), whole.largest, CLOSE, given=given)
    expect_close(as_number(got[1], "the total"), whole.total, tolerance, given=given)
    expect_close(plain_array(got[2]), whole.output, tolerance, given=given)


@check(
    "merge_parts-maxima",
    points=2,
    catches="adds sums that belong to different maxima",
    hint="bring both to the larger maximum: each times exp(its own maximum - the larger one)",
)
def parts_are_brought_to_one_maximum(student: Any, cases: Any) -> None:
    """Two parts of different maxima make the softmax of the whole, whichever comes first."""
    for cut in (3, 5, 9):
        logits, values = cases.rng.normal(size=12) * 2, cases.rng.normal(size=(12, 4))
        _expect_merged(student, logits, values, cut)
        _expect_merged(student, logits[::-1], values[::-1], 12 - cut)


@check(
    "merge_parts-large",
    points=1,
    catches="takes the exponential of a maximum itself, which overflows",
    hint="only differences of maxima go into exp, none of them above 0",
)
def large_logits_do_not_overflow(student: Any, cases: Any) -> None:
    """Logits around 2000, or -2000, make neither infinity nor 0 / 0."""
    for offset in (2000.0, -2000.0):
        logits, values = offset + cases.rng.normal(size=10), cases.rng.normal(size=(10, 4))
        _expect_merged(student, logits, values, int(cases.rng.integers(2, 8)))
