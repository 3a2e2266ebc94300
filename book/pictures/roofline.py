"""How long the cache of a context takes to pass through a GPU's memory, at the bandwidth on its data sheet."""

from typing import Final

BANDWIDTH: Final = {"H100": 3.35e12, "H200": 4.8e12}
"""Bytes per second, as the chapter cites them."""

FLOAT32_RATE: Final = 66.9e12
"""Float32 operations per second of an H100 without tensor cores, as the chapter cites them; the H200 computes alike."""

ELEMENTS_PER_TOKEN: Final = 2 * 32 * 8 * 128
"""Llama-3.1-8B: keys and values, 32 layers, 8 KV heads, width 128."""

CONTEXT: Final = 131_072

FP4_BYTES: Final = 9 / 16
PATHS: Final = {
    "BF16, never quantised": 2.0,
    "FP4, fused": FP4_BYTES,
    "FP4, dequantised to BF16 first": FP4_BYTES + 2 + 2,
    "FP4, dequantised to float32 first": FP4_BYTES + 4 + 4,
}
"""Bytes moved for each element of the cache in one decode step."""


def milliseconds(bytes_per_element: float, gpu: str) -> float:
    """Return the time in which a GPU's memory moves the cache of the whole context."""
    return 1e3 * bytes_per_element * ELEMENTS_PER_TOKEN * CONTEXT / BANDWIDTH[gpu]


def operations_per_byte(query_heads: int) -> float:
    """Return the float32 operations for each byte of a packed cache: a product and a sum for each query head."""
    return 2 * query_heads / FP4_BYTES


def ridge(gpu: str) -> float:
    """Return the operations per byte from which on arithmetic is the limit."""
    return FLOAT32_RATE / BANDWIDTH[gpu]


def as_table() -> tuple[list[str], list[list[str]]]:
    """Return heads and cells: each path, its bytes, and its time on each GPU."""
    head = ["path", "bytes per element", "bytes per token", *(f"{gpu} (ms)" for gpu in BANDWIDTH)]
    rows = [
        [
            name,
            f"{size:g}",
            f"{size * ELEMENTS_PER_TOKEN:,.0f}",
            *(f"{milliseconds(size, gpu):.2f}" for gpu in BANDWIDTH),
        ]
        for name, size in PATHS.items()
    ]
    return head, rows
