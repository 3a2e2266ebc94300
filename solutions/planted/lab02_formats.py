# Planted answers of lab 2, one cell each: the text that replaces the answer cell of the task that it names.
# A wrong one is a mistake that a person makes, said in its first line; `loses` lists the checks that it loses while
# all other tasks are solved. A right one is written differently from the reference and loses none.

# %% wrong="tie_codes" name="as_in_school" loses="tie_codes-even"
# Ties go away from zero.
def tie_codes():
    return [1, 2, 3, 4, 5, 6, 7]


# %% wrong="tie_codes" name="half_towards_zero" loses="tie_codes-even"
# Ties go towards zero.
def tie_codes():
    return [0, 1, 2, 3, 4, 5, 6]


# %% wrong="tie_codes" name="values_for_codes" loses="tie_codes-even"
# Returns the values that the ties are rounded to, not their codes.
def tie_codes():
    return [0, 1, 1, 2, 2, 4, 4]


# %% wrong="tie_codes" name="even_values" loses="tie_codes-even"
# Takes the neighbour whose value is an even whole number, where there is one.
def tie_codes():
    return [0, 1, 2, 4, 4, 6, 6]


# %% right="tie_codes" name="computed"
# The even one of c and c + 1.
def tie_codes():
    return [c if c % 2 == 0 else c + 1 for c in range(7)]


# %% right="tie_codes" name="array"
# As an array of bytes.
def tie_codes():
    lower = np.arange(7, dtype=np.uint8)
    return lower + lower % 2


# %% wrong="largest_amax" name="whole_step" loses="largest_amax-normal largest_amax-subnormal"
# Goes on to the next scale, not to the middle.
def largest_amax(s):
    if s == 448:
        return math.inf
    return 6 * (s + max(2.0 ** (math.floor(math.log2(s)) - 3), 2.0**-9))


# %% wrong="largest_amax" name="lower_end" loses="largest_amax-normal largest_amax-subnormal"
# Returns the lower end of the interval.
def largest_amax(s):
    if s == 448:
        return math.inf
    return 6 * (s - max(2.0 ** (math.floor(math.log2(s)) - 3), 2.0**-9) / 2)


# %% wrong="largest_amax" name="relative_step" loses="largest_amax-normal largest_amax-subnormal"
# Takes the step at s = 1 as a share of every scale.
def largest_amax(s):
    return math.inf if s == 448 else 6 * s * 17 / 16


# %% wrong="largest_amax" name="shrinking_steps" loses="largest_amax-subnormal"
# The steps go on shrinking below 2^-6.
def largest_amax(s):
    return math.inf if s == 448 else 6 * (s + 2.0 ** (math.floor(math.log2(s)) - 4))


# %% wrong="largest_amax" name="no_saturation" loses="largest_amax-top"
# Treats 448 as a scale like any other.
def largest_amax(s):
    return 6 * (s + max(2.0 ** (math.floor(math.log2(s)) - 3), 2.0**-9) / 2)


# %% wrong="largest_amax" name="without_six" loses="largest_amax-normal largest_amax-subnormal"
# Forgets that the largest element is brought to 6, not to 1.
def largest_amax(s):
    return math.inf if s == 448 else s + max(2.0 ** (math.floor(math.log2(s)) - 3), 2.0**-9) / 2


# %% right="largest_amax" name="grid"
# Looks the next scale up in the list of all scales.
def largest_amax(s):
    normal = [(8 + m) / 8 * 2.0**e for e in range(-6, 9) for m in range(8)]
    scales = [k * 2.0**-9 for k in range(1, 8)] + normal[:-1]
    position = scales.index(s)
    return math.inf if position == len(scales) - 1 else 3 * (s + scales[position + 1])


# %% right="largest_amax" name="float32_frexp"
# In float32, with the exponent from frexp.
def largest_amax(s):
    s = np.float32(s)
    if s == 448:
        return np.float32(np.inf)
    exponent = max(np.frexp(s)[1] - 1, -6)
    return np.float32(6) * (s + np.ldexp(np.float32(1), exponent - 4))


# %% wrong="magnitude_range" name="smallest_scale" loses="magnitude_range-vanishes"
# Takes the smallest scale itself for the end.
def magnitude_range(scale_rule, tensor_amax):
    t = tensor_amax / 2688 if scale_rule is ScaleRule.TENSOR_AND_GROUP else 1.0
    return 2.0**-9 * t, 2688 * t


# %% wrong="magnitude_range" name="smallest_code" loses="magnitude_range-vanishes"
# Takes the smallest magnitude that can be written, not the tie below it.
def magnitude_range(scale_rule, tensor_amax):
    t = tensor_amax / 2688 if scale_rule is ScaleRule.TENSOR_AND_GROUP else 1.0
    return 2.0**-9 * 0.5 * t, 2688 * t


# %% wrong="magnitude_range" name="largest_scale" loses="magnitude_range-largest"
# Leaves out the 6 of E2M1.
def magnitude_range(scale_rule, tensor_amax):
    t = tensor_amax / 2688 if scale_rule is ScaleRule.TENSOR_AND_GROUP else 1.0
    return 2.0**-11 * t, 448 * t


# %% wrong="magnitude_range" name="no_tensor_scale" loses="magnitude_range-largest magnitude_range-vanishes"
# The same range with and without a tensor scale.
def magnitude_range(scale_rule, tensor_amax):
    return 2.0**-11, 2688.0


# %% wrong="magnitude_range" name="only_the_top_moves" loses="magnitude_range-vanishes"
# The tensor scale moves the upper end alone.
def magnitude_range(scale_rule, tensor_amax):
    return 2.0**-11, tensor_amax if scale_rule is ScaleRule.TENSOR_AND_GROUP else 2688.0


# %% right="magnitude_range" name="amax_is_the_top"
# With a tensor scale the largest magnitude is the tensor's own.
def magnitude_range(scale_rule, tensor_amax):
    largest = 2688.0 if scale_rule is ScaleRule.GROUP else tensor_amax
    return largest / (2688 * 2**11), largest


# %% right="magnitude_range" name="float32"
# In float32, as an array.
def magnitude_range(scale_rule, tensor_amax):
    t = np.float32(1)
    if scale_rule == ScaleRule.TENSOR_AND_GROUP:
        t = np.float32(tensor_amax) / np.float32(2688)
    return np.float32([2.0**-11, 2688]) * t


# %% wrong="stored_bits" name="no_metadata" loses="stored_bits-metadata"
# Counts the codes alone.
def stored_bits(code_bits, group_length, bits_per_group):
    return float(code_bits)


# %% wrong="stored_bits" name="every_element" loses="stored_bits-metadata"
# Counts the metadata for every element.
def stored_bits(code_bits, group_length, bits_per_group):
    return float(code_bits + bits_per_group)


# %% wrong="stored_bits" name="whole_bits" loses="stored_bits-metadata"
# Divides without the remainder.
def stored_bits(code_bits, group_length, bits_per_group):
    return code_bits + bits_per_group // group_length


# %% wrong="stored_bits" name="turned_over" loses="stored_bits-metadata"
# Turns the share over.
def stored_bits(code_bits, group_length, bits_per_group):
    return code_bits + group_length / bits_per_group


# %% right="stored_bits" name="whole_group"
# The bits of a whole group, divided by its length.
def stored_bits(code_bits, group_length, bits_per_group):
    return (code_bits * group_length + bits_per_group) / group_length


# %% right="stored_bits" name="float32"
# As a float32.
def stored_bits(code_bits, group_length, bits_per_group):
    return np.float32(code_bits) + np.float32(bits_per_group) / np.float32(group_length)


# %% wrong="encode_e2m1" name="half_away" loses="encode_e2m1-ties"
# Ties go away from zero: the next magnitude begins at the tie itself.
def encode_e2m1(x):
    _refuse_unless_finite(x)
    codes = np.searchsorted(formats.E2M1_TIES, np.abs(x), side="right")
    return (codes + 8 * np.signbit(x)).astype(np.uint8)


def _refuse_unless_finite(x):
    for index in np.argwhere(~np.isfinite(x)).tolist()[:1]:
        raise ValueError(f"x: expected finite values, got {x[tuple(index)]} at index {tuple(index)}")


# %% wrong="encode_e2m1" name="half_down" loses="encode_e2m1-ties"
# Ties go towards zero: a tie still belongs to the lower magnitude.
def encode_e2m1(x):
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad:
        raise ValueError(f"no code for index {tuple(bad[0])}")
    codes = np.searchsorted(formats.E2M1_TIES, np.abs(x), side="left")
    return (codes + 8 * np.signbit(x)).astype(np.uint8)


# %% wrong="encode_e2m1" name="lost_subnormal" loses="encode_e2m1-subnormal"
# What is smaller than the smallest normal value is flushed to zero.
def encode_e2m1(x):
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad:
        raise ValueError(f"no code for index {tuple(bad[0])}")
    size = np.abs(x)
    codes = np.searchsorted(formats.E2M1_TIES, size, side="left")
    codes += (codes % 2 == 1) & np.isin(size, formats.E2M1_TIES)
    codes[codes == 1] = 0
    return (codes + 8 * np.signbit(x)).astype(np.uint8)


# %% wrong="encode_e2m1" name="no_saturation" loses="encode_e2m1-nearest"
# Above 7, where 8 would be nearer, the code runs over into the sign bit.
def encode_e2m1(x):
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad:
        raise ValueError(f"no code for index {tuple(bad[0])}")
    size = np.abs(x).astype(np.float64)
    exponent = np.clip(np.floor(np.log2(np.maximum(size, 0.5))), 0, 60)
    codes = np.where(size < 1, np.rint(2 * size), 2 * exponent + np.rint(2 * size / 2.0**exponent))
    return ((codes.astype(np.int64) + 8 * np.signbit(x)) % 16).astype(np.uint8)


# %% wrong="encode_e2m1" name="positive_zero" loses="encode_e2m1-signs"
# The sign of what is rounded to zero is lost.
def encode_e2m1(x):
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad:
        raise ValueError(f"no code for index {tuple(bad[0])}")
    size = np.abs(x)
    codes = np.searchsorted(formats.E2M1_TIES, size, side="left")
    codes += (codes % 2 == 1) & np.isin(size, formats.E2M1_TIES)
    return np.where((x < 0) & (codes > 0), codes + 8, codes).astype(np.uint8)


# %% wrong="encode_e2m1" name="infinity_clipped" loses="encode_e2m1-refuses"
# Clips before it looks: infinity becomes 6.
def encode_e2m1(x):
    x = np.clip(x, -6, 6)
    bad = np.argwhere(np.isnan(x)).tolist()
    if bad:
        raise ValueError(f"no code for index {tuple(bad[0])}")
    size = np.abs(x)
    codes = np.searchsorted(formats.E2M1_TIES, size, side="left")
    codes += (codes % 2 == 1) & np.isin(size, formats.E2M1_TIES)
    return (codes + 8 * np.signbit(x)).astype(np.uint8)


# %% wrong="encode_e2m1" name="nan_through" loses="encode_e2m1-refuses"
# NaN is larger than nothing, so it gets the code of 6 and nobody notices.
def encode_e2m1(x):
    size = np.abs(x)
    codes = np.searchsorted(formats.E2M1_TIES, size, side="left")
    codes += (codes % 2 == 1) & np.isin(size, formats.E2M1_TIES)
    return (codes + 8 * np.signbit(x)).astype(np.uint8)


# %% wrong="encode_e2m1" name="flat_index" loses="encode_e2m1-refuses"
# Names the position in the flattened array.
def encode_e2m1(x):
    bad = np.flatnonzero(~np.isfinite(x))
    if bad.size:
        raise ValueError(f"x: not finite at {bad[0]}")
    size = np.abs(x)
    codes = np.searchsorted(formats.E2M1_TIES, size, side="left")
    codes += (codes % 2 == 1) & np.isin(size, formats.E2M1_TIES)
    return (codes + 8 * np.signbit(x)).astype(np.uint8)


# %% wrong="encode_e2m1" name="float32_first" loses="encode_e2m1-nearest"
# Rounds float64 to float32 first, which makes ties of what was beside them.
def encode_e2m1(x):
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad:
        raise ValueError(f"no code for index {tuple(bad[0])}")
    size = np.abs(x.astype(np.float32))
    codes = np.searchsorted(formats.E2M1_TIES, size, side="left")
    codes += (codes % 2 == 1) & np.isin(size, formats.E2M1_TIES)
    return (codes + 8 * np.signbit(x)).astype(np.uint8)


# %% right="encode_e2m1" name="searchsorted"
# Counts the ties below, then moves odd codes off the ties.
def encode_e2m1(x):
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad:
        raise ValueError(f"no code for index {tuple(bad[0])}")
    size = np.abs(x)
    codes = np.searchsorted(formats.E2M1_TIES, size, side="left")
    codes += (codes % 2 == 1) & np.isin(size, formats.E2M1_TIES)
    return (codes + 8 * np.signbit(x)).astype(np.uint8)


# %% right="encode_e2m1" name="loops"
# One element after the other: the nearest of eight, the even one if two are as near.
def encode_e2m1(x):
    codes = np.zeros(x.shape, np.uint8)
    values = [float(value) for value in formats.E2M1_VALUES]
    for index in np.ndindex(*x.shape):
        value = float(x[index])
        if math.isnan(value) or math.isinf(value):
            raise ValueError(f"{value} at index {index}")
        size = min(abs(value), 6.0)
        code = min(range(8), key=lambda c: (abs(size - values[c]), c % 2))
        codes[index] = code + (8 if math.copysign(1, value) < 0 else 0)
    return codes


# %% right="encode_e2m1" name="bits"
# Rounds the bits of a float64: all but one bit of the mantissa are dropped, halves to even.
def encode_e2m1(x):
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad:
        raise ValueError(f"no code for index {tuple(bad[0])}")
    size = np.minimum(np.abs(np.asarray(x, np.float64)), 6.0)
    bits = size.view(np.int64)
    rounded = bits + (1 << 50) - 1 + (bits >> 51 & 1) >> 51
    normal = rounded - (1023 << 1) + 2
    return (np.where(size < 1, np.rint(2 * size).astype(np.int64), normal) + 8 * np.signbit(x)).astype(np.uint8)


# %% right="encode_e2m1" name="float64_steps"
# Divides by the step of the binade and rounds half to even.
def encode_e2m1(x):
    if not np.all(np.isfinite(x)):
        raise ValueError(f"not finite at {tuple(int(i) for i in np.argwhere(~np.isfinite(x))[0])}")
    size = np.minimum(np.abs(x.astype(np.float64)), 6)
    step = np.where(size < 2, 0.5, np.where(size < 4, 1, 2))
    value = np.rint(size / step) * step
    code = np.select([value <= 2, value <= 4], [2 * value, value + 2], 7)
    return (code + np.where(np.signbit(x), 8, 0)).astype(np.uint8)


# %% wrong="decode_e2m1" name="leading_one" loses="decode_e2m1-values"
# Adds the leading one to code 1 too: 0.75 for 0.5.
def decode_e2m1(codes):
    if np.any(codes > 15):
        raise ValueError(f"no code at {np.argwhere(codes > 15)[0].tolist()}")
    values = np.float32([0, 0.75, 1, 1.5, 2, 3, 4, 6])
    return np.where(codes < 8, values[codes % 8], -values[codes % 8])


# %% wrong="decode_e2m1" name="no_sign" loses="decode_e2m1-values decode_e2m1-negative_zero"
# Drops the sign bit.
def decode_e2m1(codes):
    if np.any(codes > 15):
        raise ValueError(f"no code at {np.argwhere(codes > 15)[0].tolist()}")
    return formats.E2M1_VALUES[codes & 7]


# %% wrong="decode_e2m1" name="positive_zero" loses="decode_e2m1-negative_zero"
# Subtracts from zero, which makes +0.0 of code 8.
def decode_e2m1(codes):
    if np.any(codes > 15):
        raise ValueError(f"no code at {np.argwhere(codes > 15)[0].tolist()}")
    values = formats.E2M1_VALUES[codes & 7]
    return np.where(codes < 8, values, np.float32(0) - values)


# %% wrong="decode_e2m1" name="wraps" loses="decode_e2m1-refuses"
# Keeps the low four bits of whatever comes.
def decode_e2m1(codes):
    values = formats.E2M1_VALUES[codes & 7]
    return np.where(codes & 8, -values, values)


# %% wrong="decode_e2m1" name="float64" loses="decode_e2m1-values decode_e2m1-negative_zero"
# Returns float64. Products with float32 scales become float64 too, but dequantise rounds them to float32.
def decode_e2m1(codes):
    if np.any(codes > 15):
        raise ValueError(f"no code at {np.argwhere(codes > 15)[0].tolist()}")
    values = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    return np.where(codes < 8, values[codes & 7], -values[codes & 7])


# %% wrong="decode_e2m1" name="sixteen_codes_and_one" loses="decode_e2m1-refuses"
# Takes > 16 for > 15.
def decode_e2m1(codes):
    if np.any(codes > 16):
        raise ValueError(f"no code at {np.argwhere(codes > 16)[0].tolist()}")
    return np.concatenate([formats.E2M1_VALUES, -formats.E2M1_VALUES])[codes % 16]


# %% wrong="decode_e2m1" name="names_the_largest" loses="decode_e2m1-refuses"
# Names where the largest number is, not where the first is that is no code.
def decode_e2m1(codes):
    if np.any(codes > 15):
        raise ValueError(f"no code at {tuple(map(int, np.unravel_index(codes.argmax(), codes.shape)))}")
    return np.concatenate([formats.E2M1_VALUES, -formats.E2M1_VALUES])[codes]


# %% right="decode_e2m1" name="fields"
# Takes the fields apart and puts a float together.
def decode_e2m1(codes):
    bad = np.argwhere(codes > 15)
    if len(bad):
        raise ValueError(f"codes: {codes[tuple(bad[0])]} at index {tuple(bad[0].tolist())}")
    exponent, mantissa = codes >> 1 & 3, codes & 1
    size = np.where(exponent > 0, 2.0 ** (exponent - 1.0) * (1 + mantissa / 2), mantissa / 2)
    return np.copysign(size, np.where(codes & 8, -1.0, 1.0)).astype(np.float32)


# %% right="decode_e2m1" name="loops"
# One code after the other.
def decode_e2m1(codes):
    values = np.zeros(codes.shape, np.float32)
    for index in np.ndindex(*codes.shape):
        code = int(codes[index])
        if code > 15:
            raise ValueError(f"{code} at {index}")
        size = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0][code % 8]
        values[index] = -size if code >= 8 else size
    return values


# %% wrong="pack_nibbles" name="swapped" loses="pack_nibbles-order"
# The even element goes to the high half.
def pack_nibbles(codes):
    if codes.shape[-1] % 2 or np.any(codes > 15):
        raise ValueError("codes: expected an even number of codes up to 15")
    return codes[..., 0::2] << 4 | codes[..., 1::2]


# %% wrong="pack_nibbles" name="first_and_second_half" loses="pack_nibbles-order"
# Pairs the first half of the row with the second, not neighbours.
def pack_nibbles(codes):
    if codes.shape[-1] % 2 or np.any(codes > 15):
        raise ValueError("codes: expected an even number of codes up to 15")
    middle = codes.shape[-1] // 2
    return codes[..., :middle] | codes[..., middle:] << 4


# %% wrong="pack_nibbles" name="flattens" loses="pack_nibbles-shape"
# Forgets the other axes.
def pack_nibbles(codes):
    if codes.shape[-1] % 2 or np.any(codes > 15):
        raise ValueError("codes: expected an even number of codes up to 15")
    flat = codes.ravel()
    return flat[0::2] | flat[1::2] << 4


# %% wrong="pack_nibbles" name="drops_the_odd_one" loses="pack_nibbles-refuses"
# Drops the last of an odd number of codes.
def pack_nibbles(codes):
    if np.any(codes > 15):
        raise ValueError("codes: expected codes up to 15")
    n = codes.shape[-1] // 2 * 2
    return codes[..., 0:n:2] | codes[..., 1:n:2] << 4


# %% wrong="pack_nibbles" name="shifts_the_sum" loses="pack_nibbles-order pack_nibbles-shape"
# + binds more tightly than <<.
def pack_nibbles(codes):
    if codes.shape[-1] % 2 or np.any(codes > 15):
        raise ValueError("codes: expected an even number of codes up to 15")
    return codes[..., 0::2] + codes[..., 1::2] << 4


# %% wrong="pack_nibbles" name="spills" loses="pack_nibbles-refuses"
# A code above 15 runs over into its neighbour.
def pack_nibbles(codes):
    if codes.shape[-1] % 2:
        raise ValueError("codes: expected an even number of codes")
    return codes[..., 0::2] | codes[..., 1::2] << 4


# %% wrong="pack_nibbles" name="sixteen_codes_and_one" loses="pack_nibbles-refuses"
# Takes > 16 for > 15.
def pack_nibbles(codes):
    if codes.shape[-1] % 2 or np.any(codes > 16):
        raise ValueError("an odd width, or a number that is no code")
    return codes[..., 0::2] | codes[..., 1::2] << 4


# %% wrong="pack_nibbles" name="looks_at_the_low_halves" loses="pack_nibbles-refuses"
# Looks for numbers that are no codes among the even elements only.
def pack_nibbles(codes):
    if codes.shape[-1] % 2 or np.any(codes[..., 0::2] > 15):
        raise ValueError("an odd width, or a number that is no code")
    return codes[..., 0::2] | codes[..., 1::2] << 4


# %% right="pack_nibbles" name="arithmetic"
# Pairs as an axis of their own, then 1 and 16 as weights.
def pack_nibbles(codes):
    if codes.shape[-1] % 2 or codes.max(initial=0) > 15:
        raise ValueError("codes: expected an even number of codes up to 15")
    pairs = codes.reshape(*codes.shape[:-1], -1, 2)
    return (pairs.astype(np.int64) @ np.array([1, 16])).astype(np.uint8)


# %% right="pack_nibbles" name="loops"
# One byte after the other.
def pack_nibbles(codes):
    if codes.shape[-1] % 2:
        raise ValueError("odd")
    packed = np.zeros((*codes.shape[:-1], codes.shape[-1] // 2), np.uint8)
    for index in np.ndindex(*packed.shape):
        low, high = int(codes[*index[:-1], 2 * index[-1]]), int(codes[*index[:-1], 2 * index[-1] + 1])
        if max(low, high) > 15:
            raise ValueError(f"no code near {index}")
        packed[index] = 16 * high + low
    return packed


# %% right="pack_nibbles" name="pairs_as_words"
# Reads each pair as one 16-bit word and folds it.
def pack_nibbles(codes):
    if codes.ndim == 0 or codes.shape[-1] % 2 or np.any(codes > 15):
        raise ValueError("an odd width, or a number that is no code")
    words = np.ascontiguousarray(codes).view("<u2")
    return (words | words >> 4).astype(np.uint8)


# %% wrong="unpack_nibbles" name="swapped" loses="unpack_nibbles-order"
# The high half comes first.
def unpack_nibbles(packed):
    return np.stack([packed >> 4, packed & 15], axis=-1).reshape(*packed.shape[:-1], -1)


# %% wrong="unpack_nibbles" name="concatenated" loses="unpack_nibbles-order"
# All low halves, then all high halves.
def unpack_nibbles(packed):
    return np.concatenate([packed & 15, packed >> 4], axis=-1)


# %% wrong="unpack_nibbles" name="two_bit_mask" loses="unpack_nibbles-order"
# A mask left over from a 2-bit format.
def unpack_nibbles(packed):
    return np.stack([packed & 3, packed >> 4 & 3], axis=-1).reshape(*packed.shape[:-1], -1)


# %% wrong="unpack_nibbles" name="sign_extended" loses="unpack_nibbles-order"
# Shifts a signed byte, which drags its sign along.
def unpack_nibbles(packed):
    high = (packed.astype(np.int8) >> 4).astype(np.uint8)
    return np.stack([packed & 15, high], axis=-1).reshape(*packed.shape[:-1], -1)


# %% wrong="unpack_nibbles" name="flattens" loses="unpack_nibbles-shape"
# Forgets the other axes.
def unpack_nibbles(packed):
    return np.stack([packed & 15, packed >> 4], axis=-1).ravel()


# %% wrong="unpack_nibbles" name="pairs_as_an_axis" loses="unpack_nibbles-order unpack_nibbles-shape"
# Leaves each pair of codes on an axis of its own.
def unpack_nibbles(packed):
    return np.stack([packed & 15, packed >> 4], axis=-1)


# %% right="unpack_nibbles" name="divmod"
# Quotient and remainder by 16.
def unpack_nibbles(packed):
    high, low = np.divmod(packed, 16)
    return np.stack([low, high], axis=-1).reshape(*packed.shape[:-1], 2 * packed.shape[-1]).astype(np.uint8)


# %% right="unpack_nibbles" name="repeat_and_shift"
# Every byte twice, then shifted by 0 and 4.
def unpack_nibbles(packed):
    twice = np.repeat(packed, 2, axis=-1)
    shifts = np.tile(np.uint8([0, 4]), packed.shape[-1])
    return twice >> shifts & np.uint8(15)


# %% wrong="round_to_e4m3" name="half_away" loses="round_to_e4m3-ties"
# Halves go away from zero.
def round_to_e4m3(x):
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad:
        raise ValueError(f"not finite at {tuple(bad[0])}")
    size = np.minimum(np.abs(x).astype(np.float64), 448)
    step = np.maximum(2.0 ** (np.frexp(size)[1] - 4.0), 2.0**-9)
    return np.copysign(np.floor(size / step + 0.5) * step, x).astype(np.float32)


# %% wrong="round_to_e4m3" name="flushes_subnormals" loses="round_to_e4m3-subnormal quantise_e2m1-floor"
# Everything below the smallest normal value becomes zero, and so does the smallest scale.
def round_to_e4m3(x):
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad:
        raise ValueError(f"not finite at {tuple(bad[0])}")
    size = np.minimum(np.abs(x).astype(np.float64), 448)
    step = 2.0 ** (np.frexp(size)[1] - 4.0)
    rounded = np.rint(size / step) * step
    return np.copysign(np.where(rounded < 2.0**-6, 0, rounded), x).astype(np.float32)


# %% wrong="round_to_e4m3" name="finer_steps" loses="round_to_e4m3-ties round_to_e4m3-subnormal"
# The steps go on shrinking below 2^-6.
def round_to_e4m3(x):
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad:
        raise ValueError(f"not finite at {tuple(bad[0])}")
    size = np.minimum(np.abs(x).astype(np.float64), 448)
    step = 2.0 ** (np.frexp(size)[1] - 4.0)
    return np.copysign(np.rint(size / step) * step, x).astype(np.float32)


# %% wrong="round_to_e4m3" name="nan_above" loses="round_to_e4m3-saturates"
# As an ordinary cast: above 464 there is only NaN.
def round_to_e4m3(x):
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad:
        raise ValueError(f"not finite at {tuple(bad[0])}")
    size = np.abs(x).astype(np.float64)
    step = np.maximum(2.0 ** (np.frexp(size)[1] - 4.0), 2.0**-9)
    rounded = np.rint(size / step) * step
    return np.copysign(np.where(rounded > 448, np.nan, rounded), x).astype(np.float32)


# %% wrong="round_to_e4m3" name="stops_at_240" loses="round_to_e4m3-saturates quantise_e2m1-tensor_scale"
# The limit of the other E4M3, float8_e4m3fnuz. The 448 of a tensor scale's largest group is lost with it.
def round_to_e4m3(x):
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad:
        raise ValueError(f"not finite at {tuple(bad[0])}")
    size = np.minimum(np.abs(x).astype(np.float64), 240)
    step = np.maximum(2.0 ** (np.frexp(size)[1] - 4.0), 2.0**-9)
    return np.copysign(np.rint(size / step) * step, x).astype(np.float32)


# %% wrong="round_to_e4m3" name="infinity_clipped" loses="round_to_e4m3-refuses"
# Clips before it looks: infinity becomes 448.
def round_to_e4m3(x):
    size = np.minimum(np.abs(x).astype(np.float64), 448)
    bad = np.argwhere(np.isnan(size)).tolist()
    if bad:
        raise ValueError(f"not finite at {tuple(bad[0])}")
    step = np.maximum(2.0 ** (np.frexp(size)[1] - 4.0), 2.0**-9)
    return np.copysign(np.rint(size / step) * step, x).astype(np.float32)


# %% wrong="round_to_e4m3" name="half_precision_first" loses="round_to_e4m3-nearest quantise_e2m1-division"
# Rounds to 16 bits first, which makes ties of what was beside them: quotients are rounded twice too.
def round_to_e4m3(x):
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad:
        raise ValueError(f"not finite at {tuple(bad[0])}")
    size = np.minimum(np.abs(x), 448).astype(np.float16).astype(np.float64)
    step = np.maximum(2.0 ** (np.frexp(size)[1] - 4.0), 2.0**-9)
    return np.copysign(np.rint(size / step) * step, x).astype(np.float32)


# %% wrong="round_to_e4m3" name="positive_zero" loses="round_to_e4m3-subnormal"
# Takes the sign from a comparison, which sees none in -0.0.
def round_to_e4m3(x):
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad:
        raise ValueError(f"not finite at {tuple(bad[0])}")
    size = np.minimum(np.abs(x).astype(np.float64), 448)
    step = np.maximum(2.0 ** (np.frexp(size)[1] - 4.0), 2.0**-9)
    return (np.where(x < 0, -1, 1) * np.rint(size / step) * step).astype(np.float32)


# %% wrong="round_to_e4m3" name="float32_first" loses="round_to_e4m3-nearest"
# Rounds to float32 first, which makes a tie of a float64 beside one.
def round_to_e4m3(x):
    x = np.asarray(x, np.float32)
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad:
        raise ValueError(f"not finite at {tuple(bad[0])}")
    size = np.minimum(np.abs(x), np.float32(448))
    step = np.maximum(2.0 ** (np.frexp(size)[1] - 4.0), 2.0**-9)
    return np.copysign(np.rint(size / step) * step, x).astype(np.float32)


# %% right="round_to_e4m3" name="grid"
# Looks for the nearest in the list of all values, the even one of two.
def round_to_e4m3(x):
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad:
        raise ValueError(f"not finite at {tuple(bad[0])}")
    values = [m * 2.0**-9 for m in range(8)] + [(8 + m) * 2.0 ** (e - 3) for e in range(-6, 9) for m in range(8)]
    values = np.array(values[:-1])
    ties = (values[1:] + values[:-1]) / 2
    size = np.abs(x).astype(np.float64)
    below, upto = np.searchsorted(ties, size, "left"), np.searchsorted(ties, size, "right")
    return np.copysign(values[np.where(below % 2 == 0, below, upto)], x).astype(np.float32)


# %% right="round_to_e4m3" name="loops"
# One value after the other, Python's round being half to even.
def round_to_e4m3(x):
    result = np.zeros(x.shape, np.float32)
    for index in np.ndindex(*x.shape):
        value = float(x[index])
        if not math.isfinite(value):
            raise ValueError(f"{value} at {index}")
        size = min(abs(value), 448.0)
        step = 2.0 ** max(math.frexp(size)[1] - 4, -9)
        result[index] = math.copysign(round(size / step) * step, value)
    return result


# %% right="round_to_e4m3" name="bits"
# Drops 49 bits of a float64, halves to even; the small ones by adding a large number and taking it away.
def round_to_e4m3(x):
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad:
        raise ValueError(f"not finite at {tuple(bad[0])}")
    size = np.minimum(np.abs(np.asarray(x, np.float64)), 448)
    bits = size.view(np.int64)
    normal = ((bits + (1 << 48) - 1 + (bits >> 49 & 1)) >> 49 << 49).view(np.float64)
    large = 1.5 * 2.0 ** (52 - 9)
    return np.copysign(np.where(size < 2.0**-6, size + large - large, normal), x).astype(np.float32)


# %% wrong="ue8m0_exponent" name="float32_logarithm" loses="ue8m0_exponent-powers"
# The logarithm of a float32 is rounded to the whole number that it lies beside.
def ue8m0_exponent(amax):
    bad = np.argwhere(~np.isfinite(amax) | (amax < 0)).tolist()
    if bad:
        raise ValueError(f"no magnitude at {tuple(bad[0])}")
    amax = np.maximum(np.float32(amax), np.float32(1e-4))
    return np.ceil(np.log2(amax / np.float32(448))).astype(np.int32)


# %% wrong="ue8m0_exponent" name="floor_rule" loses="ue8m0_exponent-smallest ue8m0_exponent-powers"
# The rule of MXFP8: the exponent of amax less that of 448, which lets the largest elements clip.
def ue8m0_exponent(amax):
    bad = np.argwhere(~np.isfinite(amax) | (amax < 0)).tolist()
    if bad:
        raise ValueError(f"no magnitude at {tuple(bad[0])}")
    return np.frexp(np.maximum(amax, 1e-4))[1] - 1 - 8


# %% wrong="ue8m0_exponent" name="strict" loses="ue8m0_exponent-powers"
# Takes < for ≤: an amax that fits exactly gets one more.
def ue8m0_exponent(amax):
    bad = np.argwhere(~np.isfinite(amax) | (amax < 0)).tolist()
    if bad:
        raise ValueError(f"no magnitude at {tuple(bad[0])}")
    mantissa, exponent = np.frexp(np.maximum(amax, 1e-4))
    return exponent - 9 + (mantissa >= 0.875)


# %% wrong="ue8m0_exponent" name="biased" loses="ue8m0_exponent-smallest ue8m0_exponent-powers ue8m0_exponent-floor"
# Returns the byte that is stored, with its bias of 127.
def ue8m0_exponent(amax):
    bad = np.argwhere(~np.isfinite(amax) | (amax < 0)).tolist()
    if bad:
        raise ValueError(f"no magnitude at {tuple(bad[0])}")
    mantissa, exponent = np.frexp(np.maximum(amax, 1e-4))
    return exponent - 9 + (mantissa > 0.875) + 127


# %% wrong="ue8m0_exponent" name="only_zero" loses="ue8m0_exponent-floor"
# Looks after zero alone; other tiny groups choose tiny scales.
def ue8m0_exponent(amax):
    bad = np.argwhere(~np.isfinite(amax) | (amax < 0)).tolist()
    if bad:
        raise ValueError(f"no magnitude at {tuple(bad[0])}")
    mantissa, exponent = np.frexp(np.where(amax == 0, 1e-4, amax))
    return exponent - 9 + (mantissa > 0.875)


# %% wrong="ue8m0_exponent" name="to_nearest" loses="ue8m0_exponent-smallest ue8m0_exponent-powers"
# Rounds the exponent to the nearest.
def ue8m0_exponent(amax):
    bad = np.argwhere(~np.isfinite(amax) | (amax < 0)).tolist()
    if bad:
        raise ValueError(f"no magnitude at {tuple(bad[0])}")
    return np.rint(np.log2(np.maximum(amax, 1e-4).astype(np.float64) / 448)).astype(np.int64)


# %% wrong="ue8m0_exponent" name="takes_anything" loses="ue8m0_exponent-floor"
# Lets NaN, infinity and negative numbers through.
def ue8m0_exponent(amax):
    mantissa, exponent = np.frexp(np.maximum(np.abs(amax), 1e-4))
    return exponent - 9 + (mantissa > 0.875)


# %% wrong="ue8m0_exponent" name="room_for_512" loses="ue8m0_exponent-smallest ue8m0_exponent-powers"
# Takes 512, the next power of two, for 448.
def ue8m0_exponent(amax):
    bad = np.argwhere(~np.isfinite(amax) | (amax < 0)).tolist()
    if bad:
        raise ValueError(f"no magnitude at {tuple(bad[0])}")
    return np.ceil(np.log2(np.maximum(amax, 1e-4).astype(np.float64) / 512)).astype(np.int64)


# %% right="ue8m0_exponent" name="float64_logarithm"
# In float64 the logarithm tells neighbours of float32 apart; one comparison on each side makes sure.
def ue8m0_exponent(amax):
    bad = np.argwhere(~np.isfinite(amax) | (amax < 0)).tolist()
    if bad:
        raise ValueError(f"no magnitude at {tuple(bad[0])}")
    amax = np.maximum(np.asarray(amax, np.float64), 1e-4)
    e = np.ceil(np.log2(amax / 448)).astype(np.int64)
    e = np.where(amax > 448 * 2.0**e, e + 1, e)
    return np.where(amax <= 448 * 2.0 ** (e - 1), e - 1, e)


# %% right="ue8m0_exponent" name="loops"
# Walks up from the floor until there is room.
def ue8m0_exponent(amax):
    bad = np.argwhere(~np.isfinite(amax) | (amax < 0)).tolist()
    if bad:
        raise ValueError(f"no magnitude at {tuple(bad[0])}")
    exponents = np.zeros(amax.shape, np.int64)
    for index in np.ndindex(*amax.shape):
        size, e = max(float(amax[index]), 1e-4), -22
        while size > 448 * 2.0**e:
            e += 1
        exponents[index] = e
    return exponents


# %% right="ue8m0_exponent" name="bits"
# Reads the exponent from the bits of a float64, one more unless the mantissa is zero.
def ue8m0_exponent(amax):
    bad = np.argwhere(~np.isfinite(amax) | (amax < 0)).tolist()
    if bad:
        raise ValueError(f"no magnitude at {tuple(bad[0])}")
    bits = (np.maximum(np.asarray(amax, np.float64), 1e-4) / 448).view(np.int64)
    return (bits >> 52) - 1023 + (bits << 12 != 0)


# %% wrong="quantise_e2m1" name="per_tensor" loses="quantise_e2m1-scales quantise_e2m1-division quantise_e2m1-tensor_scale"
# One maximum for the whole tensor.
def quantise_e2m1(x, scale_rule=ScaleRule.GROUP):
    groups, t = _grouped(x, scale_rule)
    amax = np.full(groups.shape[:-1], np.abs(groups).max(initial=0))
    scales = round_to_e4m3(np.clip(amax / np.float32(6) / t, 2.0**-9, 448))
    codes = encode_e2m1(groups / np.maximum(scales * t, formats.FLOAT32_TINY)[..., None])
    return QuantisedE2M1(codes.reshape(x.shape), scales, float(t))


def _grouped(x, scale_rule):
    if x.shape[-1] % 16:
        raise ValueError(f"x: expected a multiple of 16, got shape {x.shape}")
    for index in np.argwhere(~np.isfinite(x)).tolist()[:1]:
        raise ValueError(f"x: not finite at {tuple(index)}")
    t = np.float32(1)
    if scale_rule is ScaleRule.TENSOR_AND_GROUP:
        t = np.maximum(np.abs(x).max(initial=0) / np.float32(2688), formats.FLOAT32_TINY)
    return np.float32(x).reshape(*x.shape[:-1], -1, 16), t


# %% wrong="quantise_e2m1" name="largest_not_largest_magnitude" loses="quantise_e2m1-scales"
# Takes the largest element for the largest magnitude.
def quantise_e2m1(x, scale_rule=ScaleRule.GROUP):
    groups, t = _grouped(x, scale_rule)
    amax = groups.max(axis=-1)
    scales = round_to_e4m3(np.clip(amax / np.float32(6) / t, 2.0**-9, 448))
    codes = encode_e2m1(groups / np.maximum(scales * t, formats.FLOAT32_TINY)[..., None])
    return QuantisedE2M1(codes.reshape(x.shape), scales, float(t))


def _grouped(x, scale_rule):
    if x.shape[-1] % 16:
        raise ValueError(f"x: expected a multiple of 16, got shape {x.shape}")
    for index in np.argwhere(~np.isfinite(x)).tolist()[:1]:
        raise ValueError(f"x: not finite at {tuple(index)}")
    t = np.float32(1)
    if scale_rule is ScaleRule.TENSOR_AND_GROUP:
        t = np.maximum(np.abs(x).max(initial=0) / np.float32(2688), formats.FLOAT32_TINY)
    return np.float32(x).reshape(*x.shape[:-1], -1, 16), t


# %% wrong="quantise_e2m1" name="unrounded_scale" loses="quantise_e2m1-codes"
# Divides by amax / 6 as it was before it became E4M3.
def quantise_e2m1(x, scale_rule=ScaleRule.GROUP):
    groups, t = _grouped(x, scale_rule)
    exact = np.clip(np.abs(groups).max(axis=-1) / np.float32(6) / t, np.float32(2.0**-9), 448)
    codes = encode_e2m1(groups / np.maximum(exact * t, formats.FLOAT32_TINY)[..., None])
    return QuantisedE2M1(codes.reshape(x.shape), round_to_e4m3(exact), float(t))


def _grouped(x, scale_rule):
    if x.shape[-1] % 16:
        raise ValueError(f"x: expected a multiple of 16, got shape {x.shape}")
    for index in np.argwhere(~np.isfinite(x)).tolist()[:1]:
        raise ValueError(f"x: not finite at {tuple(index)}")
    t = np.float32(1)
    if scale_rule is ScaleRule.TENSOR_AND_GROUP:
        t = np.maximum(np.abs(x).max(initial=0) / np.float32(2688), formats.FLOAT32_TINY)
    return np.float32(x).reshape(*x.shape[:-1], -1, 16), t


# %% wrong="quantise_e2m1" name="floor_of_normals" loses="quantise_e2m1-floor"
# Clamps to the smallest normal scale, 2^-6.
def quantise_e2m1(x, scale_rule=ScaleRule.GROUP):
    groups, t = _grouped(x, scale_rule)
    scales = round_to_e4m3(np.clip(np.abs(groups).max(axis=-1) / np.float32(6) / t, 2.0**-6, 448))
    codes = encode_e2m1(groups / np.maximum(scales * t, formats.FLOAT32_TINY)[..., None])
    return QuantisedE2M1(codes.reshape(x.shape), scales, float(t))


def _grouped(x, scale_rule):
    if x.shape[-1] % 16:
        raise ValueError(f"x: expected a multiple of 16, got shape {x.shape}")
    for index in np.argwhere(~np.isfinite(x)).tolist()[:1]:
        raise ValueError(f"x: not finite at {tuple(index)}")
    t = np.float32(1)
    if scale_rule is ScaleRule.TENSOR_AND_GROUP:
        t = np.maximum(np.abs(x).max(initial=0) / np.float32(2688), formats.FLOAT32_TINY)
    return np.float32(x).reshape(*x.shape[:-1], -1, 16), t


# %% wrong="quantise_e2m1" name="zero_by_zero" loses="quantise_e2m1-floor"
# No floor at all: the scale of a group of zeros is zero, and 0 / 0 is NaN.
def quantise_e2m1(x, scale_rule=ScaleRule.GROUP):
    groups, t = _grouped(x, scale_rule)
    scales = round_to_e4m3(np.abs(groups).max(axis=-1) / np.float32(6) / t)
    codes = encode_e2m1(groups / (scales * t)[..., None])
    return QuantisedE2M1(codes.reshape(x.shape), scales, float(t))


def _grouped(x, scale_rule):
    if x.shape[-1] % 16:
        raise ValueError(f"x: expected a multiple of 16, got shape {x.shape}")
    for index in np.argwhere(~np.isfinite(x)).tolist()[:1]:
        raise ValueError(f"x: not finite at {tuple(index)}")
    t = np.float32(1)
    if scale_rule is ScaleRule.TENSOR_AND_GROUP:
        t = np.maximum(np.abs(x).max(initial=0) / np.float32(2688), formats.FLOAT32_TINY)
    return np.float32(x).reshape(*x.shape[:-1], -1, 16), t


# %% wrong="quantise_e2m1" name="reciprocal" loses="quantise_e2m1-division"
# Multiplies by 1 / s.
def quantise_e2m1(x, scale_rule=ScaleRule.GROUP):
    groups, t = _grouped(x, scale_rule)
    scales = round_to_e4m3(np.clip(np.abs(groups).max(axis=-1) / np.float32(6) / t, 2.0**-9, 448))
    reciprocals = np.float32(1) / np.maximum(scales * t, np.float32(1e-38))
    codes = encode_e2m1(groups * reciprocals[..., None])
    return QuantisedE2M1(codes.reshape(x.shape), scales, float(t))


def _grouped(x, scale_rule):
    if x.shape[-1] % 16:
        raise ValueError(f"x: expected a multiple of 16, got shape {x.shape}")
    for index in np.argwhere(~np.isfinite(x)).tolist()[:1]:
        raise ValueError(f"x: not finite at {tuple(index)}")
    t = np.float32(1)
    if scale_rule is ScaleRule.TENSOR_AND_GROUP:
        t = np.maximum(np.abs(x).max(initial=0) / np.float32(2688), formats.FLOAT32_TINY)
    return np.float32(x).reshape(*x.shape[:-1], -1, 16), t


# %% wrong="quantise_e2m1" name="sixth_as_a_factor" loses="quantise_e2m1-division"
# Multiplies amax by float32(1 / 6).
def quantise_e2m1(x, scale_rule=ScaleRule.GROUP):
    groups, t = _grouped(x, scale_rule)
    scales = round_to_e4m3(np.clip(np.abs(groups).max(axis=-1) * np.float32(1 / 6) / t, 2.0**-9, 448))
    codes = encode_e2m1(groups / np.maximum(scales * t, formats.FLOAT32_TINY)[..., None])
    return QuantisedE2M1(codes.reshape(x.shape), scales, float(t))


def _grouped(x, scale_rule):
    if x.shape[-1] % 16:
        raise ValueError(f"x: expected a multiple of 16, got shape {x.shape}")
    for index in np.argwhere(~np.isfinite(x)).tolist()[:1]:
        raise ValueError(f"x: not finite at {tuple(index)}")
    t = np.float32(1)
    if scale_rule is ScaleRule.TENSOR_AND_GROUP:
        t = np.maximum(np.abs(x).max(initial=0) / np.float32(2688), formats.FLOAT32_TINY)
    return np.float32(x).reshape(*x.shape[:-1], -1, 16), t


# %% wrong="quantise_e2m1" name="tensor_scale_of_448" loses="quantise_e2m1-tensor_scale"
# Takes t = amax / 448, as if elements reached 1 and not 6.
def quantise_e2m1(x, scale_rule=ScaleRule.GROUP):
    groups, t = _grouped(x, scale_rule)
    scales = round_to_e4m3(np.clip(np.abs(groups).max(axis=-1) / np.float32(6) / t, 2.0**-9, 448))
    codes = encode_e2m1(groups / np.maximum(scales * t, formats.FLOAT32_TINY)[..., None])
    return QuantisedE2M1(codes.reshape(x.shape), scales, float(t))


def _grouped(x, scale_rule):
    if x.shape[-1] % 16:
        raise ValueError(f"x: expected a multiple of 16, got shape {x.shape}")
    for index in np.argwhere(~np.isfinite(x)).tolist()[:1]:
        raise ValueError(f"x: not finite at {tuple(index)}")
    t = np.float32(1)
    if scale_rule is ScaleRule.TENSOR_AND_GROUP:
        t = np.maximum(np.abs(x).max(initial=0) / np.float32(448), formats.FLOAT32_TINY)
    return np.float32(x).reshape(*x.shape[:-1], -1, 16), t


# %% wrong="quantise_e2m1" name="codes_without_tensor_scale" loses="quantise_e2m1-tensor_scale"
# Divides elements by s alone.
def quantise_e2m1(x, scale_rule=ScaleRule.GROUP):
    groups, t = _grouped(x, scale_rule)
    scales = round_to_e4m3(np.clip(np.abs(groups).max(axis=-1) / np.float32(6) / t, 2.0**-9, 448))
    return QuantisedE2M1(encode_e2m1(groups / scales[..., None]).reshape(x.shape), scales, float(t))


def _grouped(x, scale_rule):
    if x.shape[-1] % 16:
        raise ValueError(f"x: expected a multiple of 16, got shape {x.shape}")
    for index in np.argwhere(~np.isfinite(x)).tolist()[:1]:
        raise ValueError(f"x: not finite at {tuple(index)}")
    t = np.float32(1)
    if scale_rule is ScaleRule.TENSOR_AND_GROUP:
        t = np.maximum(np.abs(x).max(initial=0) / np.float32(2688), formats.FLOAT32_TINY)
    return np.float32(x).reshape(*x.shape[:-1], -1, 16), t


# %% wrong="quantise_e2m1" name="left_to_the_parts" loses="quantise_e2m1-refuses"
# Leaves NaN to round_to_e4m3, which names the group and not the element.
def quantise_e2m1(x, scale_rule=ScaleRule.GROUP):
    if x.shape[-1] % 16:
        raise ValueError(f"x: expected a multiple of 16, got shape {x.shape}")
    groups = np.float32(x).reshape(*x.shape[:-1], -1, 16)
    amax = np.abs(groups).max(axis=-1)
    t = np.float32(1)
    if scale_rule is ScaleRule.TENSOR_AND_GROUP:
        t = np.maximum(amax.max(initial=0) / np.float32(2688), formats.FLOAT32_TINY)
    scales = round_to_e4m3(np.maximum(amax / np.float32(6) / t, np.float32(2.0**-9)))
    codes = encode_e2m1(groups / np.maximum(scales * t, formats.FLOAT32_TINY)[..., None])
    return QuantisedE2M1(codes.reshape(x.shape), scales, float(t))


# %% wrong="quantise_e2m1" name="pads" loses="quantise_e2m1-refuses"
# Fills the last group up with zeros.
def quantise_e2m1(x, scale_rule=ScaleRule.GROUP):
    for index in np.argwhere(~np.isfinite(x)).tolist()[:1]:
        raise ValueError(f"x: not finite at {tuple(index)}")
    padding = [(0, 0)] * (x.ndim - 1) + [(0, -x.shape[-1] % 16)]
    groups = np.pad(np.float32(x), padding)
    groups = groups.reshape(*groups.shape[:-1], -1, 16)
    t = np.float32(1)
    if scale_rule is ScaleRule.TENSOR_AND_GROUP:
        t = np.maximum(np.abs(x).max(initial=0) / np.float32(2688), formats.FLOAT32_TINY)
    scales = round_to_e4m3(np.clip(np.abs(groups).max(axis=-1) / np.float32(6) / t, 2.0**-9, 448))
    codes = encode_e2m1(groups / np.maximum(scales * t, formats.FLOAT32_TINY)[..., None])
    codes = codes.reshape(*x.shape[:-1], -1)[..., : x.shape[-1]]
    return QuantisedE2M1(codes, scales, float(t))


# %% wrong="quantise_e2m1" name="tensor_scale_under_either_rule" loses="quantise_e2m1-scales"
# Returns the tensor scale of the second rule under the first rule too.
def quantise_e2m1(x, scale_rule=ScaleRule.GROUP):
    x = np.asarray(x, np.float32)
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad or x.shape[-1] % 16:
        raise ValueError(f"not finite at {tuple(bad[0])}" if bad else f"a width of {x.shape[-1]}")
    groups = x.reshape(*x.shape[:-1], -1, 16)
    amax = np.abs(groups).max(axis=-1)
    stored = np.maximum(amax.max() / np.float32(2688), formats.FLOAT32_TINY)
    t = stored if scale_rule is ScaleRule.TENSOR_AND_GROUP else np.float32(1)
    scales = round_to_e4m3(np.clip(amax / np.float32(6) / t, 2.0**-9, 448))
    steps = np.maximum(scales * t, formats.FLOAT32_TINY)
    return QuantisedE2M1(encode_e2m1(groups / steps[..., None]).reshape(x.shape), scales, float(stored))


# %% right="quantise_e2m1" name="float64"
# Everything in float64, rounded where the record wants float32.
def quantise_e2m1(x, scale_rule=ScaleRule.GROUP):
    if x.shape[-1] % 16 or not np.all(np.isfinite(x)):
        raise ValueError(f"x: shape {x.shape}, not finite at {np.argwhere(~np.isfinite(x))[:1].tolist()}")
    wide = np.asarray(x, np.float64).reshape(*x.shape[:-1], -1, 16)
    amax = np.abs(wide).max(axis=-1)
    t = 1.0
    if scale_rule is ScaleRule.TENSOR_AND_GROUP:
        t = max(float(np.float32(amax.max() / 2688)), 2.0**-149)
    scales = round_to_e4m3(np.clip(amax / 6 / t, 2.0**-9, 448))
    codes = encode_e2m1(wide / (scales.astype(np.float64) * t)[..., None])
    return QuantisedE2M1(codes.reshape(x.shape), scales, t)


# %% right="quantise_e2m1" name="loops"
# One group after the other.
def quantise_e2m1(x, scale_rule=ScaleRule.GROUP):
    if x.shape[-1] % 16:
        raise ValueError(f"x: expected a multiple of 16, got shape {x.shape}")
    for index in np.ndindex(*x.shape):
        if not math.isfinite(x[index]):
            raise ValueError(f"{x[index]} at {index}")
    t = np.float32(1)
    if scale_rule is ScaleRule.TENSOR_AND_GROUP:
        t = max(np.abs(x).max() / np.float32(2688), np.float32(2.0**-149))
    codes = np.zeros(x.shape, np.uint8)
    scales = np.zeros((*x.shape[:-1], x.shape[-1] // 16), np.float32)
    for index in np.ndindex(*scales.shape):
        where = (*index[:-1], slice(16 * index[-1], 16 * index[-1] + 16))
        amax = np.abs(x[where]).max()
        wanted = min(max(amax / np.float32(6) / t, 2.0**-9), 448)
        scales[index] = round_to_e4m3(np.array([wanted], np.float32))[0]
        codes[where] = encode_e2m1(x[where] / max(scales[index] * t, np.float32(2.0**-149)))
    return QuantisedE2M1(codes, scales, float(t))


# %% right="quantise_e2m1" name="split_and_stacked"
# Splits the last axis into columns; the magnitude as the larger of both ends; a plain tuple.
def quantise_e2m1(x, scale_rule=ScaleRule.GROUP):
    x = np.asarray(x, np.float32)
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad or x.shape[-1] % 16:
        raise ValueError(f"not finite at {tuple(bad[0])}" if bad else f"a width of {x.shape[-1]}")
    groups = np.stack(np.split(x, x.shape[-1] // 16, axis=-1), axis=-2)
    amax = np.maximum(groups.max(axis=-1), -groups.min(axis=-1))
    t = np.float32(1)
    if scale_rule.name == "TENSOR_AND_GROUP":
        t = np.float32(max(float(amax.max()) / 2688, float(formats.FLOAT32_TINY)))
    scales = round_to_e4m3(np.maximum(amax / np.float32(6) / t, np.float32(2.0**-9)))
    steps = np.maximum(scales * t, formats.FLOAT32_TINY)
    return encode_e2m1(groups / steps[..., None]).reshape(x.shape), scales, t


# %% wrong="quantise_int" name="one_level_too_many" loses="quantise_int-symmetric quantise_int-ties"
# 2^(b-1) levels, as if both ends of two's complement could be used.
def quantise_int(x, bits, group, axis=-1, symmetric=True):
    groups, axis = _grouped(x, bits, group, axis)
    low, high = groups.min(axis + 1, keepdims=True), groups.max(axis + 1, keepdims=True)
    levels = 2 ** (bits - 1) if symmetric else 2**bits - 1
    minimum = np.zeros_like(low) if symmetric else low
    span = np.maximum(-low, high) if symmetric else high - low
    scales = np.maximum(np.float32(span / levels), formats.FLOAT32_TINY)
    codes = np.clip(np.rint((groups - minimum) / scales), -levels, levels).astype(np.int16)
    return QuantisedInt(
        codes.reshape(x.shape), scales.squeeze(axis + 1), np.float32(minimum).squeeze(axis + 1), group, axis
    )


def _grouped(x, bits, group, axis):
    axis %= x.ndim
    for index in np.argwhere(~np.isfinite(x)).tolist()[:1]:
        raise ValueError(f"x: not finite at {tuple(index)}")
    if bits not in (8, 6, 4, 3, 2) or x.shape[axis] % group:
        raise ValueError(f"bits {bits}, group {group} for shape {x.shape}")
    return x.astype(np.float64).reshape(*x.shape[:axis], -1, group, *x.shape[axis + 1 :]), axis


# %% wrong="quantise_int" name="affine_one_level_too_many" loses="quantise_int-affine"
# 2^b steps between 2^b levels.
def quantise_int(x, bits, group, axis=-1, symmetric=True):
    groups, axis = _grouped(x, bits, group, axis)
    low, high = groups.min(axis + 1, keepdims=True), groups.max(axis + 1, keepdims=True)
    levels = 2 ** (bits - 1) - 1 if symmetric else 2**bits
    minimum = np.zeros_like(low) if symmetric else low
    span = np.maximum(-low, high) if symmetric else high - low
    scales = np.maximum(np.float32(span / levels), formats.FLOAT32_TINY)
    codes = np.clip(np.rint((groups - minimum) / scales), -levels, levels).astype(np.int16)
    return QuantisedInt(
        codes.reshape(x.shape), scales.squeeze(axis + 1), np.float32(minimum).squeeze(axis + 1), group, axis
    )


def _grouped(x, bits, group, axis):
    axis %= x.ndim
    for index in np.argwhere(~np.isfinite(x)).tolist()[:1]:
        raise ValueError(f"x: not finite at {tuple(index)}")
    if bits not in (8, 6, 4, 3, 2) or x.shape[axis] % group:
        raise ValueError(f"bits {bits}, group {group} for shape {x.shape}")
    return x.astype(np.float64).reshape(*x.shape[:axis], -1, group, *x.shape[axis + 1 :]), axis


# %% wrong="quantise_int" name="half_up" loses="quantise_int-ties"
# floor(x + 1/2): halves go up.
def quantise_int(x, bits, group, axis=-1, symmetric=True):
    groups, axis = _grouped(x, bits, group, axis)
    low, high = groups.min(axis + 1, keepdims=True), groups.max(axis + 1, keepdims=True)
    levels = 2 ** (bits - 1) - 1 if symmetric else 2**bits - 1
    minimum = np.zeros_like(low) if symmetric else low
    span = np.maximum(-low, high) if symmetric else high - low
    scales = np.maximum(np.float32(span / levels), formats.FLOAT32_TINY)
    codes = np.clip(np.floor((groups - minimum) / scales + 0.5), -levels, levels).astype(np.int16)
    return QuantisedInt(
        codes.reshape(x.shape), scales.squeeze(axis + 1), np.float32(minimum).squeeze(axis + 1), group, axis
    )


def _grouped(x, bits, group, axis):
    axis %= x.ndim
    for index in np.argwhere(~np.isfinite(x)).tolist()[:1]:
        raise ValueError(f"x: not finite at {tuple(index)}")
    if bits not in (8, 6, 4, 3, 2) or x.shape[axis] % group:
        raise ValueError(f"bits {bits}, group {group} for shape {x.shape}")
    return x.astype(np.float64).reshape(*x.shape[:axis], -1, group, *x.shape[axis + 1 :]), axis


# %% wrong="quantise_int" name="per_tensor" loses="quantise_int-symmetric quantise_int-affine quantise_int-axis quantise_int-constant"
# One scale and one minimum for all groups.
def quantise_int(x, bits, group, axis=-1, symmetric=True):
    groups, axis = _grouped(x, bits, group, axis)
    shape = (*groups.shape[: axis + 1], 1, *groups.shape[axis + 2 :])
    low, high = np.full(shape, groups.min()), np.full(shape, groups.max())
    levels = 2 ** (bits - 1) - 1 if symmetric else 2**bits - 1
    minimum = np.zeros_like(low) if symmetric else low
    span = np.maximum(-low, high) if symmetric else high - low
    scales = np.maximum(np.float32(span / levels), formats.FLOAT32_TINY)
    codes = np.clip(np.rint((groups - minimum) / scales), -levels, levels).astype(np.int16)
    return QuantisedInt(
        codes.reshape(x.shape), scales.squeeze(axis + 1), np.float32(minimum).squeeze(axis + 1), group, axis
    )


def _grouped(x, bits, group, axis):
    axis %= x.ndim
    for index in np.argwhere(~np.isfinite(x)).tolist()[:1]:
        raise ValueError(f"x: not finite at {tuple(index)}")
    if bits not in (8, 6, 4, 3, 2) or x.shape[axis] % group:
        raise ValueError(f"bits {bits}, group {group} for shape {x.shape}")
    return x.astype(np.float64).reshape(*x.shape[:axis], -1, group, *x.shape[axis + 1 :]), axis


# %% wrong="quantise_int" name="whole_zero_point" loses="quantise_int-affine quantise_int-axis quantise_int-constant"
# Rounds the minimum to a whole number of steps, as formats with an integer zero point do.
def quantise_int(x, bits, group, axis=-1, symmetric=True):
    groups, axis = _grouped(x, bits, group, axis)
    low, high = groups.min(axis + 1, keepdims=True), groups.max(axis + 1, keepdims=True)
    levels = 2 ** (bits - 1) - 1 if symmetric else 2**bits - 1
    span = np.maximum(-low, high) if symmetric else high - low
    scales = np.maximum(np.float32(span / levels), 1e-6)
    minimum = np.zeros_like(low) if symmetric else np.rint(low / scales) * scales
    codes = np.clip(np.rint((groups - minimum) / scales), -levels, levels).astype(np.int16)
    return QuantisedInt(
        codes.reshape(x.shape), np.float32(scales).squeeze(axis + 1), np.float32(minimum).squeeze(axis + 1), group, axis
    )


def _grouped(x, bits, group, axis):
    axis %= x.ndim
    for index in np.argwhere(~np.isfinite(x)).tolist()[:1]:
        raise ValueError(f"x: not finite at {tuple(index)}")
    if bits not in (8, 6, 4, 3, 2) or x.shape[axis] % group:
        raise ValueError(f"bits {bits}, group {group} for shape {x.shape}")
    return x.astype(np.float64).reshape(*x.shape[:axis], -1, group, *x.shape[axis + 1 :]), axis


# %% wrong="quantise_int" name="last_axis" loses="quantise_int-axis quantise_int-refuses"
# Groups along the last axis whatever is asked.
def quantise_int(x, bits, group, axis=-1, symmetric=True):
    groups, axis = _grouped(x, bits, group, -1)
    low, high = groups.min(axis + 1, keepdims=True), groups.max(axis + 1, keepdims=True)
    levels = 2 ** (bits - 1) - 1 if symmetric else 2**bits - 1
    minimum = np.zeros_like(low) if symmetric else low
    span = np.maximum(-low, high) if symmetric else high - low
    scales = np.maximum(np.float32(span / levels), formats.FLOAT32_TINY)
    codes = np.clip(np.rint((groups - minimum) / scales), -levels, levels).astype(np.int16)
    return QuantisedInt(
        codes.reshape(x.shape), scales.squeeze(axis + 1), np.float32(minimum).squeeze(axis + 1), group, axis
    )


def _grouped(x, bits, group, axis):
    axis %= x.ndim
    for index in np.argwhere(~np.isfinite(x)).tolist()[:1]:
        raise ValueError(f"x: not finite at {tuple(index)}")
    if bits not in (8, 6, 4, 3, 2) or x.shape[axis] % group:
        raise ValueError(f"bits {bits}, group {group} for shape {x.shape}")
    return x.astype(np.float64).reshape(*x.shape[:axis], -1, group, *x.shape[axis + 1 :]), axis


# %% wrong="quantise_int" name="zero_by_zero" loses="quantise_int-constant"
# The scale of a constant group is zero, and 0 / 0 is no number.
def quantise_int(x, bits, group, axis=-1, symmetric=True):
    groups, axis = _grouped(x, bits, group, axis)
    low, high = groups.min(axis + 1, keepdims=True), groups.max(axis + 1, keepdims=True)
    levels = 2 ** (bits - 1) - 1 if symmetric else 2**bits - 1
    minimum = np.zeros_like(low) if symmetric else low
    span = np.maximum(-low, high) if symmetric else high - low
    scales = np.float32(span / levels)
    codes = np.clip(np.rint((groups - minimum) / scales), -levels, levels).astype(np.int16)
    return QuantisedInt(
        codes.reshape(x.shape), scales.squeeze(axis + 1), np.float32(minimum).squeeze(axis + 1), group, axis
    )


def _grouped(x, bits, group, axis):
    axis %= x.ndim
    for index in np.argwhere(~np.isfinite(x)).tolist()[:1]:
        raise ValueError(f"x: not finite at {tuple(index)}")
    if bits not in (8, 6, 4, 3, 2) or x.shape[axis] % group:
        raise ValueError(f"bits {bits}, group {group} for shape {x.shape}")
    return x.astype(np.float64).reshape(*x.shape[:axis], -1, group, *x.shape[axis + 1 :]), axis


# %% wrong="quantise_int" name="writes_into_its_argument" loses="quantise_int-argument snr_by_bits-affine"
# Subtracts the minimum in place: snr_by_bits then compares with data that are no longer the caller's.
def quantise_int(x, bits, group, axis=-1, symmetric=True):
    groups, axis = _grouped(x, bits, group, axis)
    low, high = groups.min(axis + 1, keepdims=True), groups.max(axis + 1, keepdims=True)
    levels = 2 ** (bits - 1) - 1 if symmetric else 2**bits - 1
    minimum = np.zeros_like(low) if symmetric else low
    span = np.maximum(-low, high) if symmetric else high - low
    scales = np.maximum(np.float32(span / levels), formats.FLOAT32_TINY)
    groups -= minimum
    codes = np.clip(np.rint(groups / scales), -levels, levels).astype(np.int16)
    return QuantisedInt(
        codes.reshape(x.shape), scales.squeeze(axis + 1), np.float32(minimum).squeeze(axis + 1), group, axis
    )


def _grouped(x, bits, group, axis):
    axis %= x.ndim
    for index in np.argwhere(~np.isfinite(x)).tolist()[:1]:
        raise ValueError(f"x: not finite at {tuple(index)}")
    if bits not in (8, 6, 4, 3, 2) or x.shape[axis] % group:
        raise ValueError(f"bits {bits}, group {group} for shape {x.shape}")
    return x.reshape(*x.shape[:axis], -1, group, *x.shape[axis + 1 :]), axis


# %% wrong="quantise_int" name="anything_goes" loses="quantise_int-refuses"
# Neither NaN nor another number of bits is refused.
def quantise_int(x, bits, group, axis=-1, symmetric=True):
    axis %= x.ndim
    groups = x.astype(np.float64).reshape(*x.shape[:axis], -1, group, *x.shape[axis + 1 :])
    low, high = groups.min(axis + 1, keepdims=True), groups.max(axis + 1, keepdims=True)
    levels = 2 ** (bits - 1) - 1 if symmetric else 2**bits - 1
    minimum = np.zeros_like(low) if symmetric else low
    span = np.maximum(-low, high) if symmetric else high - low
    scales = np.maximum(np.float32(span / levels), formats.FLOAT32_TINY)
    codes = np.clip(np.rint((groups - minimum) / scales), -levels, levels).astype(np.int16)
    return QuantisedInt(
        codes.reshape(x.shape), scales.squeeze(axis + 1), np.float32(minimum).squeeze(axis + 1), group, axis
    )


# %% wrong="quantise_int" name="scales_from_1e-8" loses="quantise_int-constant"
# Keeps scales above 1e-8, so that small groups become zeros.
def quantise_int(x, bits, group, axis=-1, symmetric=True):
    x = np.asarray(x, np.float32)
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad or bits not in formats.INTEGER_BITS or x.shape[axis] % group:
        raise ValueError(f"not finite at {tuple(bad[0])}" if bad else "no such width")
    place = axis % x.ndim
    groups = x.astype(np.float64).reshape(*x.shape[:place], -1, group, *x.shape[place + 1 :])
    low, high = groups.min(place + 1, keepdims=True), groups.max(place + 1, keepdims=True)
    levels = 2 ** (bits - 1) - 1 if symmetric else 2**bits - 1
    if symmetric:
        high, low = np.maximum(high, -low), np.zeros_like(low)
    scales = np.maximum(np.float32((high - low) / levels), np.float32(1e-8))
    codes = np.rint((groups - low) / scales).astype(np.int16)
    scales, minimums = scales.squeeze(place + 1), np.float32(low).squeeze(place + 1)
    return QuantisedInt(codes.reshape(x.shape), scales, minimums, group, axis)


# %% wrong="quantise_int" name="signed_bytes" loses="quantise_int-affine"
# Puts affine codes of 8 bits into signed bytes, where those above 127 turn negative.
def quantise_int(x, bits, group, axis=-1, symmetric=True):
    x = np.asarray(x, np.float32)
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad or bits not in formats.INTEGER_BITS or x.shape[axis] % group:
        raise ValueError(f"not finite at {tuple(bad[0])}" if bad else "no such width")
    place = axis % x.ndim
    groups = x.astype(np.float64).reshape(*x.shape[:place], -1, group, *x.shape[place + 1 :])
    low, high = groups.min(place + 1, keepdims=True), groups.max(place + 1, keepdims=True)
    levels = 2 ** (bits - 1) - 1 if symmetric else 2**bits - 1
    if symmetric:
        high, low = np.maximum(high, -low), np.zeros_like(low)
    scales = np.maximum(np.float32((high - low) / levels), formats.FLOAT32_TINY)
    codes = np.rint((groups - low) / scales).astype(np.int8).astype(np.int16)
    scales, minimums = scales.squeeze(place + 1), np.float32(low).squeeze(place + 1)
    return QuantisedInt(codes.reshape(x.shape), scales, minimums, group, axis)


# %% right="quantise_int" name="float32_moved_axis"
# In float32, with the axis moved to the end and back.
def quantise_int(x, bits, group, axis=-1, symmetric=True):
    axis %= x.ndim
    if not np.all(np.isfinite(x)):
        raise ValueError(f"not finite at {tuple(np.argwhere(~np.isfinite(x))[0].tolist())}")
    if bits not in formats.INTEGER_BITS or x.shape[axis] % group:
        raise ValueError(f"bits {bits}, group {group} for shape {x.shape}")
    moved = np.moveaxis(np.float32(x), axis, -1)
    groups = moved.reshape(*moved.shape[:-1], -1, group)
    if symmetric:
        minimum = np.zeros(groups.shape[:-1], np.float32)
        scales = np.abs(groups).max(-1) / np.float32(2 ** (bits - 1) - 1)
    else:
        minimum = groups.min(-1)
        scales = (groups.max(-1) - minimum) / np.float32(2**bits - 1)
    scales = np.maximum(scales, formats.FLOAT32_TINY)
    codes = np.rint((groups - minimum[..., None]) / scales[..., None]).astype(np.int16).reshape(moved.shape)
    parts = [np.ascontiguousarray(np.moveaxis(part, -1, axis)) for part in (codes, scales, minimum)]
    return QuantisedInt(*parts, group, axis)


# %% right="quantise_int" name="loops"
# One group after the other, in Python's own floats.
def quantise_int(x, bits, group, axis=-1, symmetric=True):
    axis = axis + x.ndim if axis < 0 else axis
    if bits not in (2, 3, 4, 6, 8) or x.shape[axis] % group:
        raise ValueError(f"bits {bits}, group {group} for shape {x.shape}")
    for index in np.ndindex(*x.shape):
        if not math.isfinite(x[index]):
            raise ValueError(f"{x[index]} at {index}")
    shape = tuple(n // group if i == axis else n for i, n in enumerate(x.shape))
    codes, scales, minimums = np.zeros(x.shape, np.int16), np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    for index in np.ndindex(*shape):
        members = [(*index[:axis], index[axis] * group + k, *index[axis + 1 :]) for k in range(group)]
        values = [float(x[member]) for member in members]
        low = 0.0 if symmetric else min(values)
        levels = 2 ** (bits - 1) - 1 if symmetric else 2**bits - 1
        span = max(map(abs, values)) if symmetric else max(values) - low
        scales[index], minimums[index] = max(span / levels, 2.0**-149), low
        for member, value in zip(members, values):
            codes[member] = round((value - low) / float(scales[index]))
    return QuantisedInt(codes, scales, minimums, group, axis)


# %% right="quantise_int" name="axis_from_the_front"
# Returns the axis counted from the front.
def quantise_int(x, bits, group, axis=-1, symmetric=True):
    x = np.asarray(x, np.float32)
    bad = np.argwhere(~np.isfinite(x)).tolist()
    if bad or bits not in formats.INTEGER_BITS or x.shape[axis] % group:
        raise ValueError(f"not finite at {tuple(bad[0])}" if bad else "no such width")
    place = axis % x.ndim
    groups = x.astype(np.float64).reshape(*x.shape[:place], -1, group, *x.shape[place + 1 :])
    low, high = groups.min(place + 1, keepdims=True), groups.max(place + 1, keepdims=True)
    levels = 2 ** (bits - 1) - 1 if symmetric else 2**bits - 1
    if symmetric:
        high, low = np.maximum(high, -low), np.zeros_like(low)
    scales = np.maximum(np.float32((high - low) / levels), formats.FLOAT32_TINY)
    codes = np.rint((groups - low) / scales).astype(np.int16)
    scales, minimums = scales.squeeze(place + 1), np.float32(low).squeeze(place + 1)
    return QuantisedInt(codes.reshape(x.shape), scales, minimums, group, place)


# %% wrong="dequantise" name="tile" loses="dequantise-e2m1"
# np.tile deals the scales out in turn.
def dequantise(quantised):
    if isinstance(quantised, QuantisedE2M1):
        scales = np.tile(quantised.scales, 16) * np.float32(quantised.tensor_scale)
        return decode_e2m1(quantised.codes) * scales
    scales = np.repeat(quantised.scales, quantised.group, quantised.axis)
    minimums = np.repeat(quantised.minimums, quantised.group, quantised.axis)
    return (minimums + quantised.codes * scales).astype(np.float32)


# %% wrong="dequantise" name="no_tensor_scale" loses="dequantise-tensor_scale"
# The tensor scale is stored and never used.
def dequantise(quantised):
    if isinstance(quantised, QuantisedE2M1):
        return decode_e2m1(quantised.codes) * np.repeat(quantised.scales, 16, axis=-1)
    scales = np.repeat(quantised.scales, quantised.group, quantised.axis)
    minimums = np.repeat(quantised.minimums, quantised.group, quantised.axis)
    return (minimums + quantised.codes * scales).astype(np.float32)


# %% wrong="dequantise" name="divides_by_tensor_scale" loses="dequantise-tensor_scale"
# Divides by the tensor scale, as quantising did.
def dequantise(quantised):
    if isinstance(quantised, QuantisedE2M1):
        scales = np.repeat(quantised.scales, 16, axis=-1) / np.float32(quantised.tensor_scale)
        return decode_e2m1(quantised.codes) * scales
    scales = np.repeat(quantised.scales, quantised.group, quantised.axis)
    minimums = np.repeat(quantised.minimums, quantised.group, quantised.axis)
    return (minimums + quantised.codes * scales).astype(np.float32)


# %% wrong="dequantise" name="no_minimum" loses="dequantise-int"
# The minimum is stored and never added.
def dequantise(quantised):
    if isinstance(quantised, QuantisedE2M1):
        scales = np.repeat(quantised.scales, 16, axis=-1) * np.float32(quantised.tensor_scale)
        return (decode_e2m1(quantised.codes) * scales).astype(np.float32)
    scales = np.repeat(quantised.scales, quantised.group, quantised.axis)
    return (quantised.codes * scales).astype(np.float32)


# %% wrong="dequantise" name="last_axis" loses="dequantise-axis"
# Scales are spread along the last axis whatever the record says.
def dequantise(quantised):
    if isinstance(quantised, QuantisedE2M1):
        scales = np.repeat(quantised.scales, 16, axis=-1) * np.float32(quantised.tensor_scale)
        return (decode_e2m1(quantised.codes) * scales).astype(np.float32)
    n = quantised.codes.shape[-1]
    scales = np.resize(np.repeat(quantised.scales, quantised.group, -1), (*quantised.codes.shape[:-1], n))
    minimums = np.resize(np.repeat(quantised.minimums, quantised.group, -1), (*quantised.codes.shape[:-1], n))
    return (minimums + quantised.codes * scales).astype(np.float32)


# %% wrong="dequantise" name="three_bits" loses="dequantise-e2m1"
# Looks the magnitude up itself and forgets bit 3, the sign.
def dequantise(quantised):
    if isinstance(quantised, QuantisedE2M1):
        scales = np.repeat(quantised.scales, 16, axis=-1) * np.float32(quantised.tensor_scale)
        return formats.E2M1_VALUES[quantised.codes & 7] * scales
    scales = np.repeat(quantised.scales, quantised.group, quantised.axis)
    minimums = np.repeat(quantised.minimums, quantised.group, quantised.axis)
    return (minimums + quantised.codes * scales).astype(np.float32)


# %% wrong="dequantise" name="axis_from_the_front" loses="dequantise-axis snr_by_bits-widths snr_by_bits-affine"
# Splits shapes at `axis` and `axis + 1`, which counts from the end for an axis of -1.
def dequantise(quantised):
    if isinstance(quantised, QuantisedE2M1):
        scales = np.repeat(quantised.scales, 16, axis=-1) * np.float32(quantised.tensor_scale)
        return (decode_e2m1(quantised.codes) * scales).astype(np.float32)
    codes, scales, minimums, group, axis = quantised
    groups = codes.reshape(*codes.shape[:axis], -1, group, *codes.shape[axis + 1 :])
    values = np.expand_dims(minimums, axis + 1) + groups * np.expand_dims(scales, axis + 1)
    return values.reshape(codes.shape).astype(np.float32)


# %% right="dequantise" name="loops"
# One element after the other.
def dequantise(quantised):
    codes = quantised.codes
    result = np.zeros(codes.shape, np.float32)
    for index in np.ndindex(*codes.shape):
        if isinstance(quantised, QuantisedE2M1):
            s = float(quantised.scales[*index[:-1], index[-1] // 16]) * quantised.tensor_scale
            result[index] = float(decode_e2m1(codes[index].reshape(1))[0]) * s
        else:
            where = list(index)
            where[quantised.axis] //= quantised.group
            result[index] = float(quantised.minimums[tuple(where)]) + int(codes[index]) * float(
                quantised.scales[tuple(where)]
            )
    return result


# %% right="dequantise" name="float64_groups"
# Groups as an axis of their own, in float64.
def dequantise(quantised):
    is_e2m1 = hasattr(quantised, "tensor_scale")
    codes = decode_e2m1(quantised.codes) if is_e2m1 else quantised.codes
    group = 16 if is_e2m1 else quantised.group
    axis = (codes.ndim - 1 if is_e2m1 else quantised.axis) % codes.ndim
    groups = codes.astype(np.float64).reshape(*codes.shape[:axis], -1, group, *codes.shape[axis + 1 :])
    values = groups * np.expand_dims(quantised.scales.astype(np.float64), axis + 1)
    values = values * quantised.tensor_scale if is_e2m1 else values + np.expand_dims(quantised.minimums, axis + 1)
    return values.reshape(codes.shape).astype(np.float32)


# %% right="dequantise" name="moved_axis"
# Moves the axis to the end and works on groups there.
def dequantise(quantised):
    is_e2m1 = isinstance(quantised, QuantisedE2M1)
    codes = decode_e2m1(quantised.codes) if is_e2m1 else quantised.codes
    group, axis = (16, -1) if is_e2m1 else (quantised.group, quantised.axis)
    scales = np.moveaxis(quantised.scales, axis, -1)[..., None].astype(np.float64)
    moved = np.moveaxis(codes, axis, -1)
    values = moved.reshape(*scales.shape[:-1], group) * scales
    values = (
        values * quantised.tensor_scale if is_e2m1 else values + np.moveaxis(quantised.minimums, axis, -1)[..., None]
    )
    return np.moveaxis(values.reshape(moved.shape), -1, axis).astype(np.float32)


# %% wrong="snr_db" name="turned_over" loses="snr_db-decibels snr_db-exact"
# Noise over signal.
def snr_db(x, approximation):
    return float(10 * np.log10(np.sum((x - approximation) ** 2) / np.sum(x**2)))


# %% wrong="snr_db" name="twenty" loses="snr_db-decibels"
# Twenty times the logarithm of a ratio of energies, which are squares already.
def snr_db(x, approximation):
    noise = np.sum((x - approximation) ** 2)
    return math.inf if noise == 0 else float(20 * np.log10(np.sum(x**2) / noise))


# %% wrong="snr_db" name="natural_logarithm" loses="snr_db-decibels"
# np.log is the natural logarithm.
def snr_db(x, approximation):
    noise = np.sum((x - approximation) ** 2)
    return math.inf if noise == 0 else float(10 * np.log(np.sum(x**2) / noise))


# %% wrong="snr_db" name="mean_of_rows" loses="snr_db-decibels"
# The mean of each row's decibels.
def snr_db(x, approximation):
    noise = np.sum((x - approximation) ** 2, axis=-1)
    if not np.any(noise):
        return math.inf
    return float(np.mean(10 * np.log10(np.sum(x**2, axis=-1) / noise)))


# %% wrong="snr_db" name="variances" loses="snr_db-decibels"
# Variances take out the mean, which is part of the data and of the error.
def snr_db(x, approximation):
    noise = np.var(x - approximation)
    return math.inf if noise == 0 else float(10 * np.log10(np.var(x) / noise))


# %% wrong="snr_db" name="small_number_added" loses="snr_db-exact"
# A small number keeps the division from zero and the answer from infinity.
def snr_db(x, approximation):
    return float(10 * np.log10(np.sum(x**2) / (np.sum((x - approximation) ** 2) + 1e-12)))


# %% wrong="snr_db" name="rounded" loses="snr_db-decibels"
# Rounds to a tenth of a decibel.
def snr_db(x, approximation):
    error = np.asarray(x, np.float64) - approximation
    if not np.any(error):
        return math.inf
    return round(10 * math.log10(np.sum(np.square(x, dtype=np.float64)) / np.sum(error**2)), 1)


# %% wrong="snr_db" name="of_the_approximation" loses="snr_db-decibels"
# Compares the error with the energy of the approximation.
def snr_db(x, approximation):
    error = np.asarray(x, np.float64) - approximation
    if not np.any(error):
        return math.inf
    return 10 * math.log10(np.sum(np.square(approximation, dtype=np.float64)) / np.sum(error**2))


# %% right="snr_db" name="norms"
# Twenty times the logarithm of a ratio of norms.
def snr_db(x, approximation):
    signal, noise = np.linalg.norm(x), np.linalg.norm(x - approximation)
    return math.inf if noise == 0 else float(20 * np.log10(signal / noise))


# %% right="snr_db" name="loops"
# One square after the other.
def snr_db(x, approximation):
    signal = math.fsum(float(value) ** 2 for value in x.flat)
    noise = math.fsum((float(a) - float(b)) ** 2 for a, b in zip(x.flat, approximation.flat))
    return 10 * math.log10(signal / noise) if noise else float("inf")


# %% right="snr_db" name="numpy_infinity"
# Lets NumPy divide by zero, with its warning.
def snr_db(x, approximation):
    return 10 * np.log10(np.sum(np.square(x)) / np.sum(np.square(x - approximation)))


# %% wrong="snr_by_bits" name="groups_of_16" loses="snr_by_bits-widths snr_by_bits-affine"
# The groups of E2M1.
def snr_by_bits(x, bits=(8, 6, 4, 3, 2), symmetric=True):
    return [snr_db(x, dequantise(quantise_int(x, b, 16, symmetric=symmetric))) for b in bits]


# %% wrong="snr_by_bits" name="whole_rows" loses="snr_by_bits-widths snr_by_bits-affine"
# One group for the whole row.
def snr_by_bits(x, bits=(8, 6, 4, 3, 2), symmetric=True):
    return [snr_db(x, dequantise(quantise_int(x, b, x.shape[-1], symmetric=symmetric))) for b in bits]


# %% wrong="snr_by_bits" name="symmetric_always" loses="snr_by_bits-affine"
# Does not hand the kind of integer on.
def snr_by_bits(x, bits=(8, 6, 4, 3, 2), symmetric=True):
    return [snr_db(x, dequantise(quantise_int(x, b, 32))) for b in bits]


# %% wrong="snr_by_bits" name="again_and_again" loses="snr_by_bits-widths snr_by_bits-affine"
# Quantises what the last width left, and compares with that.
def snr_by_bits(x, bits=(8, 6, 4, 3, 2), symmetric=True):
    ratios = []
    for b in bits:
        result = dequantise(quantise_int(x, b, 32, symmetric=symmetric))
        ratios.append(snr_db(x, result))
        x = result
    return ratios


# %% wrong="snr_by_bits" name="codes_for_values" loses="snr_by_bits-widths snr_by_bits-affine"
# Compares the data with codes.
def snr_by_bits(x, bits=(8, 6, 4, 3, 2), symmetric=True):
    return [snr_db(x, quantise_int(x, b, 32, symmetric=symmetric).codes) for b in bits]


# %% wrong="snr_by_bits" name="swapped_arguments" loses="snr_by_bits-widths snr_by_bits-affine"
# Hands the approximation over as the data.
def snr_by_bits(x, bits=formats.INTEGER_BITS, symmetric=True):
    return [snr_db(dequantise(quantise_int(x, b, 32, symmetric=symmetric)), x) for b in bits]


# %% wrong="snr_by_bits" name="what_the_parts_said" loses="snr_by_bits-widths snr_by_bits-affine"
# Notes what snr_db returned to others and returns the last of it.
def snr_db(x, approximation, honest=snr_db, noted=[]):
    noted.append(honest(x, approximation))
    return noted[-1]


def snr_by_bits(x, bits=formats.INTEGER_BITS, symmetric=True):
    return snr_db.__defaults__[1][-len(bits) :]


# %% right="snr_by_bits" name="array"
# As an array, filled in a loop.
def snr_by_bits(x, bits=(8, 6, 4, 3, 2), symmetric=True):
    ratios = np.zeros(len(bits))
    for position, b in enumerate(bits):
        ratios[position] = snr_db(x, dequantise(quantise_int(x, b, 32, -1, symmetric)))
    return ratios


# %% right="snr_by_bits" name="own_decibels"
# With a formula of its own for the decibels.
def snr_by_bits(x, bits=(8, 6, 4, 3, 2), symmetric=True):
    def ratio(b):
        error = dequantise(quantise_int(x, b, group=32, symmetric=symmetric)) - x
        return 20 * math.log10(np.linalg.norm(x) / np.linalg.norm(error))

    return tuple(ratio(b) for b in bits)


# %% wrong="convict" name="beside_the_tie" loses="convict-half_away"
# 0.2 under the smallest scale is no tie.
def convict():
    return _inputs(half_away=[0.2 * 2.0**-9])


def _inputs(**changed):
    q = np.nextafter(np.float32(6.125), np.float32(0))
    found = {"half_away": [2.0**-11], "lost_subnormal": [2.0**-10] * 2, "swapped_nibbles": [6], "zero_to_nan": []}
    found |= {"reciprocal": [10.5, 10.5, q, q]} | changed
    return {name: np.float32([*start, *[0] * (16 - len(start))]) for name, start in found.items()}


# %% wrong="convict" name="lone_subnormal" loses="convict-alone"
# A lone 0.5 convicts swapped_nibbles too.
def convict():
    return _inputs(lost_subnormal=[2.0**-10])


def _inputs(**changed):
    q = np.nextafter(np.float32(6.125), np.float32(0))
    found = {"half_away": [2.0**-11], "lost_subnormal": [2.0**-10] * 2, "swapped_nibbles": [6], "zero_to_nan": []}
    found |= {"reciprocal": [10.5, 10.5, q, q]} | changed
    return {name: np.float32([*start, *[0] * (16 - len(start))]) for name, start in found.items()}


# %% wrong="convict" name="large_element_first" loses="convict-fewest"
# Sets the scale to 1 with a pair of sixes, which the smallest scale makes superfluous.
def convict():
    return _inputs(half_away=[6, 6, 0.25], lost_subnormal=[6, 6, 0.5, 0.5])


def _inputs(**changed):
    q = np.nextafter(np.float32(6.125), np.float32(0))
    found = {"half_away": [2.0**-11], "lost_subnormal": [2.0**-10] * 2, "swapped_nibbles": [6], "zero_to_nan": []}
    found |= {"reciprocal": [10.5, 10.5, q, q]} | changed
    return {name: np.float32([*start, *[0] * (16 - len(start))]) for name, start in found.items()}


# %% wrong="convict" name="exact_tie_for_reciprocal" loses="convict-reciprocal convict-alone"
# The tie itself is moved by half_away, not by this reciprocal.
def convict():
    return _inputs(reciprocal=[10.5, 10.5, 4.375, 4.375])


def _inputs(**changed):
    q = np.nextafter(np.float32(6.125), np.float32(0))
    found = {"half_away": [2.0**-11], "lost_subnormal": [2.0**-10] * 2, "swapped_nibbles": [6], "zero_to_nan": []}
    found |= {"reciprocal": [10.5, 10.5, q, q]} | changed
    return {name: np.float32([*start, *[0] * (16 - len(start))]) for name, start in found.items()}


# %% wrong="convict" name="equal_neighbours" loses="convict-swapped_nibbles convict-fewest"
# Equal halves change places unseen.
def convict():
    return _inputs(swapped_nibbles=[6, 6])


def _inputs(**changed):
    q = np.nextafter(np.float32(6.125), np.float32(0))
    found = {"half_away": [2.0**-11], "lost_subnormal": [2.0**-10] * 2, "swapped_nibbles": [6], "zero_to_nan": []}
    found |= {"reciprocal": [10.5, 10.5, q, q]} | changed
    return {name: np.float32([*start, *[0] * (16 - len(start))]) for name, start in found.items()}


# %% wrong="convict" name="almost_zero" loses="convict-zero_to_nan convict-fewest"
# A group of tiny elements is no group of zeros.
def convict():
    return _inputs(zero_to_nan=[1e-30] * 16)


def _inputs(**changed):
    q = np.nextafter(np.float32(6.125), np.float32(0))
    found = {"half_away": [2.0**-11], "lost_subnormal": [2.0**-10] * 2, "swapped_nibbles": [6], "zero_to_nan": []}
    found |= {"reciprocal": [10.5, 10.5, q, q]} | changed
    return {name: np.float32([*start, *[0] * (16 - len(start))]) for name, start in found.items()}


# %% wrong="convict" name="wrong_pair" loses="convict-lost_subnormal convict-alone"
# 0.25 under the smallest scale is the tie below the subnormal, not the subnormal.
def convict():
    return _inputs(lost_subnormal=[2.0**-11, 2.0**-11])


def _inputs(**changed):
    q = np.nextafter(np.float32(6.125), np.float32(0))
    found = {"half_away": [2.0**-11], "lost_subnormal": [2.0**-10] * 2, "swapped_nibbles": [6], "zero_to_nan": []}
    found |= {"reciprocal": [10.5, 10.5, q, q]} | changed
    return {name: np.float32([*start, *[0] * (16 - len(start))]) for name, start in found.items()}


# %% right="convict" name="other_places"
# Other places, signs and magnitudes; two groups for zero_to_nan; plain lists.
def convict():
    zeros = [0.0] * 16
    q = float(np.nextafter(np.float32(3.28125), np.float32(0)))
    return {
        "reciprocal": [*zeros[:8], -11.25, -11.25, *zeros[:4], q, q],
        "zero_to_nan": [*zeros, *zeros],
        "swapped_nibbles": [*zeros[:5], -0.01, *zeros[:10]],
        "lost_subnormal": [*zeros[:14], -0.001, -0.001],
        "half_away": [*zeros[:3], -(2.0**-11), *zeros[:12]],
    }


# %% right="convict" name="searched"
# Searches: pairs of neighbours of ties, until exactly one suspect answers otherwise.
def convict():
    found = {}
    parts = suspects.Parts(quantise_e2m1, encode_e2m1, pack_nibbles, unpack_nibbles, dequantise)
    starts = [[], [2.0**-11], [6.0], [2.0**-10, 2.0**-10]]
    for s in np.float32([1.5, 1.625, 1.75, 1.875]):
        for tie in formats.E2M1_TIES:
            beside = np.nextafter(tie * s, np.float32(0))
            starts.append([6 * s, 6 * s, beside, beside])
    for start in starts:
        x = np.zeros(16, np.float32)
        x[: len(start)] = start
        convicted = suspects.convicted(x, parts)
        if len(convicted) == 1:
            found.setdefault(convicted[0], x)
    return found
