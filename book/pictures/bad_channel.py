"""The live figure of chapter 4: one channel grows, and Python says beforehand what becomes of the other fifteen."""

import json
from typing import Any, Final, NamedTuple

import fp4kv
import matplotlib.pyplot as plt
import numpy as np
from IPython.display import display
from labkit import plotting

from pictures.inline import themed_svg

CHANNEL: Final = 5
N_TOKENS = N_CHANNELS = 16
SIZES: Final = np.round(np.geomspace(1, 100, 41), 2)
START: Final = 28  # the step that is shown first: 25 times
DIGITS: Final = 3
ALT = (
    "Sixteen bars, one for each channel of a token: hollow before quantising, filled after. "
    "Channel 5 is 25 times as large as usual, and most of the other fifteen have become zero."
)


class Outcome(NamedTuple):
    """What one way to share scales gives back for the token: its values, and how far from zero a value vanishes."""

    decoded: np.ndarray
    flush_limits: np.ndarray  # one for each channel; 0 where no such line exists


def keys_with_outlier(size: float) -> np.ndarray:
    """Return sixteen Gaussian tokens of sixteen channels, channel 5 `size` times as large; token 0 is shown."""
    keys = np.random.default_rng(7).normal(size=(N_TOKENS, N_CHANNELS)).astype(np.float32)
    keys[:, CHANNEL] *= np.float32(size)
    return keys


def outcomes(size: float) -> dict[str, Outcome]:
    """Return token 0 under one scale for its group, under one scale per channel, and rotated within its group."""
    keys = keys_with_outlier(size)
    by_token, by_channel = fp4kv.quantise_e2m1(keys), fp4kv.quantise_e2m1(keys.T)
    rotated = fp4kv.dequantise(fp4kv.quantise_e2m1(fp4kv.rotate_hadamard(keys)))
    return {
        "group": Outcome(fp4kv.dequantise(by_token)[0], np.repeat(by_token.scales[0] / 4, N_CHANNELS)),
        "channel": Outcome(fp4kv.dequantise(by_channel)[:, 0], by_channel.scales[:, 0] / 4),
        "rotated": Outcome(fp4kv.rotate_hadamard(rotated)[0], np.zeros(N_CHANNELS)),
    }


def summary(before: np.ndarray, decoded: np.ndarray) -> dict[str, float]:
    """Return how many of the other channels became zero, and their relative error."""
    ordinary = np.arange(N_CHANNELS) != CHANNEL
    error = np.linalg.norm(decoded[ordinary] - before[ordinary]) / np.linalg.norm(before[ordinary])
    return {"flushed": int((decoded[ordinary] == 0).sum()), "error": round(float(error), DIGITS)}


def bad_channel_data() -> dict[str, Any]:
    """Return the token at every size, and what each way to share scales makes of it."""
    steps = []
    for size in SIZES:
        before = keys_with_outlier(size)[0]
        step: dict[str, Any] = {"size": float(size), "loud": round(float(before[CHANNEL]), DIGITS)}
        for name, outcome in outcomes(size).items():
            step[name] = {
                "after": np.round(outcome.decoded.astype(float), DIGITS).tolist(),
                "limits": np.round(outcome.flush_limits.astype(float), DIGITS).tolist(),
                **summary(before, outcome.decoded),
            }
        steps.append(step)
    values = np.round(keys_with_outlier(1)[0].astype(float), DIGITS).tolist()
    return {"channel": CHANNEL, "values": values, "steps": steps, "start": START}


def bad_channel() -> None:
    """Display the live figure; without scripts it is a still picture."""
    data = json.dumps({**bad_channel_data(), "label": ALT}, separators=(",", ":"))
    markup = (
        f'<bad-channel><script type="application/json">{data}</script>'
        f'<div class="still course-plot">{still()}</div></bad-channel>'
    )
    display({"text/html": markup, "text/plain": ALT}, raw=True)


def still() -> str:
    """Return the first state as a still SVG."""
    plotting.use_course_style()
    figure, axes = plt.subplots(figsize=(5.2, 2.6))
    size = SIZES[START]
    before, outcome = keys_with_outlier(size)[0], outcomes(size)["group"]
    channels, limit = np.arange(N_CHANNELS), outcome.flush_limits[0]
    axes.axhspan(-limit, limit, color=plotting.COLOURS["evicted"], alpha=0.2, linewidth=0)
    axes.bar(channels, before, fill=False, edgecolor=plotting.COLOURS["muted"], label="before")
    axes.bar(channels, outcome.decoded, width=0.5, color=plotting.COLOURS["e2m1"], label="after")
    axes.set(ylim=(-3.6, 3.6), xticks=channels[::5], xlabel="channel", ylabel="value")
    axes.legend(ncols=2)
    picture = themed_svg(figure, ALT)
    plt.close(figure)
    return picture
