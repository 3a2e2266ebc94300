"""Is the right span still first? Needles with a margin, planted among Gaussian and among real keys."""

import numpy as np
from fp4kv import attention_weights, span_rank
from labkit import tensors
from labkit.plotting import COLOURS
from labkit.schemes import SCHEMES, Scheme
from matplotlib.axes import Axes

CONTEXTS = (128, 512, 2048, 8192, 32768)
MARGINS = (0.25, 0.5, 1.0, 2.0, 4.0)
SPAN_TOKENS, WIDTH = 16, 64
N_QUERIES = 256
LOGIT_SIZE = 3.0  # standard deviation of the Gaussian logits; the real ones of layers 5 to 29 have 2.2 to 3.8
MARGIN_OVER_CONTEXTS = 1.0
N_BEFORE = 448
STYLES = {"FP16": "o-", "E2M1, E4M3 per 16": "^-", "MXFP4": "D-", "INT4": "s--", "INT3": "P--", "INT2": "X--"}

Shares = dict[str, list[float]]


def chosen_schemes() -> list[Scheme]:
    """Return the schemes that are drawn."""
    return [scheme for scheme in SCHEMES if scheme.name in STYLES]


def needle_keys(q: np.ndarray, keys: np.ndarray, margin: float) -> np.ndarray:
    """Return for each query a key along it whose logit lies `margin` above that of all others."""
    best = (q.astype(np.float64) @ keys.T).max(axis=-1) / np.sqrt(q.shape[-1]) + margin
    return (q * (best * np.sqrt(q.shape[-1]) / np.square(q, dtype=np.float64).sum(axis=-1))[:, None]).astype(np.float32)


def ranks(scheme: Scheme, q: np.ndarray, keys: np.ndarray, needles: np.ndarray) -> np.ndarray:
    """Return the rank of each query's span when its needle takes the place of the key in the middle."""
    middle = len(keys) // 2
    decoded, decoded_needles = scheme.round_trip(keys).astype(np.float64), scheme.round_trip(needles)
    found = []
    for query, needle in zip(q, decoded_needles, strict=True):
        decoded[middle] = needle
        found.append(span_rank(attention_weights(query[None], decoded), SPAN_TOKENS, middle // SPAN_TOKENS)[0])
    return np.array(found)


def over_contexts() -> Shares:
    """Return for each scheme the share of queries whose span is first, among Gaussian keys (seed 0)."""
    rng = np.random.default_rng(0)
    shares: Shares = {scheme.name: [] for scheme in chosen_schemes()}
    for context in CONTEXTS:
        q = LOGIT_SIZE * rng.normal(size=(N_QUERIES, WIDTH)).astype(np.float32)
        keys = rng.normal(size=(context, WIDTH)).astype(np.float32)
        needles = needle_keys(q, keys, MARGIN_OVER_CONTEXTS)
        for scheme in chosen_schemes():
            shares[scheme.name].append(float(np.mean(ranks(scheme, q, keys, needles) == 1)))
    return shares


def over_margins(layer: int = 10) -> Shares:
    """Return the share for needles of each margin among the 448 real keys of every head of a layer."""
    q, keys = tensors.load_queries(layer), tensors.load_keys(layer)[:N_BEFORE]
    per_group = q.shape[1] // keys.shape[1]
    shares: Shares = {scheme.name: [] for scheme in chosen_schemes()}
    for margin in MARGINS:
        for scheme in chosen_schemes():
            found = [
                ranks(scheme, q[:, h], keys[:, h // per_group], needle_keys(q[:, h], keys[:, h // per_group], margin))
                for h in range(q.shape[1])
            ]
            shares[scheme.name].append(float(np.mean(np.concatenate(found) == 1)))
    return shares


def draw(axes: Axes, where: tuple[float, ...], shares: Shares, label: str) -> None:
    """Draw the share of every scheme."""
    colours = {scheme.name: scheme.colour for scheme in SCHEMES}
    for name, share in shares.items():
        axes.plot(where, share, STYLES[name], color=COLOURS[colours[name]], label=name.split(",")[0])
    axes.set_xscale("log", base=2)
    axes.set(xlabel=label, ylim=(0, 1.05))
