"""Checks of `DECODE_ATTENTION`: run as text over packed caches, each number within a tolerance that is derived."""

from typing import Any

from fp4kv.kernel_bytes import Traffic, packed_bytes
from fp4kv.kernel_cases import Shape, attention_case
from fp4kv.kernel_tolerance import decode_attention_tolerance
from fp4kv.kernels import decode_attention
from labkit.expect import expect_close
from labkit.launches import plan_decode_attention

from autograder.checks import Registry

from .inputs import N_ORDERS, expect_asked

checks = Registry()
check = checks.check

TRAFFIC_FACTOR = 1.35
"""Over the least that the first launch must move, in bytes asked for: between 1.14 and 1.59, in proportion.

The reference asks for 5 bytes of cache where 4.5 must be read, for two words share a scale, and each thread for the
length: 1.14 times the least of the shape below. Reading keys twice makes it 1.59. A loader of one's own that reads the
scale again with each byte of codes asks for 2 bytes in place of 1.125, 1.68 in all, and loses too."""


def _expect(student: Any, cases: Any, *shapes: Shape, orders: int = N_ORDERS, checked: bool = True) -> Any:
    """Compare each number of the outputs under each order, and return the last run; one sandbox serves all shapes."""
    drawn = [attention_case(shape, cases.rng) for shape in shapes]
    planned = [plan_decode_attention(*case[:-1], n_parts=case.n_parts) for case in drawn]
    launches = [launch for pair, _ in planned for launch in pair]
    runs = cases.native.run(student.text("DECODE_ATTENTION"), launches, orders=orders, checked=checked)
    for case, (_, output) in zip(drawn, planned, strict=True):
        exact, tolerance = decode_attention(*case[:-1]), decode_attention_tolerance(case)
        for run in runs:
            expect_close(run[output], exact, tolerance, given=f"q {case.q.shape}, k_packed {case.k_packed.shape}")
    return runs[-1]


@check(
    "decode_attention-runs",
    points=1,
    catches="does not compile, does not run to its end, or gives other outputs than lab 3",
    hint="the runner names thread, array element and line; the comment above the loop names the steps",
    reveal=True,
    seconds=5,
)
def one_tile_is_attended_to(student: Any, cases: Any) -> None:
    """One full tile of 32 tokens, two query heads for one KV head, under three thread orders."""
    _expect(student, cases, Shape(1, 2, 1, 32, 32, (32,), 1))


@check(
    "decode_attention-tiles",
    points=3,
    catches="leaves the sum or the output on the old maximum when a later tile brings a larger one",
    hint="when the maximum grows, all that was added before shrinks by exp(old maximum - new maximum)",
    seconds=5,
)
def tiles_share_one_softmax(student: Any, cases: Any) -> None:
    """Several full tiles in one part, whichever of them holds the largest logit."""
    _expect(student, cases, *[Shape(1, 2, 1, 128, 32, (128,), 1)] * 2)


@check(
    "decode_attention-ragged",
    points=2,
    catches="lets tokens beyond the length count, or leaves a part of a tile out",
    hint="a lane without a token has the logit minus infinity; the sum over values ends at n_tokens",
    seconds=5,
)
def any_length_will_do(student: Any, cases: Any) -> None:
    """Lengths of 0, 1 and beside multiples of 32, in one batch."""
    _expect(student, cases, Shape(5, 2, 1, 70, 16, (70, 0, 1, 33, 31), 1))


@check(
    "decode_attention-heads",
    points=2,
    catches="mixes up query heads, KV heads or sequences",
    hint="a warp is one query head of the block's group: its query, its weights, its output",
    seconds=5,
)
def groups_of_query_heads_share_a_kv_head(student: Any, cases: Any) -> None:
    """Groups of 1, 3 and 8 query heads, several KV heads and sequences."""
    shapes = (
        Shape(2, 2, 2, 32, 16, (32, 32), 1),
        Shape(1, 6, 2, 32, 16, (32,), 1),
        Shape(2, 8, 1, 32, 16, (32, 32), 1),
    )
    _expect(student, cases, *shapes)


@check(
    "decode_attention-widths",
    points=2,
    catches="takes the width for a power of two, or for 32 channels at least or at most",
    hint="a lane holds channels lane, lane + 32, … below width; a row of the tile is width + 1 long",
    seconds=5,
)
def any_width_of_whole_groups_will_do(student: Any, cases: Any) -> None:
    """Widths of 16, 48, 80, 128 and 256."""
    _expect(student, cases, *(Shape(1, 1, 1, 32, width, (32,), 1) for width in (16, 48, 80, 128, 256)))


@check(
    "decode_attention-large_logits",
    points=2,
    catches="takes exponentials of the logits themselves",
    hint="subtract the running maximum first: exp(120) is infinite in float32, exp(-120) is 0",
    seconds=5,
)
def logits_may_be_large(student: Any, cases: Any) -> None:
    """Logits around 120 and around -120, whose exponentials float32 does not hold."""
    _expect(student, cases, *(Shape(1, 2, 2, 32, 32, (32,), 1, logit) for logit in (120.0, -120.0)))


@check(
    "decode_attention-parts",
    points=1,
    catches="begins each part at token 0, or goes on into the next part",
    hint="from `begin` to `end`; what is left behind is for the part's own maximum",
    seconds=5,
)
def a_context_may_be_cut_into_parts(student: Any, cases: Any) -> None:
    """A context of 128 tokens in four parts of one tile each."""
    _expect(student, cases, Shape(2, 2, 1, 128, 16, (128, 96), 4))


@check(
    "decode_attention-traffic",
    points=3,
    catches="reads the cache once for each query head, reads keys twice, or writes decoded numbers to global memory",
    hint="load_tile once for the keys and once for the values of each tile, by the whole block together",
    seconds=10,
)
def the_packed_cache_is_read_once(student: Any, cases: Any) -> None:
    """The first launch asks for at most 1.35 times the bytes that it must move, each KV head once for its group."""
    shape = Shape(1, 8, 2, 256, 64, (256,), 2)
    launched = _expect(student, cases, shape, orders=2)
    cache = 2 * packed_bytes(sum(shape.lengths) * shape.kv_heads * shape.width)
    expect_asked(launched.traffic[0], _least_of_first_launch(shape).total, TRAFFIC_FACTOR, must=cache)


def _least_of_first_launch(shape: Shape) -> Traffic:
    """Return the least traffic of `decode_attention` alone: cache, queries for each part, lengths; parts, written."""
    cache = 2 * packed_bytes(sum(shape.lengths) * shape.kv_heads * shape.width)
    queries = 4 * shape.n_parts * shape.heads * shape.width
    return Traffic(cache + queries + 4 * shape.batch, queries + 8 * shape.n_parts * shape.heads)


@check(
    "decode_attention-long",
    points=1,
    catches="loses accuracy over a long context",
    hint="the running sum and the running output are for the whole part, not for the last tiles",
    seconds=20,
)
def a_context_may_be_long(student: Any, cases: Any) -> None:
    """2,000 tokens of width 128, in parts, eight query heads for two KV heads; compared without tracing."""
    _expect(student, cases, Shape(1, 8, 2, 2048, 128, (2000,), 4), orders=1, checked=False)
