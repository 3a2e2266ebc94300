"""Small random decoders and tokens, the same for the same seed."""

from collections.abc import Callable

import pytest
import torch
from labkit.models.decoder import Decoder, Layer

HIDDEN, WIDTH, HEADS, KV_HEADS, VOCABULARY = 24, 8, 6, 2, 50


@pytest.fixture
def random_decoder() -> Callable[..., Decoder]:
    """Makes a decoder of a seed and a number of layers."""
    return make_decoder


@pytest.fixture
def random_tokens() -> Callable[..., torch.Tensor]:
    """Makes tokens (batch, n) of a seed."""
    return make_tokens


def make_decoder(seed: int, layers: int = 4) -> Decoder:
    """Return a small decoder in float64 whose layers change what passes through them."""
    generator = torch.Generator().manual_seed(seed)

    def matrix(rows: int, columns: int, scale: float = 1.0) -> torch.Tensor:
        return scale * torch.randn(rows, columns, generator=generator, dtype=torch.float64) / columns**0.5

    def layer() -> Layer:
        ones = torch.ones(HIDDEN, dtype=torch.float64)
        q, kv = HEADS * WIDTH, KV_HEADS * WIDTH
        attention = matrix(q, HIDDEN, 2.0), matrix(kv, HIDDEN, 2.0), matrix(kv, HIDDEN), matrix(HIDDEN, q)
        mlp = matrix(32, HIDDEN), matrix(32, HIDDEN), matrix(HIDDEN, 32)
        return Layer(ones, *attention, ones, *mlp)

    embedding = matrix(VOCABULARY, HIDDEN, HIDDEN**0.5)
    stack = tuple(layer() for _ in range(layers))
    return Decoder(embedding, stack, torch.ones(HIDDEN, dtype=torch.float64), embedding, WIDTH, 1e4, 1e-5)


def make_tokens(seed: int, n: int, batch: int = 1) -> torch.Tensor:
    return torch.randint(VOCABULARY, (batch, n), generator=torch.Generator().manual_seed(seed))
