"""The decoder against plain attention, against transformers, and its cache against a run without one."""

import importlib.util
import itertools
from types import SimpleNamespace

import pytest
import torch
from labkit.models import smollm2, why_not
from labkit.models.decoder import BLOCK, Decoder, Layout, logits, run

WIDTH, HEADS, KV_HEADS = 8, 6, 2
HYBRID = Layout(window=9, sinks=2, global_layers=frozenset({1}))
ROUNDING = 1e-12
"""Relative, for float64: 4 layers of sums of at most 400 terms, each rounded by 2^-53, leave less than 1e-13."""


def plainly(decoder: Decoder, layout: Layout, tokens: torch.Tensor) -> torch.Tensor:
    """Return the last layer's output, one head and one query at a time, by complex rotation."""
    hidden = decoder.embedding[tokens[0]]
    frequency = 1.0 / decoder.rope_base ** (torch.arange(0, WIDTH, 2, dtype=torch.float32) / WIDTH)
    angle = (torch.arange(len(hidden), dtype=torch.float32)[:, None] * frequency).double()
    turn = torch.polar(torch.ones_like(angle), angle)

    def norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.rms_norm(x, weight.shape, weight, decoder.norm_epsilon)

    def rotate(x: torch.Tensor) -> torch.Tensor:
        turned = torch.complex(x[:, : WIDTH // 2], x[:, WIDTH // 2 :]) * turn
        return torch.cat((turned.real, turned.imag), dim=1)

    for index, layer in enumerate(decoder.layers):
        x = norm(hidden, layer.attention_norm)
        q, k, v = ((x @ weight.T).split(WIDTH, dim=1) for weight in (layer.q, layer.k, layer.v))
        output = torch.zeros(len(hidden), HEADS * WIDTH, dtype=torch.float64)
        for head, t in itertools.product(range(HEADS), range(len(hidden))):
            kv = head // (HEADS // KV_HEADS)
            rows = [s for s in range(t + 1) if layout.is_global(index) or s < layout.sinks or t - s < layout.window]
            p = torch.softmax(rotate(k[kv])[rows] @ rotate(q[head])[t] / WIDTH**0.5, dim=0)
            output[t, head * WIDTH : (head + 1) * WIDTH] = p @ v[kv][rows]
        hidden = hidden + output @ layer.o.T
        x = norm(hidden, layer.mlp_norm)
        hidden = hidden + (torch.nn.functional.silu(x @ layer.gate.T) * (x @ layer.up.T)) @ layer.down.T
    return hidden


def assert_close(got: torch.Tensor, expected: torch.Tensor) -> None:
    assert got.shape == expected.shape
    assert torch.linalg.norm(got - expected) <= ROUNDING * torch.linalg.norm(expected)


@pytest.mark.parametrize("layout", [HYBRID, Layout(1, 0, frozenset({0, 3})), Layout(500, 0, frozenset())])
def test_run_is_attention_over_the_rows_each_query_sees(layout, random_decoder, random_tokens):
    decoder, tokens = random_decoder(1), random_tokens(2, BLOCK + 20)  # two blocks, the second ragged
    assert_close(run(decoder, layout, tokens)[0][0], plainly(decoder, layout, tokens))


@pytest.mark.parametrize("first", [1, 8, 9, 40])
def test_run_in_two_parts_equals_one(first, random_decoder, random_tokens):
    decoder, tokens = random_decoder(3), random_tokens(4, 60)
    whole, whole_state = run(decoder, HYBRID, tokens)
    _, state = run(decoder, HYBRID, tokens[:, :first])
    rest, joined = run(decoder, HYBRID, tokens[:, first:], first, state)
    assert_close(rest, whole[:, first:])
    for got, expected in zip(joined, whole_state, strict=True):
        assert torch.equal(got.positions, expected.positions)
        assert_close(got.keys, expected.keys)
        assert_close(got.values, expected.values)


def test_state_of_one_sequence_serves_a_batch(random_decoder, random_tokens):
    decoder, prefix, ends = random_decoder(5), random_tokens(6, 30), random_tokens(7, 5, batch=3)
    _, state = run(decoder, HYBRID, prefix)
    batched, _ = run(decoder, HYBRID, ends, 30, state)
    for index in range(3):
        alone, _ = run(decoder, HYBRID, ends[index : index + 1], 30, state)
        assert_close(batched[index], alone[0])


def test_rows_in_the_state_are_read_and_never_rewritten(random_decoder, random_tokens):
    decoder, tokens = random_decoder(8), random_tokens(9, 20)
    _, state = run(decoder, HYBRID, tokens)
    marked = tuple(type(rows)(rows.positions, rows.keys, rows.values + 1.0) for rows in state)
    hidden, after = run(decoder, HYBRID, tokens[:, 12:], 12, marked)
    for got, expected in zip(after, marked, strict=True):
        assert torch.equal(got.positions, expected.positions)
        assert torch.equal(got.values, expected.values)
    assert not torch.allclose(hidden, run(decoder, HYBRID, tokens)[0][:, 12:])


def test_what_the_state_lacks_is_not_seen(random_decoder, random_tokens):
    """Dropping rows that no query sees changes nothing; dropping one that is seen changes the output."""
    decoder, tokens = random_decoder(10), random_tokens(11, 41)
    expected, state = run(decoder, HYBRID, tokens[:, :40])
    expected, _ = run(decoder, HYBRID, tokens[:, 40:], 40, state)

    def without(position: int) -> torch.Tensor:
        cut = tuple(
            rows if HYBRID.is_global(i) else rows.at(rows.positions != position) for i, rows in enumerate(state)
        )
        return run(decoder, HYBRID, tokens[:, 40:], 40, cut)[0]

    assert_close(without(40 - HYBRID.window), expected)
    for seen in (40 - HYBRID.window + 1, 0, HYBRID.sinks - 1):
        assert torch.linalg.norm(without(seen) - expected) > 1e-6 * torch.linalg.norm(expected)
    assert_close(without(HYBRID.sinks), expected)


def test_layout_draws_window_first_tokens_and_whole_layers():
    positions = torch.arange(6)
    drawn = [
        "".join("x" if see else "." for see in row)
        for row in Layout(2, 1, frozenset({7})).sees(0, positions, positions)
    ]
    assert drawn == ["x.....", "xx....", "xxx...", "x.xx..", "x..xx.", "x...xx"]
    assert torch.equal(HYBRID.sees(1, positions, positions), torch.ones(6, 6).tril().bool())


def test_model_with_another_rope_is_refused():
    config = SimpleNamespace(model_type="llama", rope_parameters={"rope_type": "yarn"})
    with pytest.raises(ValueError, match="model: expected a Llama with plain RoPE, got llama"):
        Decoder.of(SimpleNamespace(config=config))


@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="transformers is not installed")
def test_random_llama_of_transformers_gives_the_same_logits():
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(12)
    sizes = {"hidden_size": 48, "intermediate_size": 64, "num_hidden_layers": 3, "vocab_size": 99}
    heads = {"num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 8}
    model = LlamaForCausalLM(LlamaConfig(**sizes, **heads, tie_word_embeddings=False)).eval()
    decoder, tokens = Decoder.of(model), torch.randint(99, (2, 150))
    got = logits(decoder, run(decoder, Layout(1, 0, frozenset(range(3))), tokens)[0])
    with torch.no_grad():
        expected = model(tokens).logits
    assert_close_in_float32(got, expected, layers=3)


@pytest.mark.slow
@pytest.mark.skipif(why_not() is not None, reason=why_not() or "")
def test_smollm2_gives_the_logits_of_transformers():
    pretrained = smollm2()
    decoder = Decoder.of(pretrained.model)
    assert (len(decoder.layers), decoder.head_width, decoder.rope_base) == (30, 64, 1e5)
    tokens = torch.tensor([pretrained.tokenizer("The quick brown fox jumps over the lazy dog. " * 20).input_ids])
    got = logits(decoder, run(decoder, Layout(1, 0, frozenset(range(30))), tokens)[0])
    with torch.no_grad():
        expected = pretrained.model(tokens).logits
    assert_close_in_float32(got, expected, layers=30)
    assert pretrained.tokenizer.decode(got[0, 7].argmax()) == " dog"  # after "lazy"


def assert_close_in_float32(got: torch.Tensor, expected: torch.Tensor, layers: int) -> None:
    """Each layer rounds its residual, attention and MLP a few times by 2^-24; 64 for each layer is generous."""
    assert got.shape == expected.shape
    assert (got - expected).abs().max() <= 64 * layers * 2**-24 * expected.abs().max()
