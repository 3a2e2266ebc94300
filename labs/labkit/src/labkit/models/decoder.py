"""A Llama-like decoder as plain tensors, with a window on most layers and a cache that says which position a row is of.

`T` tokens, `L` layers, `W` window, `q k v` query, key, value. A position is a token's place in the sequence and is
never reused. transformers loads the weights; the loop here is our own, because a library's cache does not let one
say which rows of which layer are there.
"""

from dataclasses import dataclass
from typing import Any, Final, Self

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import linear, silu

BLOCK: Final = 128
"""Queries that are attended together: no scores are computed for a row that none of them sees."""


@dataclass(frozen=True)
class Layer:
    """The matrices of one layer, each (out, in), and the two vectors of its norms."""

    attention_norm: Tensor
    q: Tensor
    k: Tensor
    v: Tensor
    o: Tensor
    mlp_norm: Tensor
    gate: Tensor
    up: Tensor
    down: Tensor


@dataclass(frozen=True)
class Decoder:
    """The weights of a decoder, and the three numbers that they do not show."""

    embedding: Float[Tensor, "vocabulary hidden"]
    layers: tuple[Layer, ...]
    norm: Float[Tensor, " hidden"]
    head: Float[Tensor, "vocabulary hidden"]
    head_width: int
    rope_base: float
    norm_epsilon: float

    @classmethod
    def of(cls, model: Any) -> Self:
        """Return the decoder in a `LlamaForCausalLM` of transformers; the tensors are shared, not copied."""
        config = model.config
        if config.model_type != "llama" or config.rope_parameters["rope_type"] != "default":
            raise ValueError(
                f"model: expected a Llama with plain RoPE, got {config.model_type} {config.rope_parameters}"
            )
        return cls(
            embedding=model.model.embed_tokens.weight.detach(),
            layers=tuple(_layer(module) for module in model.model.layers),
            norm=model.model.norm.weight.detach(),
            head=model.lm_head.weight.detach(),
            head_width=config.head_dim,
            rope_base=config.rope_parameters["rope_theta"],
            norm_epsilon=config.rms_norm_eps,
        )

    def double(self) -> Self:
        """Return the same decoder in float64."""
        layers = tuple(
            Layer(*(getattr(layer, name).double() for name in Layer.__dataclass_fields__)) for layer in self.layers
        )
        weights = self.embedding.double(), layers, self.norm.double(), self.head.double()
        return type(self)(*weights, self.head_width, self.rope_base, self.norm_epsilon)


@dataclass(frozen=True)
class Layout:
    """Which positions a layer sees: all in a global layer, else the last `window` and the first `sinks`."""

    window: int
    sinks: int
    global_layers: frozenset[int]

    def is_global(self, layer: int) -> bool:
        """Tell whether a layer sees every earlier position."""
        return layer in self.global_layers

    def sees(self, layer: int, queries: Int[Tensor, " queries"], rows: Int[Tensor, " rows"]) -> Tensor:
        """Return which row (second axis) each query (first axis) sees; both are positions."""
        apart = queries[:, None] - rows[None, :]
        if self.is_global(layer):
            return apart >= 0
        return (apart >= 0) & ((apart < self.window) | (rows < self.sinks)[None, :])


@dataclass(frozen=True)
class Rows:
    """What one layer has cached: keys after RoPE and values of some positions, in ascending order."""

    positions: Int[Tensor, " rows"]
    keys: Float[Tensor, "batch kv_heads rows width"]
    values: Float[Tensor, "batch kv_heads rows width"]

    def at(self, chosen: Tensor) -> Self:
        """Return some of the rows: a mask or indices."""
        return type(self)(self.positions[chosen], self.keys[:, :, chosen], self.values[:, :, chosen])


State = tuple[Rows, ...]
"""One `Rows` for each layer."""


@torch.no_grad()
def run(
    decoder: Decoder, layout: Layout, tokens: Int[Tensor, "batch tokens"], start: int = 0, state: State | None = None
) -> tuple[Float[Tensor, "batch tokens hidden"], State]:
    """Feed tokens from position `start` on; return what leaves the last layer, and the state with their rows.

    A row that the state already holds is kept and attended, never rewritten. What the state lacks is not seen:
    nothing is made up for it. A state of batch 1 serves a larger batch.
    """
    positions = torch.arange(start, start + tokens.shape[1])
    turn = _rope(decoder, positions)
    hidden, written = decoder.embedding[tokens], []
    for index, layer in enumerate(decoder.layers):
        x = _norm(hidden, layer.attention_norm, decoder.norm_epsilon)
        q, k, v = (_heads(linear(x, weight), decoder.head_width) for weight in (layer.q, layer.k, layer.v))
        new = Rows(positions, _rotate(k, turn), v)
        rows = new if state is None else _join(state[index], new)
        mixed = _attend(_rotate(q, turn), positions, rows, layout, index)
        hidden = hidden + linear(mixed, layer.o)
        x = _norm(hidden, layer.mlp_norm, decoder.norm_epsilon)
        hidden = hidden + linear(silu(linear(x, layer.gate)) * linear(x, layer.up), layer.down)
        written.append(rows)
    return hidden, tuple(written)


@torch.no_grad()
def logits(decoder: Decoder, hidden: Float[Tensor, "... hidden"]) -> Float[Tensor, "... vocabulary"]:
    """Return the scores of the next token for what left the last layer."""
    return linear(_norm(hidden, decoder.norm, decoder.norm_epsilon), decoder.head)


def _layer(module: Any) -> Layer:
    attention, mlp = module.self_attn, module.mlp
    parts = (
        module.input_layernorm,
        attention.q_proj,
        attention.k_proj,
        attention.v_proj,
        attention.o_proj,
        module.post_attention_layernorm,
        mlp.gate_proj,
        mlp.up_proj,
        mlp.down_proj,
    )
    return Layer(*(part.weight.detach() for part in parts))


def _norm(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    scaled: Tensor = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon)
    return weight * scaled


def _rope(decoder: Decoder, positions: Tensor) -> tuple[Tensor, Tensor]:
    """Return cosine and sine (tokens, width) of each pair's angle; pairs are (i, i + width / 2)."""
    width = decoder.head_width
    # transformers rounds frequencies and angles to float32; so do we, and take the cosine of that in float64.
    frequencies = 1.0 / decoder.rope_base ** (torch.arange(0, width, 2, dtype=torch.float32) / width)
    angles = (positions[:, None].to(torch.float32) * frequencies).double().repeat(1, 2)
    dtype = decoder.embedding.dtype
    return angles.cos().to(dtype), angles.sin().to(dtype)


def _rotate(x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return x * turn[0] + torch.cat((-second, first), dim=-1) * turn[1]


def _heads(x: Tensor, width: int) -> Tensor:
    return x.view(*x.shape[:-1], -1, width).transpose(1, 2)


def _join(old: Rows, new: Rows) -> Rows:
    fresh = ~torch.isin(new.positions, old.positions)
    batch = new.keys.shape[0]
    return Rows(
        torch.cat((old.positions, new.positions[fresh])),
        torch.cat((old.keys.expand(batch, -1, -1, -1), new.keys[:, :, fresh]), dim=2),
        torch.cat((old.values.expand(batch, -1, -1, -1), new.values[:, :, fresh]), dim=2),
    )


def _attend(q: Tensor, positions: Tensor, rows: Rows, layout: Layout, layer: int) -> Tensor:
    """Return the heads' outputs (batch, tokens, heads × width), one block of queries at a time."""
    n_kv, width = rows.keys.shape[1], q.shape[-1]
    parts = []
    for first in range(0, len(positions), BLOCK):
        part = slice(first, first + BLOCK)
        sees = layout.sees(layer, positions[part], rows.positions)
        seen = rows.at(sees.any(dim=0))
        hidden_from = ~sees[:, sees.any(dim=0)]
        queries = q[:, :, part]
        grouped = queries.reshape(len(queries), n_kv, -1, *queries.shape[2:])
        scores = (grouped @ seen.keys[:, :, None].transpose(-1, -2)) * width**-0.5
        weights = scores.masked_fill_(hidden_from, -torch.inf).softmax(-1)
        parts.append((weights @ seen.values[:, :, None]).flatten(1, 2))
    return torch.cat(parts, dim=2).transpose(1, 2).flatten(2)
