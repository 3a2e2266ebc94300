"""The live figure of chapter 6: which rows a replay of n tokens rebuilds exactly, and how far the others are off."""

import json
from typing import Any, Final

import fp4kv
import matplotlib.pyplot as plt
import numpy as np
from IPython.display import display
from jaxtyping import Bool, Float64, Int
from labkit import plotting
from labkit.replay import Network, Rows, ToyNetwork, swa_forward

from pictures.inline import themed_svg

LAYERS, WINDOW, HIT, SEED = 4, 8, 40, 0
SHORTEST, LONGEST = WINDOW - 1, 32
START: Final = 8  # the length of replay that is shown first: W
FIRST: Final = HIT - LONGEST  # the first position drawn
DIGITS: Final = 3
ALT = (
    "A map of four layers by 32 positions. Replaying the last eight tokens, all rows of layer 0 are exact, "
    "the last of layer 1, and none of layers 2 and 3, whose marks grow with the error."
)


class Listening:
    """A network that remembers the rows it was asked for, layer by layer."""

    def __init__(self, network: Network) -> None:
        self.network, self.kinds, self.window = network, network.kinds, network.window
        self.heard: list[Rows] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.network, name)

    def rows(self, layer: int, hidden: Float64[np.ndarray, "n width"], positions: Int[np.ndarray, " n"]) -> Rows:
        """Return the network's rows, and keep them."""
        self.heard.append(self.network.rows(layer, hidden, positions))
        return self.heard[-1]


def row_errors(replay_tokens: int) -> Float64[np.ndarray, "layers n"]:
    """Return how far each replayed key row is from that of a cold run, relative to it."""
    network, tokens = ToyNetwork(LAYERS, WINDOW, SEED), np.random.default_rng(SEED).integers(64, size=HIT)
    cold, listening = swa_forward(network, tokens), Listening(network)
    fp4kv.bounded_replay(listening, tokens, HIT, replay_tokens, {})
    pairs = zip(listening.heard, cold.rows, strict=True)
    return np.stack([_distances(replayed.keys[0], rows.keys[0, -replay_tokens:]) for replayed, rows in pairs])


def _distances(x: Float64[np.ndarray, "n D"], right: Float64[np.ndarray, "n D"]) -> Float64[np.ndarray, " n"]:
    return np.asarray(np.linalg.norm(x - right, axis=-1) / np.linalg.norm(right, axis=-1))


def exact(replay_tokens: int) -> Bool[np.ndarray, "layers n"]:
    """Return which of the replayed rows the staircase promises."""
    return fp4kv.exact_rows(LAYERS, WINDOW, HIT, replay_tokens)


def replay_map_data() -> dict[str, Any]:
    """Return for each length of replay which rows are exact, and the errors of all."""
    steps = []
    for n in range(SHORTEST, LONGEST + 1):
        steps.append(
            {
                "n": n,
                "exact": exact(n).astype(int).tolist(),
                "errors": np.round(row_errors(n), DIGITS).tolist(),
            }
        )
    sizes = {"layers": LAYERS, "window": WINDOW, "hit": HIT, "first": FIRST}
    return {**sizes, "steps": steps, "start": START - SHORTEST}


def replay_map() -> None:
    """Display the live figure; without scripts it is a still picture."""
    data = json.dumps({**replay_map_data(), "label": ALT}, separators=(",", ":"))
    markup = (
        f'<replay-map><script type="application/json">{data}</script>'
        f'<div class="still course-plot">{still()}</div></replay-map>'
    )
    display({"text/html": markup, "text/plain": ALT}, raw=True)


def still() -> str:
    """Return the first state as a still SVG."""
    plotting.use_course_style()
    figure, axes = plt.subplots(figsize=(5.2, 2.4))
    is_exact, errors = exact(START), row_errors(START)
    positions = np.arange(HIT - START, HIT)
    for layer in range(LAYERS):
        right, wrong = is_exact[layer], ~is_exact[layer]
        kept = {"color": plotting.COLOURS["replayed"], "linestyle": "none"}
        axes.plot(positions[right], np.full(right.sum(), layer), "s", markersize=7, **kept)
        axes.plot(positions[wrong], np.full(wrong.sum(), layer), "s", markersize=7, markerfacecolor="none", **kept)
        axes.scatter(
            positions[wrong],
            np.full(wrong.sum(), layer),
            s=24 * np.minimum(errors[layer, wrong], 1.5),
            color=plotting.COLOURS["ink"],
            zorder=3,
        )
    axes.axvline(HIT - 0.5, color=plotting.COLOURS["exact"], linestyle="--")
    axes.set(xlim=(FIRST - 0.7, HIT + 0.5), ylim=(LAYERS - 0.5, -0.5), yticks=range(LAYERS))
    axes.set(xlabel="position", ylabel="layer", xticks=range(FIRST, HIT + 1, 8))
    axes.grid(visible=False)
    picture = themed_svg(figure, ALT)
    plt.close(figure)
    return picture
