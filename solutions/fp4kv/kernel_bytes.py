"""The least that each kernel of `lab05_kernel` must read from global memory and write to it, in bytes.

Whoever reads each byte of input once and writes each byte of output once moves this much; nobody can move less.
"""

from collections.abc import Sequence
from typing import NamedTuple

from labkit.formats import GROUP_LENGTH
from labkit.launches import tokens_per_part

FLOAT_BYTES = 4
LENGTH_BYTES = 4


class Traffic(NamedTuple):
    """Bytes read from global memory and bytes written to it."""

    read: int
    written: int

    @property
    def total(self) -> int:
        """Both ways."""
        return self.read + self.written


def packed_bytes(n_elements: int) -> int:
    """Return the bytes of packed elements with their scales: half a byte each, and one byte for each 16.

    >>> packed_bytes(1024) * 8 / 1024
    4.5
    """
    return n_elements // 2 + n_elements // GROUP_LENGTH


def quantise_pack_traffic(n_elements: int) -> Traffic:
    """Return the least traffic of `quantise_pack`: 4 bytes in, 9/16 of a byte out, for each element.

    >>> quantise_pack_traffic(1_048_576).total
    4784128
    """
    return Traffic(FLOAT_BYTES * n_elements, packed_bytes(n_elements))


def dequantise_traffic(n_elements: int) -> Traffic:
    """Return the least traffic of `dequantise`: that of `quantise_pack` the other way round.

    >>> dequantise_traffic(16)
    Traffic(read=9, written=64)
    """
    return Traffic(packed_bytes(n_elements), FLOAT_BYTES * n_elements)


def decode_attention_traffic(lengths: Sequence[int], heads: int, kv_heads: int, width: int) -> Traffic:
    """Return the least traffic of fused decode attention, whichever way it splits the context.

    Read: keys and values of each KV head once, whatever the number of query heads that share it, for the tokens that
    count; the queries; the lengths. Written: the output.

    >>> decode_attention_traffic([4096], heads=32, kv_heads=8, width=128)
    Traffic(read=4734980, written=16384)
    """
    cache = 2 * packed_bytes(sum(lengths) * kv_heads * width)
    queries = FLOAT_BYTES * len(lengths) * heads * width
    return Traffic(cache + queries + LENGTH_BYTES * len(lengths), queries)


def parts_traffic(lengths: Sequence[int], heads: int, width: int, max_tokens: int, n_parts: int) -> Traffic:
    """Return what splitting the context adds: each part's output, maximum and sum, written once and read once.

    A part without a token that counts is neither written nor read. `max_tokens` is what the cache has room for.

    >>> parts_traffic([4096], heads=32, width=128, max_tokens=4096, n_parts=16)
    Traffic(read=266240, written=266240)
    """
    part_tokens = tokens_per_part(max_tokens, n_parts)
    n_used = sum(-(-length // part_tokens) for length in lengths)
    parts = FLOAT_BYTES * n_used * heads * (width + 2)
    return Traffic(parts, parts)


def unfused_attention_traffic(lengths: Sequence[int], heads: int, kv_heads: int, width: int) -> Traffic:
    """Return the least traffic of dequantising the cache to float32 in memory first, then attending over that.

    The cache goes out once more at 4 bytes for each element, and in again: (9/16 + 4 + 4) / (9/16) = 15.2 times the
    bytes of its own.

    >>> unfused_attention_traffic([4096], heads=32, kv_heads=8, width=128)
    Traffic(read=38289412, written=33570816)
    """
    fused = decode_attention_traffic(lengths, heads, kv_heads, width)
    floats = FLOAT_BYTES * 2 * sum(lengths) * kv_heads * width
    return Traffic(fused.read + floats, fused.written + floats)
