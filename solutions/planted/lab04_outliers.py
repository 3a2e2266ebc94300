# Planted answers of lab 4, one cell each: the text that replaces the answer cell of the task that it names.
# A wrong one is a mistake that a person makes, said in its first line; `loses` lists the checks that it loses while
# all other tasks are solved. A right one is written differently from the reference and loses none.

# %% wrong="flush_limit" name="half_a_scale" loses="flush_limit-scale flush_limit-range"
# Takes the smallest magnitude itself, half a scale, for the end.
def flush_limit(amax):
    return float(round_to_e4m3(np.float64(max(amax / 6, 2.0**-9)))) / 2


# %% wrong="flush_limit" name="whole_scale" loses="flush_limit-scale flush_limit-range"
# Forgets that E2M1 has 0.5: everything below half of 1 is lost, and then half again.
def flush_limit(amax):
    return float(round_to_e4m3(np.float64(max(amax / 6, 2.0**-9))))


# %% wrong="flush_limit" name="scale_not_rounded" loses="flush_limit-scale flush_limit-range"
# Takes the scale before it is rounded to E4M3.
def flush_limit(amax):
    return min(max(amax / 6, 2.0**-9), 448.0) / 4


# %% wrong="flush_limit" name="worst_case" loses="flush_limit-scale flush_limit-range"
# Gives the upper end of what the limit can be, not the limit.
def flush_limit(amax):
    return min(max(amax / 6 * 17 / 16, 2.0**-9), 448.0) / 4


# %% wrong="flush_limit" name="no_floor" loses="flush_limit-range"
# Forgets that no scale is below 2^-9.
def flush_limit(amax):
    return float(round_to_e4m3(np.float64(amax / 6))) / 4


# %% wrong="flush_limit" name="no_ceiling" loses="flush_limit-range"
# Lets the scale grow past 448.
def flush_limit(amax):
    quotient = max(amax / 6, 2.0**-9)
    step = max(2.0 ** (math.floor(math.log2(quotient)) - 3), 2.0**-9)
    return round(quotient / step) * step / 4


# %% wrong="flush_limit" name="shrinking_steps" loses="flush_limit-range"
# The steps between scales go on shrinking below 2^-6.
def flush_limit(amax):
    quotient = min(max(amax / 6, 2.0**-9), 448.0)
    step = 2.0 ** (math.floor(math.log2(quotient)) - 3)
    return round(quotient / step) * step / 4


# %% wrong="flush_limit" name="scale_rounded_down" loses="flush_limit-scale flush_limit-range"
# Cuts the scale off where E4M3 rounds it to nearest.
def flush_limit(amax):
    quotient = min(max(amax / 6, 2.0**-9), 448.0)
    step = max(2.0 ** (math.floor(math.log2(quotient)) - 3), 2.0**-9)
    return math.floor(quotient / step) * step / 4


# %% wrong="flush_limit" name="scale_rounded_up" loses="flush_limit-scale flush_limit-range"
# Rounds the scale up, so that nothing is clipped.
def flush_limit(amax):
    quotient = min(max(amax / 6, 2.0**-9), 448.0)
    step = max(2.0 ** (math.floor(math.log2(quotient)) - 3), 2.0**-9)
    return math.ceil(quotient / step) * step / 4


# %% wrong="flush_limit" name="power_of_two" loses="flush_limit-scale flush_limit-range"
# Takes a power of two for the scale, as MXFP4 does.
def flush_limit(amax):
    return min(max(2.0 ** math.ceil(math.log2(amax / 6)), 2.0**-9), 448.0) / 4


# %% wrong="flush_limit" name="amax_to_one" loses="flush_limit-scale flush_limit-range"
# Forgets that the scale brings amax to 6, not to 1.
def flush_limit(amax):
    return float(round_to_e4m3(np.float64(max(amax, 2.0**-9)))) / 4


# %% right="flush_limit" name="steps"
# Rounds the quotient in steps of its power of two, with Python's own numbers.
def flush_limit(amax):
    quotient = min(max(amax / 6, 2.0**-9), 448.0)
    step = max(2.0 ** (math.floor(math.log2(quotient)) - 3), 2.0**-9)
    return round(quotient / step) * step / 4


# %% right="flush_limit" name="grid"
# Looks for the nearest scale in the list of all scales.
def flush_limit(amax):
    scales = [k * 2.0**-9 for k in range(1, 8)]
    scales += [(8 + m) / 8 * 2.0**e for e in range(-6, 9) for m in range(8)][:-1]
    return min(scales, key=lambda s: abs(s - amax / 6)) / 4


# %% right="flush_limit" name="quantiser"
# Asks the quantiser for the scale, and answers in float32.
def flush_limit(amax):
    group = np.zeros(16, np.float32)
    group[0] = amax
    return quantise_e2m1(group).scales[0] / np.float32(4)


# %% wrong="split_bits" name="no_scale" loses="split_bits-tokens"
# Forgets the scale of each token.
def split_bits(n_tokens, width, n_outliers, bits):
    return (16 * n_outliers + bits * (width - n_outliers)) / width + 1 / n_tokens


# %% wrong="split_bits" name="sixteen_more" loses="split_bits-tokens"
# Counts a code for the outliers too, and 16 bits more.
def split_bits(n_tokens, width, n_outliers, bits):
    return (16 * n_outliers + bits * width + 32) / width + 1 / n_tokens


# %% wrong="split_bits" name="no_mask" loses="split_bits-mask"
# Forgets that somebody must know which channels are the outliers.
def split_bits(n_tokens, width, n_outliers, bits):
    return (16 * n_outliers + bits * (width - n_outliers) + 32) / width


# %% wrong="split_bits" name="mask_for_every_token" loses="split_bits-tokens split_bits-mask"
# Stores the mask of the channels with every token.
def split_bits(n_tokens, width, n_outliers, bits):
    return (16 * n_outliers + bits * (width - n_outliers) + 32 + width) / width


# %% wrong="split_bits" name="a_bit_per_outlier" loses="split_bits-mask"
# Stores one bit for each outlier, which does not say where it is.
def split_bits(n_tokens, width, n_outliers, bits):
    return (16 * n_outliers + bits * (width - n_outliers) + 32) / width + n_outliers / (n_tokens * width)


# %% wrong="split_bits" name="indices" loses="split_bits-mask"
# Stores the number of each outlier channel in 16 bits: a cost too, but not the one that was asked for.
def split_bits(n_tokens, width, n_outliers, bits):
    return (16 * n_outliers + bits * (width - n_outliers) + 32) / width + 16 * n_outliers / (n_tokens * width)


# %% wrong="split_bits" name="one_scale" loses="split_bits-tokens split_bits-mask"
# Counts one scale for the whole tensor.
def split_bits(n_tokens, width, n_outliers, bits):
    return (16 * n_outliers + bits * (width - n_outliers)) / width + (32 + width) / (n_tokens * width)


# %% wrong="split_bits" name="scale_for_every_element" loses="split_bits-tokens"
# Counts the scale for every element.
def split_bits(n_tokens, width, n_outliers, bits):
    return (16 * n_outliers + (bits + 32) * (width - n_outliers)) / width + 1 / n_tokens


# %% wrong="split_bits" name="float32_outliers" loses="split_bits-tokens"
# Counts 32 bits for an outlier.
def split_bits(n_tokens, width, n_outliers, bits):
    return (32 * n_outliers + bits * (width - n_outliers) + 32) / width + 1 / n_tokens


# %% wrong="split_bits" name="half_precision_scale" loses="split_bits-tokens"
# Counts 16 bits for a scale; it is a float32.
def split_bits(n_tokens, width, n_outliers, bits):
    return (16 * n_outliers + bits * (width - n_outliers) + 16) / width + 1 / n_tokens


# %% wrong="split_bits" name="ordinary_elements" loses="split_bits-tokens split_bits-mask"
# Divides by the ordinary elements alone.
def split_bits(n_tokens, width, n_outliers, bits):
    return (16 * n_outliers + bits * (width - n_outliers) + 32 + width / n_tokens) / (width - n_outliers)


# %% wrong="split_bits" name="whole_tensor" loses="split_bits-tokens split_bits-mask"
# Returns the bits of the tensor, not of an element.
def split_bits(n_tokens, width, n_outliers, bits):
    return (16 * n_outliers + bits * (width - n_outliers) + 32) * n_tokens + width


# %% right="split_bits" name="whole_tensor_divided"
# All bits of the tensor, over its elements.
def split_bits(n_tokens, width, n_outliers, bits):
    outliers = 16 * n_outliers * n_tokens
    ordinary = bits * (width - n_outliers) * n_tokens
    scales = 32 * n_tokens if n_outliers < width else 0
    return (outliers + ordinary + scales + width) / (n_tokens * width)


# %% right="split_bits" name="shares"
# The share of each part, added up.
def split_bits(n_tokens, width, n_outliers, bits):
    share = n_outliers / width
    scale = 32 / width if n_outliers < width else 0.0
    return share * 16 + (1 - share) * bits + scale + 1 / n_tokens


# %% right="split_bits" name="fractions"
# Exact, with fractions.
def split_bits(n_tokens, width, n_outliers, bits):
    from fractions import Fraction

    token = 16 * n_outliers + (bits * (width - n_outliers) + 32 if n_outliers < width else 0)
    return float(Fraction(token, width) + Fraction(1, n_tokens))


# %% wrong="rotated_size" name="divided_by_the_width" loses="rotated_size-outlier"
# Divides by D, not by its root.
def rotated_size(outlier, ordinary, width):
    return (outlier + (width - 1) * ordinary) / width, (outlier - ordinary) / width


# %% wrong="rotated_size" name="not_divided" loses="rotated_size-outlier"
# Forgets that the rotation keeps lengths.
def rotated_size(outlier, ordinary, width):
    return outlier + (width - 1) * ordinary, outlier - ordinary


# %% wrong="rotated_size" name="neighbours_cancel" loses="rotated_size-neighbours"
# Lets the neighbours cancel everywhere, in the first element too.
def rotated_size(outlier, ordinary, width):
    return outlier / math.sqrt(width), outlier / math.sqrt(width)


# %% wrong="rotated_size" name="neighbours_cancel_out" loses="rotated_size-neighbours"
# Takes all neighbours for cancelled in the others, though an odd number of them cannot cancel.
def rotated_size(outlier, ordinary, width):
    return (outlier + (width - 1) * ordinary) / math.sqrt(width), outlier / math.sqrt(width)


# %% wrong="rotated_size" name="neighbours_add_up" loses="rotated_size-neighbours"
# Adds the neighbours up in every element.
def rotated_size(outlier, ordinary, width):
    size = (outlier + (width - 1) * ordinary) / math.sqrt(width)
    return size, size


# %% wrong="rotated_size" name="one_neighbour_too_many" loses="rotated_size-neighbours"
# Counts D neighbours; the outlier is one of the D.
def rotated_size(outlier, ordinary, width):
    return (outlier + width * ordinary) / math.sqrt(width), (outlier - ordinary) / math.sqrt(width)


# %% wrong="rotated_size" name="outlier_stays" loses="rotated_size-outlier rotated_size-neighbours"
# Leaves the outlier where it is.
def rotated_size(outlier, ordinary, width):
    return outlier, ordinary


# %% wrong="rotated_size" name="sign_of_the_neighbour" loses="rotated_size-neighbours"
# Adds the neighbour that is left over; with +1 for the outlier, the others sum to -1 of them.
def rotated_size(outlier, ordinary, width):
    return (outlier + (width - 1) * ordinary) / math.sqrt(width), (outlier + ordinary) / math.sqrt(width)


# %% wrong="rotated_size" name="others_first" loses="rotated_size-neighbours"
# Returns the two the other way round.
def rotated_size(outlier, ordinary, width):
    return (outlier - ordinary) / math.sqrt(width), (outlier + (width - 1) * ordinary) / math.sqrt(width)


# %% right="rotated_size" name="matrix"
# Rotates the vector and looks at two of its elements.
def rotated_size(outlier, ordinary, width):
    vector = np.full(width, float(ordinary))
    vector[0] = outlier
    signs = [[-1.0 if bin(c & i).count("1") % 2 else 1.0 for i in range(width)] for c in range(width)]
    rotated = np.array(signs) @ vector / np.sqrt(width)
    return np.abs(rotated[:2])


# %% right="rotated_size" name="excess"
# The ordinary part of the outlier goes to the first element, its excess to all.
def rotated_size(outlier, ordinary, width):
    excess = (outlier - ordinary) / width**0.5
    return [excess + ordinary * width**0.5, excess]


# %% right="rotated_size" name="float32"
# In float32.
def rotated_size(outlier, ordinary, width):
    root = np.sqrt(np.float32(width))
    outlier, ordinary = np.float32(outlier), np.float32(ordinary)
    return np.array([(outlier + ordinary * np.float32(width - 1)) / root, (outlier - ordinary) / root])


# %% wrong="outlier_channels" name="mean" loses="outlier_channels-median outlier_channels-strict"
# Compares with the mean, which one loud channel lifts by itself.
def outlier_channels(x, threshold):
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad or x.size == 0:
        raise ValueError(f"x: expected finite values, got others at {bad[:1]} in shape {x.shape}")
    reach = np.abs(x).max(axis=0)
    return np.flatnonzero(reach > threshold * reach.mean())


# %% wrong="outlier_channels" name="absolute" loses="outlier_channels-median outlier_channels-relative"
# Takes the threshold for a magnitude, as the 6.0 of LLM.int8().
def outlier_channels(x, threshold):
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad or x.size == 0:
        raise ValueError(f"x: expected finite values, got others at {bad[:1]} in shape {x.shape}")
    return np.flatnonzero(np.abs(x).max(axis=0) > threshold)


# %% wrong="outlier_channels" name="not_strict" loses="outlier_channels-strict"
# Takes ≥ for >.
def outlier_channels(x, threshold):
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad or x.size == 0:
        raise ValueError(f"x: expected finite values, got others at {bad[:1]} in shape {x.shape}")
    reach = np.abs(x).max(axis=0)
    return np.flatnonzero(reach >= threshold * np.median(reach))


# %% wrong="outlier_channels" name="standard_deviation" loses="outlier_channels-reach outlier_channels-strict"
# Measures a channel by its standard deviation, not by its largest magnitude.
def outlier_channels(x, threshold):
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad or x.size == 0:
        raise ValueError(f"x: expected finite values, got others at {bad[:1]} in shape {x.shape}")
    spread = x.std(axis=0)
    return np.flatnonzero(spread > threshold * np.median(spread))


# %% wrong="outlier_channels" name="root_mean_square" loses="outlier_channels-reach outlier_channels-strict"
# Measures a channel by its root mean square.
def outlier_channels(x, threshold):
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad or x.size == 0:
        raise ValueError(f"x: expected finite values, got others at {bad[:1]} in shape {x.shape}")
    size = np.sqrt(np.mean(np.square(x, dtype=np.float64), axis=0))
    return np.flatnonzero(size > threshold * np.median(size))


# %% wrong="outlier_channels" name="standard_deviations_away" loses="outlier_channels-reach outlier_channels-median outlier_channels-relative outlier_channels-strict split_outliers-ordinary split_outliers-outliers split_outliers-saturates split_outliers-bits split_outliers-all_or_none"
# Counts standard deviations from the mean, as outliers of a sample are found.
def outlier_channels(x, threshold):
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad or x.size == 0:
        raise ValueError(f"x: expected finite values, got others at {bad[:1]} in shape {x.shape}")
    reach = np.abs(x).max(axis=0)
    return np.flatnonzero(reach > reach.mean() + threshold * reach.std())


# %% wrong="outlier_channels" name="tokens" loses="outlier_channels-reach outlier_channels-median outlier_channels-relative outlier_channels-strict split_outliers-ordinary split_outliers-outliers split_outliers-saturates split_outliers-bits split_outliers-all_or_none"
# Reduces along the channels, so that it names tokens.
def outlier_channels(x, threshold):
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad or x.size == 0:
        raise ValueError(f"x: expected finite values, got others at {bad[:1]} in shape {x.shape}")
    reach = np.abs(x).max(axis=1)
    return np.flatnonzero(reach > threshold * np.median(reach))


# %% wrong="outlier_channels" name="signed" loses="outlier_channels-reach"
# Forgets that a channel can be loud on the negative side.
def outlier_channels(x, threshold):
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad or x.size == 0:
        raise ValueError(f"x: expected finite values, got others at {bad[:1]} in shape {x.shape}")
    reach = x.max(axis=0)
    return np.flatnonzero(reach > threshold * np.median(reach))


# %% wrong="outlier_channels" name="range" loses="outlier_channels-reach outlier_channels-strict"
# Measures a channel from its smallest to its largest element: one with an offset looks quiet.
def outlier_channels(x, threshold):
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad or x.size == 0:
        raise ValueError(f"x: expected finite values, got others at {bad[:1]} in shape {x.shape}")
    reach = x.max(axis=0) - x.min(axis=0)
    return np.flatnonzero(reach > threshold * np.median(reach))


# %% wrong="outlier_channels" name="median_of_elements" loses="outlier_channels-relative outlier_channels-strict"
# Takes the median of all elements for that of the channels.
def outlier_channels(x, threshold):
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad or x.size == 0:
        raise ValueError(f"x: expected finite values, got others at {bad[:1]} in shape {x.shape}")
    size = np.abs(x)
    return np.flatnonzero(size.max(axis=0) > threshold * np.median(size))


# %% wrong="outlier_channels" name="mask" loses="outlier_channels-reach outlier_channels-median outlier_channels-relative outlier_channels-strict split_outliers-ordinary split_outliers-outliers split_outliers-saturates split_outliers-bits split_outliers-threshold split_outliers-all_or_none"
# Returns which channels are outliers as a mask.
def outlier_channels(x, threshold):
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad or x.size == 0:
        raise ValueError(f"x: expected finite values, got others at {bad[:1]} in shape {x.shape}")
    reach = np.abs(x).max(axis=0)
    return reach > threshold * np.median(reach)


# %% wrong="outlier_channels" name="where" loses="outlier_channels-reach outlier_channels-median outlier_channels-relative outlier_channels-strict split_outliers-ordinary split_outliers-outliers split_outliers-saturates split_outliers-bits split_outliers-threshold split_outliers-all_or_none choose_scheme-best choose_scheme-error choose_scheme-budget choose_scheme-refuses"
# Returns what np.where returns: a tuple around the array.
def outlier_channels(x, threshold):
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad or x.size == 0:
        raise ValueError(f"x: expected finite values, got others at {bad[:1]} in shape {x.shape}")
    reach = np.abs(x).max(axis=0)
    return np.where(reach > threshold * np.median(reach))


# %% wrong="outlier_channels" name="loudest_first" loses="outlier_channels-reach"
# Puts the loudest channel first.
def outlier_channels(x, threshold):
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad or x.size == 0:
        raise ValueError(f"x: expected finite values, got others at {bad[:1]} in shape {x.shape}")
    reach = np.abs(x).max(axis=0)
    order = np.argsort(-reach)
    return order[reach[order] > threshold * np.median(reach)]


# %% wrong="outlier_channels" name="loudest_alone" loses="outlier_channels-reach outlier_channels-median outlier_channels-relative split_outliers-ordinary split_outliers-outliers split_outliers-saturates split_outliers-bits split_outliers-all_or_none"
# Names the loudest channel only.
def outlier_channels(x, threshold):
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad or x.size == 0:
        raise ValueError(f"x: expected finite values, got others at {bad[:1]} in shape {x.shape}")
    reach = np.abs(x).max(axis=0)
    loudest = reach.argmax()
    return np.array([loudest] if reach[loudest] > threshold * np.median(reach) else [], int)


# %% wrong="outlier_channels" name="upper_median" loses="outlier_channels-median"
# Takes the upper of the two middle channels for the median.
def outlier_channels(x, threshold):
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad or x.size == 0:
        raise ValueError(f"x: expected finite values, got others at {bad[:1]} in shape {x.shape}")
    reach = np.abs(x).max(axis=0)
    return np.flatnonzero(reach > threshold * np.sort(reach)[len(reach) // 2])


# %% wrong="outlier_channels" name="nan_through" loses="outlier_channels-refuses"
# Compares with NaN, which is never more.
def outlier_channels(x, threshold):
    reach = np.abs(x).max(axis=0)
    return np.flatnonzero(reach > threshold * np.median(reach))


# %% wrong="outlier_channels" name="ignores_nan" loses="outlier_channels-refuses"
# Leaves out what is not finite.
def outlier_channels(x, threshold):
    reach = np.nanmax(np.where(np.isfinite(x), np.abs(x), 0), axis=0)
    return np.flatnonzero(reach > threshold * np.median(reach))


# %% wrong="outlier_channels" name="names_no_index" loses="outlier_channels-refuses"
# Refuses, and does not say where.
def outlier_channels(x, threshold):
    if x.size == 0 or not np.isfinite(x).all():
        raise ValueError("x: expected finite values")
    reach = np.abs(x).max(axis=0)
    return np.flatnonzero(reach > threshold * np.median(reach))


# %% right="outlier_channels" name="loops"
# One channel after the other, with the median taken from a sorted list.
def outlier_channels(x, threshold):
    for index in np.ndindex(*x.shape):
        if not math.isfinite(np.float32(x[index])):
            raise ValueError(f"x: expected finite values, got {x[index]} at index {index}")
    if 0 in x.shape:
        raise ValueError(f"x: expected a token and a channel, got shape {x.shape}")
    reach = [max(abs(float(value)) for value in x[:, channel]) for channel in range(x.shape[1])]
    ordered = sorted(reach)
    middle = len(ordered) // 2
    median = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    return np.array([c for c, size in enumerate(reach) if size > threshold * median], dtype=np.int32)


# %% right="outlier_channels" name="quantile"
# The larger of maximum and negated minimum, against the quantile at one half, in float64.
def outlier_channels(x, threshold):
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad or x.size == 0:
        raise ValueError(f"x: expected finite values in shape {x.shape}, got others at {bad[:1]}")
    x = np.asarray(x, np.float64)
    reach = np.maximum(x.max(axis=0), -x.min(axis=0))
    return np.nonzero(reach > threshold * np.quantile(reach, 0.5))[0]


# %% wrong="outlier_channels" name="geometric_middle" loses="outlier_channels-median"
# Takes the geometric mean of the middle two.
def outlier_channels(x, threshold):
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad or x.size == 0:
        raise ValueError(f"x: expected finite values, got others at {bad[:1]} in shape {x.shape}")
    reach = np.abs(x).max(axis=0).astype(float)
    ordered = np.sort(reach)
    middle = np.sqrt(ordered[(reach.size - 1) // 2] * ordered[reach.size // 2])
    return np.flatnonzero(reach > threshold * middle)


# %% wrong="outlier_channels" name="silent_channels_left_out" loses="outlier_channels-strict"
# Takes the median over the channels that are not zero.
def outlier_channels(x, threshold):
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad or x.size == 0:
        raise ValueError(f"x: expected finite values, got others at {bad[:1]} in shape {x.shape}")
    reach = np.abs(x).max(axis=0).astype(float)
    return np.flatnonzero(reach > threshold * np.median(reach[reach > 0])) if reach.any() else np.array([], int)


# %% wrong="outlier_channels" name="small_number_for_zero" loses="outlier_channels-relative"
# Lets the median be no smaller than 1e-6.
def outlier_channels(x, threshold):
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad or x.size == 0:
        raise ValueError(f"x: expected finite values, got others at {bad[:1]} in shape {x.shape}")
    reach = np.abs(x).max(axis=0).astype(float)
    return np.flatnonzero(reach > threshold * max(np.median(reach), 1e-6))


# %% wrong="quantise_with_granularity" name="token_and_channel_swapped" loses="quantise_with_granularity-token quantise_with_granularity-channel quantise_with_granularity-affine quantise_with_granularity-bits quantise_with_granularity-minimums"
# Takes axis 0 for the tokens' own scales: one per channel where one per token is asked, and the other way round.
def quantise_with_granularity(x, bits, granularity, symmetric=True):
    n_tokens, width = x.shape
    layout = {
        Granularity.TENSOR: (x.reshape(1, -1), x.size, 1),
        Granularity.TOKEN: (x, n_tokens, 0),
        Granularity.CHANNEL: (x, width, 1),
        Granularity.GROUP: (x, 16, 1),
    }
    laid_out, length, axis = layout[granularity]
    quantised = quantise_int(laid_out, bits, length, axis, symmetric)
    metadata = quantised.scales.size * (32 if symmetric else 64)
    return Cached(dequantise(quantised).reshape(x.shape), bits + metadata / x.size)


# %% wrong="quantise_with_granularity" name="groups_of_tokens" loses="quantise_with_granularity-group quantise_with_granularity-affine quantise_with_granularity-bits quantise_with_granularity-minimums quantise_with_granularity-refuses"
# Groups 16 tokens of a channel, not 16 channels of a token.
def quantise_with_granularity(x, bits, granularity, symmetric=True):
    n_tokens, width = x.shape
    if granularity is Granularity.TENSOR:
        quantised = quantise_int(x.reshape(1, -1), bits, x.size, symmetric=symmetric)
    elif granularity is Granularity.TOKEN:
        quantised = quantise_int(x, bits, width, symmetric=symmetric)
    else:
        length = n_tokens if granularity is Granularity.CHANNEL else 16
        quantised = quantise_int(x, bits, length, axis=0, symmetric=symmetric)
    metadata = quantised.scales.size * (32 if symmetric else 64)
    return Cached(dequantise(quantised).reshape(x.shape), bits + metadata / x.size)


# %% wrong="quantise_with_granularity" name="groups_of_32" loses="quantise_with_granularity-group quantise_with_granularity-affine quantise_with_granularity-bits quantise_with_granularity-minimums"
# Takes groups of 32, the length of MXFP4.
def quantise_with_granularity(x, bits, granularity, symmetric=True):
    n_tokens, width = x.shape
    layout = {
        Granularity.TENSOR: (x.reshape(1, -1), x.size, 1),
        Granularity.TOKEN: (x, width, 1),
        Granularity.CHANNEL: (x, n_tokens, 0),
        Granularity.GROUP: (x, 32, 1),
    }
    laid_out, length, axis = layout[granularity]
    quantised = quantise_int(laid_out, bits, length, axis, symmetric)
    metadata = quantised.scales.size * (32 if symmetric else 64)
    return Cached(dequantise(quantised).reshape(x.shape), bits + metadata / x.size)


# %% wrong="quantise_with_granularity" name="no_metadata" loses="quantise_with_granularity-bits quantise_with_granularity-minimums"
# Counts the codes alone.
def quantise_with_granularity(x, bits, granularity, symmetric=True):
    n_tokens, width = x.shape
    layout = {
        Granularity.TENSOR: (x.reshape(1, -1), x.size, 1),
        Granularity.TOKEN: (x, width, 1),
        Granularity.CHANNEL: (x, n_tokens, 0),
        Granularity.GROUP: (x, 16, 1),
    }
    laid_out, length, axis = layout[granularity]
    quantised = quantise_int(laid_out, bits, length, axis, symmetric)
    return Cached(dequantise(quantised).reshape(x.shape), float(bits))


# %% wrong="quantise_with_granularity" name="minimum_not_counted" loses="quantise_with_granularity-minimums"
# Forgets that affine integers store a minimum as well.
def quantise_with_granularity(x, bits, granularity, symmetric=True):
    n_tokens, width = x.shape
    layout = {
        Granularity.TENSOR: (x.reshape(1, -1), x.size, 1),
        Granularity.TOKEN: (x, width, 1),
        Granularity.CHANNEL: (x, n_tokens, 0),
        Granularity.GROUP: (x, 16, 1),
    }
    laid_out, length, axis = layout[granularity]
    quantised = quantise_int(laid_out, bits, length, axis, symmetric)
    return Cached(dequantise(quantised).reshape(x.shape), bits + 32 * quantised.scales.size / x.size)


# %% wrong="quantise_with_granularity" name="minimum_always_counted" loses="quantise_with_granularity-bits"
# Counts a minimum for symmetric integers too, because the record has one: zeros that nobody stores.
def quantise_with_granularity(x, bits, granularity, symmetric=True):
    n_tokens, width = x.shape
    layout = {
        Granularity.TENSOR: (x.reshape(1, -1), x.size, 1),
        Granularity.TOKEN: (x, width, 1),
        Granularity.CHANNEL: (x, n_tokens, 0),
        Granularity.GROUP: (x, 16, 1),
    }
    laid_out, length, axis = layout[granularity]
    quantised = quantise_int(laid_out, bits, length, axis, symmetric)
    metadata = 32 * (quantised.scales.size + quantised.minimums.size)
    return Cached(dequantise(quantised).reshape(x.shape), bits + metadata / x.size)


# %% wrong="quantise_with_granularity" name="scales_of_16_bits" loses="quantise_with_granularity-bits quantise_with_granularity-minimums"
# Counts a scale as 16 bits; it is a float32.
def quantise_with_granularity(x, bits, granularity, symmetric=True):
    n_tokens, width = x.shape
    layout = {
        Granularity.TENSOR: (x.reshape(1, -1), x.size, 1),
        Granularity.TOKEN: (x, width, 1),
        Granularity.CHANNEL: (x, n_tokens, 0),
        Granularity.GROUP: (x, 16, 1),
    }
    laid_out, length, axis = layout[granularity]
    quantised = quantise_int(laid_out, bits, length, axis, symmetric)
    metadata = quantised.scales.size * (16 if symmetric else 32)
    return Cached(dequantise(quantised).reshape(x.shape), bits + metadata / x.size)


# %% wrong="quantise_with_granularity" name="share_per_row" loses="quantise_with_granularity-bits quantise_with_granularity-minimums"
# Shares every scale among the channels of a token, whatever it serves.
def quantise_with_granularity(x, bits, granularity, symmetric=True):
    n_tokens, width = x.shape
    layout = {
        Granularity.TENSOR: (x.reshape(1, -1), x.size, 1),
        Granularity.TOKEN: (x, width, 1),
        Granularity.CHANNEL: (x, n_tokens, 0),
        Granularity.GROUP: (x, 16, 1),
    }
    laid_out, length, axis = layout[granularity]
    quantised = quantise_int(laid_out, bits, length, axis, symmetric)
    return Cached(dequantise(quantised).reshape(x.shape), bits + (32 if symmetric else 64) / width)


# %% wrong="quantise_with_granularity" name="whole_bits" loses="quantise_with_granularity-bits quantise_with_granularity-minimums"
# Divides without the remainder.
def quantise_with_granularity(x, bits, granularity, symmetric=True):
    n_tokens, width = x.shape
    layout = {
        Granularity.TENSOR: (x.reshape(1, -1), x.size, 1),
        Granularity.TOKEN: (x, width, 1),
        Granularity.CHANNEL: (x, n_tokens, 0),
        Granularity.GROUP: (x, 16, 1),
    }
    laid_out, length, axis = layout[granularity]
    quantised = quantise_int(laid_out, bits, length, axis, symmetric)
    metadata = quantised.scales.size * (32 if symmetric else 64)
    return Cached(dequantise(quantised).reshape(x.shape), float(bits + metadata // x.size))


# %% wrong="quantise_with_granularity" name="always_symmetric" loses="quantise_with_granularity-affine"
# Does not hand `symmetric` on, though it counts the minimums.
def quantise_with_granularity(x, bits, granularity, symmetric=True):
    n_tokens, width = x.shape
    layout = {
        Granularity.TENSOR: (x.reshape(1, -1), x.size, 1),
        Granularity.TOKEN: (x, width, 1),
        Granularity.CHANNEL: (x, n_tokens, 0),
        Granularity.GROUP: (x, 16, 1),
    }
    laid_out, length, axis = layout[granularity]
    quantised = quantise_int(laid_out, bits, length, axis)
    metadata = quantised.scales.size * (32 if symmetric else 64)
    return Cached(dequantise(quantised).reshape(x.shape), bits + metadata / x.size)


# %% wrong="quantise_with_granularity" name="tensor_per_token" loses="quantise_with_granularity-tensor quantise_with_granularity-affine"
# Quantises "the tensor" along its last axis, which gives each token a scale of its own.
def quantise_with_granularity(x, bits, granularity, symmetric=True):
    n_tokens, width = x.shape
    lengths = {Granularity.TENSOR: (width, 1), Granularity.TOKEN: (width, 1), Granularity.CHANNEL: (n_tokens, 0)}
    length, axis = lengths.get(granularity, (16, 1))
    quantised = quantise_int(x, bits, length, axis, symmetric)
    n_scales = 1 if granularity is Granularity.TENSOR else quantised.scales.size
    return Cached(dequantise(quantised), bits + n_scales * (32 if symmetric else 64) / x.size)


# %% wrong="quantise_with_granularity" name="flattened_groups" loses="quantise_with_granularity-refuses"
# Groups the flattened tensor, so that a width that 16 does not divide gives groups across two tokens.
def quantise_with_granularity(x, bits, granularity, symmetric=True):
    n_tokens, width = x.shape
    layout = {
        Granularity.TENSOR: (x.reshape(1, -1), x.size, 1),
        Granularity.TOKEN: (x, width, 1),
        Granularity.CHANNEL: (x, n_tokens, 0),
        Granularity.GROUP: (x.reshape(1, -1), 16, 1),
    }
    laid_out, length, axis = layout[granularity]
    quantised = quantise_int(laid_out, bits, length, axis, symmetric)
    metadata = quantised.scales.size * (32 if symmetric else 64)
    return Cached(dequantise(quantised).reshape(x.shape), bits + metadata / x.size)


# %% wrong="quantise_with_granularity" name="flat_tensor" loses="quantise_with_granularity-tensor quantise_with_granularity-affine choose_scheme-best choose_scheme-error choose_scheme-budget choose_scheme-refuses"
# Leaves the tensor flat where it has one scale.
def quantise_with_granularity(x, bits, granularity, symmetric=True):
    n_tokens, width = x.shape
    layout = {
        Granularity.TENSOR: (x.ravel(), x.size, 0),
        Granularity.TOKEN: (x, width, 1),
        Granularity.CHANNEL: (x, n_tokens, 0),
        Granularity.GROUP: (x, 16, 1),
    }
    laid_out, length, axis = layout[granularity]
    quantised = quantise_int(laid_out, bits, length, axis, symmetric)
    metadata = quantised.scales.size * (32 if symmetric else 64)
    return Cached(dequantise(quantised), bits + metadata / x.size)


# %% wrong="quantise_with_granularity" name="codes" loses="quantise_with_granularity-tensor quantise_with_granularity-token quantise_with_granularity-channel quantise_with_granularity-group quantise_with_granularity-affine"
# Returns the codes, not what they stand for.
def quantise_with_granularity(x, bits, granularity, symmetric=True):
    n_tokens, width = x.shape
    layout = {
        Granularity.TENSOR: (x.reshape(1, -1), x.size, 1),
        Granularity.TOKEN: (x, width, 1),
        Granularity.CHANNEL: (x, n_tokens, 0),
        Granularity.GROUP: (x, 16, 1),
    }
    laid_out, length, axis = layout[granularity]
    quantised = quantise_int(laid_out, bits, length, axis, symmetric)
    metadata = quantised.scales.size * (32 if symmetric else 64)
    return Cached(quantised.codes.reshape(x.shape), bits + metadata / x.size)


# %% wrong="quantise_with_granularity" name="pads_groups" loses="quantise_with_granularity-refuses"
# Fills a last group that is too short with zeros instead of refusing it.
def quantise_with_granularity(x, bits, granularity, symmetric=True):
    n_tokens, width = x.shape
    if granularity is Granularity.GROUP:
        padded = np.pad(x, ((0, 0), (0, -width % 16)))
        quantised = quantise_int(padded, bits, 16, symmetric=symmetric)
    elif granularity is Granularity.TENSOR:
        quantised = quantise_int(x.reshape(1, -1), bits, x.size, symmetric=symmetric)
    elif granularity is Granularity.TOKEN:
        quantised = quantise_int(x, bits, width, symmetric=symmetric)
    else:
        quantised = quantise_int(x, bits, n_tokens, 0, symmetric)
    metadata = quantised.scales.size * (32 if symmetric else 64)
    decoded = dequantise(quantised).reshape(n_tokens, -1)[:, :width]
    return Cached(decoded, bits + metadata / x.size)


# %% right="quantise_with_granularity" name="table"
# The four layouts as a table; a channel is a row of the transposed tensor.
def quantise_with_granularity(x, bits, granularity, symmetric=True):
    length = {
        Granularity.TENSOR: x.size,
        Granularity.TOKEN: x.shape[1],
        Granularity.CHANNEL: x.shape[0],
        Granularity.GROUP: 16,
    }[granularity]
    shape = (1, -1) if granularity is Granularity.TENSOR else x.shape
    laid_out = x.T if granularity is Granularity.CHANNEL else x.reshape(shape)
    decoded = dequantise(quantise_int(laid_out, bits, length, symmetric=symmetric))
    decoded = decoded.T if granularity is Granularity.CHANNEL else decoded.reshape(x.shape)
    return Cached(np.ascontiguousarray(decoded), bits + (32 if symmetric else 64) / length)


# %% right="quantise_with_granularity" name="loops"
# One group after the other, each on its own.
def quantise_with_granularity(x, bits, granularity, symmetric=True):
    n_tokens, width = x.shape
    whole, tokens, channels = slice(None), range(n_tokens), range(width)
    if granularity is Granularity.GROUP and width % 16:
        raise ValueError(f"x: expected a width that 16 divides, got {width}")
    places = {
        Granularity.TENSOR: [(whole, whole)],
        Granularity.TOKEN: [(token, whole) for token in tokens],
        Granularity.CHANNEL: [(whole, channel) for channel in channels],
        Granularity.GROUP: [(token, slice(start, start + 16)) for token in tokens for start in range(0, width, 16)],
    }[granularity]
    decoded, stored = np.zeros_like(x), 0
    for place in places:
        group = x[place].reshape(-1)
        decoded[place] = dequantise(quantise_int(group, bits, group.size, symmetric=symmetric)).reshape(x[place].shape)
        stored += group.size * bits + 32 + (0 if symmetric else 32)
    return Cached(decoded, stored / x.size)


# %% right="quantise_with_granularity" name="own_rounding"
# Rounds by itself, in float64, with a group axis made by reshaping.
def quantise_with_granularity(x, bits, granularity, symmetric=True):
    n_tokens, width = x.shape
    if not np.isfinite(x).all() or (granularity is Granularity.GROUP and width % 16) or bits not in (8, 6, 4, 3, 2):
        raise ValueError("x: expected finite values in whole groups, and 8, 6, 4, 3 or 2 bits")
    wide = x.astype(np.float64).reshape(n_tokens, -1, 16 if granularity is Granularity.GROUP else width)
    axes = {Granularity.TENSOR: (0, 1, 2), Granularity.CHANNEL: (0, 1)}.get(granularity, 2)
    low = 0.0 if symmetric else wide.min(axis=axes, keepdims=True)
    levels = 2 ** (bits - 1) - 1 if symmetric else 2**bits - 1
    span = (np.abs(wide) if symmetric else wide - low).max(axis=axes, keepdims=True)
    scale = np.maximum((span / levels).astype(np.float32), np.float32(2.0**-149)).astype(np.float64)
    decoded = low + np.clip(np.rint((wide - low) / scale), -levels, levels) * scale
    stored_bits = bits + scale.size * (32 if symmetric else 64) / x.size
    return Cached(decoded.reshape(x.shape).astype(np.float32), stored_bits)


# %% wrong="split_outliers" name="outliers_in_the_scale" loses="split_outliers-ordinary"
# Quantises the whole token first, so that the outliers still set its scale.
def split_outliers(x, bits, threshold):
    n_tokens, width = x.shape
    loud = outlier_channels(x, threshold)
    n_ordinary = width - len(loud)
    decoded = dequantise(quantise_int(x, bits, width))
    decoded[:, loud] = np.clip(x[:, loud], -65504, 65504).astype(np.float16)
    token_bits = 16 * len(loud) + (bits * n_ordinary + 32 if n_ordinary else 0)
    return Cached(decoded, (token_bits * n_tokens + width) / x.size)


# %% wrong="split_outliers" name="outliers_in_eight_bits" loses="split_outliers-outliers split_outliers-saturates split_outliers-bits split_outliers-threshold split_outliers-all_or_none"
# Keeps the outliers in eight-bit integers.
def split_outliers(x, bits, threshold):
    n_tokens, width = x.shape
    loud = outlier_channels(x, threshold)
    ordinary = np.setdiff1d(np.arange(width), loud)
    decoded, token_bits = np.zeros_like(x), 0
    for channels, b in ((ordinary, bits), (loud, 8)):
        if len(channels):
            decoded[:, channels] = dequantise(quantise_int(x[:, channels], b, len(channels)))
            token_bits += b * len(channels) + 32
    return Cached(decoded, (token_bits * n_tokens + width) / x.size)


# %% wrong="split_outliers" name="outliers_in_float32" loses="split_outliers-outliers split_outliers-saturates"
# Leaves the outliers as they are, in float32, and counts them as FP16.
def split_outliers(x, bits, threshold):
    n_tokens, width = x.shape
    loud = outlier_channels(x, threshold)
    ordinary = np.setdiff1d(np.arange(width), loud)
    decoded, token_bits = x.copy(), 16 * len(loud)
    if len(ordinary):
        decoded[:, ordinary] = dequantise(quantise_int(x[:, ordinary], bits, len(ordinary)))
        token_bits += bits * len(ordinary) + 32
    return Cached(decoded, (token_bits * n_tokens + width) / x.size)


# %% wrong="split_outliers" name="ordinary_in_half_precision" loses="split_outliers-ordinary split_outliers-outliers split_outliers-saturates split_outliers-bits split_outliers-threshold split_outliers-all_or_none"
# Has it the other way round: integers for the outliers, FP16 for the rest.
def split_outliers(x, bits, threshold):
    n_tokens, width = x.shape
    ordinary = outlier_channels(x, threshold)
    loud = np.setdiff1d(np.arange(width), ordinary)
    decoded, token_bits = np.clip(x, -65504, 65504).astype(np.float16).astype(np.float32), 16 * len(loud)
    if len(ordinary):
        decoded[:, ordinary] = dequantise(quantise_int(x[:, ordinary], bits, len(ordinary)))
        token_bits += bits * len(ordinary) + 32
    return Cached(decoded, (token_bits * n_tokens + width) / x.size)


# %% wrong="split_outliers" name="threshold_not_strict" loses="split_outliers-threshold"
# Finds the outliers by itself, with ≥ for >.
def split_outliers(x, bits, threshold):
    n_tokens, width = x.shape
    reach = np.abs(x).max(axis=0)
    is_loud = reach >= threshold * np.median(reach)
    decoded, token_bits = np.clip(x, -65504, 65504).astype(np.float16).astype(np.float32), 16 * is_loud.sum()
    if not is_loud.all():
        ordinary = x[:, ~is_loud]
        decoded[:, ~is_loud] = dequantise(quantise_int(ordinary, bits, ordinary.shape[1]))
        token_bits += bits * ordinary.shape[1] + 32
    return Cached(decoded, float((token_bits * n_tokens + width) / x.size))


# %% wrong="split_outliers" name="absolute_threshold" loses="split_outliers-threshold"
# Takes the threshold for a magnitude, as the paper does.
def split_outliers(x, bits, threshold):
    n_tokens, width = x.shape
    is_loud = np.abs(x).max(axis=0) > threshold
    decoded, token_bits = np.clip(x, -65504, 65504).astype(np.float16).astype(np.float32), 16 * is_loud.sum()
    if not is_loud.all():
        ordinary = x[:, ~is_loud]
        decoded[:, ~is_loud] = dequantise(quantise_int(ordinary, bits, ordinary.shape[1]))
        token_bits += bits * ordinary.shape[1] + 32
    return Cached(decoded, float((token_bits * n_tokens + width) / x.size))


# %% wrong="split_outliers" name="elements" loses="split_outliers-outliers split_outliers-threshold split_outliers-all_or_none"
# Splits off the loud elements of a token, not whole channels.
def split_outliers(x, bits, threshold):
    n_tokens, width = x.shape
    reach = np.abs(x).max(axis=0)
    is_loud = np.abs(x) > threshold * np.median(reach)
    ordinary = dequantise(quantise_int(np.where(is_loud, np.float32(0), x), bits, width))
    decoded = np.where(is_loud, np.clip(x, -65504, 65504).astype(np.float16), ordinary).astype(np.float32)
    loud = outlier_channels(x, threshold)
    n_ordinary = width - len(loud)
    token_bits = 16 * len(loud) + (bits * n_ordinary + 32 if n_ordinary else 0)
    return Cached(decoded, (token_bits * n_tokens + width) / x.size)


# %% wrong="split_outliers" name="which_not_counted" loses="split_outliers-bits"
# Forgets to store which channels are the outliers.
def split_outliers(x, bits, threshold):
    n_tokens, width = x.shape
    loud = outlier_channels(x, threshold)
    ordinary = np.setdiff1d(np.arange(width), loud)
    decoded, token_bits = np.clip(x, -65504, 65504).astype(np.float16).astype(np.float32), 16 * len(loud)
    if len(ordinary):
        decoded[:, ordinary] = dequantise(quantise_int(x[:, ordinary], bits, len(ordinary)))
        token_bits += bits * len(ordinary) + 32
    return Cached(decoded, token_bits / width)


# %% wrong="split_outliers" name="which_for_every_token" loses="split_outliers-bits split_outliers-all_or_none"
# Stores for every token which channels are the outliers: a bit for every element.
def split_outliers(x, bits, threshold):
    n_tokens, width = x.shape
    loud = outlier_channels(x, threshold)
    ordinary = np.setdiff1d(np.arange(width), loud)
    decoded, token_bits = np.clip(x, -65504, 65504).astype(np.float16).astype(np.float32), 16 * len(loud) + width
    if len(ordinary):
        decoded[:, ordinary] = dequantise(quantise_int(x[:, ordinary], bits, len(ordinary)))
        token_bits += bits * len(ordinary) + 32
    return Cached(decoded, token_bits / width)


# %% wrong="split_outliers" name="a_bit_per_outlier" loses="split_outliers-bits"
# Counts the bit that marks a channel for the outliers only.
def split_outliers(x, bits, threshold):
    n_tokens, width = x.shape
    loud = outlier_channels(x, threshold)
    ordinary = np.setdiff1d(np.arange(width), loud)
    decoded, token_bits = np.clip(x, -65504, 65504).astype(np.float16).astype(np.float32), 16 * len(loud)
    if len(ordinary):
        decoded[:, ordinary] = dequantise(quantise_int(x[:, ordinary], bits, len(ordinary)))
        token_bits += bits * len(ordinary) + 32
    return Cached(decoded, (token_bits * n_tokens + len(loud)) / x.size)


# %% wrong="split_outliers" name="codes_of_outliers_counted" loses="split_outliers-bits"
# Counts a code for the outliers as well as their 16 bits.
def split_outliers(x, bits, threshold):
    n_tokens, width = x.shape
    loud = outlier_channels(x, threshold)
    ordinary = np.setdiff1d(np.arange(width), loud)
    decoded, token_bits = np.clip(x, -65504, 65504).astype(np.float16).astype(np.float32), 16 * len(loud)
    if len(ordinary):
        decoded[:, ordinary] = dequantise(quantise_int(x[:, ordinary], bits, len(ordinary)))
        token_bits += bits * width + 32
    return Cached(decoded, (token_bits * n_tokens + width) / x.size)


# %% wrong="split_outliers" name="no_scale" loses="split_outliers-bits split_outliers-all_or_none"
# Forgets the scale of each token.
def split_outliers(x, bits, threshold):
    n_tokens, width = x.shape
    loud = outlier_channels(x, threshold)
    ordinary = np.setdiff1d(np.arange(width), loud)
    decoded, token_bits = np.clip(x, -65504, 65504).astype(np.float16).astype(np.float32), 16 * len(loud)
    if len(ordinary):
        decoded[:, ordinary] = dequantise(quantise_int(x[:, ordinary], bits, len(ordinary)))
        token_bits += bits * len(ordinary)
    return Cached(decoded, (token_bits * n_tokens + width) / x.size)


# %% wrong="split_outliers" name="scale_without_codes" loses="split_outliers-all_or_none"
# Counts a scale where every channel is an outlier and there is nothing to scale.
def split_outliers(x, bits, threshold):
    n_tokens, width = x.shape
    loud = outlier_channels(x, threshold)
    ordinary = np.setdiff1d(np.arange(width), loud)
    decoded, token_bits = (
        np.clip(x, -65504, 65504).astype(np.float16).astype(np.float32),
        16 * len(loud) + bits * len(ordinary) + 32,
    )
    if len(ordinary):
        decoded[:, ordinary] = dequantise(quantise_int(x[:, ordinary], bits, len(ordinary)))
    return Cached(decoded, (token_bits * n_tokens + width) / x.size)


# %% wrong="split_outliers" name="some_are_ordinary" loses="split_outliers-all_or_none"
# Takes for granted that there are ordinary channels: a group of none is refused.
def split_outliers(x, bits, threshold):
    n_tokens, width = x.shape
    loud = outlier_channels(x, threshold)
    ordinary = np.setdiff1d(np.arange(width), loud)
    decoded = np.clip(x, -65504, 65504).astype(np.float16).astype(np.float32)
    decoded[:, ordinary] = dequantise(quantise_int(x[:, ordinary], bits, len(ordinary)))
    token_bits = 16 * len(loud) + bits * len(ordinary) + 32
    return Cached(decoded, (token_bits * n_tokens + width) / x.size)


# %% wrong="split_outliers" name="scales_per_channel" loses="split_outliers-ordinary split_outliers-bits split_outliers-all_or_none"
# Gives each ordinary channel a scale, not each token; counts what it stores.
def split_outliers(x, bits, threshold):
    n_tokens, width = x.shape
    loud = outlier_channels(x, threshold)
    ordinary = np.setdiff1d(np.arange(width), loud)
    decoded = np.clip(x, -65504, 65504).astype(np.float16).astype(np.float32)
    if len(ordinary):
        decoded[:, ordinary] = dequantise(quantise_int(x[:, ordinary], bits, n_tokens, 0))
    stored = (16 * len(loud) + bits * len(ordinary)) * n_tokens + 32 * len(ordinary) + width
    return Cached(decoded, stored / x.size)


# %% wrong="split_outliers" name="affine" loses="split_outliers-ordinary split_outliers-bits split_outliers-all_or_none"
# Quantises the ordinary channels with a minimum, and counts it.
def split_outliers(x, bits, threshold):
    n_tokens, width = x.shape
    loud = outlier_channels(x, threshold)
    ordinary = np.setdiff1d(np.arange(width), loud)
    decoded, token_bits = np.clip(x, -65504, 65504).astype(np.float16).astype(np.float32), 16 * len(loud)
    if len(ordinary):
        decoded[:, ordinary] = dequantise(quantise_int(x[:, ordinary], bits, len(ordinary), symmetric=False))
        token_bits += bits * len(ordinary) + 64
    return Cached(decoded, (token_bits * n_tokens + width) / x.size)


# %% wrong="split_outliers" name="outliers_moved_to_the_end" loses="split_outliers-ordinary split_outliers-outliers split_outliers-saturates split_outliers-threshold"
# Puts the outliers behind the ordinary channels and leaves them there.
def split_outliers(x, bits, threshold):
    n_tokens, width = x.shape
    loud = outlier_channels(x, threshold)
    ordinary = np.setdiff1d(np.arange(width), loud)
    decoded, token_bits = np.clip(x[:, loud], -65504, 65504).astype(np.float16).astype(np.float32), 16 * len(loud)
    if len(ordinary):
        quantised = quantise_int(x[:, ordinary], bits, len(ordinary))
        decoded = np.concatenate([dequantise(quantised), decoded], axis=1)
        token_bits += bits * len(ordinary) + 32
    return Cached(decoded, (token_bits * n_tokens + width) / x.size)


# %% wrong="split_outliers" name="overflows" loses="split_outliers-saturates"
# Lets an outlier beyond the largest FP16 become infinite.
def split_outliers(x, bits, threshold):
    n_tokens, width = x.shape
    loud = outlier_channels(x, threshold)
    ordinary = np.setdiff1d(np.arange(width), loud)
    decoded, token_bits = x.astype(np.float16).astype(np.float32), 16 * len(loud)
    if len(ordinary):
        decoded[:, ordinary] = dequantise(quantise_int(x[:, ordinary], bits, len(ordinary)))
        token_bits += bits * len(ordinary) + 32
    return Cached(decoded, (token_bits * n_tokens + width) / x.size)


# %% right="split_outliers" name="zeros_in_their_place"
# Quantises the whole token with zeros where the outliers are, then puts them back.
def split_outliers(x, bits, threshold):
    n_tokens, width = x.shape
    is_loud = np.isin(np.arange(width), outlier_channels(x, threshold))
    ordinary = dequantise(quantise_int(np.where(is_loud, np.float32(0), x), bits, width))
    decoded = np.where(is_loud, np.float16(np.clip(x, -65504, 65504)), ordinary)
    token_bits = 16 * is_loud.sum() + bits * (~is_loud).sum() + (0 if is_loud.all() else 32)
    return Cached(decoded, float(token_bits / width + 1 / n_tokens))


# %% right="split_outliers" name="loops"
# One element after the other.
def split_outliers(x, bits, threshold):
    n_tokens, width = x.shape
    loud = set(int(channel) for channel in outlier_channels(x, threshold))
    ordinary = [channel for channel in range(width) if channel not in loud]
    if bits not in formats.INTEGER_BITS:
        raise ValueError(f"bits: expected one of {formats.INTEGER_BITS}, got {bits}")
    decoded, stored = np.zeros((n_tokens, width), np.float32), width
    for token in range(n_tokens):
        for channel in loud:
            decoded[token, channel] = np.float16(min(max(float(x[token, channel]), -65504.0), 65504.0))
            stored += 16
        if ordinary:
            levels = 2 ** (bits - 1) - 1
            amax = max(abs(float(x[token, channel])) for channel in ordinary)
            scale = float(max(np.float32(amax / levels), np.float32(2.0**-149)))
            for channel in ordinary:
                code = min(max(round(float(x[token, channel]) / scale), -levels), levels)
                decoded[token, channel] = code * scale
                stored += bits
            stored += 32
    return Cached(decoded, stored / (n_tokens * width))


# %% right="split_outliers" name="finds_them_itself"
# Finds the outliers itself, and quantises with one mask.
def split_outliers(x, bits, threshold):
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad or bits not in (8, 6, 4, 3, 2):
        raise ValueError(f"x: expected finite values and 8 to 2 bits, got {bits} bits and others at {bad[:1]}")
    reach = np.abs(x).max(axis=0)
    is_loud = reach > threshold * np.median(reach)
    n_loud, n_ordinary = np.count_nonzero(is_loud), np.count_nonzero(~is_loud)
    decoded = np.empty_like(x)
    decoded[:, is_loud] = np.float16(np.minimum(np.maximum(x[:, is_loud], -65504), 65504))
    if n_ordinary:
        decoded[:, ~is_loud] = quantise_with_granularity(x[:, ~is_loud], bits, Granularity.TOKEN).decoded
    per_token = 16 * n_loud + (32 + bits * n_ordinary if n_ordinary else 0)
    return Cached(decoded, per_token / x.shape[1] + 1 / x.shape[0])


# %% wrong="rotate_hadamard" name="not_normalised" loses="rotate_hadamard-length"
# Leaves out the 1/√D: lengths grow by √D.
def rotate_hadamard(x):
    width = x.shape[-1]
    if width < 1 or width & (width - 1):
        raise ValueError(f"x: expected a power of two, got {width}")
    matrix = np.ones((1, 1))
    while len(matrix) < width:
        matrix = np.kron([[1, 1], [1, -1]], matrix)
    return x.astype(np.float64) @ matrix


# %% wrong="rotate_hadamard" name="divided_by_the_width" loses="rotate_hadamard-length"
# Divides by D, not by its root.
def rotate_hadamard(x):
    width = x.shape[-1]
    if width < 1 or width & (width - 1):
        raise ValueError(f"x: expected a power of two, got {width}")
    matrix = np.ones((1, 1))
    while len(matrix) < width:
        matrix = np.kron([[1, 1], [1, -1]], matrix)
    return x.astype(np.float64) @ matrix / width


# %% wrong="rotate_hadamard" name="first_axis" loses="rotate_hadamard-length rotate_hadamard-order rotate_hadamard-axis"
# Rotates along the tokens.
def rotate_hadamard(x):
    width = x.shape[-1]
    if width < 1 or width & (width - 1):
        raise ValueError(f"x: expected a power of two, got {width}")
    length = x.shape[0]
    matrix = np.ones((1, 1))
    while len(matrix) < length:
        matrix = np.kron([[1, 1], [1, -1]], matrix)
    return np.tensordot(matrix[:length, :length], x.astype(np.float64), axes=1) / np.sqrt(length)


# %% wrong="rotate_hadamard" name="by_sign_changes" loses="rotate_hadamard-order"
# Orders the rows by how often they change sign, as Walsh did; Sylvester did not.
def rotate_hadamard(x):
    width = x.shape[-1]
    if width < 1 or width & (width - 1):
        raise ValueError(f"x: expected a power of two, got {width}")
    matrix = np.ones((1, 1))
    while len(matrix) < width:
        matrix = np.kron([[1, 1], [1, -1]], matrix)
    changes = np.count_nonzero(np.diff(matrix, axis=1), axis=1)
    return x.astype(np.float64) @ matrix[np.argsort(changes)].T / np.sqrt(width)


# %% wrong="rotate_hadamard" name="bits_reversed" loses="rotate_hadamard-order"
# Puts sums in the first half and differences in the second at each step, which reverses the bits of the order.
def rotate_hadamard(x):
    width = x.shape[-1]
    if width < 1 or width & (width - 1):
        raise ValueError(f"x: expected a power of two, got {width}")
    rotated = x.astype(np.float64)
    for _ in range(width.bit_length() - 1):
        even, odd = rotated[..., 0::2], rotated[..., 1::2]
        rotated = np.concatenate([even + odd, even - odd], axis=-1)
    order = [int(f"{i:0{max(width.bit_length() - 1, 1)}b}"[::-1], 2) for i in range(width)]
    return rotated[..., order] / np.sqrt(width)


# %% wrong="rotate_hadamard" name="last_step_missing" loses="rotate_hadamard-length rotate_hadamard-order"
# Stops one step early: two halves that never meet.
def rotate_hadamard(x):
    width = x.shape[-1]
    if width < 1 or width & (width - 1):
        raise ValueError(f"x: expected a power of two, got {width}")
    rotated, half = x.astype(np.float64), 1
    while 2 * half < width:
        pairs = rotated.reshape(*x.shape[:-1], -1, 2, half)
        low, high = pairs[..., 0, :], pairs[..., 1, :]
        rotated = np.stack([low + high, low - high], axis=-2).reshape(x.shape)
        half *= 2
    return rotated / np.sqrt(half)


# %% wrong="rotate_hadamard" name="overwritten" loses="rotate_hadamard-length rotate_hadamard-order"
# Overwrites the sum before the difference is taken from it.
def rotate_hadamard(x):
    width = x.shape[-1]
    if width < 1 or width & (width - 1):
        raise ValueError(f"x: expected a power of two, got {width}")
    rotated, half = x.astype(np.float64), 1
    while half < width:
        pairs = rotated.reshape(*x.shape[:-1], -1, 2, half)
        pairs[..., 0, :] += pairs[..., 1, :]
        pairs[..., 1, :] = pairs[..., 0, :] - pairs[..., 1, :]
        half *= 2
    return rotated / np.sqrt(width)


# %% wrong="rotate_hadamard" name="groups_of_16" loses="rotate_hadamard-order"
# Rotates each group of 16 by itself.
def rotate_hadamard(x):
    width = x.shape[-1]
    if width < 1 or width & (width - 1):
        raise ValueError(f"x: expected a power of two, got {width}")
    length = min(width, 16)
    matrix = np.ones((1, 1))
    while len(matrix) < length:
        matrix = np.kron([[1, 1], [1, -1]], matrix)
    groups = x.astype(np.float64).reshape(*x.shape[:-1], -1, length)
    return (groups @ matrix).reshape(x.shape) / np.sqrt(length)


# %% wrong="rotate_hadamard" name="random_orthogonal" loses="rotate_hadamard-order"
# Takes a random orthogonal matrix: lengths stay, but it is neither Hadamard's nor its own inverse.
def rotate_hadamard(x):
    width = x.shape[-1]
    if width < 1 or width & (width - 1):
        raise ValueError(f"x: expected a power of two, got {width}")
    matrix, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(width, width)))
    return x.astype(np.float64) @ matrix


# %% wrong="rotate_hadamard" name="random_signs" loses="rotate_hadamard-order"
# Turns the signs of the channels at random first, as some papers do: orthonormal, but no longer its own inverse.
def rotate_hadamard(x):
    width = x.shape[-1]
    if width < 1 or width & (width - 1):
        raise ValueError(f"x: expected a power of two, got {width}")
    matrix = np.random.default_rng(4).choice([-1.0, 1.0], width)
    half = np.ones((1, 1))
    while len(half) < width:
        half = np.kron([[1, 1], [1, -1]], half)
    return (x.astype(np.float64) * matrix) @ half / np.sqrt(width)


# %% wrong="rotate_hadamard" name="cosines" loses="rotate_hadamard-order"
# Takes the cosine transform: orthonormal, but neither of ±1 nor its own inverse.
def rotate_hadamard(x):
    width = x.shape[-1]
    if width < 1 or width & (width - 1):
        raise ValueError(f"x: expected a power of two, got {width}")
    k = np.arange(width)
    matrix = np.sqrt(2 / width) * np.cos(np.pi * (k + 0.5) * k[:, None] / width)
    matrix[0] /= np.sqrt(2)
    return x.astype(np.float64) @ matrix.T


# %% wrong="rotate_hadamard" name="pads" loses="rotate_hadamard-refuses"
# Fills up to the next power of two and cuts the result, so that 48 channels lose a part.
def rotate_hadamard(x):
    width = x.shape[-1]
    matrix = np.ones((1, 1))
    while len(matrix) < width:
        matrix = np.kron([[1, 1], [1, -1]], matrix)
    return x.astype(np.float64) @ matrix[:width, :width] / np.sqrt(len(matrix))


# %% wrong="rotate_hadamard" name="even_widths" loses="rotate_hadamard-refuses"
# Takes every even width for a power of two.
def rotate_hadamard(x):
    width = x.shape[-1]
    if width > 1 and width % 2:
        raise ValueError(f"x: expected a power of two, got {width}")
    c, i = np.meshgrid(np.arange(width), np.arange(width), indexing="ij")
    odd = np.array([[bin(value).count("1") % 2 for value in row] for row in (c & i).tolist()])
    return x.astype(np.float64) @ (1.0 - 2 * odd) / np.sqrt(width)


# %% wrong="rotate_hadamard" name="only_64" loses="rotate_hadamard-length rotate_hadamard-order rotate_hadamard-axis rotate_hadamard-argument rotate_hadamard-refuses attend_rotated-query attend_rotated-values attend_rotated-order"
# Knows the width of this lab's keys alone.
def rotate_hadamard(x):
    if x.shape[-1] != 64:
        raise ValueError(f"x: expected 64 channels, got {x.shape[-1]}")
    matrix = np.ones((1, 1))
    for _ in range(6):
        matrix = np.kron([[1, 1], [1, -1]], matrix)
    return x.astype(np.float64) @ matrix / 8


# %% wrong="rotate_hadamard" name="two_axes_only" loses="rotate_hadamard-axis"
# Counts on tokens and channels: one vector alone, or heads before the tokens, it cannot rotate.
def rotate_hadamard(x):
    n_tokens, width = x.shape
    if width < 1 or width & (width - 1):
        raise ValueError(f"x: expected a power of two, got {width}")
    matrix = np.ones((1, 1))
    while len(matrix) < width:
        matrix = np.kron([[1, 1], [1, -1]], matrix)
    return x.astype(np.float64) @ matrix / np.sqrt(width)


# %% wrong="rotate_hadamard" name="in_place" loses="rotate_hadamard-argument"
# Works in the caller's array where that is float64 already.
def rotate_hadamard(x):
    width = x.shape[-1]
    if width < 1 or width & (width - 1):
        raise ValueError(f"x: expected a power of two, got {width}")
    rotated = np.asarray(x, np.float64)
    half = 1
    while half < width:
        for start in range(0, width, 2 * half):
            low = rotated[..., start : start + half].copy()
            high = rotated[..., start + half : start + 2 * half].copy()
            rotated[..., start : start + half] = low + high
            rotated[..., start + half : start + 2 * half] = low - high
        half *= 2
    rotated /= np.sqrt(width)
    return rotated


# %% wrong="rotate_hadamard" name="half_precision" loses="rotate_hadamard-length rotate_hadamard-order"
# Computes in FP16.
def rotate_hadamard(x):
    width = x.shape[-1]
    if width < 1 or width & (width - 1):
        raise ValueError(f"x: expected a power of two, got {width}")
    matrix = np.ones((1, 1), np.float16)
    while len(matrix) < width:
        matrix = np.kron(np.float16([[1, 1], [1, -1]]), matrix)
    return np.float64((x / np.sqrt(width)).astype(np.float16) @ matrix)


# %% right="rotate_hadamard" name="kron"
# The matrix as a product of Kronecker, and one product of matrices.
def rotate_hadamard(x):
    width = x.shape[-1]
    matrix = np.ones((1, 1))
    while len(matrix) < width:
        matrix = np.kron([[1, 1], [1, -1]], matrix)
    if len(matrix) != width:
        raise ValueError(f"x: expected a power of two, got {width} channels")
    return x.astype(np.float64) @ matrix / np.sqrt(width)


# %% right="rotate_hadamard" name="parity"
# Element by element, by the parity of the bits in common.
def rotate_hadamard(x):
    width = x.shape[-1]
    if width == 0 or bin(width).count("1") != 1:
        raise ValueError(f"x: expected a power of two, got {width} channels")
    signs = [[-1.0 if bin(c & i).count("1") % 2 else 1.0 for i in range(width)] for c in range(width)]
    return np.tensordot(np.asarray(x, np.float64), np.array(signs) / math.sqrt(width), axes=([-1], [1]))


# %% right="rotate_hadamard" name="recursion"
# Halves, each rotated by itself, then their sum and difference.
def rotate_hadamard(x):
    width = x.shape[-1]
    if width == 1:
        return np.array(x, np.float64)
    if width < 1 or width % 2:
        raise ValueError(f"x: expected a power of two, got {width}")
    low, high = rotate_hadamard(x[..., : width // 2]), rotate_hadamard(x[..., width // 2 :])
    return np.concatenate([low + high, low - high], axis=-1) * math.sqrt(0.5)


# %% right="rotate_hadamard" name="cube"
# Every bit of the channel's number as an axis of length two.
def rotate_hadamard(x):
    n_bits = x.shape[-1].bit_length() - 1
    if x.shape[-1] < 1 or 2**n_bits != x.shape[-1]:
        raise ValueError(f"x: expected a power of two, got {x.shape[-1]} channels")
    cube = np.asarray(x, np.float64).reshape(*x.shape[:-1], *(2,) * n_bits)
    for axis in range(x.ndim - 1, x.ndim - 1 + n_bits):
        low, high = np.take(cube, 0, axis), np.take(cube, 1, axis)
        cube = np.stack([low + high, low - high], axis) / np.sqrt(2)
    return cube.reshape(x.shape)


# %% wrong="attend_rotated" name="query_not_rotated" loses="attend_rotated-query"
# Forgets to rotate the query: its products with rotated keys mean nothing.
def attend_rotated(q, keys, values):
    k, v = (dequantise(quantise_e2m1(rotate_hadamard(x))) for x in (keys, values))
    return rotate_hadamard(attend(q, k, v))


# %% wrong="attend_rotated" name="output_not_rotated_back" loses="attend_rotated-values"
# Forgets to undo the rotation of the values.
def attend_rotated(q, keys, values):
    k, v = (dequantise(quantise_e2m1(rotate_hadamard(x))) for x in (keys, values))
    return attend(rotate_hadamard(q), k, v)


# %% wrong="attend_rotated" name="quantised_first" loses="attend_rotated-order"
# Quantises, then rotates: the groups have met the outlier already.
def attend_rotated(q, keys, values):
    k, v = (rotate_hadamard(dequantise(quantise_e2m1(x))) for x in (keys, values))
    return rotate_hadamard(attend(rotate_hadamard(q), k, v))


# %% wrong="attend_rotated" name="not_quantised" loses="attend_rotated-order"
# Rotates there and back, and quantises nothing.
def attend_rotated(q, keys, values):
    return rotate_hadamard(attend(rotate_hadamard(q), rotate_hadamard(keys), rotate_hadamard(values)))


# %% wrong="attend_rotated" name="not_rotated" loses="attend_rotated-order"
# Quantises, and rotates nothing.
def attend_rotated(q, keys, values):
    return attend(q, dequantise(quantise_e2m1(keys)), dequantise(quantise_e2m1(values)))


# %% wrong="attend_rotated" name="keys_only" loses="attend_rotated-order"
# Rotates the keys and the query, not the values.
def attend_rotated(q, keys, values):
    k = dequantise(quantise_e2m1(rotate_hadamard(keys)))
    return attend(rotate_hadamard(q), k, dequantise(quantise_e2m1(values)))


# %% wrong="attend_rotated" name="values_only" loses="attend_rotated-order"
# Rotates the values, not keys and query.
def attend_rotated(q, keys, values):
    v = dequantise(quantise_e2m1(rotate_hadamard(values)))
    return rotate_hadamard(attend(q, dequantise(quantise_e2m1(keys)), v))


# %% wrong="attend_rotated" name="values_in_full" loses="attend_rotated-order"
# Quantises the keys and leaves the values as they are.
def attend_rotated(q, keys, values):
    k = dequantise(quantise_e2m1(rotate_hadamard(keys)))
    return attend(rotate_hadamard(q), k, values)


# %% wrong="attend_rotated" name="query_quantised" loses="attend_rotated-query attend_rotated-values attend_rotated-order"
# Quantises the query too, which no cache holds.
def attend_rotated(q, keys, values):
    q, k, v = (dequantise(quantise_e2m1(rotate_hadamard(x))) for x in (q, keys, values))
    return rotate_hadamard(attend(q, k, v))


# %% wrong="attend_rotated" name="tensor_scale" loses="attend_rotated-order"
# Quantises with a tensor scale, which was not asked for.
def attend_rotated(q, keys, values):
    rule = formats.ScaleRule.TENSOR_AND_GROUP
    k, v = (dequantise(quantise_e2m1(rotate_hadamard(x), rule)) for x in (keys, values))
    return rotate_hadamard(attend(rotate_hadamard(q), k, v))


# %% wrong="attend_rotated" name="four_over_six" loses="attend_rotated-order"
# Takes the better of two scales, which was not asked for here.
def attend_rotated(q, keys, values):
    k, v = (dequantise(scale_four_over_six(rotate_hadamard(x))) for x in (keys, values))
    return rotate_hadamard(attend(rotate_hadamard(q), k, v))


# %% wrong="attend_rotated" name="rotated_twice" loses="attend_rotated-query"
# Rotates the keys back before the rotated query meets them.
def attend_rotated(q, keys, values):
    k, v = (dequantise(quantise_e2m1(rotate_hadamard(x))) for x in (keys, values))
    return rotate_hadamard(attend(rotate_hadamard(q), rotate_hadamard(k), v))


# %% right="attend_rotated" name="rotated_back_at_once"
# Rotates keys and values back as they are read; the query and the output stay as they are.
def attend_rotated(q, keys, values):
    k, v = (rotate_hadamard(dequantise(quantise_e2m1(rotate_hadamard(x)))) for x in (keys, values))
    return attend(q, k, v)


# %% right="attend_rotated" name="loops"
# One query after the other, with a softmax of its own.
def attend_rotated(q, keys, values):
    k = np.float64(dequantise(quantise_e2m1(rotate_hadamard(keys))))
    v = np.float64(dequantise(quantise_e2m1(rotate_hadamard(values))))
    output = np.zeros((q.shape[0], values.shape[1]))
    for number, query in enumerate(q):
        logits = k @ rotate_hadamard(query) / math.sqrt(len(query))
        weights = np.exp(logits - logits.max())
        output[number] = rotate_hadamard(weights / weights.sum() @ v)
    return output


# %% right="attend_rotated" name="float32_keys"
# Rounds the rotated keys and values to float32 before it quantises them.
def attend_rotated(q, keys, values):
    k = dequantise(quantise_e2m1(rotate_hadamard(keys).astype(np.float32)))
    v = dequantise(quantise_e2m1(rotate_hadamard(values).astype(np.float32)))
    rotated_output = attend(rotate_hadamard(q), k, v)
    return rotate_hadamard(rotated_output)


# %% wrong="centre_keys" name="mean_of_all" loses="centre_keys-centre"
# Takes the mean of all tokens, those to come among them.
def centre_keys(keys, n_calibration):
    if not 1 <= n_calibration <= len(keys):
        raise ValueError(f"n_calibration: expected 1 to {len(keys)}, got {n_calibration}")
    centre = keys.mean(axis=0, dtype=np.float64).astype(np.float32)
    centred = keys.copy()
    centred[n_calibration:] -= centre
    return centred, centre


# %% wrong="centre_keys" name="first_tokens_too" loses="centre_keys-first"
# Centres the first tokens too, by a mean that was not known when they were stored.
def centre_keys(keys, n_calibration):
    if not 1 <= n_calibration <= len(keys):
        raise ValueError(f"n_calibration: expected 1 to {len(keys)}, got {n_calibration}")
    centre = keys[:n_calibration].mean(axis=0, dtype=np.float64).astype(np.float32)
    return keys - centre, centre


# %% wrong="centre_keys" name="mean_of_the_rest" loses="centre_keys-centre"
# Takes the mean of the tokens that it centres.
def centre_keys(keys, n_calibration):
    if not 1 <= n_calibration <= len(keys):
        raise ValueError(f"n_calibration: expected 1 to {len(keys)}, got {n_calibration}")
    rest = keys[n_calibration:] if n_calibration < len(keys) else keys
    centre = rest.mean(axis=0, dtype=np.float64).astype(np.float32)
    centred = keys.copy()
    centred[n_calibration:] -= centre
    return centred, centre


# %% wrong="centre_keys" name="running_mean" loses="centre_keys-centre centre_keys-later"
# Takes for each token the mean of all before it: causal, but the cache would need a centre for every token.
def centre_keys(keys, n_calibration):
    if not 1 <= n_calibration <= len(keys):
        raise ValueError(f"n_calibration: expected 1 to {len(keys)}, got {n_calibration}")
    means = np.cumsum(keys, axis=0, dtype=np.float64) / np.arange(1, len(keys) + 1)[:, None]
    centred = keys.copy()
    centred[n_calibration:] -= means[n_calibration - 1 : -1].astype(np.float32)
    return centred, means[-1].astype(np.float32)


# %% wrong="centre_keys" name="running_mean_from_the_calibration" loses="centre_keys-later"
# Goes on updating the mean, but returns the first one.
def centre_keys(keys, n_calibration):
    if not 1 <= n_calibration <= len(keys):
        raise ValueError(f"n_calibration: expected 1 to {len(keys)}, got {n_calibration}")
    means = np.cumsum(keys, axis=0, dtype=np.float64) / np.arange(1, len(keys) + 1)[:, None]
    centred = keys.copy()
    centred[n_calibration:] -= means[n_calibration - 1 : -1].astype(np.float32)
    return centred, means[n_calibration - 1].astype(np.float32)


# %% wrong="centre_keys" name="median" loses="centre_keys-centre"
# Takes the median for the mean.
def centre_keys(keys, n_calibration):
    if not 1 <= n_calibration <= len(keys):
        raise ValueError(f"n_calibration: expected 1 to {len(keys)}, got {n_calibration}")
    centre = np.median(keys[:n_calibration], axis=0).astype(np.float32)
    centred = keys.copy()
    centred[n_calibration:] -= centre
    return centred, centre


# %% wrong="centre_keys" name="middle_of_the_range" loses="centre_keys-centre"
# Takes the middle between smallest and largest.
def centre_keys(keys, n_calibration):
    if not 1 <= n_calibration <= len(keys):
        raise ValueError(f"n_calibration: expected 1 to {len(keys)}, got {n_calibration}")
    first = keys[:n_calibration].astype(np.float64)
    centre = ((first.min(axis=0) + first.max(axis=0)) / 2).astype(np.float32)
    centred = keys.copy()
    centred[n_calibration:] -= centre
    return centred, centre


# %% wrong="centre_keys" name="in_place" loses="centre_keys-argument"
# Subtracts in the caller's array.
def centre_keys(keys, n_calibration):
    if not 1 <= n_calibration <= len(keys):
        raise ValueError(f"n_calibration: expected 1 to {len(keys)}, got {n_calibration}")
    centre = keys[:n_calibration].mean(axis=0, dtype=np.float64).astype(np.float32)
    keys[n_calibration:] -= centre
    return keys, centre


# %% wrong="centre_keys" name="mean_of_a_token" loses="centre_keys-centre centre_keys-later centre_keys-first centre_keys-argument centre_keys-refuses choose_scheme-best choose_scheme-error choose_scheme-budget choose_scheme-refuses"
# Averages over the channels of a token.
def centre_keys(keys, n_calibration):
    if not 1 <= n_calibration <= len(keys):
        raise ValueError(f"n_calibration: expected 1 to {len(keys)}, got {n_calibration}")
    centred = keys.copy()
    means = keys.mean(axis=1, dtype=np.float64).astype(np.float32)
    centred[n_calibration:] -= means[n_calibration:, None]
    return centred, means


# %% wrong="centre_keys" name="one_token_more" loses="centre_keys-centre"
# Takes one token more into the mean.
def centre_keys(keys, n_calibration):
    if not 1 <= n_calibration <= len(keys):
        raise ValueError(f"n_calibration: expected 1 to {len(keys)}, got {n_calibration}")
    centre = keys[: n_calibration + 1].mean(axis=0, dtype=np.float64).astype(np.float32)
    centred = keys.copy()
    centred[n_calibration:] -= centre
    return centred, centre


# %% wrong="centre_keys" name="one_token_early" loses="centre_keys-first"
# Centres the last token of the calibration too.
def centre_keys(keys, n_calibration):
    if not 1 <= n_calibration <= len(keys):
        raise ValueError(f"n_calibration: expected 1 to {len(keys)}, got {n_calibration}")
    centre = keys[:n_calibration].mean(axis=0, dtype=np.float64).astype(np.float32)
    centred = keys.copy()
    centred[n_calibration - 1 :] -= centre
    return centred, centre


# %% wrong="centre_keys" name="centre_first" loses="centre_keys-centre centre_keys-later centre_keys-first centre_keys-argument centre_keys-refuses choose_scheme-best choose_scheme-error choose_scheme-budget choose_scheme-refuses"
# Returns the centre first.
def centre_keys(keys, n_calibration):
    if not 1 <= n_calibration <= len(keys):
        raise ValueError(f"n_calibration: expected 1 to {len(keys)}, got {n_calibration}")
    centre = keys[:n_calibration].mean(axis=0, dtype=np.float64).astype(np.float32)
    centred = keys.copy()
    centred[n_calibration:] -= centre
    return centre, centred


# %% wrong="centre_keys" name="keys_alone" loses="centre_keys-centre centre_keys-later centre_keys-first centre_keys-argument centre_keys-refuses choose_scheme-best choose_scheme-error choose_scheme-budget choose_scheme-refuses"
# Returns the keys only: nobody can put them back.
def centre_keys(keys, n_calibration):
    if not 1 <= n_calibration <= len(keys):
        raise ValueError(f"n_calibration: expected 1 to {len(keys)}, got {n_calibration}")
    centred = keys.copy()
    centred[n_calibration:] -= keys[:n_calibration].mean(axis=0, dtype=np.float64).astype(np.float32)
    return centred


# %% wrong="centre_keys" name="float64" loses="centre_keys-centre"
# Keeps everything in float64, twice what is stored.
def centre_keys(keys, n_calibration):
    if not 1 <= n_calibration <= len(keys):
        raise ValueError(f"n_calibration: expected 1 to {len(keys)}, got {n_calibration}")
    centre = keys[:n_calibration].mean(axis=0, dtype=np.float64)
    centred = keys.astype(np.float64)
    centred[n_calibration:] -= centre
    return centred, centre


# %% wrong="centre_keys" name="clamps" loses="centre_keys-refuses"
# Takes what it is given: no tokens make a centre of NaN, too many make one of all.
def centre_keys(keys, n_calibration):
    centre = keys[:n_calibration].mean(axis=0, dtype=np.float64).astype(np.float32)
    centred = keys.copy()
    centred[n_calibration:] -= centre
    return centred, centre


# %% wrong="centre_keys" name="refuses_all_tokens" loses="centre_keys-refuses"
# Takes < for ≤: refuses to calibrate on all tokens.
def centre_keys(keys, n_calibration):
    if not 0 < n_calibration < len(keys):
        raise ValueError(f"n_calibration: expected 1 to {len(keys)}, got {n_calibration}")
    centre = keys[:n_calibration].mean(axis=0, dtype=np.float64).astype(np.float32)
    centred = keys.copy()
    centred[n_calibration:] -= centre
    return centred, centre


# %% right="centre_keys" name="loops"
# One channel after the other, with an exact sum.
def centre_keys(keys, n_calibration):
    n_tokens, width = keys.shape
    if n_calibration < 1 or n_calibration > n_tokens:
        raise ValueError(f"n_calibration: expected 1 to {n_tokens}, got {n_calibration}")
    centred, centre = np.array(keys), np.zeros(width, np.float32)
    for channel in range(width):
        centre[channel] = math.fsum(float(key) for key in keys[:n_calibration, channel]) / n_calibration
        for token in range(n_calibration, n_tokens):
            centred[token, channel] = keys[token, channel] - centre[channel]
    return centred, centre


# %% right="centre_keys" name="concatenate"
# Puts the two parts together, with the mean as a product with a vector of 1/n.
def centre_keys(keys, n_calibration):
    if n_calibration not in range(1, len(keys) + 1):
        raise ValueError(f"n_calibration: expected 1 to {len(keys)}, got {n_calibration}")
    first, rest = keys[:n_calibration], keys[n_calibration:]
    centre = np.float32(first.astype(np.float64).sum(axis=0) / n_calibration)
    return np.concatenate([first, rest - centre]), centre


# %% right="centre_keys" name="where"
# Subtracts everywhere and keeps what is not to be changed.
def centre_keys(keys, n_calibration):
    n_tokens = keys.shape[0]
    if not 0 < n_calibration <= n_tokens:
        raise ValueError(f"n_calibration: expected 1 to {n_tokens}, got {n_calibration}")
    centre = np.einsum("td->d", np.float64(keys[:n_calibration])) / n_calibration
    centre = centre.astype(np.float32)
    return [np.where(np.arange(n_tokens)[:, None] < n_calibration, keys, keys - centre), centre]


# %% wrong="scale_four_over_six" name="always_six" loses="scale_four_over_six-better scale_four_over_six-range"
# Brings every amax to 6.
def scale_four_over_six(x):
    return quantise_e2m1(x)


# %% wrong="scale_four_over_six" name="always_four" loses="scale_four_over_six-better scale_four_over_six-equal"
# Brings every amax to 4.
def scale_four_over_six(x):
    six = quantise_e2m1(x)
    groups = x.reshape(-1, 16)
    scales = round_to_e4m3(np.clip(np.abs(groups).max(axis=1) / 4, 2.0**-9, 448))
    codes = encode_e2m1(groups / scales[:, None])
    return QuantisedE2M1(codes.reshape(x.shape), scales.reshape(six.scales.shape), 1.0)


# %% wrong="scale_four_over_six" name="largest_error" loses="scale_four_over_six-better"
# Compares the largest error of a group, not the sum of squares.
def scale_four_over_six(x):
    six = quantise_e2m1(x)
    groups = x.reshape(-1, 16)
    scales = round_to_e4m3(np.clip(np.abs(groups).max(axis=1) / 4, 2.0**-9, 448))
    codes = encode_e2m1(groups / scales[:, None])
    four = QuantisedE2M1(codes.reshape(x.shape), scales.reshape(six.scales.shape), 1.0)
    worst = [np.abs(np.float64(x) - dequantise(q)).reshape(-1, 16).max(axis=1) for q in (six, four)]
    is_four = (worst[1] < worst[0]).reshape(six.scales.shape)
    codes = np.where(np.repeat(is_four, 16, axis=-1), four.codes, six.codes)
    return QuantisedE2M1(codes, np.where(is_four, four.scales, six.scales), 1.0)


# %% wrong="scale_four_over_six" name="absolute_errors" loses="scale_four_over_six-better"
# Compares sums of absolute errors.
def scale_four_over_six(x):
    six = quantise_e2m1(x)
    groups = x.reshape(-1, 16)
    scales = round_to_e4m3(np.clip(np.abs(groups).max(axis=1) / 4, 2.0**-9, 448))
    codes = encode_e2m1(groups / scales[:, None])
    four = QuantisedE2M1(codes.reshape(x.shape), scales.reshape(six.scales.shape), 1.0)
    sums = [np.abs(np.float64(x) - dequantise(q)).reshape(-1, 16).sum(axis=1) for q in (six, four)]
    is_four = (sums[1] < sums[0]).reshape(six.scales.shape)
    codes = np.where(np.repeat(is_four, 16, axis=-1), four.codes, six.codes)
    return QuantisedE2M1(codes, np.where(is_four, four.scales, six.scales), 1.0)


# %% wrong="scale_four_over_six" name="signed_errors" loses="scale_four_over_six-better"
# Sums errors with their signs, so that they cancel, and squares the sum.
def scale_four_over_six(x):
    six = quantise_e2m1(x)
    groups = x.reshape(-1, 16)
    scales = round_to_e4m3(np.clip(np.abs(groups).max(axis=1) / 4, 2.0**-9, 448))
    codes = encode_e2m1(groups / scales[:, None])
    four = QuantisedE2M1(codes.reshape(x.shape), scales.reshape(six.scales.shape), 1.0)
    sums = [(np.float64(x) - dequantise(q)).reshape(-1, 16).sum(axis=1) ** 2 for q in (six, four)]
    is_four = (sums[1] < sums[0]).reshape(six.scales.shape)
    codes = np.where(np.repeat(is_four, 16, axis=-1), four.codes, six.codes)
    return QuantisedE2M1(codes, np.where(is_four, four.scales, six.scales), 1.0)


# %% wrong="scale_four_over_six" name="in_units_of_the_scale" loses="scale_four_over_six-better"
# Compares the errors of the quotients, each in units of its own scale.
def scale_four_over_six(x):
    six = quantise_e2m1(x)
    groups = np.float64(x.reshape(-1, 16))
    scales = round_to_e4m3(np.clip(np.abs(groups).max(axis=1) / 4, 2.0**-9, 448))
    codes = encode_e2m1(x.reshape(-1, 16) / scales[:, None])
    four = QuantisedE2M1(codes.reshape(x.shape), scales.reshape(six.scales.shape), 1.0)
    squares = []
    for q in (six, four):
        error = (groups - dequantise(q).reshape(-1, 16)) / q.scales.reshape(-1, 1)
        squares.append((error**2).sum(axis=1))
    is_four = (squares[1] < squares[0]).reshape(six.scales.shape)
    codes = np.where(np.repeat(is_four, 16, axis=-1), four.codes, six.codes)
    return QuantisedE2M1(codes, np.where(is_four, four.scales, six.scales), 1.0)


# %% wrong="scale_four_over_six" name="relative_errors" loses="scale_four_over_six-better"
# Compares relative errors of the elements, in which small ones count as much as large ones.
def scale_four_over_six(x):
    six = quantise_e2m1(x)
    groups = x.reshape(-1, 16)
    scales = round_to_e4m3(np.clip(np.abs(groups).max(axis=1) / 4, 2.0**-9, 448))
    codes = encode_e2m1(groups / scales[:, None])
    four = QuantisedE2M1(codes.reshape(x.shape), scales.reshape(six.scales.shape), 1.0)
    size = np.maximum(np.abs(np.float64(x)), 1e-30)
    sums = [(((x - dequantise(q)) / size) ** 2).reshape(-1, 16).sum(axis=1) for q in (six, four)]
    is_four = (sums[1] < sums[0]).reshape(six.scales.shape)
    codes = np.where(np.repeat(is_four, 16, axis=-1), four.codes, six.codes)
    return QuantisedE2M1(codes, np.where(is_four, four.scales, six.scales), 1.0)


# %% wrong="scale_four_over_six" name="one_choice_for_all" loses="scale_four_over_six-better"
# Chooses once for the whole tensor.
def scale_four_over_six(x):
    six = quantise_e2m1(x)
    groups = x.reshape(-1, 16)
    scales = round_to_e4m3(np.clip(np.abs(groups).max(axis=1) / 4, 2.0**-9, 448))
    codes = encode_e2m1(groups / scales[:, None])
    four = QuantisedE2M1(codes.reshape(x.shape), scales.reshape(six.scales.shape), 1.0)
    squares = [((np.float64(x) - dequantise(q)) ** 2).sum() for q in (six, four)]
    return four if squares[1] < squares[0] else six


# %% wrong="scale_four_over_six" name="one_choice_per_row" loses="scale_four_over_six-better"
# Chooses once for all groups of a token.
def scale_four_over_six(x):
    six = quantise_e2m1(x)
    groups = x.reshape(-1, 16)
    scales = round_to_e4m3(np.clip(np.abs(groups).max(axis=1) / 4, 2.0**-9, 448))
    codes = encode_e2m1(groups / scales[:, None])
    four = QuantisedE2M1(codes.reshape(x.shape), scales.reshape(six.scales.shape), 1.0)
    squares = [((np.float64(x) - dequantise(q)) ** 2).sum(axis=-1, keepdims=True) for q in (six, four)]
    is_four = squares[1] < squares[0]
    return QuantisedE2M1(np.where(is_four, four.codes, six.codes), np.where(is_four, four.scales, six.scales), 1.0)


# %% wrong="scale_four_over_six" name="one_choice_per_element" loses="scale_four_over_six-codes scale_four_over_six-range"
# Chooses for each element, though a group has one scale.
def scale_four_over_six(x):
    six = quantise_e2m1(x)
    groups = x.reshape(-1, 16)
    scales = round_to_e4m3(np.clip(np.abs(groups).max(axis=1) / 4, 2.0**-9, 448))
    codes = encode_e2m1(groups / scales[:, None])
    four = QuantisedE2M1(codes.reshape(x.shape), scales.reshape(six.scales.shape), 1.0)
    squares = [(np.float64(x) - dequantise(q)) ** 2 for q in (six, four)]
    is_four = squares[1].reshape(-1, 16).sum(axis=1) < squares[0].reshape(-1, 16).sum(axis=1)
    codes = np.where(squares[1] < squares[0], four.codes, six.codes)
    return QuantisedE2M1(codes, np.where(is_four.reshape(six.scales.shape), four.scales, six.scales), 1.0)


# %% wrong="scale_four_over_six" name="four_where_equal" loses="scale_four_over_six-equal"
# Takes the scale of four where both err the same.
def scale_four_over_six(x):
    six = quantise_e2m1(x)
    groups = x.reshape(-1, 16)
    scales = round_to_e4m3(np.clip(np.abs(groups).max(axis=1) / 4, 2.0**-9, 448))
    codes = encode_e2m1(groups / scales[:, None])
    four = QuantisedE2M1(codes.reshape(x.shape), scales.reshape(six.scales.shape), 1.0)
    squares = [((np.float64(x) - dequantise(q)) ** 2).reshape(-1, 16).sum(axis=1) for q in (six, four)]
    is_four = (squares[1] <= squares[0]).reshape(six.scales.shape)
    codes = np.where(np.repeat(is_four, 16, axis=-1), four.codes, six.codes)
    return QuantisedE2M1(codes, np.where(is_four, four.scales, six.scales), 1.0)


# %% wrong="scale_four_over_six" name="the_worse" loses="scale_four_over_six-better scale_four_over_six-range"
# Turns the comparison round and keeps the worse of the two.
def scale_four_over_six(x):
    six = quantise_e2m1(x)
    groups = x.reshape(-1, 16)
    scales = round_to_e4m3(np.clip(np.abs(groups).max(axis=1) / 4, 2.0**-9, 448))
    codes = encode_e2m1(groups / scales[:, None])
    four = QuantisedE2M1(codes.reshape(x.shape), scales.reshape(six.scales.shape), 1.0)
    squares = [((np.float64(x) - dequantise(q)) ** 2).reshape(-1, 16).sum(axis=1) for q in (six, four)]
    is_four = (squares[1] > squares[0]).reshape(six.scales.shape)
    codes = np.where(np.repeat(is_four, 16, axis=-1), four.codes, six.codes)
    return QuantisedE2M1(codes, np.where(is_four, four.scales, six.scales), 1.0)


# %% wrong="scale_four_over_six" name="scale_not_rounded" loses="scale_four_over_six-scales"
# Leaves the scale of four a float32: no byte holds it.
def scale_four_over_six(x):
    six = quantise_e2m1(x)
    groups = x.reshape(-1, 16)
    scales = np.clip(np.abs(groups).max(axis=1) / np.float32(4), np.float32(2.0**-9), np.float32(448))
    codes = encode_e2m1(groups / scales[:, None])
    four = QuantisedE2M1(codes.reshape(x.shape), scales.reshape(six.scales.shape), 1.0)
    squares = [((np.float64(x) - dequantise(q)) ** 2).reshape(-1, 16).sum(axis=1) for q in (six, four)]
    is_four = (squares[1] < squares[0]).reshape(six.scales.shape)
    codes = np.where(np.repeat(is_four, 16, axis=-1), four.codes, six.codes)
    return QuantisedE2M1(codes, np.where(is_four, four.scales, six.scales), 1.0)


# %% wrong="scale_four_over_six" name="one_and_a_half_times_six" loses="scale_four_over_six-scales"
# Makes the scale of four from the rounded scale of six: rounded twice.
def scale_four_over_six(x):
    six = quantise_e2m1(x)
    groups = x.reshape(-1, 16)
    scales = round_to_e4m3(six.scales.reshape(-1) * np.float32(1.5))
    codes = encode_e2m1(groups / scales[:, None])
    four = QuantisedE2M1(codes.reshape(x.shape), scales.reshape(six.scales.shape), 1.0)
    squares = [((np.float64(x) - dequantise(q)) ** 2).reshape(-1, 16).sum(axis=1) for q in (six, four)]
    is_four = (squares[1] < squares[0]).reshape(six.scales.shape)
    codes = np.where(np.repeat(is_four, 16, axis=-1), four.codes, six.codes)
    return QuantisedE2M1(codes, np.where(is_four, four.scales, six.scales), 1.0)


# %% wrong="scale_four_over_six" name="errors_before_rounding" loses="scale_four_over_six-better scale_four_over_six-range"
# Compares the errors under scales that are not rounded yet, then rounds the one that it took.
def scale_four_over_six(x):
    groups = x.reshape(-1, 16)
    amax = np.abs(groups).max(axis=1)
    squares, found = [], []
    for largest in (6, 4):
        exact = np.clip(amax / np.float32(largest), np.float32(2.0**-9), np.float32(448))
        error = np.float64(groups) - formats.E2M1_VALUES[encode_e2m1(np.abs(groups) / exact[:, None])] * np.sign(
            groups
        ) * np.float64(exact[:, None])
        squares.append((error**2).sum(axis=1))
        found.append(round_to_e4m3(exact))
    scales = np.where(squares[1] < squares[0], found[1], found[0])
    codes = encode_e2m1(groups / scales[:, None])
    return QuantisedE2M1(codes.reshape(x.shape), scales.reshape(*x.shape[:-1], -1), 1.0)


# %% wrong="scale_four_over_six" name="no_floor" loses="scale_four_over_six-range"
# Forgets that no scale is below 2^-9: where the scale of four becomes 0, it is divided by.
def scale_four_over_six(x):
    six = quantise_e2m1(x)
    groups = x.reshape(-1, 16)
    scales = round_to_e4m3(np.abs(groups).max(axis=1) / np.float32(4))
    codes = encode_e2m1(groups / scales[:, None])
    four = QuantisedE2M1(codes.reshape(x.shape), scales.reshape(six.scales.shape), 1.0)
    squares = [((np.float64(x) - dequantise(q)) ** 2).reshape(-1, 16).sum(axis=1) for q in (six, four)]
    is_four = (squares[1] < squares[0]).reshape(six.scales.shape)
    codes = np.where(np.repeat(is_four, 16, axis=-1), four.codes, six.codes)
    return QuantisedE2M1(codes, np.where(is_four, four.scales, six.scales), 1.0)


# %% wrong="scale_four_over_six" name="codes_of_six" loses="scale_four_over_six-codes scale_four_over_six-range"
# Changes the scale and keeps the codes of six.
def scale_four_over_six(x):
    six = quantise_e2m1(x)
    groups = x.reshape(-1, 16)
    scales = round_to_e4m3(np.clip(np.abs(groups).max(axis=1) / 4, 2.0**-9, 448))
    codes = encode_e2m1(groups / scales[:, None])
    four = QuantisedE2M1(codes.reshape(x.shape), scales.reshape(six.scales.shape), 1.0)
    squares = [((np.float64(x) - dequantise(q)) ** 2).reshape(-1, 16).sum(axis=1) for q in (six, four)]
    is_four = (squares[1] < squares[0]).reshape(six.scales.shape)
    return QuantisedE2M1(six.codes, np.where(is_four, four.scales, six.scales), 1.0)


# %% wrong="scale_four_over_six" name="tensor_scale" loses="scale_four_over_six-scales scale_four_over_six-codes scale_four_over_six-better scale_four_over_six-equal"
# Adds a tensor scale, as NVFP4 has; there is none here.
def scale_four_over_six(x):
    t = max(np.float32(np.abs(x).max(initial=0) / 2688), np.float32(2.0**-149))
    six = quantise_e2m1(x / t)
    groups = (x / t).reshape(-1, 16)
    scales = round_to_e4m3(np.clip(np.abs(groups).max(axis=1) / 4, 2.0**-9, 448))
    codes = encode_e2m1(groups / scales[:, None])
    four = QuantisedE2M1(codes.reshape(x.shape), scales.reshape(six.scales.shape), 1.0)
    squares = [((np.float64(x / t) - dequantise(q)) ** 2).reshape(-1, 16).sum(axis=1) for q in (six, four)]
    is_four = (squares[1] < squares[0]).reshape(six.scales.shape)
    codes = np.where(np.repeat(is_four, 16, axis=-1), four.codes, six.codes)
    return QuantisedE2M1(codes, np.where(is_four, four.scales, six.scales), float(t))


# %% wrong="scale_four_over_six" name="values" loses="scale_four_over_six-scales scale_four_over_six-codes scale_four_over_six-better scale_four_over_six-equal scale_four_over_six-range choose_scheme-best choose_scheme-error choose_scheme-budget choose_scheme-refuses"
# Returns the values, not codes and scales.
def scale_four_over_six(x):
    six = quantise_e2m1(x)
    groups = x.reshape(-1, 16)
    scales = round_to_e4m3(np.clip(np.abs(groups).max(axis=1) / 4, 2.0**-9, 448))
    codes = encode_e2m1(groups / scales[:, None])
    four = QuantisedE2M1(codes.reshape(x.shape), scales.reshape(six.scales.shape), 1.0)
    squares = [((np.float64(x) - dequantise(q)) ** 2).reshape(-1, 16).sum(axis=1) for q in (six, four)]
    is_four = (squares[1] < squares[0]).reshape(six.scales.shape)
    return np.where(np.repeat(is_four, 16, axis=-1), dequantise(four), dequantise(six))


# %% right="scale_four_over_six" name="loops"
# One group after the other, in float64.
def scale_four_over_six(x):
    quantise_e2m1(x)  # refuses what is to be refused
    n_groups = x.shape[-1] // 16
    codes, scales = np.zeros(x.shape, np.uint8), np.zeros((*x.shape[:-1], n_groups), np.float32)
    for index in np.ndindex(*scales.shape):
        place = (*index[:-1], slice(16 * index[-1], 16 * index[-1] + 16))
        group = x[place].astype(np.float64)
        amax = float(np.abs(group).max())
        best = math.inf
        for largest in (6, 4):
            scale = float(round_to_e4m3(np.float64(min(max(amax / largest, 2.0**-9), 448.0))))
            found = encode_e2m1(group / scale)
            values = [float(formats.E2M1_VALUES[c % 8]) * (-1 if c > 7 else 1) for c in found]
            error = sum((a - scale * b) ** 2 for a, b in zip(group.tolist(), values, strict=True))
            if error < best:
                best, codes[place], scales[index] = error, found, scale
    return QuantisedE2M1(codes, scales, 1.0)


# %% right="scale_four_over_six" name="smallest_first"
# Both ways at once, on an axis of their own; argmin takes the first of equal ones.
def scale_four_over_six(x):
    shape = quantise_e2m1(x).scales.shape
    groups = np.float64(x).reshape(-1, 1, 16)
    amax = np.abs(groups).max(axis=-1)
    scales = round_to_e4m3(np.clip(amax / np.array([6.0, 4.0]), 2.0**-9, 448.0))
    codes = encode_e2m1(groups / scales[..., None])
    values = np.concatenate([formats.E2M1_VALUES, -formats.E2M1_VALUES])[codes] * np.float64(scales[..., None])
    best = ((groups - values) ** 2).sum(axis=-1).argmin(axis=-1)
    every = np.arange(len(best))
    return QuantisedE2M1(codes[every, best].reshape(x.shape), scales[every, best].reshape(shape), 1.0)


# %% right="scale_four_over_six" name="flat"
# Chooses the scales first, on flat groups, then encodes once.
def scale_four_over_six(x):
    six = quantise_e2m1(x)
    groups = np.asarray(x, np.float32).reshape(-1, 16)
    quarter = np.abs(groups).max(axis=1) * np.float32(0.25)
    candidates_ = [six.scales.ravel(), round_to_e4m3(np.maximum(quarter, np.float32(2.0**-9)))]

    def squares(scales):
        quantised = QuantisedE2M1(encode_e2m1(groups / scales[:, None]), scales[:, None], 1.0)
        return np.sum(np.square(groups - np.float64(dequantise(quantised))), axis=1)

    scales = np.where(squares(candidates_[1]) < squares(candidates_[0]), candidates_[1], candidates_[0])
    codes = encode_e2m1(groups / scales[:, None]).reshape(x.shape)
    return QuantisedE2M1(codes, scales.reshape(six.scales.shape), 1.0)


# %% wrong="scale_four_over_six" name="smallest_normal_scale" loses="scale_four_over_six-range"
# Ends the second scale at 2^-6, the smallest normal one.
def scale_four_over_six(x):
    six = quantise_e2m1(x)
    groups = x.astype(np.float32).reshape(*six.scales.shape, 16)
    scales = round_to_e4m3((np.abs(groups).max(axis=-1) / np.float32(4)).clip(2.0**-6, 448))
    codes = encode_e2m1(groups / scales[..., None])
    back = np.where(codes > 7, -1, 1) * formats.E2M1_VALUES[codes & 7] * scales[..., None].astype(float)
    errors = [
        ((groups - part.reshape(groups.shape).astype(float)) ** 2).sum(axis=-1) for part in (back, dequantise(six))
    ]
    better = errors[0] < errors[1]
    codes = np.where(better[..., None], codes, six.codes.reshape(groups.shape)).reshape(x.shape)
    return QuantisedE2M1(codes, np.where(better, scales, six.scales), 1.0)


# %% wrong="channel_error" name="per_token" loses="channel_error-channels channel_error-zeros"
# Measures each token, not each channel.
def channel_error(x, decoded):
    if decoded.shape != x.shape:
        raise ValueError(f"decoded: expected shape {x.shape}, got {decoded.shape}")
    size = np.linalg.norm(np.asarray(x, np.float64), axis=1)
    error = np.linalg.norm(np.asarray(x, np.float64) - decoded, axis=1)
    return np.divide(error, size, out=np.where(error > 0, np.inf, 0.0), where=size > 0)


# %% wrong="channel_error" name="squared" loses="channel_error-channels"
# Forgets the square root.
def channel_error(x, decoded):
    if decoded.shape != x.shape:
        raise ValueError(f"decoded: expected shape {x.shape}, got {decoded.shape}")
    size = np.square(x, dtype=np.float64).sum(axis=0)
    error = ((np.asarray(x, np.float64) - decoded) ** 2).sum(axis=0)
    return np.divide(error, size, out=np.where(error > 0, np.inf, 0.0), where=size > 0)


# %% wrong="channel_error" name="zero_over_zero" loses="channel_error-zeros"
# Divides zero by zero in a channel of zeros.
def channel_error(x, decoded):
    if decoded.shape != x.shape:
        raise ValueError(f"decoded: expected shape {x.shape}, got {decoded.shape}")
    x = np.asarray(x, np.float64)
    return np.linalg.norm(x - decoded, axis=0) / np.linalg.norm(x, axis=0)


# %% wrong="channel_error" name="zeros_are_always_right" loses="channel_error-zeros"
# Gives a channel of zeros no error, whatever came back.
def channel_error(x, decoded):
    if decoded.shape != x.shape:
        raise ValueError(f"decoded: expected shape {x.shape}, got {decoded.shape}")
    x = np.asarray(x, np.float64)
    size = np.linalg.norm(x, axis=0)
    return np.where(size > 0, np.linalg.norm(x - decoded, axis=0) / np.where(size > 0, size, 1), 0)


# %% wrong="channel_error" name="zeros_are_always_wrong" loses="channel_error-zeros"
# Gives a channel of zeros an infinite error, whatever came back.
def channel_error(x, decoded):
    if decoded.shape != x.shape:
        raise ValueError(f"decoded: expected shape {x.shape}, got {decoded.shape}")
    x = np.asarray(x, np.float64)
    size = np.linalg.norm(x, axis=0)
    return np.where(size > 0, np.linalg.norm(x - decoded, axis=0) / np.where(size > 0, size, 1), np.inf)


# %% wrong="channel_error" name="absolute_where_zero" loses="channel_error-zeros"
# Gives a channel of zeros its absolute error.
def channel_error(x, decoded):
    if decoded.shape != x.shape:
        raise ValueError(f"decoded: expected shape {x.shape}, got {decoded.shape}")
    x = np.asarray(x, np.float64)
    size = np.linalg.norm(x, axis=0)
    return np.linalg.norm(x - decoded, axis=0) / np.where(size > 0, size, 1)


# %% wrong="channel_error" name="epsilon" loses="channel_error-channels channel_error-zeros"
# Adds a small number to every divisor, which is not small beside a small channel.
def channel_error(x, decoded):
    if decoded.shape != x.shape:
        raise ValueError(f"decoded: expected shape {x.shape}, got {decoded.shape}")
    x = np.asarray(x, np.float64)
    return np.linalg.norm(x - decoded, axis=0) / (np.linalg.norm(x, axis=0) + 1e-6)


# %% wrong="channel_error" name="by_what_came_back" loses="channel_error-channels channel_error-zeros"
# Divides by the size of what came back.
def channel_error(x, decoded):
    if decoded.shape != x.shape:
        raise ValueError(f"decoded: expected shape {x.shape}, got {decoded.shape}")
    size = np.linalg.norm(np.asarray(decoded, np.float64), axis=0)
    error = np.linalg.norm(np.asarray(x, np.float64) - decoded, axis=0)
    return np.divide(error, size, out=np.where(error > 0, np.inf, 0.0), where=size > 0)


# %% wrong="channel_error" name="mean_of_relative_errors" loses="channel_error-channels"
# Averages the relative errors of the elements.
def channel_error(x, decoded):
    if decoded.shape != x.shape:
        raise ValueError(f"decoded: expected shape {x.shape}, got {decoded.shape}")
    x = np.asarray(x, np.float64)
    error, size = np.abs(x - decoded), np.abs(x)
    return np.divide(error, size, out=np.where(error > 0, np.inf, 0.0), where=size > 0).mean(axis=0)


# %% wrong="channel_error" name="largest" loses="channel_error-channels"
# Compares the largest error with the largest element.
def channel_error(x, decoded):
    if decoded.shape != x.shape:
        raise ValueError(f"decoded: expected shape {x.shape}, got {decoded.shape}")
    size = np.abs(np.asarray(x, np.float64)).max(axis=0)
    error = np.abs(np.asarray(x, np.float64) - decoded).max(axis=0)
    return np.divide(error, size, out=np.where(error > 0, np.inf, 0.0), where=size > 0)


# %% wrong="channel_error" name="absolute_values" loses="channel_error-channels"
# Divides sums of absolute values.
def channel_error(x, decoded):
    if decoded.shape != x.shape:
        raise ValueError(f"decoded: expected shape {x.shape}, got {decoded.shape}")
    size = np.abs(np.asarray(x, np.float64)).sum(axis=0)
    error = np.abs(np.asarray(x, np.float64) - decoded).sum(axis=0)
    return np.divide(error, size, out=np.where(error > 0, np.inf, 0.0), where=size > 0)


# %% wrong="channel_error" name="difference_of_sizes" loses="channel_error-channels"
# Compares the sizes of the two channels: an error that keeps the size is not seen.
def channel_error(x, decoded):
    if decoded.shape != x.shape:
        raise ValueError(f"decoded: expected shape {x.shape}, got {decoded.shape}")
    size = np.linalg.norm(np.asarray(x, np.float64), axis=0)
    error = np.abs(size - np.linalg.norm(np.asarray(decoded, np.float64), axis=0))
    return np.divide(error, size, out=np.where(error > 0, np.inf, 0.0), where=size > 0)


# %% wrong="channel_error" name="whole_tensor" loses="channel_error-channels channel_error-zeros"
# Divides by the size of the whole tensor.
def channel_error(x, decoded):
    if decoded.shape != x.shape:
        raise ValueError(f"decoded: expected shape {x.shape}, got {decoded.shape}")
    x = np.asarray(x, np.float64)
    error, size = np.linalg.norm(x - decoded, axis=0), np.linalg.norm(x)
    return error / size if size > 0 else np.where(error > 0, np.inf, 0.0)


# %% wrong="channel_error" name="around_the_mean" loses="channel_error-channels"
# Measures a channel from its mean: its standard deviation, not its size.
def channel_error(x, decoded):
    if decoded.shape != x.shape:
        raise ValueError(f"decoded: expected shape {x.shape}, got {decoded.shape}")
    x = np.asarray(x, np.float64)
    error, size = np.linalg.norm(x - decoded, axis=0), np.linalg.norm(x - x.mean(axis=0), axis=0)
    return np.divide(error, size, out=np.where(error > 0, np.inf, 0.0), where=size > 0)


# %% wrong="channel_error" name="mean" loses="channel_error-channels channel_error-zeros choose_scheme-best choose_scheme-error choose_scheme-budget choose_scheme-refuses"
# Returns one number, the mean over all channels.
def channel_error(x, decoded):
    if decoded.shape != x.shape:
        raise ValueError(f"decoded: expected shape {x.shape}, got {decoded.shape}")
    size = np.linalg.norm(np.asarray(x, np.float64), axis=0)
    error = np.linalg.norm(np.asarray(x, np.float64) - decoded, axis=0)
    return float(np.divide(error, size, out=np.where(error > 0, np.inf, 0.0), where=size > 0).mean())


# %% wrong="channel_error" name="stretched" loses="channel_error-refuses"
# Lets NumPy stretch what has another shape.
def channel_error(x, decoded):
    size = np.linalg.norm(np.asarray(x, np.float64), axis=0)
    error = np.linalg.norm(np.asarray(x, np.float64) - decoded, axis=0)
    return np.divide(error, size, out=np.where(error > 0, np.inf, 0.0), where=size > 0)


# %% right="channel_error" name="loops"
# One channel after the other, with math.hypot.
def channel_error(x, decoded):
    if x.shape != decoded.shape:
        raise ValueError(f"decoded: expected the shape of x, {x.shape}, got {decoded.shape}")
    errors = []
    for channel in range(x.shape[1]):
        a, b = x[:, channel].tolist(), decoded[:, channel].tolist()
        size = math.hypot(*a)
        error = math.hypot(*(p - q for p, q in zip(a, b, strict=True)))
        errors.append(error / size if size > 0 else (math.inf if error > 0 else 0.0))
    return np.array(errors)


# %% right="channel_error" name="einsum"
# Sums of squares by einsum, zeros mended afterwards.
def channel_error(x, decoded):
    if np.shape(x) != np.shape(decoded):
        raise ValueError("decoded: expected the shape of x")
    x, decoded = x.astype(np.float64), decoded.astype(np.float64)
    size, error = (np.einsum("td,td->d", y, y) for y in (x, x - decoded))
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.sqrt(error / size)
    relative[(size == 0) & (error == 0)] = 0
    return relative


# %% right="channel_error" name="root_mean_squares"
# Root mean squares in place of norms: the number of tokens cancels.
def channel_error(x, decoded):
    def rms(y):
        return np.sqrt(np.mean(np.square(y, dtype=np.float64), axis=0))

    if x.shape != decoded.shape:
        raise ValueError(f"x and decoded: expected one shape, got {x.shape} and {decoded.shape}")
    size, error = rms(x), rms(np.subtract(x, decoded, dtype=np.float64))
    found = np.full(x.shape[1], np.inf)
    found[size > 0] = error[size > 0] / size[size > 0]
    found[(size == 0) & (error == 0)] = 0.0
    return found


# %% wrong="choose_scheme" name="ignores_the_budget" loses="choose_scheme-best choose_scheme-error choose_scheme-budget"
# Takes the best of all, whatever it costs.
def choose_scheme(x, budget_bits):
    parts = Parts(quantise_with_granularity, split_outliers, rotate_hadamard, centre_keys, scale_four_over_six)
    found = candidates(x, parts)
    if all(cached.bits_per_element > budget_bits for cached in found.values()):
        raise ValueError(f"budget_bits: nothing fits {budget_bits}")
    return min(found, key=lambda name: channel_error(x, found[name].decoded).mean())


# %% wrong="choose_scheme" name="strictly_below" loses="choose_scheme-budget"
# Takes < for ≤: what costs exactly the budget is left out.
def choose_scheme(x, budget_bits):
    parts = Parts(quantise_with_granularity, split_outliers, rotate_hadamard, centre_keys, scale_four_over_six)
    found = {name: cached for name, cached in candidates(x, parts).items() if cached.bits_per_element < budget_bits}
    if not found:
        raise ValueError(f"budget_bits: nothing fits {budget_bits}")
    return min(found, key=lambda name: channel_error(x, found[name].decoded).mean())


# %% wrong="choose_scheme" name="whole_tensor" loses="choose_scheme-error"
# Measures the error of the whole tensor, in which one loud channel hides all others.
def choose_scheme(x, budget_bits):
    parts = Parts(quantise_with_granularity, split_outliers, rotate_hadamard, centre_keys, scale_four_over_six)
    found = {name: cached for name, cached in candidates(x, parts).items() if cached.bits_per_element <= budget_bits}
    if not found:
        raise ValueError(f"budget_bits: nothing fits {budget_bits}")
    return min(found, key=lambda name: np.linalg.norm(np.float64(x) - found[name].decoded))


# %% wrong="choose_scheme" name="worst_channel" loses="choose_scheme-error"
# Compares the worst channels, not the mean.
def choose_scheme(x, budget_bits):
    parts = Parts(quantise_with_granularity, split_outliers, rotate_hadamard, centre_keys, scale_four_over_six)
    found = {name: cached for name, cached in candidates(x, parts).items() if cached.bits_per_element <= budget_bits}
    if not found:
        raise ValueError(f"budget_bits: nothing fits {budget_bits}")
    return min(found, key=lambda name: channel_error(x, found[name].decoded).max())


# %% wrong="choose_scheme" name="median_channel" loses="choose_scheme-error"
# Compares the median channels, not the mean.
def choose_scheme(x, budget_bits):
    parts = Parts(quantise_with_granularity, split_outliers, rotate_hadamard, centre_keys, scale_four_over_six)
    found = {name: cached for name, cached in candidates(x, parts).items() if cached.bits_per_element <= budget_bits}
    if not found:
        raise ValueError(f"budget_bits: nothing fits {budget_bits}")
    return min(found, key=lambda name: np.median(channel_error(x, found[name].decoded)))


# %% wrong="choose_scheme" name="most_bits" loses="choose_scheme-best choose_scheme-error"
# Takes what uses most of the budget, as if more bits were always better.
def choose_scheme(x, budget_bits):
    parts = Parts(quantise_with_granularity, split_outliers, rotate_hadamard, centre_keys, scale_four_over_six)
    found = {name: cached for name, cached in candidates(x, parts).items() if cached.bits_per_element <= budget_bits}
    if not found:
        raise ValueError(f"budget_bits: nothing fits {budget_bits}")
    return max(found, key=lambda name: found[name].bits_per_element)


# %% wrong="choose_scheme" name="fewest_bits" loses="choose_scheme-best choose_scheme-error choose_scheme-budget"
# Takes the cheapest.
def choose_scheme(x, budget_bits):
    parts = Parts(quantise_with_granularity, split_outliers, rotate_hadamard, centre_keys, scale_four_over_six)
    found = {name: cached for name, cached in candidates(x, parts).items() if cached.bits_per_element <= budget_bits}
    if not found:
        raise ValueError(f"budget_bits: nothing fits {budget_bits}")
    return min(found, key=lambda name: found[name].bits_per_element)


# %% wrong="choose_scheme" name="whole_bits" loses="choose_scheme-best"
# Counts the codes and forgets the metadata, by cutting the bits down to a whole number.
def choose_scheme(x, budget_bits):
    parts = Parts(quantise_with_granularity, split_outliers, rotate_hadamard, centre_keys, scale_four_over_six)
    found = {
        name: cached for name, cached in candidates(x, parts).items() if int(cached.bits_per_element) <= budget_bits
    }
    if not found:
        raise ValueError(f"budget_bits: nothing fits {budget_bits}")
    return min(found, key=lambda name: channel_error(x, found[name].decoded).mean())


# %% wrong="choose_scheme" name="error_times_bits" loses="choose_scheme-best"
# Weighs the error by the bits, though all that fits is affordable.
def choose_scheme(x, budget_bits):
    parts = Parts(quantise_with_granularity, split_outliers, rotate_hadamard, centre_keys, scale_four_over_six)
    found = {name: cached for name, cached in candidates(x, parts).items() if cached.bits_per_element <= budget_bits}
    if not found:
        raise ValueError(f"budget_bits: nothing fits {budget_bits}")
    return min(found, key=lambda name: channel_error(x, found[name].decoded).mean() * found[name].bits_per_element)


# %% wrong="choose_scheme" name="always_the_same" loses="choose_scheme-best choose_scheme-error choose_scheme-budget"
# Takes what was best in the chapter, without a measurement.
def choose_scheme(x, budget_bits):
    if budget_bits < 2:
        raise ValueError(f"budget_bits: nothing fits {budget_bits}")
    return "E2M1, centred, four over six" if budget_bits > 4.6 else "E2M1, four over six"


# %% wrong="choose_scheme" name="nothing_fits" loses="choose_scheme-refuses"
# Takes the cheapest where nothing fits the budget.
def choose_scheme(x, budget_bits):
    parts = Parts(quantise_with_granularity, split_outliers, rotate_hadamard, centre_keys, scale_four_over_six)
    found = candidates(x, parts)
    fitting = [name for name, cached in found.items() if cached.bits_per_element <= budget_bits]
    if not fitting:
        return min(found, key=lambda name: found[name].bits_per_element)
    return min(fitting, key=lambda name: channel_error(x, found[name].decoded).mean())


# %% wrong="choose_scheme" name="none" loses="choose_scheme-refuses"
# Returns None where nothing fits the budget.
def choose_scheme(x, budget_bits):
    parts = Parts(quantise_with_granularity, split_outliers, rotate_hadamard, centre_keys, scale_four_over_six)
    best, best_error = None, math.inf
    for name, cached in candidates(x, parts).items():
        error = channel_error(x, cached.decoded).mean()
        if cached.bits_per_element <= budget_bits and error < best_error:
            best, best_error = name, error
    return best


# %% wrong="choose_scheme" name="name_and_error" loses="choose_scheme-best choose_scheme-error choose_scheme-budget"
# Returns the error beside the name.
def choose_scheme(x, budget_bits):
    parts = Parts(quantise_with_granularity, split_outliers, rotate_hadamard, centre_keys, scale_four_over_six)
    found = candidates(x, parts)
    errors = [
        (float(channel_error(x, cached.decoded).mean()), name)
        for name, cached in found.items()
        if cached.bits_per_element <= budget_bits
    ]
    if not errors:
        raise ValueError(f"budget_bits: nothing fits {budget_bits}")
    return min(errors)[::-1]


# %% wrong="choose_scheme" name="a_little_slack" loses="choose_scheme-best"
# Lets a candidate exceed the budget by a little.
def choose_scheme(x, budget_bits):
    parts = Parts(quantise_with_granularity, split_outliers, rotate_hadamard, centre_keys, scale_four_over_six)
    found = candidates(x, parts)
    fitting = {name: c for name, c in found.items() if c.bits_per_element <= budget_bits + 0.005}
    if not fitting:
        raise ValueError(f"budget_bits: nothing fits {budget_bits}")
    return min(fitting, key=lambda name: channel_error(x, fitting[name].decoded).mean())


# %% right="choose_scheme" name="loops"
# One candidate after the other, keeping the best so far.
def choose_scheme(x, budget_bits):
    parts = Parts(quantise_with_granularity, split_outliers, rotate_hadamard, centre_keys, scale_four_over_six)
    best = (math.inf, "")
    for name, (decoded, bits) in candidates(x, parts).items():
        if bits <= budget_bits:
            best = min(best, (sum(float(error) for error in channel_error(x, decoded)) / x.shape[1], name))
    if not best[1]:
        raise ValueError(f"budget_bits: nothing stores {budget_bits} bits or less")
    return best[1]


# %% right="choose_scheme" name="sorted"
# Sorts by mean channel error, measured in float64 here, and takes the first that fits.
def choose_scheme(x, budget_bits):
    parts = Parts(quantise_with_granularity, split_outliers, rotate_hadamard, centre_keys, scale_four_over_six)
    size = np.maximum(np.sqrt(np.square(x, dtype=np.float64).sum(axis=0)), 1e-300)
    found = candidates(x, parts)
    error = {
        name: np.mean(np.sqrt(np.square(np.float64(x) - cached.decoded).sum(axis=0)) / size)
        for name, cached in found.items()
    }
    for name in sorted(found, key=error.__getitem__):
        if found[name].bits_per_element <= budget_bits:
            return name
    raise ValueError(f"budget_bits: expected more than {budget_bits}")


# %% right="choose_scheme" name="array"
# All errors as an array, infinite where the budget is exceeded.
def choose_scheme(x, budget_bits):
    parts = Parts(quantise_with_granularity, split_outliers, rotate_hadamard, centre_keys, scale_four_over_six)
    names, cached = zip(*candidates(x, parts).items(), strict=True)
    errors = np.array([channel_error(x, one.decoded).mean() for one in cached])
    errors[np.array([one.bits_per_element for one in cached]) > budget_bits] = np.inf
    if np.isinf(errors).all():
        raise ValueError(f"budget_bits: {budget_bits} are too few")
    return names[int(errors.argmin())]


# %% wrong="diagnose" name="always_outlier" loses="diagnose-stale_amax diagnose-wrong_axis diagnose-outlier diagnose-scale_floor"
# Blames the loudest channel of the tensor, whatever the case.
def diagnose(x, decoded, scales):
    channel = int(np.abs(x).max(axis=0).argmax())
    return Diagnosis(Cause.OUTLIER, channel // 16, channel)


# %% wrong="diagnose" name="loudest_of_all" loses="diagnose-outlier"
# Tells the causes apart, and takes the loudest channel of the whole tensor for the outlier.
def diagnose(x, decoded, scales):
    grouped = scales.reshape(len(x), -1, 16)
    if np.any(grouped != grouped[..., :1]):
        return Diagnosis(Cause.WRONG_AXIS, None, None)
    is_wrong = grouped[..., 0] != quantise_e2m1(x).scales
    if is_wrong.any():
        return Diagnosis(Cause.STALE_AMAX, int(is_wrong.sum(axis=0).argmax()), None)
    size = np.sqrt(np.mean(np.square(x, dtype=np.float64), axis=0)).reshape(-1, 16).max(axis=1)
    if size.min() < 2.0**-9:
        return Diagnosis(Cause.SCALE_FLOOR, int(size.argmin()), None)
    channel = int(np.abs(x).max(axis=0).argmax())
    return Diagnosis(Cause.OUTLIER, channel // 16, channel)


# %% wrong="diagnose" name="worst_channel" loses="diagnose-outlier"
# Takes the channel with the largest error for the outlier: that is its victim.
def diagnose(x, decoded, scales):
    grouped = scales.reshape(len(x), -1, 16)
    if np.any(grouped != grouped[..., :1]):
        return Diagnosis(Cause.WRONG_AXIS, None, None)
    is_wrong = grouped[..., 0] != quantise_e2m1(x).scales
    if is_wrong.any():
        return Diagnosis(Cause.STALE_AMAX, int(is_wrong.sum(axis=0).argmax()), None)
    size = np.sqrt(np.mean(np.square(x, dtype=np.float64), axis=0)).reshape(-1, 16).max(axis=1)
    if size.min() < 2.0**-9:
        return Diagnosis(Cause.SCALE_FLOOR, int(size.argmin()), None)
    channel = int(channel_error(x, decoded).argmax())
    return Diagnosis(Cause.OUTLIER, channel // 16, channel)


# %% wrong="diagnose" name="no_channel" loses="diagnose-outlier"
# Names the group of an outlier and leaves the channel out.
def diagnose(x, decoded, scales):
    grouped = scales.reshape(len(x), -1, 16)
    if np.any(grouped != grouped[..., :1]):
        return Diagnosis(Cause.WRONG_AXIS, None, None)
    is_wrong = grouped[..., 0] != quantise_e2m1(x).scales
    if is_wrong.any():
        return Diagnosis(Cause.STALE_AMAX, int(is_wrong.sum(axis=0).argmax()), None)
    size = np.sqrt(np.mean(np.square(x, dtype=np.float64), axis=0)).reshape(-1, 16)
    if size.max(axis=1).min() < 2.0**-9:
        return Diagnosis(Cause.SCALE_FLOOR, int(size.max(axis=1).argmin()), None)
    group = int((size.max(axis=1) / np.median(size, axis=1)).argmax())
    return Diagnosis(Cause.OUTLIER, group, None)


# %% wrong="diagnose" name="cause_alone" loses="diagnose-stale_amax diagnose-outlier diagnose-scale_floor"
# Names the cause and nothing else.
def diagnose(x, decoded, scales):
    grouped = scales.reshape(len(x), -1, 16)
    if np.any(grouped != grouped[..., :1]):
        return Diagnosis(Cause.WRONG_AXIS, None, None)
    if np.any(grouped[..., 0] != quantise_e2m1(x).scales):
        return Diagnosis(Cause.STALE_AMAX, None, None)
    size = np.sqrt(np.mean(np.square(x, dtype=np.float64), axis=0)).reshape(-1, 16)
    if size.max(axis=1).min() < 2.0**-9:
        return Diagnosis(Cause.SCALE_FLOOR, None, None)
    return Diagnosis(Cause.OUTLIER, None, None)


# %% wrong="diagnose" name="counted_from_one" loses="diagnose-stale_amax diagnose-outlier diagnose-scale_floor"
# Counts groups from one.
def diagnose(x, decoded, scales):
    grouped = scales.reshape(len(x), -1, 16)
    if np.any(grouped != grouped[..., :1]):
        return Diagnosis(Cause.WRONG_AXIS, None, None)
    is_wrong = grouped[..., 0] != quantise_e2m1(x).scales
    if is_wrong.any():
        return Diagnosis(Cause.STALE_AMAX, int(is_wrong.sum(axis=0).argmax()) + 1, None)
    size = np.sqrt(np.mean(np.square(x, dtype=np.float64), axis=0)).reshape(-1, 16)
    if size.max(axis=1).min() < 2.0**-9:
        return Diagnosis(Cause.SCALE_FLOOR, int(size.max(axis=1).argmin()) + 1, None)
    channel = int((size / np.median(size, axis=1, keepdims=True)).argmax())
    return Diagnosis(Cause.OUTLIER, channel // 16 + 1, channel)


# %% wrong="diagnose" name="channel_within_the_group" loses="diagnose-outlier"
# Counts the channel from the beginning of its group.
def diagnose(x, decoded, scales):
    grouped = scales.reshape(len(x), -1, 16)
    if np.any(grouped != grouped[..., :1]):
        return Diagnosis(Cause.WRONG_AXIS, None, None)
    is_wrong = grouped[..., 0] != quantise_e2m1(x).scales
    if is_wrong.any():
        return Diagnosis(Cause.STALE_AMAX, int(is_wrong.sum(axis=0).argmax()), None)
    size = np.sqrt(np.mean(np.square(x, dtype=np.float64), axis=0)).reshape(-1, 16)
    if size.max(axis=1).min() < 2.0**-9:
        return Diagnosis(Cause.SCALE_FLOOR, int(size.max(axis=1).argmin()), None)
    channel = int((size / np.median(size, axis=1, keepdims=True)).argmax())
    return Diagnosis(Cause.OUTLIER, channel // 16, channel % 16)


# %% wrong="diagnose" name="labels_everywhere" loses="diagnose-stale_amax diagnose-wrong_axis diagnose-scale_floor"
# Names a group and a channel in every case, those with the largest error where there are none.
def diagnose(x, decoded, scales):
    grouped = scales.reshape(len(x), -1, 16)
    worst = int(channel_error(x, decoded).argmax())
    if np.any(grouped != grouped[..., :1]):
        return Diagnosis(Cause.WRONG_AXIS, worst // 16, worst)
    is_wrong = grouped[..., 0] != quantise_e2m1(x).scales
    if is_wrong.any():
        return Diagnosis(Cause.STALE_AMAX, int(is_wrong.sum(axis=0).argmax()), worst)
    size = np.sqrt(np.mean(np.square(x, dtype=np.float64), axis=0)).reshape(-1, 16)
    if size.max(axis=1).min() < 2.0**-9:
        return Diagnosis(Cause.SCALE_FLOOR, int(size.max(axis=1).argmin()), worst)
    channel = int((size / np.median(size, axis=1, keepdims=True)).argmax())
    return Diagnosis(Cause.OUTLIER, channel // 16, channel)


# %% wrong="diagnose" name="largest_error" loses="diagnose-stale_amax diagnose-outlier diagnose-scale_floor"
# Takes the group with the largest absolute error for the culprit: a loud group has it without any fault.
def diagnose(x, decoded, scales):
    grouped = scales.reshape(len(x), -1, 16)
    if np.any(grouped != grouped[..., :1]):
        return Diagnosis(Cause.WRONG_AXIS, None, None)
    error = np.square(x - decoded, dtype=np.float64).sum(axis=0).reshape(-1, 16)
    group = int(error.sum(axis=1).argmax())
    if np.any(grouped[..., 0] != quantise_e2m1(x).scales):
        return Diagnosis(Cause.STALE_AMAX, group, None)
    size = np.sqrt(np.mean(np.square(x, dtype=np.float64), axis=0)).reshape(-1, 16)
    if size.max(axis=1).min() < 2.0**-9:
        return Diagnosis(Cause.SCALE_FLOOR, group, None)
    return Diagnosis(Cause.OUTLIER, group, 16 * group + int(size[group].argmax()))


# %% wrong="diagnose" name="any_smallest_scale" loses="diagnose-outlier diagnose-scale_floor"
# Takes any scale of 2^-9 for a floor that was hit; tokens of zeros have it too, and it suits them.
def diagnose(x, decoded, scales):
    grouped = scales.reshape(len(x), -1, 16)
    if np.any(grouped != grouped[..., :1]):
        return Diagnosis(Cause.WRONG_AXIS, None, None)
    is_wrong = grouped[..., 0] != quantise_e2m1(x).scales
    if is_wrong.any():
        return Diagnosis(Cause.STALE_AMAX, int(is_wrong.sum(axis=0).argmax()), None)
    at_floor = (grouped[..., 0] == 2.0**-9).sum(axis=0)
    if at_floor.any():
        return Diagnosis(Cause.SCALE_FLOOR, int(at_floor.argmax()), None)
    size = np.sqrt(np.mean(np.square(x, dtype=np.float64), axis=0)).reshape(-1, 16)
    channel = int((size / np.median(size, axis=1, keepdims=True)).argmax())
    return Diagnosis(Cause.OUTLIER, channel // 16, channel)


# %% wrong="diagnose" name="quiet_group" loses="diagnose-outlier diagnose-scale_floor"
# Takes the quietest group for one below the floor, if its scales are subnormal: those may still be fine enough.
def diagnose(x, decoded, scales):
    grouped = scales.reshape(len(x), -1, 16)
    if np.any(grouped != grouped[..., :1]):
        return Diagnosis(Cause.WRONG_AXIS, None, None)
    is_wrong = grouped[..., 0] != quantise_e2m1(x).scales
    if is_wrong.any():
        return Diagnosis(Cause.STALE_AMAX, int(is_wrong.sum(axis=0).argmax()), None)
    typical = np.median(grouped[..., 0], axis=0)
    if typical.min() < 2.0**-6:
        return Diagnosis(Cause.SCALE_FLOOR, int(typical.argmin()), None)
    size = np.sqrt(np.mean(np.square(x, dtype=np.float64), axis=0)).reshape(-1, 16)
    channel = int((size / np.median(size, axis=1, keepdims=True)).argmax())
    return Diagnosis(Cause.OUTLIER, channel // 16, channel)


# %% wrong="diagnose" name="constant_scales" loses="diagnose-stale_amax diagnose-scale_floor"
# Takes scales that never change for stale ones; a steady channel has such scales too, and rightly.
def diagnose(x, decoded, scales):
    grouped = scales.reshape(len(x), -1, 16)
    if np.any(grouped != grouped[..., :1]):
        return Diagnosis(Cause.WRONG_AXIS, None, None)
    is_constant = [bool(np.all(grouped[32:, group, 0] == grouped[32, group, 0])) for group in range(grouped.shape[1])]
    if any(is_constant):
        return Diagnosis(Cause.STALE_AMAX, is_constant.index(True), None)
    size = np.sqrt(np.mean(np.square(x, dtype=np.float64), axis=0)).reshape(-1, 16)
    if size.max(axis=1).min() < 2.0**-9:
        return Diagnosis(Cause.SCALE_FLOOR, int(size.max(axis=1).argmin()), None)
    channel = int((size / np.median(size, axis=1, keepdims=True)).argmax())
    return Diagnosis(Cause.OUTLIER, channel // 16, channel)


# %% wrong="diagnose" name="clipped_elements" loses="diagnose-stale_amax diagnose-outlier diagnose-scale_floor"
# Takes every clipped element for a stale scale; a sound scale that E4M3 rounds down clips a little too.
def diagnose(x, decoded, scales):
    grouped = scales.reshape(len(x), -1, 16)
    if np.any(grouped != grouped[..., :1]):
        return Diagnosis(Cause.WRONG_AXIS, None, None)
    clipped = (np.abs(x) > 6 * scales).sum(axis=0).reshape(-1, 16).sum(axis=1)
    if clipped.any():
        return Diagnosis(Cause.STALE_AMAX, int(clipped.argmax()), None)
    size = np.sqrt(np.mean(np.square(x, dtype=np.float64), axis=0)).reshape(-1, 16)
    if size.max(axis=1).min() < 2.0**-9:
        return Diagnosis(Cause.SCALE_FLOOR, int(size.max(axis=1).argmin()), None)
    channel = int((size / np.median(size, axis=1, keepdims=True)).argmax())
    return Diagnosis(Cause.OUTLIER, channel // 16, channel)


# %% wrong="diagnose" name="growing_values" loses="diagnose-stale_amax diagnose-outlier diagnose-scale_floor"
# Takes values that grow for a stale scale, without a look at the scales.
def diagnose(x, decoded, scales):
    grouped = scales.reshape(len(x), -1, 16)
    if np.any(grouped != grouped[..., :1]):
        return Diagnosis(Cause.WRONG_AXIS, None, None)
    amax = np.median(np.abs(x.reshape(len(x), -1, 16)).max(axis=-1).reshape(4, -1, x.shape[1] // 16), axis=1)
    growth = amax[-1] / amax[0]
    if growth.max() > 2:
        return Diagnosis(Cause.STALE_AMAX, int(growth.argmax()), None)
    size = np.sqrt(np.mean(np.square(x, dtype=np.float64), axis=0)).reshape(-1, 16)
    if size.max(axis=1).min() < 2.0**-9:
        return Diagnosis(Cause.SCALE_FLOOR, int(size.max(axis=1).argmin()), None)
    channel = int((size / np.median(size, axis=1, keepdims=True)).argmax())
    return Diagnosis(Cause.OUTLIER, channel // 16, channel)


# %% wrong="diagnose" name="axis_taken_for_stale" loses="diagnose-stale_amax diagnose-wrong_axis"
# Compares with sound scales first: scales along the wrong axis differ from them as well.
def diagnose(x, decoded, scales):
    is_wrong = scales.reshape(len(x), -1, 16)[..., 0] != quantise_e2m1(x).scales
    if is_wrong.any():
        return Diagnosis(Cause.STALE_AMAX, int(is_wrong.sum(axis=0).argmax()), None)
    size = np.sqrt(np.mean(np.square(x, dtype=np.float64), axis=0)).reshape(-1, 16)
    if size.max(axis=1).min() < 2.0**-9:
        return Diagnosis(Cause.SCALE_FLOOR, int(size.max(axis=1).argmin()), None)
    channel = int((size / np.median(size, axis=1, keepdims=True)).argmax())
    return Diagnosis(Cause.OUTLIER, channel // 16, channel)


# %% wrong="diagnose" name="outliers_of_the_tensor" loses="diagnose-stale_amax diagnose-wrong_axis diagnose-outlier diagnose-scale_floor"
# Asks for outliers first, against the median of the whole tensor: loud groups and tokens are full of them.
def diagnose(x, decoded, scales):
    loud = outlier_channels(x, 4.0)
    if len(loud):
        return Diagnosis(Cause.OUTLIER, int(loud[0]) // 16, int(loud[0]))
    grouped = scales.reshape(len(x), -1, 16)
    if np.any(grouped != grouped[..., :1]):
        return Diagnosis(Cause.WRONG_AXIS, None, None)
    is_wrong = grouped[..., 0] != quantise_e2m1(x).scales
    if is_wrong.any():
        return Diagnosis(Cause.STALE_AMAX, int(is_wrong.sum(axis=0).argmax()), None)
    size = np.abs(x).max(axis=0).reshape(-1, 16).max(axis=1)
    return Diagnosis(Cause.SCALE_FLOOR, int(size.argmin()), None)


# %% wrong="diagnose" name="text" loses="diagnose-stale_amax diagnose-wrong_axis diagnose-outlier diagnose-scale_floor"
# Names the cause in words.
def diagnose(x, decoded, scales):
    grouped = scales.reshape(len(x), -1, 16)
    if np.any(grouped != grouped[..., :1]):
        return "WRONG_AXIS", None, None
    is_wrong = grouped[..., 0] != quantise_e2m1(x).scales
    if is_wrong.any():
        return "STALE_AMAX", int(is_wrong.sum(axis=0).argmax()), None
    size = np.sqrt(np.mean(np.square(x, dtype=np.float64), axis=0)).reshape(-1, 16)
    if size.max(axis=1).min() < 2.0**-9:
        return "SCALE_FLOOR", int(size.max(axis=1).argmin()), None
    channel = int((size / np.median(size, axis=1, keepdims=True)).argmax())
    return "OUTLIER", channel // 16, channel


# %% right="diagnose" name="loops"
# One group after the other, with scales that it makes itself.
def diagnose(x, decoded, scales):
    n_groups = x.shape[1] // 16
    for group in range(n_groups):
        for token in range(len(x)):
            if len(set(scales[token, 16 * group : 16 * group + 16].tolist())) > 1:
                return Diagnosis(Cause.WRONG_AXIS, None, None)
    for group in range(n_groups):
        amax = np.abs(x[:, 16 * group : 16 * group + 16]).max(axis=1).astype(np.float64)
        sound = round_to_e4m3(np.clip(amax / 6, 2.0**-9, 448.0))
        if np.mean(scales[:, 16 * group] < 0.8 * sound) > 0.1 or np.mean(scales[:, 16 * group] > 1.25 * sound) > 0.5:
            return Diagnosis(Cause.STALE_AMAX, group, None)
    for group in range(n_groups):
        amax = np.abs(x[:, 16 * group : 16 * group + 16]).max(axis=1)
        if np.median(amax[amax > 0]) < 6 * 2.0**-9 / 4:
            return Diagnosis(Cause.SCALE_FLOOR, group, None)
    best = (0.0, 0)
    for channel in range(x.shape[1]):
        start = channel // 16 * 16
        sizes = np.sort(np.median(np.abs(x[:, start : start + 16]), axis=0))
        best = max(best, (float(np.median(np.abs(x[:, channel])) / sizes[8]), channel))
    return Diagnosis(Cause.OUTLIER, best[1] // 16, best[1])


# %% right="diagnose" name="flushed_elements"
# Looks at what became of the elements: clipped far, or flushed to zero, and under which scales.
def diagnose(x, decoded, scales):
    size, grouped = np.abs(x).astype(np.float64), scales.reshape(len(x), -1, 16)
    if np.any(grouped.max(axis=-1) > grouped.min(axis=-1)):
        return Cause.WRONG_AXIS, None, None
    is_clipped = (size > 6.8 * scales) & (scales > 2.0**-6)
    if is_clipped.sum() > 20:
        return Cause.STALE_AMAX, np.int64(is_clipped.sum(axis=0).reshape(-1, 16).sum(axis=1).argmax()), None
    is_flushed = ((decoded == 0) & (size > 0)).mean(axis=0).reshape(-1, 16)
    group = int(np.median(is_flushed, axis=1).argmax())
    columns = slice(16 * group, 16 * group + 16)
    is_live = size[:, columns].max(axis=1) > 0
    if np.mean(scales[is_live, 16 * group] == 2.0**-9) > 0.5:
        return Cause.SCALE_FLOOR, group, None
    return Cause.OUTLIER, group, 16 * group + int(is_flushed[group].argmin())


# %% right="diagnose" name="root_mean_squares"
# Compares scales with sound ones, then root mean squares within each group.
def diagnose(x, decoded, scales):
    grouped = scales.reshape(len(x), -1, 16)
    if np.any(grouped != grouped[..., :1]):
        return Diagnosis(Cause.WRONG_AXIS, None, None)
    is_wrong = grouped[..., 0] != quantise_e2m1(x).scales
    if is_wrong.any():
        return Diagnosis(Cause.STALE_AMAX, int(is_wrong.sum(axis=0).argmax()), None)
    size = np.sqrt(np.mean(np.square(x, dtype=np.float64), axis=0)).reshape(-1, 16)
    if size.max(axis=1).min() < 2.0**-9:
        return Diagnosis(Cause.SCALE_FLOOR, int(size.max(axis=1).argmin()), None)
    channel = int((size / np.median(size, axis=1, keepdims=True)).argmax())
    return Diagnosis(Cause.OUTLIER, channel // 16, channel)


# %% wrong="repair" name="no_exponents" loses="repair-outlier repair-floor"
# Quantises anew and leaves the exponents at zero.
def repair(x):
    return Repaired(quantise_e2m1(x), np.zeros(x.shape[1], np.int8))


# %% wrong="repair" name="tensor_scale" loses="repair-scales repair-outlier repair-floor"
# Adds a tensor scale, for which there is no room.
def repair(x):
    size = np.sqrt(np.mean(np.square(x, dtype=np.float64), axis=0))
    exponents = np.rint(np.log2(size)).astype(np.int8)
    scaled = (x / 2.0**exponents).astype(np.float32)
    return Repaired(quantise_e2m1(scaled, formats.ScaleRule.TENSOR_AND_GROUP), exponents)


# %% wrong="repair" name="wrong_sign" loses="repair-scales repair-outlier repair-floor"
# Multiplies by 2^e where it must divide.
def repair(x):
    size = np.sqrt(np.mean(np.square(x, dtype=np.float64), axis=0))
    exponents = np.rint(np.log2(size)).astype(np.int8)
    return Repaired(quantise_e2m1((x * 2.0**exponents).astype(np.float32)), exponents)


# %% wrong="repair" name="sign_turned" loses="repair-scales repair-outlier repair-floor"
# Divides by 2^e and stores -e, as if it had to be divided once more.
def repair(x):
    size = np.sqrt(np.mean(np.square(x, dtype=np.float64), axis=0))
    exponents = np.rint(np.log2(size)).astype(np.int8)
    return Repaired(quantise_e2m1((x / 2.0**exponents).astype(np.float32)), -exponents)


# %% wrong="repair" name="exponents_only" loses="repair-scales repair-outlier repair-floor"
# Stores exponents, and quantises x as it was.
def repair(x):
    size = np.sqrt(np.mean(np.square(x, dtype=np.float64), axis=0))
    return Repaired(quantise_e2m1(x), np.rint(np.log2(size)).astype(np.int8))


# %% wrong="repair" name="biased_bytes" loses="repair-scales repair-outlier repair-floor"
# Stores e + 127 in a byte, as UE8M0 does; here exponents are signed.
def repair(x):
    size = np.sqrt(np.mean(np.square(x, dtype=np.float64), axis=0))
    exponents = np.rint(np.log2(size)).astype(np.int64)
    scaled = (x / 2.0**exponents).astype(np.float32)
    return Repaired(quantise_e2m1(scaled), (exponents + 127).astype(np.uint8))


# %% wrong="repair" name="overflowing_exponents" loses="repair-scales repair-outlier repair-floor"
# Lifts every channel to 2^120, to be far from the floor; the scales end at 448, and the exponents do not fit int8.
def repair(x):
    exponents = np.rint(np.log2(np.abs(x).max(axis=0))).astype(np.int64) - 120
    return Repaired(quantise_e2m1((x / 2.0**exponents).astype(np.float32)), exponents.astype(np.int8))


# %% wrong="repair" name="scales_not_rounded" loses="repair-scales repair-outlier repair-floor"
# Makes scales that are no E4M3.
def repair(x):
    size = np.sqrt(np.mean(np.square(x, dtype=np.float64), axis=0))
    exponents = np.rint(np.log2(size)).astype(np.int8)
    groups = (x / 2.0**exponents).astype(np.float32).reshape(len(x), -1, 16)
    scales = np.maximum(np.abs(groups).max(axis=-1) / np.float32(6), np.float32(2.0**-9))
    codes = encode_e2m1(groups / scales[..., None]).reshape(x.shape)
    return Repaired(QuantisedE2M1(codes, scales, 1.0), exponents)


# %% wrong="repair" name="fractional_exponents" loses="repair-scales repair-outlier repair-floor"
# Keeps the fractions of the exponents.
def repair(x):
    exponents = np.log2(np.sqrt(np.mean(np.square(x, dtype=np.float64), axis=0))).astype(np.float32)
    return Repaired(quantise_e2m1((x / 2.0**exponents).astype(np.float32)), exponents)


# %% wrong="repair" name="undone_with_another_base" loses="repair-scales repair-outlier repair-floor"
# Divides by e^n, and stores n: it comes back as 2^n.
def repair(x):
    size = np.sqrt(np.mean(np.square(x, dtype=np.float64), axis=0))
    exponents = np.rint(np.log(size)).astype(np.int8)
    return Repaired(quantise_e2m1((x / np.exp(exponents)).astype(np.float32)), exponents)


# %% wrong="repair" name="factors" loses="repair-scales repair-outlier repair-floor"
# Stores the factors, not their exponents: most of them are 0 in int8.
def repair(x):
    size = np.sqrt(np.mean(np.square(x, dtype=np.float64), axis=0))
    factors = 2.0 ** np.rint(np.log2(size))
    return Repaired(quantise_e2m1((x / factors).astype(np.float32)), factors.astype(np.int8))


# %% wrong="repair" name="one_exponent_per_group" loses="repair-outlier"
# Takes one exponent for the 16 channels of a group.
def repair(x):
    size = np.sqrt(np.mean(np.square(x.reshape(len(x), -1, 16), dtype=np.float64), axis=(0, 2)))
    exponents = np.repeat(np.rint(np.log2(size)), 16).astype(np.int8)
    return Repaired(quantise_e2m1((x / 2.0**exponents).astype(np.float32)), exponents)


# %% wrong="repair" name="exponents_per_token" loses="repair-scales repair-outlier repair-floor"
# Takes one exponent per token, not per channel.
def repair(x):
    size = np.sqrt(np.mean(np.square(x, dtype=np.float64), axis=1))
    exponents = np.rint(np.log2(np.maximum(size, 2.0**-20))).astype(np.int8)
    return Repaired(quantise_e2m1((x / 2.0 ** exponents[:, None]).astype(np.float32)), exponents)


# %% wrong="repair" name="outlier_only" loses="repair-floor"
# Lowers the channel that stands out of its group, and forgets the floor.
def repair(x):
    size = np.sqrt(np.mean(np.square(x, dtype=np.float64), axis=0)).reshape(-1, 16)
    ratio = size / np.median(size, axis=1, keepdims=True)
    exponents = np.where(ratio > 8, np.rint(np.log2(ratio)), 0).ravel().astype(np.int8)
    return Repaired(quantise_e2m1((x / 2.0**exponents).astype(np.float32)), exponents)


# %% wrong="repair" name="floor_only" loses="repair-outlier"
# Lifts what is small, and leaves the outlier where it is.
def repair(x):
    size = np.sqrt(np.mean(np.square(x, dtype=np.float64), axis=0))
    exponents = np.where(size < 2.0**-6, np.rint(np.log2(size)), 0).astype(np.int8)
    return Repaired(quantise_e2m1((x / 2.0**exponents).astype(np.float32)), exponents)


# %% wrong="repair" name="integers" loses="repair-scales repair-outlier repair-floor"
# Repairs with four-bit integers per channel: other codes, and float32 scales.
def repair(x):
    quantised = quantise_int(x, 4, len(x), axis=0)
    return Repaired(quantised, np.zeros(x.shape[1], np.int8))


# %% wrong="repair" name="values" loses="repair-scales repair-outlier repair-floor"
# Returns the repaired values, not what is stored.
def repair(x):
    size = np.sqrt(np.mean(np.square(x, dtype=np.float64), axis=0))
    factors = 2.0 ** np.rint(np.log2(size))
    return (dequantise(quantise_e2m1((x / factors).astype(np.float32))) * factors).astype(np.float32)


# %% right="repair" name="amax"
# By the largest magnitude of each channel, with frexp.
def repair(x):
    exponents = np.frexp(np.abs(x).max(axis=0))[1]
    return Repaired(quantise_e2m1(np.ldexp(x, -exponents)), exponents.astype(np.int8))


# %% right="repair" name="loops"
# One channel after the other: the exponent that brings its mean magnitude nearest to 1.
def repair(x):
    scaled, exponents = np.zeros_like(x), []
    for channel in range(x.shape[1]):
        mean = sum(abs(float(value)) for value in x[:, channel]) / len(x)
        exponent = round(math.log2(mean)) if mean > 0 else 0
        exponents.append(max(-128, min(127, exponent)))
        scaled[:, channel] = [math.ldexp(float(value), -exponents[-1]) for value in x[:, channel]]
    return Repaired(quantise_e2m1(scaled), np.array(exponents, np.int8))


# %% right="repair" name="four_over_six"
# Equally loud channels, and the better of two scales on top of that.
def repair(x):
    size = np.linalg.norm(x.astype(np.float64), axis=0) / np.sqrt(len(x))
    exponents = np.round(np.log2(np.where(size > 0, size, 1))).astype(int)
    return Repaired(scale_four_over_six(np.float32(x * 2.0**-exponents)), np.int8(exponents))
