# ---
# lab:
#   title: Four bits, three scales
#   packages: [numpy, matplotlib, jaxtyping, labkit]
#   minutes: 90
#   solved_seconds: 60
#   limits: {memory_bytes: 2147483648}
#   points: {explain-low_bits: 6}
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Four bits, three scales
#
# A cache element that took sixteen bits will take four.

# %%
import matplotlib.pyplot as plt
import numpy as np
from labkit import formats
from labkit.expect import expect_codes, expect_raises
from labkit.plotting import use_course_style

use_course_style()

# %% [markdown]
# ## tie_codes (2 points)
#
# E2M1 has eight magnitudes, so seven places lie halfway between two of them.
# A tie goes to the code that ends in 0: round half to even.
# Return the codes of the seven ties in ascending order.
#
# By hand: 0.25 lies between code 0 (0) and code 1 (0.5), and 0 is the even one.

# %% answer="tie_codes"
def tie_codes() -> list[int]:
    """Return the codes to which 0.25, 0.75, 1.25, 1.75, 2.5, 3.5 and 5 are rounded."""
    return [0, 2, 2, 4, 4, 6, 6]


# %% check="tie_codes-even"
"""Each of the seven ties goes to the even one of its two neighbours."""
expect_codes(np.uint8(tie_codes()[:1]), np.uint8([0]), given=np.float32([0.25]))

# %% [markdown]
# ## encode_e2m1 (3 points)
#
# Return the code nearest to each value.

# %% answer="encode_e2m1"
from fp4kv import encode_e2m1

# %%
x = np.linspace(-7, 7, 1401, dtype=np.float32)
plt.plot(x, encode_e2m1(x), ".")
plt.show()

# %% check="encode_e2m1-ties"
"""A value halfway between two codes goes to the even one."""
expect_codes(encode_e2m1(np.float32([0.75, 2.5])), np.uint8([2, 4]), given=np.float32([0.75, 2.5]))

# %% check="encode_e2m1-refuses"
"""NaN and infinity are refused with a ValueError that names the index."""
expect_raises(ValueError, encode_e2m1, np.float32([1, np.nan]), naming="1")

# %% [markdown] task="explain-low_bits"
# ## Explain: the low end of the line (6 points)
#
# Each bit fewer should cost 6.02 dB.
# Why does it cost more below four bits?
#
# ### BEGIN MARK SCHEME
# - 6: ...
# ### END MARK SCHEME

# %% [markdown]
# *Your answer goes here.*
