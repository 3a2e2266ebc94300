# ---
# lab:
#   title: How an error travels
#   packages: [numpy, matplotlib, jaxtyping, ml-dtypes, labkit]
#   minutes: 90
#   solved_seconds: 60
#   limits: {memory_bytes: 2147483648}
#   points: {explain-keys_and_values: 6}
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3 (ipykernel), language: python, name: python3}
# ---

# %% [markdown]
# # How an error travels
#
# A cache of four-bit keys and values does not give back quite what was stored.
# In this lab you follow the difference to the output of attention: first what the packed cache *guarantees*, then what it lets you *expect*, then what you *measure*.
#
# **You will** find by hand how far an element and a weight can move, write attention and five functions that lead from codes to the error of its output, measure nine ways to store a cache on real keys and values, and convict three faulty attentions.
#
# **You need** NumPy, chapter 3 of the book, read beforehand, and about 90 minutes.
# The formats of lab 2 are given: `labkit.given.lab02` has `quantise_e2m1`, `dequantise` and the others.
#
# **The rules**
#
# - Besides Python's own modules you may import NumPy, Matplotlib, jaxtyping and `labkit`; `ml_dtypes` is there because `labkit` needs it, and no task does.
# - Run the cells in order. What counts is *Restart Kernel and Run All Cells*.
# - Each exercise ends in check cells that show a few cases. The grader has more of the same kind: other values, shapes and sizes, never another rule.
# - A **guarantee** is asked for two things: that no error that can occur is above it, and that it is at most 1.001 times the formula that the text gives. Each exercise says which formula is asked for; a bound that is lower and still valid is right too.
# - Later functions call your earlier ones: `attend` calls `attention_weights`, `logit_error_bound` calls `error_radius`, and `output_error_bound` calls four. Their checks avoid what usually goes wrong in the earlier ones, or accept what follows from it, so such a slip costs its points once. A function that is missing, or wrong for most values, does stop those that build on it.
# - Your arguments belong to the caller: return new arrays and leave the given ones as they were.
#
# `labkit validate lab03_errors.ipynb` in a terminal runs every visible case.
#
# Letters: $T$ tokens, $D$ width of keys, $E$ of values, $n$ queries; $q, k, v, o$ query, key, value, output; $\ell$ logit, $p$ weight; $s$ scale, $r$ radius; $c$ code, and as an index a channel. A hat marks what comes from the packed cache: $\hat k$ is a decoded key, $\hat p$ are the weights that decoded keys give. $\lVert\cdot\rVert$ is the length of a vector.

# %%
import math

import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Float64
from labkit import formats
from labkit.expect import expect_close, expect_raises, expect_values
from labkit.formats import QuantisedE2M1
from labkit.given.lab02 import dequantise, quantise_e2m1
from labkit.plotting import COLOURS, use_course_style
from labkit.schemes import SCHEMES, Placement
from labkit.suspects import lab03 as suspects
from labkit.tensors import LAYERS, load_keys, load_queries, load_values

use_course_style()

ROUNDING = 1e-9  # room for the order in which sums are taken

# %% [markdown]
# ## Derive (12 points)
#
# Four short answers, found on paper and written as functions, so that they can be checked.
#
# ### code_radii (3 points)
#
# A code says in which **cell** the element lay before it was packed: between the ties on both sides of the decoded value.
# How far can it have been from that value?
# Return the **radius** of each of the codes 0 to 7, in units of the scale $s$: the distance to the farther end of its cell.
#
# Code 7 has only one tie, 5, below it.
# Above, its cell ends where the group would have had another scale: lab 2 found that a group gets the scale $s$ for an `amax` of up to $6(s + \text{half a step})$, that the steps below $2^{-6}$ are all $2^{-9}$, and that a scale of 448 takes everything above.
# So the radius of code 7 depends on $s$.
#
# | $c$, under $s = 1$ | value | its cell | radius |
# |---|---|---|---|
# | 3 | 1.5 | 1.25 to 1.75 | 0.25 |
# | 4 | 2 | 1.75 to 2.5 | 0.5 |
# | 7 | 6 | 5 to 6.375 | 1 |
#
# Under $s = 2^{-9}$ half a step is $s/2$, so a group reaches $9s$, and code 7 has the radius 3.


# %% answer="code_radii"
def code_radii(s: float) -> Float64[np.ndarray, " 8"]:
    """Return how far a value can have been from that of its code, for codes 0 to 7, in units of s.

    s is a positive value of E4M3. Code 7 is farther than 1 only for subnormal s, and has no radius,
    infinity, where s is 448.
    """
    radii = np.array([0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 1.0, 1.0])
    half_step = formats.E4M3_MIN_SUBNORMAL / 2
    radii[7] = math.inf if s == formats.E4M3_MAX else max(1.0, 6 * half_step / s)
    return radii


# %%
figure, panels = plt.subplots(1, 2, figsize=(10, 3.2), sharey=True)
for panel, s, name in zip(panels, (1.0, 2.0**-9), ("1", "$2^{-9}$"), strict=True):
    panel.errorbar(formats.E2M1_VALUES, range(8), xerr=code_radii(s), fmt="o", color=COLOURS["e2m1"], capsize=3)
    panel.set(xlabel=f"value ÷ s, for s = {name}", ylabel="code", yticks=range(8))
plt.show()

# %% check="code_radii-cells"
"""Codes 0 to 6 reach to the farther of their two ties."""
expect_close(code_radii(1.0)[:4], np.full(4, 0.25), ROUNDING, given="codes 0 to 3, s = 1")
expect_close(code_radii(1.0)[4], 0.5, ROUNDING, given="code 4, s = 1")

# %% check="code_radii-clipped"
"""Code 7 reaches to its tie, 5, or as far up as a group can clip: farther where s is small."""
expect_close(code_radii(1.0)[7], 1.0, ROUNDING, given="code 7, s = 1")
expect_close(code_radii(2.0**-9)[7], 3.0, ROUNDING, given="code 7, s = 2^-9")

# %% check="code_radii-top"
"""Under the largest scale nothing bounds code 7, and the other codes stay bounded."""
expect_values(float(code_radii(448.0)[7]), math.inf, given="code 7, s = 448")

# %% [markdown]
# ### two_point_weight (2 points)
#
# How far can a weight of softmax move when every logit moves by at most $\varepsilon$?
# The worst case needs two tokens only: one logit goes up by $\varepsilon$, the other down by $\varepsilon$, and the odds $p/(1-p)$ of the first are multiplied by $e^{2\varepsilon}$.
# A weight near 0 or 1 hardly moves; in between there is one that moves most, and that one moves by exactly $\tanh(\varepsilon/2)$.
# Return it: the weight of the first token *before* its logit goes up.
# (The weight that it reaches moves as far on the way back, and is accepted too.)
#
# By hand: start from equal weights and $\varepsilon = 1$; the odds go from 1 to $e^2$, the weight from 0.5 to 0.881, a change of 0.381.
# But $\tanh(1/2) = 0.462$: equal weights are not the worst.
# Start below ½, so that you arrive as far above it.


# %% answer="two_point_weight"
def two_point_weight(epsilon: float) -> float:
    """Return the weight of one of two tokens that moves by tanh(ε/2) when its logit moves by ε and the other's by -ε.

    ε is above 0.
    """
    return 1 / (1 + math.exp(epsilon))


# %%
weight = np.linspace(0.001, 0.999, 400)
for epsilon, line in ((0.5, ":"), (1.0, "--"), (2.0, "-")):
    after = 1 / (1 + (1 - weight) / weight * math.exp(-2 * epsilon))
    plt.plot(weight, after - weight, line, color=COLOURS["ink"], label=f"ε = {epsilon:g}")
    plt.plot(two_point_weight(epsilon), math.tanh(epsilon / 2), "o", color=COLOURS["exact"])
plt.xlabel("weight before")
plt.ylabel("how far it moves")
plt.legend()
plt.show()

# %% check="two_point_weight-attains"
"""From this weight, moving one logit up by ε and the other down by ε changes it by tanh(ε/2)."""
weight = two_point_weight(1.0)
moved = [1 / (1 + (1 - weight) / weight * math.exp(turn * 2)) for turn in (-1, 1)]
expect_close(max(abs(after - weight) for after in moved), math.tanh(0.5), ROUNDING, given="ε = 1")

# %% [markdown]
# ### cell_mean_square (2 points)
#
# A guarantee asks for the worst; an estimate asks what to expect.
# Suppose that $x$ lies anywhere between `low` and `high` with equal chance, and is rounded to `value`, somewhere in between.
# Return the average of $(x - \text{value})^2$.
#
# For a value in the middle of its cell that is the familiar width²/12.
# The cells of 2, 4 and 6 are uneven: that of 2 goes from 1.75 to 2.5.
# By hand: the part above 2 is 0.5 long, two thirds of the cell, and averages $0.5^2/3$; the part below is 0.25 long and averages $0.25^2/3$; together $\frac23 \cdot 0.0833 + \frac13 \cdot 0.0208 = 0.0625$.
# Width²/12 would be 0.0469.


# %% answer="cell_mean_square"
def cell_mean_square(low: float, value: float, high: float) -> float:
    """Return the mean of (x - value)² for x spread evenly from low to high; low ≤ value ≤ high, low < high."""
    below, above = value - low, high - value
    return (below**3 + above**3) / (3 * (below + above))


# %%
ends = [0.0, *map(float, formats.E2M1_TIES)]
print("code  evenly spread  width²/12  Gaussian groups")
for code in range(1, 7):
    low, high = ends[code], ends[code + 1]
    even = cell_mean_square(low, float(formats.E2M1_VALUES[code]), high)
    gaussian = formats.E2M1_MEAN_SQUARE_ERRORS[code]
    print(f"{code:4}  {even:13.4f}  {(high - low) ** 2 / 12:9.4f}  {gaussian:15.4f}")

# %% check="cell_mean_square-even"
"""With the value in the middle of its cell it is width²/12."""
expect_close(cell_mean_square(2.5, 3.0, 3.5), 1 / 12, ROUNDING, given="2.5, 3, 3.5")

# %% check="cell_mean_square-uneven"
"""With the value elsewhere the longer side counts more, and more often."""
expect_close(cell_mean_square(1.75, 2.0, 2.5), 0.0625, ROUNDING, given="1.75, 2, 2.5")
expect_close(cell_mean_square(0.0, 0.0, 3.0), 3.0, ROUNDING, given="0, 0, 3: all of the cell is above the value")

# %% [markdown]
# ### needle_tolerance (5 points)
#
# A **needle** is the one token that a query looks for, among $N$ tokens.
# Its logit is at least `margin` above each of the other $N - 1$.
# How far may every logit move, up or down, while the needle is sure to keep at least the share `mass` of the weight?
# The worst case: the needle falls by the tolerance while all the others rise by it.
# Return 0 where nothing is guaranteed, and infinity where there is no other token.
# A `mass` that is not between 0 and 1, or a context of less than one token, is refused with a `ValueError`.
#
# By hand, 1001 tokens, a margin of 10, half the mass: one thousand others together weigh as much as the needle when it leads by $\ln 1000 = 6.91$.
# That leaves $10 - 6.91 = 3.09$, of which the needle may lose half and the others gain half: 1.55.
# For three quarters of the mass it must lead by $\ln 1000 + \ln 3$.

# %% answer="needle_tolerance"
from fp4kv import needle_tolerance

# %%
contexts = 2 ** np.arange(7, 21)
for margin, line in ((10.0, ":"), (14.0, "--"), (18.0, "-")):
    tolerances = [needle_tolerance(int(context), margin, 0.5) for context in contexts]
    plt.plot(contexts, tolerances, line, color=COLOURS["ink"], label=f"margin {margin:g}")
plt.xscale("log", base=2)
plt.xlabel("context (tokens)")
plt.ylabel("tolerance of each logit")
plt.legend()
plt.show()

# %% check="needle_tolerance-others"
"""For half the mass, a margin of ln(N-1) leaves nothing, and 2ε more leaves ε."""
expect_close(needle_tolerance(2, 3.0, 0.5), 1.5, ROUNDING, given="2 tokens, margin 3, half the mass")
expect_close(needle_tolerance(1001, 10.0, 0.5), (10 - math.log(1000)) / 2, ROUNDING, given="1001 tokens, margin 10")

# %% check="needle_tolerance-mass"
"""More mass leaves less tolerance, by half the logarithm of its odds."""
expected = (18 - math.log(3e6)) / 2
expect_close(needle_tolerance(1_000_001, 18.0, 0.75), expected, 1e-5, given="1,000,001 tokens, margin 18, mass 0.75")

# %% check="needle_tolerance-nothing"
"""Where the margin is too small, nothing is guaranteed: 0."""
expect_close(float(needle_tolerance(1001, 6.0, 0.5)), 0.0, 0, given="1001 tokens, margin 6, half the mass")

# %% check="needle_tolerance-alone"
"""A needle without others keeps its mass whatever happens: infinity."""
expect_values(needle_tolerance(1, 2.0, 0.5), math.inf, given="1 token")

# %% check="needle_tolerance-refuses"
"""A mass that is not between 0 and 1, or a context below 1, is refused with a ValueError."""
expect_raises(ValueError, lambda: needle_tolerance(100, 8.0, 1.0), given="mass 1")
expect_raises(ValueError, lambda: needle_tolerance(0, 8.0, 0.5), given="no token")

# %% [markdown]
# ## Implement (40 points)
#
# Seven functions: attention, then from the radius of an element to the error of an output.
#
# ### attention_weights (7 points)
#
# Return, for each query, the softmax of its logits $q \cdot k_i / \sqrt D$ over the tokens $i$: $p_i = e^{\ell_i} / \sum_j e^{\ell_j}$, computed in float64.
# Axes before the last two are heads: each has its own queries and keys, and the result has them too.
# Logits of thousands occur, and $e^{1000}$ overflows; softmax does not change when a constant is subtracted from all logits of a query, so choose one that helps.
# `is_visible` says which tokens a query sees, the same for all heads; a hidden token has weight 0, *whatever* the logits.
# A query that sees nothing is refused with a `ValueError` that names it.
#
# By hand, $D = 4$: $q = (1, 1, 1, 1)$ and keys of all 0 and all 0.5 have $q \cdot k = 0$ and 2, logits 0 and 1, weights $1/(1 + e) = 0.269$ and 0.731.

# %% answer="attention_weights"
from fp4kv import attention_weights


# %%
def real_cache(layer):
    """Return queries, keys and values of one layer, head by head, and which tokens each query sees."""
    queries, keys, values = load_queries(layer), load_keys(layer), load_values(layer)
    position = np.arange(len(keys) - len(queries), len(keys))  # the queries are those of the last tokens
    is_visible = np.arange(len(keys)) <= position[:, None]
    q, keys, values = (x.swapaxes(0, 1) for x in (queries, keys, values))
    return q, np.repeat(keys, 3, axis=0), np.repeat(values, 3, axis=0), is_visible  # three queries share a key


for layer in LAYERS:
    q, keys, _, is_visible = real_cache(layer)
    on_first = attention_weights(q, keys, is_visible)[:, :, 0].mean(axis=1)
    plt.plot(np.full(9, layer), on_first, "o", color=COLOURS["exact"], alpha=0.5)
plt.xlabel("layer")
plt.ylabel("mean weight on token 0")
plt.ylim(0, 1.05)
plt.show()

# %% [markdown]
# Each point is one head of a small language model, SmolLM2-135M, over 64 queries.
# From layer 18 on, heads give a large part of their weight to the first token, whatever it says: an **attention sink**.

# %% check="attention_weights-softmax"
"""Each query's weights are the softmax of its own logits, with or without axes before."""
q, keys = np.float32([[1.0], [0.0]]), np.float32([[0.0], [math.log(3)]])
expect_close(attention_weights(q, keys), [[0.25, 0.75], [0.5, 0.5]], 1e-6, given={"q": q, "keys": keys})
expect_values(attention_weights(np.ones((3, 2, 1)), np.ones((3, 5, 1))).shape, (3, 2, 5), given="3 heads")

# %% check="attention_weights-scaled"
"""Logits are q·k divided by √D, D being the width of a key."""
q, keys = np.ones((1, 4)), np.array([[0.0] * 4, [0.5] * 4])
expect_close(attention_weights(q, keys), [[1 / (1 + math.e), math.e / (1 + math.e)]], ROUNDING, given="D = 4")

# %% check="attention_weights-float64"
"""Products of float32 arguments are taken in float64."""
q, keys = np.float32([[1 + 2**-12]]), np.float32([[1 + 2**-12], [0]])
expected = 1 / (1 + math.exp(-((1 + 2**-12) ** 2)))
expect_close(attention_weights(q, keys)[0, 0], expected, 1e-12, given={"q": q, "keys": keys})

# %% check="attention_weights-large"
"""Logits of ±10,000 and more give finite weights that add up to 1."""
q, keys = np.float32([[100.0], [-100.0]]), np.float32([[100.0], [100.0], [99.0]])
expected = [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]  # logits of 10,000, 10,000 and 9,900, and the same below zero
expect_close(attention_weights(q, keys), expected, ROUNDING, given={"q": q, "keys": keys})

# %% check="attention_weights-visible"
"""A hidden key has weight 0, and those that are seen share all of it."""
q, keys, is_visible = np.ones((2, 1)), np.zeros((3, 1)), np.array([[True, True, False], [False, True, False]])
expected = [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]]
expect_close(attention_weights(q, keys, is_visible), expected, ROUNDING, given={"is_visible": is_visible})

# %% check="attention_weights-mask_value"
"""However far below the others the visible logits are, hidden keys have weight 0."""
q, keys, is_visible = np.array([[1e5]]), np.array([[-1e5], [0.0]]), np.array([[True, False]])
expect_close(attention_weights(q, keys, is_visible), [[1.0, 0.0]], ROUNDING, given={"q": q, "keys": keys})

# %% check="attention_weights-refuses"
"""A query that sees no key is refused with a ValueError that names the first such query."""
is_visible = np.array([[True, True], [False, True], [False, False]])
expect_raises(
    ValueError,
    lambda: attention_weights(np.ones((3, 1)), np.ones((2, 1)), is_visible),
    given={"is_visible": is_visible},
    naming=(2,),
)

# %% [markdown]
# ### attend (2 points)
#
# The output of a query is the average of the values under its weights, $o = \sum_i p_i v_i$.
# Return one output for each query, in float64, head by head.
#
# By hand: weights 0.25 and 0.75 on the values 10 and 20 give 17.5.

# %% answer="attend"
from fp4kv import attend

# %%
for layer in (10, 23):
    q, keys, values, is_visible = real_cache(layer)
    lengths = np.linalg.norm(values[0], axis=-1)
    output = np.linalg.norm(attend(q, keys, values, is_visible)[0], axis=-1).mean()
    median = np.median(lengths)
    print(f"layer {layer}: values are {median:.1f} long, that of token 0 {lengths[0]:.1f}, outputs {output:.1f}")

# %% check="attend-average"
"""Each output is the average of the values under that query's weights, one for each head."""
q, keys, values = np.array([[1.0], [0.0]]), np.array([[0.0], [math.log(3)]]), np.array([[10.0, 0.0], [20.0, 4.0]])
given = {"q": q, "keys": keys, "values": values}
expect_close(attend(q, keys, values), [[17.5, 3.0], [15.0, 2.0]], ROUNDING, given=given)

# %% check="attend-visible"
"""What a query does not see has no part in its output."""
is_visible = np.array([[False, True], [True, False]])
given = {"values": values, "is_visible": is_visible}
expect_close(attend(q, keys, values, is_visible), [[20.0, 4.0], [10.0, 0.0]], ROUNDING, given=given)

# %% [markdown]
# ### error_radius (6 points)
#
# From here on only the packed cache is left.
# Return for each element how far it can have been from what it is decoded to: the radius of its code, as in `code_radii`, times the scale of its group.
# Codes 8 to 15 are codes 0 to 7 with a sign, and each scale serves 16 neighbours along the last axis.
# Only code 7 can have been clipped: its radius is wider under the smallest scales, and infinite under 448.
# Under a tensor scale groups clip in another way; refuse one other than 1 with a `ValueError`.
#
# By hand: codes 9, 4 and 15 (−0.5, 2, −6) under $s = 2$ have the radii 0.5, 1 and 2; under $s = 2^{-9}$ code 7 has $3 \cdot 2^{-9}$, and so has it under $2^{-8}$.

# %% answer="error_radius"
from fp4kv import error_radius

# %%
x = load_keys(10)[7, 0, :32]
quantised = quantise_e2m1(x)
plt.errorbar(range(32), dequantise(quantised), error_radius(quantised), fmt="none", ecolor=COLOURS["e2m1"], capsize=3)
plt.plot(x, ".", color=COLOURS["exact"], label="before")
plt.plot([], color=COLOURS["e2m1"], label="where it can have been")
plt.axvline(15.5, color=COLOURS["muted"], linestyle=":")
plt.xlabel("channel of a real key")
plt.ylabel("value")
plt.legend()
plt.show()

# %% check="error_radius-codes"
"""Each code has its radius, in units of the scale."""
quantised = QuantisedE2M1(np.uint8([0, 1, 2, 3, 4, 5, 6, 7] * 2), np.float32([2.0]), 1.0)
expect_close(error_radius(quantised)[:8], [0.5, 0.5, 0.5, 0.5, 1, 1, 2, 2], ROUNDING, given="codes 0 to 7, s = 2")

# %% check="error_radius-signs"
"""Negative elements have the radius of their magnitude, and the codes stay as they were."""
quantised = QuantisedE2M1(np.uint8([8, 9, 10, 11, 12, 13, 14, 15] * 2), np.float32([1.0]), 1.0)
expected = [0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 1, 1]
expect_close(error_radius(quantised)[:8], expected, ROUNDING, given="codes 8 to 15, s = 1")

# %% check="error_radius-groups"
"""Each scale serves the 16 codes of its group, in arrays of any shape."""
quantised = QuantisedE2M1(np.full((2, 32), 2, np.uint8), np.float32([[1, 2], [4, 8]]), 1.0)
expected = [[0.25, 0.25, 0.5, 0.5], [1, 1, 2, 2]]
expect_close(error_radius(quantised)[:, [0, 15, 16, 31]], expected, ROUNDING, given="codes 2, s = 1, 2; 4, 8")

# %% check="error_radius-small_scales"
"""Under the smallest scales code 7 has a larger radius, and no other code has."""
quantised = QuantisedE2M1(np.uint8([7, 1, 2, 3] * 4), np.float32([2.0**-9]), 1.0)
expected = np.array([3, 0.25, 0.25, 0.25]) * 2.0**-9
expect_close(error_radius(quantised)[:4], expected, 1e-6 * expected, given="codes 7, 1, 2 and 3, s = 2^-9")

# %% check="error_radius-top"
"""Under a scale of 448 code 7 has no radius: infinity; smaller codes keep theirs."""
quantised = QuantisedE2M1(np.uint8([7, 1] + [3] * 14), np.float32([448.0]), 1.0)
expect_values(error_radius(quantised)[:2], np.array([np.inf, 112.0]), given="codes 7 and 1, s = 448")

# %% check="error_radius-refuses"
"""A tensor scale other than 1 is refused with a ValueError."""
quantised = QuantisedE2M1(np.ones(16, np.uint8), np.float32([1.0]), 0.5)
expect_raises(ValueError, lambda: error_radius(quantised), given="a tensor scale of 0.5")

# %% [markdown]
# ### logit_error_bound (4 points)
#
# A key that moves by $\Delta k$ moves its logit by $q \cdot \Delta k / \sqrt D$.
# The worst error is at its radius in every channel, with the sign of $q_c$, so the logit of token $i$ moves by at most
#
# $$\frac{1}{\sqrt D} \sum_c |q_c| \, r_{ic},$$
#
# $r_{ic}$ being the radius of channel $c$ of key $i$, its scale included.
# **This is the formula that is asked for.**
# The product of lengths, $\lVert q \rVert \lVert r_i \rVert / \sqrt D$, is a bound too, but a higher one, and fails the second check.
# Where $q$ meets an element of infinite radius, which has **no radius**, the bound is infinite; a channel in which $q$ is 0 counts nothing, not even then.
# Beware of $0 \cdot \infty$.
#
# By hand, $D = 16$: $q = (1, -2, 0, \dots)$ and a key with codes 2, 7, 0, … under $s = 1$: $(1 \cdot 0.25 + 2 \cdot 1)/4 = 0.5625$.

# %% answer="logit_error_bound"
from fp4kv import logit_error_bound

# %%
q, keys, values, is_visible = (x[0] if x.ndim == 3 else x for x in real_cache(10))
packed_keys = quantise_e2m1(keys)
moved = np.abs(q @ (keys - dequantise(packed_keys)).T) / math.sqrt(64)
bounds = logit_error_bound(q, packed_keys)
plt.plot(bounds[::8, ::4].ravel(), moved[::8, ::4].ravel(), ".", color=COLOURS["e2m1"], markersize=3)
plt.plot([0, 8], [0, 8], "--", color=COLOURS["exact"], label="the guarantee")
plt.xlabel("bound of a logit")
plt.ylabel("how far it moved")
plt.legend()
plt.show()
print(f"the bound is {np.median(bounds / np.maximum(moved, 1e-9)):.0f} times the error at the median logit")

# %% check="logit_error_bound-guarantee"
"""No logit moves further than its bound, whatever the sign of q."""
keys = np.zeros((1, 16), np.float32)
keys[0, :3] = 6.0, 1.24, 0.76  # decoded to 6, 1 and 1
q = np.zeros((2, 16), np.float32)
q[0, 1:3], q[1, 1:3] = (4.0, -4.0), (-4.0, 4.0)
bounds = logit_error_bound(q, quantise_e2m1(keys))
expect_values(bounds >= 0.47, np.array([[True], [True]]), given="logits that move by 0.48; bounds " + str(bounds))

# %% check="logit_error_bound-tight"
"""The bound is at most the sum over channels, Σ|q_c| r_c s_c / √D."""
codes, q = np.zeros((1, 16), np.uint8), np.zeros((1, 16))
codes[0, :2], q[0, :2] = (2, 7), (1.0, -2.0)
quantised = QuantisedE2M1(codes, np.ones((1, 1), np.float32), 1.0)
bound = logit_error_bound(q, quantised)[0, 0]
expect_values(bool(bound <= 0.5625 * 1.001), True, given=f"a bound of {bound} where the formula has 0.5625")

# %% check="logit_error_bound-unbounded"
"""Infinite exactly where q meets an element without a radius: a channel in which q is 0 counts nothing."""
quantised = QuantisedE2M1(np.uint8([[7] + [1] * 15]), np.float32([[448.0]]), 1.0)
q = np.array([[1.0] + [0.0] * 15, [0.0, 1.0] + [0.0] * 14])
bounds = logit_error_bound(q, quantised)
expect_values(np.isposinf(bounds), np.array([[True], [False]]), given="code 7 in channel 0, s = 448")
expect_values(np.isfinite(bounds), np.array([[False], [True]]), given="code 7 in channel 0, s = 448")

# %% [markdown]
# ### weight_error_bound (5 points)
#
# Logit $i$ of a query moves by at most $e_i$.
# What moves softmax is that logits move *apart*: a shift of all of them changes nothing.
# Two logits move apart by at most the sum of their errors, so take $\varepsilon$ as half the sum of the **two largest** $e_i$; the weights then move by at most
#
# $$\frac12 \sum_i |\hat p_i - p_i| \le \tanh(\varepsilon / 2),$$
#
# which your two-point weight attains.
# **This is the formula that is asked for**, for each row of `logit_errors`.
# A lone token has weight 1 and keeps it: there the bound is 0.
#
# By hand: errors 0.1, 0.3 and 0.5 give $\varepsilon = 0.4$ and $\tanh(0.2) = 0.197$.

# %% answer="weight_error_bound"
from fp4kv import weight_error_bound

# %%
rng = np.random.default_rng(3)
epsilons = np.linspace(0.05, 4, 40)
plt.plot(epsilons, weight_error_bound(np.stack([epsilons, epsilons], axis=1)), "--", color=COLOURS["exact"])
for n_tokens, marker in ((2, "o"), (16, "s"), (256, "^")):
    logits = rng.normal(size=(40, n_tokens))
    moved = logits + epsilons[:, None] * rng.choice([-1, 1], logits.shape)
    before, after = (attention_weights(np.ones((1, 1)), x[:, :, None])[:, 0] for x in (logits, moved))
    moved_by = np.abs(after - before).sum(axis=1) / 2
    plt.plot(epsilons, moved_by, marker, color=COLOURS["muted"], markersize=3, label=f"{n_tokens} tokens")
plt.xlabel("ε, by which every logit moves, up or down by chance; dashed: the bound")
plt.ylabel("how far the weights move")
plt.legend()
plt.show()

# %% check="weight_error_bound-tanh"
"""Where both of two logits can move by ε, the bound is tanh(ε/2)."""
errors = np.array([[1.0, 1.0], [0.2, 0.2]])
expect_close(weight_error_bound(errors), [math.tanh(0.5), math.tanh(0.1)], ROUNDING, given={"logit_errors": errors})

# %% check="weight_error_bound-two_largest"
"""ε is half the sum of the two largest errors, wherever they stand."""
errors = np.array([[0.5, 0.1, 0.3]])
expect_close(weight_error_bound(errors), weight_error_bound(np.array([[0.4, 0.4]])), ROUNDING, given=errors)

# %% check="weight_error_bound-lone"
"""A lone key keeps its weight of 1: the bound is 0."""
expect_close(weight_error_bound(np.array([[0.3], [5.0]])), [0.0, 0.0], 0, given="one token")

# %% check="weight_error_bound-argument"
"""The array that was handed over is the same after the call."""
errors = np.array([[0.5, 0.1, 0.3]])
weight_error_bound(errors)
expect_values(errors, np.array([[0.5, 0.1, 0.3]]), given="the argument after the call")

# %% [markdown]
# ### output_error_bound (9 points)
#
# An output moves because weights move and because values do.
# Weights that move by $\tanh(\varepsilon/2)$ carry that much mass from some values to others, at worst between the two that are farthest apart; and each value adds its own error with its weight:
#
# $$\lVert \hat o - o \rVert \le \tanh(\varepsilon/2) \cdot \operatorname{diam} + \sum_i \hat p_i \lVert r_i \rVert, \qquad \operatorname{diam} = \max_{i \ne j} \bigl( \lVert \hat v_i - \hat v_j \rVert + \lVert r_i \rVert + \lVert r_j \rVert \bigr).$$
#
# $\lVert r_i \rVert$ is the length of the radii of value $i$, and $\hat p$ are the weights that the *decoded* keys give.
# The mass goes to where a value *was*, not to where it is decoded, which is why the diameter holds two radii; a lone value has none, and the first term is 0.
# **This is the formula that is asked for**, one number for each query; a lower bound that is valid too, and there are some, passes.
# The bound is infinite if a value has no radius.
# Where only a key has none, the weights can move by 1 at most.
#
# By hand: $q = (1, 0, \dots)$; keys with code 2 and code 0 in channel 0, zeros elsewhere; values that are all zeros, and code 6 in channel 0; every scale 1.
#
# | | |
# |---|---|
# | logit errors | $0.25/4$ each, so $\varepsilon = 0.0625$ and $\tanh(\varepsilon/2) = 0.0312$ |
# | radii | $\lVert r_1 \rVert = \sqrt{16 \cdot 0.25^2} = 1$ and $\lVert r_2 \rVert = \sqrt{1^2 + 15 \cdot 0.25^2} = 1.392$ |
# | diameter | $4 + 1 + 1.392 = 6.392$ |
# | weights | logits 0.25 and 0: 0.562 and 0.438 |
# | bound | $0.0312 \cdot 6.392 + 0.562 \cdot 1 + 0.438 \cdot 1.392 = 1.371$ |
#
# It builds on `error_radius`, `attention_weights`, `logit_error_bound` and `weight_error_bound`.

# %% answer="output_error_bound"
from fp4kv import output_error_bound

# %%
q, keys, values, _ = (x[0] if x.ndim == 3 else x for x in real_cache(10))
packed_keys, packed_values = quantise_e2m1(keys), quantise_e2m1(values)
errors = np.linalg.norm(attend(q, dequantise(packed_keys), dequantise(packed_values)) - attend(q, keys, values), axis=1)
bounds = output_error_bound(q, packed_keys, packed_values)
print(f"real keys and values: {np.median(bounds):.2f} guaranteed, {np.median(errors):.3f} measured at the median query")
print(f"the weights can move by {weight_error_bound(logit_error_bound(q, packed_keys)).min():.4f} or more")

# %% check="output_error_bound-values"
"""Where q is 0 no weight moves, and the bound is the average of the values' radii ‖r_i‖."""
keys = QuantisedE2M1(np.ones((2, 16), np.uint8), np.ones((2, 1), np.float32), 1.0)
values = QuantisedE2M1(np.uint8([[1] * 16, [1] * 16]), np.float32([[1], [3]]), 1.0)
bound = output_error_bound(np.zeros((1, 16)), keys, values)
expect_close(bound, [2.0], 2e-3, given="q = 0; codes 1 under s = 1 and s = 3: radii of length 1 and 3")

# %% check="output_error_bound-weights"
"""Each radius counts as much as the weight that the decoded keys give its token."""
keys = QuantisedE2M1(np.uint8([[2] + [0] * 15, [0] * 16]), np.ones((2, 1), np.float32), 1.0)
values = QuantisedE2M1(np.uint8([[0] * 16, [6] + [0] * 15]), np.ones((2, 1), np.float32), 1.0)
bound = output_error_bound(np.array([[1.0] + [0.0] * 15]), keys, values)
expect_values(bool(1.2 < bound[0] < 1.3725), True, given=f"the example by hand: 1.371, and yours is {bound[0]}")

# %% check="output_error_bound-moved"
"""Where the two heaviest weights change places, the bound is not below what that does to the output."""
keys = np.zeros((2, 16), np.float32)
keys[:, 0], keys[0, 1:3], keys[1, 1:3] = 6, (0.74, 0.74), (0.76, 0.26)  # decoded to 0.5, 0.5 and 1, 0.5
q = np.zeros((1, 16), np.float32)
q[0, 1:3] = 8  # the logits were 0.9 apart, and are decoded as 1 apart, the other way round
values = np.zeros((2, 32), np.float32)
values[0, :16] = values[1, 16:] = 6
packed_keys, packed_values = quantise_e2m1(keys), quantise_e2m1(values)
after = attend(q, dequantise(packed_keys), dequantise(packed_values))
error = np.linalg.norm(after - attend(q, keys, values))
bound = output_error_bound(q, packed_keys, packed_values)
expect_values(bool(bound[0] >= error), True, given=f"an error of {error:.3f} and a bound of {bound[0]}")

# %% check="output_error_bound-diameter"
"""The weight moves to where a value was, not to where it is decoded."""
values = np.zeros((2, 16), np.float32)
values[0, 0], values[0, 1:] = 6.3, 1.74  # decoded to 6 and 1.5
packed_values = quantise_e2m1(values)
q = np.zeros((1, 16), np.float32)
q[0, 1:3] = 64.0  # nearly all of the weight moves to token 0
after = attend(q, dequantise(packed_keys), dequantise(packed_values))
error = np.linalg.norm(after - attend(q, keys, values))
bound = output_error_bound(q, packed_keys, packed_values)
expect_values(bool(bound[0] >= error), True, given=f"an error of {error:.3f} and a bound of {bound[0]}")

# %% check="output_error_bound-guarantee"
"""On keys and values of every kind, real ones too, no output moves further than its bound."""
real_keys, real_values, real_q = load_keys(10)[:64, 0], load_values(10)[:64, 0], load_queries(10)[:4, 0]
packed_keys, packed_values = quantise_e2m1(real_keys), quantise_e2m1(real_values)
after = attend(real_q, dequantise(packed_keys), dequantise(packed_values))
errors = np.linalg.norm(after - attend(real_q, real_keys, real_values), axis=1)
bounds = output_error_bound(real_q, packed_keys, packed_values)
expect_values(bounds >= errors, np.full(4, True), given=f"errors {errors} and bounds {bounds}")

# %% check="output_error_bound-tight"
"""The bound is at most tanh(ε/2) · diam + Σ p̂_i ‖r_i‖ where tanh(ε/2) is at most ½; a lower valid one passes."""
keys = QuantisedE2M1(np.uint8([[2] + [0] * 15, [0] * 16]), np.ones((2, 1), np.float32), 1.0)
values = QuantisedE2M1(np.uint8([[0] * 16, [6] + [0] * 15]), np.ones((2, 1), np.float32), 1.0)
bound = output_error_bound(np.array([[1.0] + [0.0] * 15]), keys, values)
expect_values(bool(bound[0] <= 1.3725), True, given=f"the example by hand: 1.371, and yours is {bound[0]}")
keys = QuantisedE2M1(keys.codes, np.float32([[1], [3]]), 1.0)  # ε = (0.0625 + 0.1875) / 2
bound = output_error_bound(np.array([[1.0] + [0.0] * 15]), keys, values)
expect_values(bool(bound[0] <= 1.5725), True, given=f"the same with s = 3 for key 2: 1.571, and yours is {bound[0]}")

# %% check="output_error_bound-unbounded"
"""Infinite if a value has no radius; where only keys have none, the weights still move by 1 at most."""
clipped = QuantisedE2M1(np.uint8([[7] + [1] * 15, [1] * 16]), np.float32([[448], [1]]), 1.0)
plain = QuantisedE2M1(np.ones((2, 16), np.uint8), np.ones((2, 1), np.float32), 1.0)
expect_values(output_error_bound(np.ones((1, 16)), plain, clipped), np.array([np.inf]), given="a clipped value")
bound = output_error_bound(np.ones((1, 16)), clipped, plain)
expect_values(bool(np.isfinite(bound[0])), True, given=f"a clipped key, and a bound of {bound[0]}")

# %% [markdown]
# ### predict_output_error (7 points)
#
# The bound always holds, and the error is rarely near it.
# What is *likely*?
# Take the error of each element as random, of mean zero, independent of the others, with the variance $s^2$ times the mean square of its code, which `formats.E2M1_MEAN_SQUARE_ERRORS` has for codes 0 to 7 (for groups of Gaussian values; your `cell_mean_square` came close).
# Then variances add up, and weights count squared:
#
# $$\mathbb E \lVert \hat o - o \rVert^2 \approx \sum_i \hat p_i^2 \Bigl( \sigma_i^2 \, \lVert \hat v_i - \hat o \rVert^2 + \sum_c \operatorname{Var} \Delta v_{ic} \Bigr), \qquad \sigma_i^2 = \frac1D \sum_c q_c^2 \operatorname{Var} \Delta k_{ic}.$$
#
# The first term is the keys': logit $i$ moves with variance $\sigma_i^2$, and more weight on token $i$ pulls the output from $\hat o$ towards $\hat v_i$.
# The second is the values'.
# Return the **square root**, one number for each query.
#
# By hand, the cache of the last example: $\sigma_i^2 = 0.0208/16$ for both; $\hat o$ is 1.751 in channel 0, so the distances squared are $1.751^2$ and $2.249^2$; the values' variances add up to $16 \cdot 0.0208$ and $0.2093 + 15 \cdot 0.0208$.
# Together $0.562^2 \cdot (0.0040 + 0.3328) + 0.438^2 \cdot (0.0066 + 0.5213) = 0.2077$, and its root is 0.456.

# %% answer="predict_output_error"
from fp4kv import predict_output_error


# %%
def three_errors(q, keys, values):
    """Return the error that is guaranteed, the one expected and the one measured, each as root mean square."""
    packed_keys, packed_values = quantise_e2m1(keys), quantise_e2m1(values)
    after = attend(q, dequantise(packed_keys), dequantise(packed_values))
    measured = np.linalg.norm(after - attend(q, keys, values), axis=1)
    guaranteed = output_error_bound(q, packed_keys, packed_values)
    expected = predict_output_error(q, packed_keys, packed_values)
    return [math.sqrt(np.mean(x**2)) for x in (guaranteed, expected, measured)]


rng = np.random.default_rng(5)
gaussian = [np.float32(rng.normal(size=(n, 64))) for n in (64, 512, 512)]
real = {layer: [x[0] for x in real_cache(layer)[:3]] for layer in LAYERS}  # head 0
sizes = 2.0 ** np.arange(-6, 3)
styles = {"guaranteed": ("-", "muted"), "expected": ("s--", "e2m1"), "measured": (".", "exact")}
figure, panels = plt.subplots(1, 2, figsize=(10, 4), sharey=True)
for panel, name, (q, keys, values) in zip(panels, ("Gaussian", "real"), (gaussian, real[10]), strict=True):
    rows = [three_errors(size * q, keys, values) for size in sizes]
    for (label, (style, colour)), errors in zip(styles.items(), np.transpose(rows), strict=True):
        panel.plot(sizes, errors, style, color=COLOURS[colour], label=label)
    panel.set_xscale("log", base=2)
    panel.set(yscale="log", xlabel=f"size of q, {name} keys and values")
panels[0].set_ylabel("error of the output")
panels[0].legend()
plt.show()

# %% [markdown]
# Each point is the root mean square over 64 queries; on the right, head 0 of layer 10.
# On Gaussian data estimate and measurement are one line, up to logit errors of about 1.
# The guarantee is far above both, and where it is flat $\tanh(\varepsilon/2)$ is 1: it tells no more than how far apart the values are.
#
# Where does the estimate break?
# Each line below, after the first, violates something that it takes for granted.

# %%
q, keys, values = gaussian
loud = keys * np.where(np.arange(64) == 5, np.float32(30), np.float32(1))
odd_ones = {
    "Gaussian": gaussian,
    "one key channel × 30": (q / 8, loud, values),
    "values with a common part": (q, keys, values + np.float32(8 * rng.normal(size=64))),
    "values that are whole numbers": (q / 4, keys, np.float32(rng.integers(-3, 4, (512, 64)))),
    **{f"real, layer {layer}": real[layer] for layer in LAYERS},
}
print(f"{'':30}{'guaranteed':>11}{'expected':>10}{'measured':>10}{'guar. / meas.':>15}{'exp. / meas.':>14}")
for name, cache in odd_ones.items():
    guaranteed, expected, measured = three_errors(*cache)
    ratios = f"{guaranteed / measured:15.0f}{expected / measured:14.2f}"
    print(f"{name:30}{guaranteed:11.3f}{expected:10.4f}{measured:10.4f}{ratios}")

# %% check="predict_output_error-values"
"""Where q is 0, what remains are the values' own errors, which average out over tokens."""
keys = QuantisedE2M1(np.ones((4, 16), np.uint8), np.ones((4, 1), np.float32), 1.0)
values = QuantisedE2M1(np.ones((4, 16), np.uint8), np.full((4, 1), 2, np.float32), 1.0)
expected = 2 * math.sqrt(16 * 0.0208 / 4)
expect_close(predict_output_error(np.zeros((1, 16)), keys, values), [expected], 0.005, given="4 tokens, codes 1, s = 2")

# %% check="predict_output_error-codes"
"""Each code, negative ones too, counts with its own mean square error."""
keys = QuantisedE2M1(np.ones((1, 16), np.uint8), np.ones((1, 1), np.float32), 1.0)
for code, mean_square in ((2, 0.0208), (4, 0.0593), (14, 0.2093)):
    values = QuantisedE2M1(np.full((1, 16), code, np.uint8), np.ones((1, 1), np.float32), 1.0)
    expected = 4 * math.sqrt(mean_square)
    expect_close(predict_output_error(np.zeros((1, 16)), keys, values), [expected], 0.005 * expected, given=code)

# %% check="predict_output_error-keys"
"""Where the query is large, what remains is the keys' error, by each value's distance from the output."""
keys = QuantisedE2M1(np.ones((2, 16), np.uint8), np.ones((2, 1), np.float32), 1.0)
values = QuantisedE2M1(np.uint8([[2] * 16, [3] * 16]), np.float32([[1], [2]]), 1.0)  # 1 and 3, so that the output is 2
q = np.zeros((1, 16))
q[0, 0] = 1e6
expected = math.sqrt(2 * 0.5**2 * (1e12 * 0.0208 / 16) * 16)
expect_close(predict_output_error(q, keys, values), [expected], 0.005 * expected, given="equal keys, values 1 and 3")

# %% check="predict_output_error-weights"
"""Each token counts with its weight under the decoded keys."""
keys = QuantisedE2M1(np.uint8([[2] + [0] * 15, [0] * 16]), np.ones((2, 1), np.float32), 1.0)
values = QuantisedE2M1(np.uint8([[0] * 16, [6] + [0] * 15]), np.ones((2, 1), np.float32), 1.0)
predicted = predict_output_error(np.array([[1.0] + [0.0] * 15]), keys, values)
expect_close(predicted, [0.456], 0.002, given="the example by hand")

# %% check="predict_output_error-rms"
"""Over 200 caches of Gaussian keys and values, estimates and errors have one root mean square, within 15 %."""
rng, squares = np.random.default_rng(7), np.zeros(2)
for _ in range(20):
    q, keys, values = (np.float32(rng.normal(size=(n, 32))) for n in (2, 512, 512))
    packed_keys, packed_values = quantise_e2m1(keys), quantise_e2m1(values)
    after = attend(q, dequantise(packed_keys), dequantise(packed_values))
    squares[0] += np.sum(np.square(predict_output_error(q, packed_keys, packed_values)))
    squares[1] += np.sum(np.square(after - attend(q, keys, values)))
ratio = math.sqrt(squares[0] / squares[1])
expect_close(ratio, 1.0, 0.15, given="20 caches: expected over measured")

# %% [markdown]
# ## Benchmark (8 points)
#
# What does a bit buy, in the output?
#
# ### attention_error_sweep (5 points)
#
# `labkit.schemes.SCHEMES` are nine ways to store a cache, FP16 first; `scheme.round_trip(x)` returns what comes back, `scheme.bits_per_element` what it costs.
# For each scheme, and for each `Placement` (keys only, values only, both, in the order of the enumeration), compute the output $\hat o$ from a cache in which that part is replaced by what comes back, and the exact output $o$ from the cache as it was given.
# Return one `SweepRow(scheme.name, placement, scheme.bits_per_element, error)` for each, schemes in their order and placements within.
# The error is *one* ratio over all heads, queries and channels,
#
# $$\sqrt{\sum (\hat o - o)^2 \Big/ \sum o^2}.$$
#
# By hand: outputs 3 and 4 that become 3 and 4.5 have the error $0.5 / 5 = 0.1$.
#
# It builds on `attention_weights` or `attend`.

# %% answer="attention_error_sweep"
from fp4kv import attention_error_sweep

# %% check="attention_error_sweep-rows"
"""One row for each scheme and, within it, each placement, in their order, with name and bits."""
x = np.float32(np.random.default_rng(8).normal(size=(3, 4, 32)))
x[0, 0] *= 4
rows = attention_error_sweep(x[0], x[1], x[2])
expect_values(len(rows), 3 * len(SCHEMES), given="nine schemes, three placements")
first = [row.scheme == "FP16" and row.placement is placement for row, placement in zip(rows, Placement, strict=False)]
expect_values(first, np.array([True, True, True]), given="FP16: keys only, values only, keys and values")
expect_values([row.bits_per_element for row in rows[21:24]], np.array([4.5] * 3), given="E2M1, E4M3 per 16")

# %% check="attention_error_sweep-error"
"""The error of both placements together is √(Σ(ô - o)² / Σo²) over all outputs."""
decoded = [SCHEMES[-1].round_trip(part) for part in x[1:]]
exact, after = attend(x[0], x[1], x[2]), attend(x[0], *decoded)
expected = math.sqrt(np.sum((after - exact) ** 2) / np.sum(exact**2))
expect_close(rows[-1].error, expected, 1e-3 * expected, given=f"{SCHEMES[-1].name}, keys and values")

# %% check="attention_error_sweep-placements"
"""Keys only leaves the values as they were, values only the keys."""
sixes = np.where(x[2] > 0, np.float32(6), np.float32(-6))  # which every scheme gives back as they are
errors = [row.error for row in attention_error_sweep(x[0], x[1], sixes) if row.placement is Placement.VALUES]
expect_close(errors, np.zeros(len(SCHEMES)), 1e-6, given="values that are exact, values only")
errors = [row.error for row in attention_error_sweep(x[0], sixes, x[2]) if row.placement is Placement.KEYS]
expect_close(errors, np.zeros(len(SCHEMES)), 1e-6, given="keys that are exact, keys only")

# %% check="attention_error_sweep-visible"
"""Tokens that no query sees change no error."""
is_visible = np.tile([True, True, True, False], (4, 1))
errors = [row.error for row in attention_error_sweep(x[0], x[1], x[2], is_visible)]
short = [row.error for row in attention_error_sweep(x[0], x[1, :3], x[2, :3])]
expect_close(errors, short, 1e-3 * np.array(short), given="3 of 4 tokens visible")

# %%
rng = np.random.default_rng(9)
caches = {"Gaussian": [np.float32(rng.normal(size=(2, n, 64))) for n in (64, 512, 512)]}
caches |= {f"real, layer {layer}": real_cache(layer) for layer in (0, 10)}
figure, panels = plt.subplots(1, 3, sharey=True, figsize=(10.5, 4))
for panel, (name, cache) in zip(panels, caches.items(), strict=True):
    rows = attention_error_sweep(*cache)[3:]  # without FP16
    for placement, marker, dash in zip(Placement, "os^", ("-", "--", ":"), strict=True):
        chosen = sorted((row.bits_per_element, row.error) for row in rows if row.placement is placement)
        panel.plot(*zip(*chosen, strict=True), marker + dash, color=COLOURS["ink"], label=placement.value)
    panel.set_yscale("log", base=2)
    panel.set_xlabel(f"{name}: stored (bits per element)")
panels[0].set_ylabel("relative error of the output")
panels[0].legend()
plt.show()

# %% [markdown]
# From left to right on each line: INT2 at 3 bits with its scales, INT3, MXFP4, E2M1, INT4, INT6, FP8, INT8.
# FP16 is left out: the real tensors are stored so, and its error on them is 0.
#
# Compare the two lines "keys only" and "values only", in each panel, at the same bits, and then at the same error.

# %%
table = {(row.scheme, row.placement): row.error for row in attention_error_sweep(*real_cache(10))}
print(f"{'real, layer 10':20}{'bits':>6}{'keys only':>12}{'values only':>13}{'both':>8}")
for scheme in SCHEMES:
    errors = [table[scheme.name, placement] for placement in Placement]
    print(f"{scheme.name:20}{scheme.bits_per_element:6.2f}{errors[0]:12.4f}{errors[1]:13.4f}{errors[2]:8.4f}")

# %% [markdown]
# ### span_rank (3 points)
#
# A relative error does not say whether a query still finds what it looks for.
# Cut the context into spans of `span_tokens` tokens, span 0 first, and rank them by **mass**, the weight that their tokens hold together.
# Return the rank of span `right` for each query: 1 if no span has more mass, 2 if one has, and so on.
# Spans that do not divide the context, or a span that does not exist, are refused with a `ValueError`.
#
# By hand, spans of two: weights 0.1, 0.2, 0.4, 0, 0.2, 0.1 have the masses 0.3, 0.4 and 0.3.
# Span 0 has rank 2, and so has span 2: neither has *more* than the other.

# %% answer="span_rank"
from fp4kv import span_rank

# %% check="span_rank-mass"
"""Spans stand in the order of the weight that they hold together."""
weights = np.array([[0.3, 0.05, 0.0, 0.25, 0.2, 0.2]])
ranks = [int(span_rank(weights, 2, right)[0]) for right in range(3)]
expect_values(np.argsort(ranks), np.array([2, 0, 1]), given="masses 0.35, 0.25 and 0.4", any_width=True)

# %% check="span_rank-first"
"""The heaviest span has rank 1, and spans of equal mass share the better rank."""
weights = np.array([[0.25, 0.25, 0.25, 0.0, 0.125, 0.125]])
ranks = [int(span_rank(weights, 2, right)[0]) for right in range(3)]
expect_values(ranks, np.array([1, 2, 2]), given="masses 0.5, 0.25 and 0.25", any_width=True)

# %% check="span_rank-refuses"
"""A span that does not divide the context, or does not exist, is refused with a ValueError."""
expect_raises(ValueError, lambda: span_rank(weights, 4, 0), given="6 tokens, spans of 4")
expect_raises(ValueError, lambda: span_rank(weights, 2, 3), given="6 tokens, spans of 2, right = 3")
expect_raises(ValueError, lambda: span_rank(weights, 2, -1), given="6 tokens, spans of 2, right = -1")

# %% [markdown]
# First a search: for each of 64 questions there are 512 Gaussian keys, one of which, in span 5, leans towards the question.
# How often does its span come first, when keys are stored exactly and when they are not?

# %%
rng = np.random.default_rng(11)
questions, distractors = np.float32(2 * rng.normal(size=(64, 64))), np.float32(rng.normal(size=(512, 64)))
leads = np.linspace(0, 0.5, 11)
by_name = {scheme.name: scheme for scheme in SCHEMES}
for name, line in (("FP16", "o-"), ("E2M1, E4M3 per 16", "s--"), ("MXFP4", "^-."), ("INT2", "D:")):
    shares = []
    for lead in leads:
        ranks = []
        for question in questions:
            keys = distractors.copy()
            keys[5 * 16 + 3] += np.float32(lead) * question
            weights = attention_weights(question[None], by_name[name].round_trip(keys))
            ranks.append(span_rank(weights, span_tokens=16, right=5)[0])
        shares.append(np.mean(np.array(ranks) == 1))
    plt.plot(leads, shares, line, color=COLOURS[by_name[name].colour], label=name, markersize=4)
plt.xlabel("how far the right key leans towards its question")
plt.ylabel("share of questions with rank 1")
plt.legend()
plt.show()

# %% [markdown]
# Then the real heads of layer 10: for how many queries is the heaviest span still the same?

# %%
q, keys, _, is_visible = real_cache(10)
before = np.concatenate(attention_weights(q, keys, is_visible))
for scheme in SCHEMES[1:]:
    after = np.concatenate(attention_weights(q, scheme.round_trip(keys), is_visible))
    was_first = np.stack([span_rank(before, 16, span) == 1 for span in range(32)])
    is_first = np.stack([span_rank(after, 16, span) == 1 for span in range(32)])
    print(f"{scheme.name:18} {(was_first & is_first).sum() / was_first.sum():.0%} of {was_first.sum()} queries")

# %% [markdown]
# ## Debug (5 points)
#
# `labkit.suspects.lab03` has three faulty attentions over an E2M1 cache, each with one mistake of a kind that has shipped.
# Softmax in them is your own `attention_weights`.
#
# | suspect | its mistake |
# |---|---|
# | `double_rounding` | keys and values pass through bfloat16 before they are quantised, so they are rounded twice |
# | `narrow_sum` | $q \cdot k$ is added up with the range of FP16: a sum beyond 65,504 becomes infinite |
# | `low_mask` | the logit of a hidden token is set to −10,000, not to $-\infty$ |
#
# ### convict (5 points)
#
# For each suspect find an exhibit that convicts it: an input `suspects.Exhibit(q, keys, values, is_visible)`, all with two axes, widths a multiple of 16, for which its output differs from that of the honest attention.
# The best exhibit convicts its suspect and neither of the other two, and has as few elements other than zero, in `q`, `keys` and `values` together, as that allows.
# There is a point for each suspect, one for convicting no other, and one for the fewest elements.
#
# By hand: zeros convict nobody: no sum is large, and 0 is 0 in every format.
# For `low_mask` a *visible* logit must be about as low as −10,000.
# That logit is $q \cdot k / \sqrt D$; see that $q \cdot k$ stays in the range of FP16, or you convict `narrow_sum` too.


# %% answer="convict"
def convict() -> dict[str, suspects.Exhibit]:
    """Return, for each name of a suspect, the smallest exhibit that convicts it and no other.

    Smallest: with the fewest elements other than zero in q, keys and values together.
    """
    above_a_tie = 2.0**-9 * 0.25 * (1 + 2.0**-12)  # code 1 under the smallest scale; bfloat16 makes it the tie, code 0
    sees_it, sees_the_first = np.array([[True]]), np.array([[True, False]])

    return {
        "double_rounding": suspects.Exhibit(_rows(0), _rows(0), _rows(above_a_tie), sees_it),
        "narrow_sum": suspects.Exhibit(_rows(60_000), _rows(6), _rows(0), sees_it),
        "low_mask": suspects.Exhibit(_rows(-7_000), _rows(6, 0), _rows(6, 0), sees_the_first),
    }


def _rows(*first: float) -> np.ndarray:
    """Return rows of 16 that begin with the given elements and go on with zeros."""
    rows = np.zeros((len(first), 16), np.float32)
    rows[:, 0] = first
    return rows


# %%
for suspect, exhibit in convict().items():
    names = ", ".join(suspects.convicted(exhibit, attention_weights)) or "nobody"
    size = sum(np.count_nonzero(part) for part in exhibit[:3])
    print(f"for {suspect:15} {size} elements other than zero; they convict {names}")

# %% check="convict-double_rounding"
"""The exhibit for `double_rounding` makes it answer otherwise than the honest attention."""
found = suspects.convicted(convict()["double_rounding"], attention_weights)
expect_values("double_rounding" in found, True, given=f"an exhibit that convicts {found}")

# %% check="convict-narrow_sum"
"""The exhibit for `narrow_sum` makes it answer otherwise than the honest attention."""
found = suspects.convicted(convict()["narrow_sum"], attention_weights)
expect_values("narrow_sum" in found, True, given=f"an exhibit that convicts {found}")

# %% check="convict-low_mask"
"""The exhibit for `low_mask` makes it answer otherwise than the honest attention."""
found = suspects.convicted(convict()["low_mask"], attention_weights)
expect_values("low_mask" in found, True, given=f"an exhibit that convicts {found}")

# %% check="convict-alone"
"""Each exhibit convicts its own suspect and neither of the other two."""
for suspect, exhibit in convict().items():
    others = [name for name in suspects.convicted(exhibit, attention_weights) if name != suspect]
    expect_values(len(others), 0, given={suspect: "convicted too: " + ", ".join(others)})

# %% check="convict-fewest"
"""Each exhibit has as few elements other than zero as convicting one suspect alone allows."""
exhibit = convict()["double_rounding"]
expect_values(sum(np.count_nonzero(part) for part in exhibit[:3]), 1, given="the exhibit for double_rounding")

# %% [markdown] task="explain-keys_and_values"
# ## Explain (6 points)
#
# A colleague writes: *"On layer 10 your guarantee is 12 where the output moves by 0.3 and is 1 long. A bound that is forty times too high tells me nothing; give me the estimate, it is within a fifth. And E2M1 leaves keys and values the same 21 dB, so I will store both at the same bits."*
#
# Answer in about ten sentences, with numbers from your tables and figures:
#
# 1. Why do keys need more bits than values on layer 10, and what does the sweep say that they need? Name a cache for which it is not so, and why.
# 2. Your guarantee lies 30 to 560 times above the measured error. What is it good for that an estimate is not? Name a cache for which it is nearly attained.
# 3. Your colleague chooses the format for a service by the estimate alone. Which lines of the table speak against that, in which direction is the estimate wrong in each, and what would you do instead?
#
# ### BEGIN MARK SCHEME
# **1 (2 points).** A key's error goes into a logit, multiplied by the query, and from there into the exponent: every weight changes by a factor; a value's error is averaged with the weights, so independent errors shrink with the number of tokens that share the weight (1 point).
# Numbers: on layer 10 keys cost about three times what values do at the same bits (INT4 0.34 against 0.11, INT8 0.018 against 0.006, E2M1 0.20 against 0.08), so about 1.6 bits more for the same error, or INT6 keys beside INT4 values (0.08 and 0.11); and a counterexample with its reason: on Gaussian data with queries of ordinary size, or on layer 0, the two are alike, because ‖q‖‖k‖/D, by which the query multiplies a key's error, is about 1 there (1 point).
#
# **2 (2 points).** It holds for every cache that packs to these bytes, whatever its distribution, and needs only the packed cache: an error above it is a bug, not bad luck; a needle whose margin satisfies the lemma is found for certain; it can be computed for each query at run time (1 point for one such use).
# It is nearly attained by two tokens whose logits change places by ±ε (the two-point weight) and whose values are far apart, or by q = 0 with all value errors to one side: worst cases exist, so hardly a smaller number can be promised (1 point).
# Also accepted: where tanh(ε/2) is nearly 1, as on real layers 5 to 29, it tells only how far apart the values are.
#
# **3 (2 points).** Too low: values with a common part (about 0.3 of the measured error, since errors of one channel agree between tokens and do not average out), real layer 0 (about 0.6). Too high: whole numbers (about 4, since many are exact), one loud key channel (about 1.4, since it is nearly always the largest of its group and errs by the rounding of the scale alone) (1 point for one of each direction, with a reason for one).
# Instead: measure the error, or better the task, on the service's own keys and values, layer by layer; use the estimate to sort candidates and the guarantee for what must not fail (1 point).
# ### END MARK SCHEME

# %% [markdown]
# ## Hand in
#
# Save the notebook, restart the kernel, run all cells, and let `labkit validate lab03_errors.ipynb` tell you which visible cases pass.
# What is still wrong says so in its check cell: the input, what was expected, what came.
# Then hand in `lab03_errors.ipynb`, under this name, in the way that your course uses.
# Chapter 3 of the book has the same bounds with their proofs and sources.
