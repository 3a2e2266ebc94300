"""How much weight a move of two logits can gain, from every weight to start with."""

import numpy as np
from labkit.plotting import COLOURS
from matplotlib.axes import Axes

EPSILONS = {0.5: ":", 1.0: "--", 2.0: "-"}
N_POINTS = 201


def gain(weight: np.ndarray, epsilon: float) -> np.ndarray:
    """Return what a set of that weight gains when its logits rise by ε and all others fall by ε."""
    return np.asarray(weight * np.exp(epsilon) / (weight * np.exp(epsilon) + (1 - weight) * np.exp(-epsilon)) - weight)


def draw(axes: Axes) -> None:
    """Draw the gain for three ε, and the theorem's bound as a dot on the top of each."""
    weights = np.linspace(0, 1, N_POINTS)
    for epsilon, style in EPSILONS.items():
        axes.plot(weights, gain(weights, epsilon), style, color=COLOURS["ink"], label=f"ε = {epsilon:g}")
        axes.plot(1 / (1 + np.exp(epsilon)), np.tanh(epsilon / 2), "o", color=COLOURS["exact"])
    axes.set(xlabel="weight of the set before", ylabel="weight gained", ylim=(0, None))
    axes.legend()
