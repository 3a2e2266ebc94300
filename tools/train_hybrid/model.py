"""The hybrid in PyTorch: window, global, window, global; the keys of a global layer mixed with those one token before.

Width 128, four query and two key-value heads of 32, RMSNorm before each half of a layer, an MLP with SiLU, no biases.
`labkit.replay.hybrid` computes the same in NumPy.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

INITIAL_SHIFT = 0.5


@dataclass(frozen=True)
class Config:
    """The shape of the network."""

    vocabulary: int
    width: int = 128
    layers: int = 4
    query_heads: int = 4
    kv_heads: int = 2
    head_width: int = 32
    mlp_width: int = 256
    window: int = 32
    window_rope_base: float = 1e4
    global_rope_base: float = 1e5
    epsilon: float = 1e-6
    is_hybrid: bool = True

    def is_global(self, layer: int) -> bool:
        """Return whether a layer sees every token before; the others see the last `window`."""
        return self.is_hybrid and layer % 2 == 1


class Layer(nn.Module):
    """Attention and MLP, each with a norm before and a residual around it."""

    def __init__(self, config: Config, is_global: bool) -> None:
        super().__init__()
        self.config, self.is_global = config, is_global
        width, kv_width = config.width, config.kv_heads * config.head_width
        query_width = config.query_heads * config.head_width
        self.attention_norm = nn.RMSNorm(width, config.epsilon)
        self.query = nn.Linear(width, query_width, bias=False)
        self.key = nn.Linear(width, kv_width, bias=False)
        self.value = nn.Linear(width, kv_width, bias=False)
        self.output = nn.Linear(query_width, width, bias=False)
        self.mlp_norm = nn.RMSNorm(width, config.epsilon)
        self.up = nn.Linear(width, config.mlp_width, bias=False)
        self.down = nn.Linear(config.mlp_width, width, bias=False)
        if is_global:
            self.shift = nn.Parameter(torch.full((config.kv_heads,), INITIAL_SHIFT))

    def forward(self, hidden: Tensor) -> Tensor:
        """Return the hidden states after the layer; batch, tokens, width."""
        hidden = hidden + self.attend(self.attention_norm(hidden))
        return hidden + self.down(functional.silu(self.up(self.mlp_norm(hidden))))

    def attend(self, x: Tensor) -> Tensor:
        """Return the attention's part of the residual."""
        config, n = self.config, x.shape[1]
        base = config.global_rope_base if self.is_global else config.window_rope_base
        query, key, value = (self.by_head(projection(x)) for projection in (self.query, self.key, self.value))
        if self.is_global:
            before = functional.pad(key, (0, 0, 1, 0))[:, :, :-1]
            share = self.shift[:, None, None]
            key = (1 - share) * key + share * before
        query, key = rotate(query, base), rotate(key, base)
        if self.is_global:
            mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
        else:
            age = torch.arange(n)[:, None] - torch.arange(n)
            in_window = (age >= 0) & (age < config.window)
            mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=in_window, enable_gqa=True)
        return self.output(mixed.transpose(1, 2).flatten(2))

    def by_head(self, x: Tensor) -> Tensor:
        """Return batch, heads, tokens, head width."""
        return x.unflatten(-1, (-1, self.config.head_width)).transpose(1, 2)


class Hybrid(nn.Module):
    """Token embedding, layers, norm, and logits."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        self.layers = nn.ModuleList(Layer(config, config.is_global(layer)) for layer in range(config.layers))
        self.norm = nn.RMSNorm(config.width, config.epsilon)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)
        self.initialise()

    def initialise(self) -> None:
        """Draw the weights: unit embeddings, small logits, and what enters the residual the smaller the deeper."""
        for weight in self.layers.parameters():
            if weight.dim() == 2:
                nn.init.normal_(weight, std=weight.shape[1] ** -0.5)
        nn.init.normal_(self.embedding.weight)
        nn.init.normal_(self.head.weight, std=0.02)
        with torch.no_grad():
            for layer in self.layers:
                layer.output.weight.mul_((2 * self.config.layers) ** -0.5)
                layer.down.weight.mul_((2 * self.config.layers) ** -0.5)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits; batch, tokens, vocabulary."""
        hidden = self.embedding(tokens)
        for layer in self.layers:
            hidden = layer(hidden)
        return self.head(self.norm(hidden))


def rotate(x: Tensor, base: float) -> Tensor:
    """Return RoPE applied to batch, heads, tokens, width; element i turns with element i + width / 2."""
    width = x.shape[-1]
    rates = base ** (-torch.arange(0, width, 2, dtype=x.dtype) / width)
    angles = torch.arange(x.shape[-2], dtype=x.dtype)[:, None] * rates
    first, second = x.chunk(2, -1)
    cosine, sine = angles.cos(), angles.sin()
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine], -1)
