"""Train the hybrid that ships with labkit, from the root of the repository:

    OMP_NUM_THREADS=1 python -m tools.train_hybrid

It needs the course's test environment (PyTorch), one core for about ten minutes, and pip once, for the text.
With `--window-only` it trains, for comparison, a network of window layers alone, and leaves it in the cache.
Without, it writes the weights `hybrid.npz` and the excerpt of the play that was held out into labkit's `data`.
Where the machine or PyTorch's version differs, so do the last bits and with them the weights: they are data that is
kept, not built.
"""

import argparse
import datetime
import json
import math
import platform
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from labkit.replay.hybrid_task import VOCABULARY

from .corpus import EXCERPT_BYTES, PACKAGE, Text, fetch, read_plays
from .model import Config, Hybrid
from .training import CURRICULUM, WINDOW_CURRICULUM, Course, draw_batch, losses, recall, run_course

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "labs" / "labkit" / "src" / "labkit" / "data"
RECALLED = ((512, 32), (512, 128), (1024, 128), (1024, 256))


def main() -> None:
    """Train, test, and write."""
    arguments = argparse.ArgumentParser(prog="python -m tools.train_hybrid", description="Train the hybrid network.")
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--cache", type=Path, default=ROOT / ".cache" / "train_hybrid", help="for the text")
    arguments.add_argument("--out", type=Path, default=DATA)
    arguments.add_argument("--window-only", action="store_true")
    options = arguments.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    training_text, held_out = read_plays(fetch(options.cache))

    torch.manual_seed(options.seed)
    model = Hybrid(Config(VOCABULARY, is_hybrid=not options.window_only))
    curriculum = WINDOW_CURRICULUM if options.window_only else CURRICULUM
    for number, course in enumerate(curriculum):
        print(f"course {number}")
        run_course(model, training_text, course, np.random.default_rng([options.seed, number]))
        reached = measure(model, held_out)
        print(reached, flush=True)

    described = header(model, options.seed, curriculum, reached)
    if options.window_only:
        write(options.cache / "window_only.npz", model, described)
        return
    write(options.out / "hybrid.npz", model, described)
    (options.out / "timon_of_athens_excerpt.txt").write_bytes(whole_lines(held_out[:EXCERPT_BYTES].tobytes()))


def measure(model: Hybrid, text: Text) -> dict[str, float]:
    """Return recall by tokens/records, and bits per byte of text, on the play held out."""
    reached = {f"recall {tokens}/{records}": recall(model, text, tokens, records) for tokens, records in RECALLED}
    with torch.no_grad():
        _, on_text = losses(model, draw_batch(text, 16, 512, 8, np.random.default_rng(5)))
    return {name: round(share, 4) for name, share in reached.items()} | {
        "text bits per byte": round(on_text.item() / math.log(2), 3)
    }


def whole_lines(text: bytes) -> bytes:
    """Return a text up to its last end of a line."""
    return text[: text.rindex(b"\n") + 1]


def header(model: Hybrid, seed: int, curriculum: tuple[Course, ...], reached: dict[str, float]) -> dict[str, object]:
    """Return what a reader of the weights must know, and how they were made."""
    return {
        "config": asdict(model.config),
        "seed": seed,
        "text": PACKAGE,
        "curriculum": curriculum,
        "versions": {"torch": torch.__version__, "numpy": np.__version__, "python": platform.python_version()},
        "date": datetime.date.today().isoformat(),
        "reached": reached,
    }


def write(path: Path, model: Hybrid, described: dict[str, object]) -> None:
    """Write the weights in float16 and the header as JSON text."""
    weights = {name: weight.detach().numpy().astype(np.float16) for name, weight in model.state_dict().items()}
    np.savez_compressed(path, allow_pickle=False, header=np.array(json.dumps(described)), **weights)
    print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
