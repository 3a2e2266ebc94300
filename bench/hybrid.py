"""Measure the trained hybrid, and write `book/recorded/hybrid.json`, which the chapter on replay reads.

    OMP_NUM_THREADS=1 python -m tools.train_hybrid --window-only
    OMP_NUM_THREADS=1 python bench/hybrid.py [--sequences 20] [--parts replay ...] [--out book/recorded/hybrid.json]

Errors placed in window and in global layers, one scale doubled, the index's keys in low bits, and bounded replay.
Sequences are those of `records_task` with seeds 0, 1, …; every figure is a mean over sequences with half the width of
its 95 % interval. Float64 on a CPU: the figures do not depend on the machine beyond their last digit. About six minutes
on one core.
"""

import argparse
import datetime
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from hybrid_coarse import index_overlap, index_quality
from hybrid_placement import doubled_scales, placement, row_errors
from hybrid_replay import SUBJECTS, replays, window_only
from labkit.replay.hybrid import INDEX_BLOCKS, read_weights
from labkit.replay.hybrid_index import IndexFormat

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT / "book" / "recorded" / "hybrid.json"
TRAINED_WINDOW_ONLY = ROOT / ".cache" / "train_hybrid" / "window_only.npz"
SHORT, LONG = (512, 48), (1024, 192)
OUTLIERS = 16


def main() -> None:
    """Measure, print how long each part took, and write."""
    options = read_arguments()
    seeds = range(options.sequences)
    few = range(max(2, options.sequences // 3))
    parts: dict[str, Callable[[], object]] = {
        "placement": lambda: [
            placement(IndexFormat.E2M1, SHORT, seeds),
            placement(None, SHORT, seeds),
            placement(None, SHORT, seeds, OUTLIERS),
            placement(None, LONG, few, OUTLIERS),
        ],
        "row errors": lambda: row_errors(SHORT, few) + row_errors(SHORT, few, OUTLIERS),
        "doubled scale": lambda: doubled_scales(SHORT, seeds),
        "index overlap": lambda: index_overlap(SHORT, few) + index_overlap(SHORT, few, OUTLIERS),
        "index quality": lambda: index_quality(SHORT, few) + index_quality(SHORT, few, OUTLIERS),
        "replay": lambda: replays([*SUBJECTS, window_only(options.window_only)], SHORT, seeds),
    }
    recorded = json.loads(options.out.read_text(encoding="utf-8")) if options.parts else {}
    recorded["made"] = made(options.sequences, options.window_only)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for name in options.parts or parts:
        start = time.perf_counter()
        recorded[name] = parts[name]()
        options.out.write_text(json.dumps(recorded, indent=1) + "\n", encoding="utf-8")
        print(f"{name:<14} {time.perf_counter() - start:6.1f} s", flush=True)
    print(f"{options.out}: {options.out.stat().st_size:,} bytes")


def read_arguments() -> argparse.Namespace:
    """Return the options."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("--sequences", type=int, default=20)
    arguments.add_argument("--parts", nargs="*", help="measure these again and keep the others of the file")
    arguments.add_argument("--window-only", type=Path, default=TRAINED_WINDOW_ONLY)
    arguments.add_argument("--out", type=Path, default=RECORDED)
    return arguments.parse_args()


def made(sequences: int, window_only_weights: Path) -> dict[str, object]:
    """Return what the figures were made with."""
    header, of_window_only = (
        {key: read_weights(file)[0][key] for key in ("date", "seed", "curriculum", "reached")}
        for file in (None, window_only_weights)
    )
    return {
        "command": f"OMP_NUM_THREADS=1 python bench/hybrid.py --sequences {sequences}",
        "date": datetime.date.today().isoformat(),
        "versions": {"numpy": np.__version__, "python": platform.python_version()},
        "weights": header,
        "weights of windows alone": of_window_only,
        "index blocks": INDEX_BLOCKS,
        "sequences of 512 tokens": sequences,
        "text": "Timon of Athens, not in the training text",
        "outlier ratio": "1: as trained; 16: one RoPE pair of every key head enlarged, by the power of two that brings "
        "it nearest to 16 times the median channel, and its queries divided by it: the same function",
        "interval": "mean over sequences; half is half the width of its 95 % interval by Student's t",
    }


if __name__ == "__main__":
    main()
