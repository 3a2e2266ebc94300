"""How the kernels of lab 5 are launched: grid, block, arguments and shared memory, beside the arrays they write.

A `Launch` is plain data. The same one goes to a kernel of CuPy and to one of `labkit.cuda`: arrays are allocated where
the inputs are. What the CPU run takes beyond that (`order=`, `limit_s=`, `checked=`) is passed on.

    kernel = RawKernel(QUANTISE_PACK, "quantise_pack")
    launch, (packed, scales) = plan_quantise_pack(xp.asarray(x))
    run(kernel, launch)

Letters: `T` tokens that a cache has room for, `D` head width.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from labkit.formats import GROUP_LENGTH

WARP: Final = 32
"""Threads of a warp."""

BLOCK: Final = 256
"""Threads of a block where any multiple of 32 would do."""

MAX_BLOCKS: Final = 4096
"""Blocks of a grid at most; a longer array goes round the grid-stride loop again."""

TILE: Final = 32
"""Tokens that `decode_attention` has in shared memory at a time."""

MAX_WIDTH: Final = 256
"""The largest head width: a lane holds every 32nd channel of the output, 8 of them."""

MAX_GROUP: Final = 32
"""Query heads of a KV head at most: each is a warp, and a block has 1,024 threads."""

SHARED_BYTES: Final = 48 * 1024
"""Shared memory that every CUDA device gives a block without being asked for more.

Source: CUDA C++ Programming Guide, technical specifications for each compute capability."""

Array = Any  # an array of NumPy or of CuPy
Kernel = Callable[..., Any]


class Launch(NamedTuple):
    """One call of a kernel: which, on how many threads, with what."""

    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    args: tuple[Any, ...]
    shared_mem: int = 0


def run(kernel: Kernel, launch: Launch, **extras: Any) -> None:
    """Call a kernel as planned; without a block to run, not at all."""
    if 0 not in launch.grid:
        kernel(launch.grid, launch.block, launch.args, shared_mem=launch.shared_mem, **extras)


def plan_quantise_pack(x: Array) -> tuple[Launch, tuple[Array, Array]]:
    """Return the launch of `quantise_pack`, and the bytes and the scales that it will write.

    Raises
    ------
    ValueError, TypeError
        If x is not contiguous float32 with a last axis that is a multiple of 16.
    """
    _require_array("x", x, np.float32)
    *rows, width = x.shape or (1,)
    if width % GROUP_LENGTH:
        raise ValueError(f"x: expected whole groups of {GROUP_LENGTH} along the last axis, got shape {x.shape}")
    packed = _blank(x, (*rows, width // 2), np.uint8)
    scales = _blank(x, (*rows, width // GROUP_LENGTH), np.uint8)
    args = (x, packed, scales, np.int32(scales.size))
    return Launch("quantise_pack", _grid(x.size), (BLOCK,), args), (packed, scales)


def plan_dequantise(packed: Array, scales: Array) -> tuple[Launch, Array]:
    """Return the launch of `dequantise`, and the float32 array that it will write.

    Raises
    ------
    ValueError, TypeError
        If the arrays are not contiguous uint8, or the scales are not one for each 8 bytes.
    """
    _require_cache("packed", packed, "scales", scales)
    x = _blank(packed, (*packed.shape[:-1], 2 * packed.shape[-1]), np.float32)
    args = (packed, scales, x, np.int32(scales.size))
    return Launch("dequantise", _grid(packed.size), (BLOCK,), args), x


def plan_decode_attention(
    q: Array,
    k_packed: Array,
    k_scales: Array,
    v_packed: Array,
    v_scales: Array,
    lengths: Array,
    n_parts: int = 1,
) -> tuple[tuple[Launch, Launch], Array]:
    """Return the launches of `decode_attention` and `combine_parts`, and the output that the second will write.

    Queries are (batch, query heads, D); the cache is (batch, KV heads, T, …); `lengths` counts the tokens of each
    sequence, from 0 to T, and is not looked at here: on a GPU that would wait for it. The context is cut into at most
    `n_parts` parts, each a multiple of 32 tokens.

    Raises
    ------
    ValueError, TypeError
        If shapes or dtypes do not belong together, or a block would need more than a device has.
    """
    _require_attention(q, k_packed, k_scales, v_packed, v_scales, lengths)
    (batch, heads, width), (kv_heads, max_tokens) = q.shape, k_packed.shape[1:3]
    part_tokens = tokens_per_part(max_tokens, n_parts)
    n_parts = max(1, -(-max_tokens // part_tokens))

    parts = tuple(_blank(q, (batch, heads, n_parts, *rest), np.float32) for rest in ((width,), (), ()))
    output = _blank(q, q.shape, np.float32)
    sizes = (np.int32(part_tokens), np.int32(width))
    group = heads // kv_heads if heads else 0
    attend = Launch(
        "decode_attention",
        (n_parts, kv_heads, batch) if group else (0,),
        (WARP, group),
        (q, k_packed, k_scales, v_packed, v_scales, lengths, *parts, np.int32(max_tokens), *sizes),
        shared_bytes(width, group),
    )
    block = (WARP * -(-width // WARP),)
    combine = Launch("combine_parts", (heads, batch), block, (*parts, lengths, output, np.int32(n_parts), *sizes))
    return (attend, combine), output


def tokens_per_part(max_tokens: int, n_parts: int) -> int:
    """Return how many tokens each part takes: the fewest whole tiles with which `n_parts` parts are enough.

    >>> tokens_per_part(1000, 4)
    256
    """
    if n_parts < 1:
        raise ValueError(f"n_parts: expected at least 1, got {n_parts}")
    return TILE * max(1, -(-max_tokens // (TILE * n_parts)))


def shared_bytes(width: int, group: int) -> int:
    """Return the shared memory of a block of `decode_attention`: a tile, and for each query head q and its weights."""
    return 4 * (TILE * (width + 1) + group * (width + TILE))


def _grid(n_threads: int) -> tuple[int]:
    return (min(-(-n_threads // BLOCK), MAX_BLOCKS),)


def _blank(like: Array, shape: tuple[int, ...], dtype: type) -> Array:
    """Return an array of the same library, filled with what no kernel writes: NaN, or byte 255."""
    array = type(like)(shape, dtype=dtype)
    array.fill(np.nan if dtype is np.float32 else 255)
    return array


def _require_array(name: str, array: Array, dtype: type) -> None:
    if array.dtype != dtype:
        raise TypeError(f"{name}: expected {dtype.__name__}, got {array.dtype}; call .astype({dtype.__name__!r})")
    if not array.flags.c_contiguous:
        raise ValueError(f"{name}: expected an array without gaps, got a view of shape {array.shape}; copy it first")


def _require_cache(packed_name: str, packed: Array, scales_name: str, scales: Array) -> None:
    _require_array(packed_name, packed, np.uint8)
    _require_array(scales_name, scales, np.uint8)
    if packed.ndim == 0 or packed.shape[-1] % (GROUP_LENGTH // 2):
        raise ValueError(f"{packed_name}: expected a last axis that is a multiple of 8 bytes, got {packed.shape}")
    expected = (*packed.shape[:-1], packed.shape[-1] // (GROUP_LENGTH // 2))
    if scales.shape != expected:
        raise ValueError(f"{scales_name}: expected one for each 8 bytes, shape {expected}, got {scales.shape}")


def _require_attention(
    q: Array, k_packed: Array, k_scales: Array, v_packed: Array, v_scales: Array, lengths: Array
) -> None:
    _require_array("q", q, np.float32)
    _require_array("lengths", lengths, np.int32)
    _require_cache("k_packed", k_packed, "k_scales", k_scales)
    _require_cache("v_packed", v_packed, "v_scales", v_scales)
    if q.ndim != 3 or k_packed.ndim != 4 or v_packed.shape != k_packed.shape:
        shapes = f"{q.shape}, {k_packed.shape} and {v_packed.shape}"
        raise ValueError(f"q, k_packed, v_packed: expected (B, heads, D) and twice (B, KV heads, T, D/2), got {shapes}")
    (batch, heads, width), kv_heads = q.shape, k_packed.shape[1]
    if k_packed.shape[0] != batch or lengths.shape != (batch,) or k_packed.shape[-1] * 2 != width:
        shapes = f"q {q.shape}, k_packed {k_packed.shape} and lengths {lengths.shape}"
        raise ValueError(f"q: expected the batch, {batch}, and width, {width}, of q everywhere, got {shapes}")
    if not 0 < width <= MAX_WIDTH:
        raise ValueError(f"q: expected a width of at most {MAX_WIDTH}, got {width}")
    group = _group(heads, kv_heads)
    if group > MAX_GROUP or shared_bytes(width, group) > SHARED_BYTES:
        for_each = shared_bytes(width, 1) - shared_bytes(width, 0)
        limit = min(MAX_GROUP, (SHARED_BYTES - shared_bytes(width, 0)) // for_each)
        raise ValueError(f"q: expected at most {limit} query heads for each KV head at width {width}, got {group}")


def _group(heads: int, kv_heads: int) -> int:
    if kv_heads == 0 or heads % kv_heads:
        raise ValueError(f"q: expected a multiple of {kv_heads} query heads, one group for each KV head, got {heads}")
    return heads // kv_heads
