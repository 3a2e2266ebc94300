# Planted answers of lab 2. A wrong one is a mistake that a person makes; a right one is written differently.

# %% wrong="encode_e2m1" name="half_away" loses="encode_e2m1-ties"
# Ties go away from zero: the next magnitude starts at the tie itself.
def encode_e2m1(x):
    bad = np.argwhere(~np.isfinite(x))
    if len(bad):
        raise ValueError(f"x: expected finite values, got {x[tuple(bad[0])]} at index {tuple(bad[0].tolist())}")
    magnitude = np.searchsorted(formats.E2M1_TIES, np.abs(x), side="right")
    return (magnitude + 8 * np.signbit(x)).astype(np.uint8)
