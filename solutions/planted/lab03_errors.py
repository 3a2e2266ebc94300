# Planted answers of lab 3, one cell each: the text that replaces the answer cell of the task that it names.
# A wrong one is a mistake that a person makes, said in its first line; `loses` lists the checks that it loses while
# all other tasks are solved. A right one is written differently from the reference and loses none.

# %% wrong="code_radii" name="nearer_neighbour" loses="code_radii-cells"
# Takes half the distance to the nearer neighbour.
def code_radii(s):
    last = math.inf if s == 448 else max(1, 3 * 2.0**-9 / s)
    return np.array([0.25, 0.25, 0.25, 0.25, 0.25, 0.5, 0.5, last])


# %% wrong="code_radii" name="code_7_as_any_other" loses="code_radii-clipped code_radii-top"
# Forgets that code 7 may have clipped.
def code_radii(s):
    return np.array([0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 1, 1])


# %% wrong="code_radii" name="half_for_6" loses="code_radii-clipped"
# Gives code 7 the radius of code 5, where it has not clipped.
def code_radii(s):
    last = math.inf if s == 448 else max(0.5, 3 * 2.0**-9 / s)
    return np.array([0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 1, last])


# %% wrong="code_radii" name="no_top" loses="code_radii-top"
# Treats 448 as a scale like any other.
def code_radii(s):
    return np.array([0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 1, max(1, 3 * 2.0**-9 / s)])


# %% wrong="code_radii" name="no_subnormal" loses="code_radii-clipped"
# Forgets the coarse steps of the smallest scales.
def code_radii(s):
    return np.array([0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 1, math.inf if s == 448 else 1])


# %% wrong="code_radii" name="smallest_scale_alone" loses="code_radii-clipped"
# Widens code 7 under the smallest scale alone.
def code_radii(s):
    last = math.inf if s == 448 else 3 if s == 2.0**-9 else 1
    return np.array([0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 1, last])


# %% wrong="code_radii" name="all_subnormal_alike" loses="code_radii-clipped"
# Gives code 7 the radius 3 under every subnormal scale.
def code_radii(s):
    last = math.inf if s == 448 else 3 if s < 2.0**-6 else 1
    return np.array([0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 1, last])


# %% wrong="code_radii" name="whole_step" loses="code_radii-clipped"
# Lets the amax go on to the next scale, not to the middle.
def code_radii(s):
    last = math.inf if s == 448 else max(1, 6 * 2.0**-9 / s)
    return np.array([0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 1, last])


# %% wrong="code_radii" name="without_six" loses="code_radii-clipped"
# Takes half a step of the scale for what the largest element can lose.
def code_radii(s):
    last = math.inf if s == 448 else max(1, 2.0**-10 / s)
    return np.array([0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 1, last])


# %% wrong="code_radii" name="not_in_units_of_s" loses="code_radii-clipped"
# Forgets to divide what was clipped by the scale.
def code_radii(s):
    last = math.inf if s == 448 else max(1, 3 * 2.0**-9)
    return np.array([0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 1, last])


# %% wrong="code_radii" name="times_s" loses="code_radii-cells code_radii-clipped"
# Returns radii of values, not in units of s.
def code_radii(s):
    last = math.inf if s == 448 else max(1, 3 * 2.0**-9 / s)
    return np.array([0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 1, last]) * s


# %% wrong="code_radii" name="whole_cells" loses="code_radii-cells code_radii-clipped"
# Returns the widths of the cells.
def code_radii(s):
    last = math.inf if s == 448 else max(2, 3 * 2.0**-9 / s)
    return np.array([0.5, 0.5, 0.5, 0.5, 0.75, 1, 1.5, last])


# %% wrong="code_radii" name="half_of_the_cell" loses="code_radii-cells"
# Half the width of each cell, as if the value stood in the middle.
def code_radii(s):
    last = math.inf if s == 448 else max(1, 3 * 2.0**-9 / s)
    return np.array([0.25, 0.25, 0.25, 0.25, 0.375, 0.5, 0.75, last])


# %% wrong="code_radii" name="zero_is_exact" loses="code_radii-cells"
# Takes a decoded zero for a zero.
def code_radii(s):
    last = math.inf if s == 448 else max(1, 3 * 2.0**-9 / s)
    return np.array([0, 0.25, 0.25, 0.25, 0.5, 0.5, 1, last])


# %% wrong="code_radii" name="whole_group_unbounded" loses="code_radii-top"
# Under 448 nothing is known of any code.
def code_radii(s):
    if s == 448:
        return np.full(8, math.inf)
    return np.array([0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 1, max(1, 3 * 2.0**-9 / s)])


# %% wrong="code_radii" name="all_sixteen" loses="code_radii-cells code_radii-clipped code_radii-top"
# One radius for each of the sixteen codes.
def code_radii(s):
    last = math.inf if s == 448 else max(1, 3 * 2.0**-9 / s)
    return np.array([0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 1, last] * 2)


# %% right="code_radii" name="from_the_ties"
# The farther of the two ties around each value; for 6 the end of its amax.
def code_radii(s):
    values, ties = [0, 0.5, 1, 1.5, 2, 3, 4, 6], [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5]
    step = max(2.0 ** (math.floor(math.log2(s)) - 3), 2.0**-9)
    ends = [*ties, math.inf if s == 448 else 6 * (s + step / 2) / s]
    starts = [-0.25, *ties]
    return np.array([max(v - a, b - v) for v, a, b in zip(values, starts, ends)])


# %% right="code_radii" name="list"
# A list, with a branch for each kind of scale.
def code_radii(s):
    radii = [0.25] * 4 + [0.5] * 2 + [1.0]
    if s >= 448:
        return radii + [float("inf")]
    if s == 2.0**-9:
        return radii + [3.0]
    if s == 2.0**-8:
        return radii + [1.5]
    return radii + [1.0]


# %% wrong="code_radii" name="from_256_on" loses="code_radii-clipped"
# Takes every scale of the largest binade for one that saturates.
def code_radii(s):
    last = math.inf if s > 240 else max(1, 3 * 2.0**-9 / s)
    return np.array([0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 1, last])


# %% wrong="code_radii" name="small_scales_widen_all" loses="code_radii-cells"
# Widens every code under the smallest scales, not code 7 alone.
def code_radii(s):
    least = 3 * 2.0**-9 / s if s < 2.0**-6 else 0
    last = math.inf if s == 448 else max(1, 3 * 2.0**-9 / s)
    return np.array([*np.maximum([0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 1], least), last])


# %% wrong="two_point_weight" name="in_the_middle" loses="two_point_weight-attains"
# Starts from equal logits.
def two_point_weight(epsilon):
    return 0.5


# %% wrong="two_point_weight" name="one_logit_moves" loses="two_point_weight-attains"
# Moves one of the two logits alone.
def two_point_weight(epsilon):
    return 1 / (1 + math.exp(epsilon / 2))


# %% wrong="two_point_weight" name="twice_as_far" loses="two_point_weight-attains"
# Starts as far from the middle as the two logits come apart, not half as far.
def two_point_weight(epsilon):
    return 1 / (1 + math.exp(2 * epsilon))


# %% wrong="two_point_weight" name="the_change_itself" loses="two_point_weight-attains"
# Returns how far the weight moves.
def two_point_weight(epsilon):
    return math.tanh(epsilon / 2)


# %% wrong="two_point_weight" name="complement_of_the_change" loses="two_point_weight-attains"
# Returns what is left when the change is taken from 1.
def two_point_weight(epsilon):
    return 1 - math.tanh(epsilon / 2)


# %% wrong="two_point_weight" name="ratio" loses="two_point_weight-attains"
# Returns the ratio of the two weights.
def two_point_weight(epsilon):
    return math.exp(-epsilon)


# %% wrong="two_point_weight" name="one_example" loses="two_point_weight-attains"
# Right for ε = 1 alone.
def two_point_weight(epsilon):
    return 1 / (1 + math.e)


# %% wrong="two_point_weight" name="first_order" loses="two_point_weight-attains"
# Expands to first order.
def two_point_weight(epsilon):
    return 0.5 - epsilon / 4


# %% right="two_point_weight" name="tanh"
# Half of what the change leaves.
def two_point_weight(epsilon):
    return (1 - math.tanh(epsilon / 2)) / 2


# %% right="two_point_weight" name="from_above"
# The larger of the two weights, which falls as much.
def two_point_weight(epsilon):
    return np.float64(1 / (1 + np.exp(-epsilon)))


# %% right="two_point_weight" name="searched"
# Bisects for the weight that the move carries to its mirror image.
def two_point_weight(epsilon):
    low, high = 0.0, 0.5
    for _ in range(200):
        middle = (low + high) / 2
        moved = middle / (middle + (1 - middle) * math.exp(-2 * epsilon)) if middle else 0.0
        low, high = (middle, high) if moved < 1 - middle else (low, middle)
    return high


# %% wrong="cell_mean_square" name="width_squared_by_12" loses="cell_mean_square-uneven"
# The variance of the cell, which is the mean square error only of a value in its middle.
def cell_mean_square(low, value, high):
    return (high - low) ** 2 / 12


# %% wrong="cell_mean_square" name="farther_end" loses="cell_mean_square-uneven"
# Takes the cell for one of the larger radius on both sides.
def cell_mean_square(low, value, high):
    return max(high - value, value - low) ** 2 / 3


# %% wrong="cell_mean_square" name="halves_alike" loses="cell_mean_square-uneven"
# Averages both sides as if they were equally wide.
def cell_mean_square(low, value, high):
    return ((high - value) ** 2 + (value - low) ** 2) / 6


# %% wrong="cell_mean_square" name="not_divided" loses="cell_mean_square-even cell_mean_square-uneven"
# Integrates and forgets to divide by the width.
def cell_mean_square(low, value, high):
    return ((high - value) ** 3 + (value - low) ** 3) / 3


# %% wrong="cell_mean_square" name="offset_alone" loses="cell_mean_square-even cell_mean_square-uneven"
# The square of how far the value is from the middle, without the spread.
def cell_mean_square(low, value, high):
    return (value - (low + high) / 2) ** 2


# %% wrong="cell_mean_square" name="without_cross_term" loses="cell_mean_square-uneven"
# The mean of the squares less the square of the value.
def cell_mean_square(low, value, high):
    return (high**3 - low**3) / (3 * (high - low)) - value**2


# %% wrong="cell_mean_square" name="root" loses="cell_mean_square-even cell_mean_square-uneven"
# Takes the root.
def cell_mean_square(low, value, high):
    return math.sqrt(((high - value) ** 3 + (value - low) ** 3) / (3 * (high - low)))


# %% wrong="cell_mean_square" name="worst_case" loses="cell_mean_square-even cell_mean_square-uneven"
# The largest square, not their mean.
def cell_mean_square(low, value, high):
    return max(high - value, value - low) ** 2


# %% wrong="cell_mean_square" name="twelfth_of_the_cubes" loses="cell_mean_square-even cell_mean_square-uneven"
# Divides the cubes by 12, the number from the cell with its value in the middle.
def cell_mean_square(low, value, high):
    return ((high - value) ** 3 + (value - low) ** 3) / (12 * (high - low))


# %% right="cell_mean_square" name="spread_and_offset"
# The variance of the cell and the square of the value's distance from the middle.
def cell_mean_square(low, value, high):
    return (high - low) ** 2 / 12 + (value - (low + high) / 2) ** 2


# %% right="cell_mean_square" name="squares"
# The cubes divided by the width on paper.
def cell_mean_square(low, value, high):
    a, b = np.float64(high - value), np.float64(value - low)
    return (a * a - a * b + b * b) / 3


# %% right="cell_mean_square" name="simpson"
# Simpson's rule, which is exact for a parabola.
def cell_mean_square(low, value, high):
    middle = (low + high) / 2
    return ((low - value) ** 2 + 4 * (middle - value) ** 2 + (high - value) ** 2) / 6


# %% wrong="needle_tolerance" name="whole_margin" loses="needle_tolerance-others needle_tolerance-mass"
# Lets the needle fall and the others stay.
def needle_tolerance(context, margin, mass):
    _refuse(context, mass)
    return math.inf if context == 1 else max(0.0, margin - math.log((context - 1) * mass / (1 - mass)))


def _refuse(context, mass):
    if context < 1 or not 0 < mass < 1:
        raise ValueError(f"no needle with {mass} of the weight in {context} tokens: context and mass")


# %% wrong="needle_tolerance" name="counts_itself" loses="needle_tolerance-others"
# Counts the needle among the distractors.
def needle_tolerance(context, margin, mass):
    _refuse(context, mass)
    return math.inf if context == 1 else max(0.0, (margin - math.log(context * mass / (1 - mass))) / 2)


def _refuse(context, mass):
    if context < 1 or not 0 < mass < 1:
        raise ValueError(f"no needle with {mass} of the weight in {context} tokens: context and mass")


# %% wrong="needle_tolerance" name="share_for_odds" loses="needle_tolerance-others needle_tolerance-mass"
# Takes the share for the odds.
def needle_tolerance(context, margin, mass):
    _refuse(context, mass)
    return math.inf if context == 1 else max(0.0, (margin - math.log((context - 1) * mass)) / 2)


def _refuse(context, mass):
    if context < 1 or not 0 < mass < 1:
        raise ValueError(f"no needle with {mass} of the weight in {context} tokens: context and mass")


# %% wrong="needle_tolerance" name="half_always" loses="needle_tolerance-mass"
# Knows only of half the mass.
def needle_tolerance(context, margin, mass):
    _refuse(context, mass)
    return math.inf if context == 1 else max(0.0, (margin - math.log(context - 1)) / 2)


def _refuse(context, mass):
    if context < 1 or not 0 < mass < 1:
        raise ValueError(f"no needle with {mass} of the weight in {context} tokens: context and mass")


# %% wrong="needle_tolerance" name="odds_turned_over" loses="needle_tolerance-mass"
# Turns the odds over.
def needle_tolerance(context, margin, mass):
    _refuse(context, mass)
    return math.inf if context == 1 else max(0.0, (margin - math.log((context - 1) * (1 - mass) / mass)) / 2)


def _refuse(context, mass):
    if context < 1 or not 0 < mass < 1:
        raise ValueError(f"no needle with {mass} of the weight in {context} tokens: context and mass")


# %% wrong="needle_tolerance" name="negative" loses="needle_tolerance-nothing"
# Returns a negative tolerance where nothing is guaranteed.
def needle_tolerance(context, margin, mass):
    _refuse(context, mass)
    return math.inf if context == 1 else (margin - math.log((context - 1) * mass / (1 - mass))) / 2


def _refuse(context, mass):
    if context < 1 or not 0 < mass < 1:
        raise ValueError(f"no needle with {mass} of the weight in {context} tokens: context and mass")


# %% wrong="needle_tolerance" name="absolute" loses="needle_tolerance-nothing"
# Takes the absolute value where nothing is guaranteed.
def needle_tolerance(context, margin, mass):
    _refuse(context, mass)
    return math.inf if context == 1 else abs(margin - math.log((context - 1) * mass / (1 - mass))) / 2


def _refuse(context, mass):
    if context < 1 or not 0 < mass < 1:
        raise ValueError(f"no needle with {mass} of the weight in {context} tokens: context and mass")


# %% wrong="needle_tolerance" name="logarithm_of_zero" loses="needle_tolerance-alone"
# Divides by the number of distractors where there is none.
def needle_tolerance(context, margin, mass):
    _refuse(context, mass)
    return max(0.0, (margin - math.log((context - 1) * mass / (1 - mass))) / 2)


def _refuse(context, mass):
    if context < 1 or not 0 < mass < 1:
        raise ValueError(f"no needle with {mass} of the weight in {context} tokens: context and mass")


# %% wrong="needle_tolerance" name="lone_needle_half_the_margin" loses="needle_tolerance-alone"
# Treats no distractor as one.
def needle_tolerance(context, margin, mass):
    _refuse(context, mass)
    return max(0.0, (margin - math.log(max(context - 1, 1) * mass / (1 - mass))) / 2)


def _refuse(context, mass):
    if context < 1 or not 0 < mass < 1:
        raise ValueError(f"no needle with {mass} of the weight in {context} tokens: context and mass")


# %% wrong="needle_tolerance" name="binary_logarithm" loses="needle_tolerance-others needle_tolerance-mass"
# Takes the binary logarithm.
def needle_tolerance(context, margin, mass):
    _refuse(context, mass)
    return math.inf if context == 1 else max(0.0, (margin - math.log2((context - 1) * mass / (1 - mass))) / 2)


def _refuse(context, mass):
    if context < 1 or not 0 < mass < 1:
        raise ValueError(f"no needle with {mass} of the weight in {context} tokens: context and mass")


# %% wrong="needle_tolerance" name="whole_mass_allowed" loses="needle_tolerance-refuses"
# Answers for a mass of 1 and of 0 too.
def needle_tolerance(context, margin, mass):
    if context < 1 or not 0 <= mass <= 1:
        raise ValueError(f"no needle with {mass} of the weight in {context} tokens: context and mass")
    if context == 1 or mass == 0:
        return math.inf
    return 0.0 if mass == 1 else max(0.0, (margin - math.log((context - 1) * mass / (1 - mass))) / 2)


# %% wrong="needle_tolerance" name="left_to_python" loses="needle_tolerance-refuses"
# Refuses nothing itself: a mass of 1 divides by zero.
def needle_tolerance(context, margin, mass):
    return math.inf if context == 1 else max(0.0, (margin - math.log((context - 1) * mass / (1 - mass))) / 2)


# %% wrong="needle_tolerance" name="empty_context_allowed" loses="needle_tolerance-refuses"
# Answers for a context without tokens.
def needle_tolerance(context, margin, mass):
    if not 0 < mass < 1:
        raise ValueError(f"mass: expected a share between 0 and 1, got {mass}")
    return math.inf if context <= 1 else max(0.0, (margin - math.log((context - 1) * mass / (1 - mass))) / 2)


# %% right="needle_tolerance" name="three_logarithms"
# As a sum of logarithms.
def needle_tolerance(context, margin, mass):
    if context < 1:
        raise ValueError("context: no token")
    if mass <= 0 or mass >= 1:
        raise ValueError("mass: not a share")
    if context == 1:
        return np.inf
    return np.maximum(0, (margin - np.log(context - 1) - np.log(mass) + np.log1p(-mass)) / 2)


# %% right="needle_tolerance" name="searched"
# Bisects for the move at which the needle has just the mass.
def needle_tolerance(context, margin, mass):
    if not (context >= 1 and 0 < mass < 1):
        raise ValueError(f"context: got {context}; mass: got {mass}")
    if context == 1:
        return float("inf")
    low, high = 0.0, max(1.0, margin)
    for _ in range(200):
        middle = (low + high) / 2
        rest = math.log(context - 1) - margin + 2 * middle  # of the others' weight over the needle's
        low, high = (middle, high) if rest <= math.log(1 / mass - 1) else (low, middle)
    return low


# %% wrong="attention_weights" name="no_root_of_width" loses="attention_weights-scaled"
# Forgets √D.
def attention_weights(q, keys, is_visible=None):
    _refuse_blind(is_visible)
    logits = q.astype(np.float64) @ np.swapaxes(keys, -1, -2).astype(np.float64)
    return _softmax(logits if is_visible is None else np.where(is_visible, logits, -np.inf))


def _refuse_blind(is_visible):
    if is_visible is not None and not is_visible.any(axis=1).all():
        raise ValueError(f"query {np.argmin(is_visible.any(axis=1))} sees no key")


def _softmax(logits):
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


# %% wrong="attention_weights" name="divided_by_width" loses="attention_weights-scaled"
# Divides by D, not by its root.
def attention_weights(q, keys, is_visible=None):
    _refuse_blind(is_visible)
    logits = q.astype(np.float64) @ np.swapaxes(keys, -1, -2).astype(np.float64) / q.shape[-1]
    return _softmax(logits if is_visible is None else np.where(is_visible, logits, -np.inf))


def _refuse_blind(is_visible):
    if is_visible is not None and not is_visible.any(axis=1).all():
        raise ValueError(f"query {np.argmin(is_visible.any(axis=1))} sees no key")


def _softmax(logits):
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


# %% wrong="attention_weights" name="root_of_tokens" loses="attention_weights-softmax attention_weights-scaled attention_weights-float64 attention_weights-large attention_weights-visible"
# Divides by the root of the number of keys.
def attention_weights(q, keys, is_visible=None):
    _refuse_blind(is_visible)
    logits = q.astype(np.float64) @ np.swapaxes(keys, -1, -2).astype(np.float64) / math.sqrt(keys.shape[-2])
    return _softmax(logits if is_visible is None else np.where(is_visible, logits, -np.inf))


def _refuse_blind(is_visible):
    if is_visible is not None and not is_visible.any(axis=1).all():
        raise ValueError(f"query {np.argmin(is_visible.any(axis=1))} sees no key")


def _softmax(logits):
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


# %% wrong="attention_weights" name="no_max" loses="attention_weights-large attention_weights-mask_value"
# Exponentiates the logits as they are.
def attention_weights(q, keys, is_visible=None):
    _refuse_blind(is_visible)
    logits = q.astype(np.float64) @ np.swapaxes(keys, -1, -2).astype(np.float64) / math.sqrt(q.shape[-1])
    e = np.exp(logits)
    if is_visible is not None:
        e = e * is_visible
    return e / e.sum(axis=-1, keepdims=True)


def _refuse_blind(is_visible):
    if is_visible is not None and not is_visible.any(axis=1).all():
        raise ValueError(f"query {np.argmin(is_visible.any(axis=1))} sees no key")


# %% wrong="attention_weights" name="one_max_for_all" loses="attention_weights-large"
# Subtracts the largest logit of all queries from each.
def attention_weights(q, keys, is_visible=None):
    _refuse_blind(is_visible)
    logits = q.astype(np.float64) @ np.swapaxes(keys, -1, -2).astype(np.float64) / math.sqrt(q.shape[-1])
    if is_visible is not None:
        logits = np.where(is_visible, logits, -np.inf)
    e = np.exp(logits - logits.max())
    return e / e.sum(axis=-1, keepdims=True)


def _refuse_blind(is_visible):
    if is_visible is not None and not is_visible.any(axis=1).all():
        raise ValueError(f"query {np.argmin(is_visible.any(axis=1))} sees no key")


# %% wrong="attention_weights" name="clipped_logits" loses="attention_weights-large"
# Clips the logits at 700, so that nothing overflows and the largest are all alike.
def attention_weights(q, keys, is_visible=None):
    _refuse_blind(is_visible)
    logits = q.astype(np.float64) @ np.swapaxes(keys, -1, -2).astype(np.float64) / math.sqrt(q.shape[-1])
    e = np.exp(np.clip(logits, -700, 700))
    if is_visible is not None:
        e = e * is_visible
    return e / e.sum(axis=-1, keepdims=True)


def _refuse_blind(is_visible):
    if is_visible is not None and not is_visible.any(axis=1).all():
        raise ValueError(f"query {np.argmin(is_visible.any(axis=1))} sees no key")


# %% wrong="attention_weights" name="float32" loses="attention_weights-float64"
# Computes in float32.
def attention_weights(q, keys, is_visible=None):
    _refuse_blind(is_visible)
    logits = np.float32(q) @ np.float32(np.swapaxes(keys, -1, -2)) / np.float32(math.sqrt(q.shape[-1]))
    return _softmax(logits if is_visible is None else np.where(is_visible, logits, np.float32(-np.inf)))


def _refuse_blind(is_visible):
    if is_visible is not None and not is_visible.any(axis=1).all():
        raise ValueError(f"query {np.argmin(is_visible.any(axis=1))} sees no key")


def _softmax(logits):
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


# %% wrong="attention_weights" name="float32_logits" loses="attention_weights-float64"
# The product is float32 still; only the softmax is float64.
def attention_weights(q, keys, is_visible=None):
    _refuse_blind(is_visible)
    logits = (np.float32(q) @ np.float32(np.swapaxes(keys, -1, -2))).astype(np.float64) / math.sqrt(q.shape[-1])
    return _softmax(logits if is_visible is None else np.where(is_visible, logits, -np.inf))


def _refuse_blind(is_visible):
    if is_visible is not None and not is_visible.any(axis=1).all():
        raise ValueError(f"query {np.argmin(is_visible.any(axis=1))} sees no key")


def _softmax(logits):
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


# %% wrong="attention_weights" name="float16_softmax" loses="attention_weights-softmax attention_weights-scaled attention_weights-float64 attention_weights-visible"
# Exponentiates in float16 and returns float64.
def attention_weights(q, keys, is_visible=None):
    _refuse_blind(is_visible)
    logits = q.astype(np.float64) @ np.swapaxes(keys, -1, -2).astype(np.float64) / math.sqrt(q.shape[-1])
    if is_visible is not None:
        logits = np.where(is_visible, logits, -np.inf)
    e = np.exp((logits - logits.max(axis=-1, keepdims=True)).astype(np.float16)).astype(np.float64)
    return e / e.sum(axis=-1, keepdims=True)


def _refuse_blind(is_visible):
    if is_visible is not None and not is_visible.any(axis=1).all():
        raise ValueError(f"query {np.argmin(is_visible.any(axis=1))} sees no key")


# %% wrong="attention_weights" name="float32_result" loses="attention_weights-float64"
# Rounds the weights to float32 in the end.
def attention_weights(q, keys, is_visible=None):
    _refuse_blind(is_visible)
    logits = q.astype(np.float64) @ np.swapaxes(keys, -1, -2).astype(np.float64) / math.sqrt(q.shape[-1])
    if is_visible is not None:
        logits = np.where(is_visible, logits, -np.inf)
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return (e / e.sum(axis=-1, keepdims=True)).astype(np.float32)


def _refuse_blind(is_visible):
    if is_visible is not None and not is_visible.any(axis=1).all():
        raise ValueError(f"query {np.argmin(is_visible.any(axis=1))} sees no key")


# %% wrong="attention_weights" name="ten_thousand_below" loses="attention_weights-mask_value"
# Sets what is not seen to -1e4, which is not low enough.
def attention_weights(q, keys, is_visible=None):
    _refuse_blind(is_visible)
    logits = q.astype(np.float64) @ np.swapaxes(keys, -1, -2).astype(np.float64) / math.sqrt(q.shape[-1])
    return _softmax(logits if is_visible is None else np.where(is_visible, logits, -1e4))


def _refuse_blind(is_visible):
    if is_visible is not None and not is_visible.any(axis=1).all():
        raise ValueError(f"query {np.argmin(is_visible.any(axis=1))} sees no key")


def _softmax(logits):
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


# %% wrong="attention_weights" name="ten_thousand_subtracted" loses="attention_weights-mask_value"
# Subtracts 1e4 from what is not seen.
def attention_weights(q, keys, is_visible=None):
    _refuse_blind(is_visible)
    logits = q.astype(np.float64) @ np.swapaxes(keys, -1, -2).astype(np.float64) / math.sqrt(q.shape[-1])
    return _softmax(logits if is_visible is None else logits - 1e4 * ~is_visible)


def _refuse_blind(is_visible):
    if is_visible is not None and not is_visible.any(axis=1).all():
        raise ValueError(f"query {np.argmin(is_visible.any(axis=1))} sees no key")


def _softmax(logits):
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


# %% wrong="attention_weights" name="a_billion_below" loses="attention_weights-mask_value"
# Sets what is not seen to -1e9, which is not low enough for logits of keys and queries that are large.
def attention_weights(q, keys, is_visible=None):
    _refuse_blind(is_visible)
    logits = q.astype(np.float64) @ np.swapaxes(keys, -1, -2).astype(np.float64) / math.sqrt(q.shape[-1])
    return _softmax(logits if is_visible is None else np.where(is_visible, logits, -1e9))


def _refuse_blind(is_visible):
    if is_visible is not None and not is_visible.any(axis=1).all():
        raise ValueError(f"query {np.argmin(is_visible.any(axis=1))} sees no key")


def _softmax(logits):
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


# %% wrong="attention_weights" name="zero_times_infinity" loses="attention_weights-visible attention_weights-mask_value attend-visible attention_error_sweep-visible"
# Adds 0 · -∞ to what is seen, which is NaN.
def attention_weights(q, keys, is_visible=None):
    _refuse_blind(is_visible)
    logits = q.astype(np.float64) @ np.swapaxes(keys, -1, -2).astype(np.float64) / math.sqrt(q.shape[-1])
    return _softmax(logits if is_visible is None else logits + ~is_visible * -np.inf)


def _refuse_blind(is_visible):
    if is_visible is not None and not is_visible.any(axis=1).all():
        raise ValueError(f"query {np.argmin(is_visible.any(axis=1))} sees no key")


def _softmax(logits):
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


# %% wrong="attention_weights" name="mask_after_softmax" loses="attention_weights-visible attention_weights-mask_value"
# Hides keys after the softmax, and what is left no longer adds up to 1.
def attention_weights(q, keys, is_visible=None):
    _refuse_blind(is_visible)
    logits = q.astype(np.float64) @ np.swapaxes(keys, -1, -2).astype(np.float64) / math.sqrt(q.shape[-1])
    weights = _softmax(logits)
    return weights if is_visible is None else weights * is_visible


def _refuse_blind(is_visible):
    if is_visible is not None and not is_visible.any(axis=1).all():
        raise ValueError(f"query {np.argmin(is_visible.any(axis=1))} sees no key")


def _softmax(logits):
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


# %% wrong="attention_weights" name="renormalised" loses="attention_weights-mask_value"
# Hides keys after the softmax and divides by what is left, which may be nothing.
def attention_weights(q, keys, is_visible=None):
    _refuse_blind(is_visible)
    logits = q.astype(np.float64) @ np.swapaxes(keys, -1, -2).astype(np.float64) / math.sqrt(q.shape[-1])
    weights = _softmax(logits)
    if is_visible is None:
        return weights
    weights = weights * is_visible
    return weights / weights.sum(axis=-1, keepdims=True)


def _refuse_blind(is_visible):
    if is_visible is not None and not is_visible.any(axis=1).all():
        raise ValueError(f"query {np.argmin(is_visible.any(axis=1))} sees no key")


def _softmax(logits):
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


# %% wrong="attention_weights" name="mask_times_logits" loses="attention_weights-visible attention_weights-mask_value"
# Multiplies the logits by the mask: a logit of 0 is no weight of 0.
def attention_weights(q, keys, is_visible=None):
    _refuse_blind(is_visible)
    logits = q.astype(np.float64) @ np.swapaxes(keys, -1, -2).astype(np.float64) / math.sqrt(q.shape[-1])
    return _softmax(logits if is_visible is None else logits * is_visible)


def _refuse_blind(is_visible):
    if is_visible is not None and not is_visible.any(axis=1).all():
        raise ValueError(f"query {np.argmin(is_visible.any(axis=1))} sees no key")


def _softmax(logits):
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


# %% wrong="attention_weights" name="mask_inverted" loses="attention_weights-visible attention_weights-mask_value"
# Takes True for hidden, as some libraries do.
def attention_weights(q, keys, is_visible=None):
    _refuse_blind(is_visible)
    logits = q.astype(np.float64) @ np.swapaxes(keys, -1, -2).astype(np.float64) / math.sqrt(q.shape[-1])
    return _softmax(logits if is_visible is None else np.where(is_visible, -np.inf, logits))


def _refuse_blind(is_visible):
    if is_visible is not None and not is_visible.any(axis=1).all():
        raise ValueError(f"query {np.argmin(is_visible.any(axis=1))} sees no key")


def _softmax(logits):
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


# %% wrong="attention_weights" name="mask_ignored" loses="attention_weights-visible attention_weights-mask_value"
# Never looks at the mask, but for refusing.
def attention_weights(q, keys, is_visible=None):
    _refuse_blind(is_visible)
    logits = q.astype(np.float64) @ np.swapaxes(keys, -1, -2).astype(np.float64) / math.sqrt(q.shape[-1])
    return _softmax(logits)


def _refuse_blind(is_visible):
    if is_visible is not None and not is_visible.any(axis=1).all():
        raise ValueError(f"query {np.argmin(is_visible.any(axis=1))} sees no key")


def _softmax(logits):
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


# %% wrong="attention_weights" name="over_queries" loses="attention_weights-softmax attention_weights-scaled attention_weights-float64 attention_weights-large attention_weights-visible attention_weights-mask_value predict_output_error-rms attention_error_sweep-visible"
# The weights of one key add up to 1, not those of one query.
def attention_weights(q, keys, is_visible=None):
    _refuse_blind(is_visible)
    logits = q.astype(np.float64) @ np.swapaxes(keys, -1, -2).astype(np.float64) / math.sqrt(q.shape[-1])
    if is_visible is not None:
        logits = np.where(is_visible, logits, -np.inf)
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-2, keepdims=True)


def _refuse_blind(is_visible):
    if is_visible is not None and not is_visible.any(axis=1).all():
        raise ValueError(f"query {np.argmin(is_visible.any(axis=1))} sees no key")


# %% wrong="attention_weights" name="one_head" loses="attention_weights-softmax attention_weights-visible attend-average attend-visible attention_error_sweep-rows attention_error_sweep-error attention_error_sweep-placements attention_error_sweep-visible"
# Transposes all axes, which is right for one head alone.
def attention_weights(q, keys, is_visible=None):
    _refuse_blind(is_visible)
    logits = q.astype(np.float64) @ keys.T.astype(np.float64) / math.sqrt(q.shape[-1])
    return _softmax(logits if is_visible is None else np.where(is_visible, logits, -np.inf))


def _refuse_blind(is_visible):
    if is_visible is not None and not is_visible.any(axis=1).all():
        raise ValueError(f"query {np.argmin(is_visible.any(axis=1))} sees no key")


def _softmax(logits):
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


# %% wrong="attention_weights" name="small_number_added" loses="attention_weights-float64"
# Adds a small number to the sum, against division by zero.
def attention_weights(q, keys, is_visible=None):
    _refuse_blind(is_visible)
    logits = q.astype(np.float64) @ np.swapaxes(keys, -1, -2).astype(np.float64) / math.sqrt(q.shape[-1])
    if is_visible is not None:
        logits = np.where(is_visible, logits, -np.inf)
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return e / (e.sum(axis=-1, keepdims=True) + 1e-6)


def _refuse_blind(is_visible):
    if is_visible is not None and not is_visible.any(axis=1).all():
        raise ValueError(f"query {np.argmin(is_visible.any(axis=1))} sees no key")


# %% wrong="attention_weights" name="blind_query_is_nan" loses="attention_weights-refuses"
# Returns NaN for a query that sees nothing.
def attention_weights(q, keys, is_visible=None):
    logits = q.astype(np.float64) @ np.swapaxes(keys, -1, -2).astype(np.float64) / math.sqrt(q.shape[-1])
    if is_visible is not None:
        logits = np.where(is_visible, logits, -np.inf)
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


# %% wrong="attention_weights" name="blind_query_is_zero" loses="attention_weights-refuses"
# Returns zeros for a query that sees nothing.
def attention_weights(q, keys, is_visible=None):
    logits = q.astype(np.float64) @ np.swapaxes(keys, -1, -2).astype(np.float64) / math.sqrt(q.shape[-1])
    if is_visible is not None:
        logits = np.where(is_visible, logits, -np.inf)
    largest = logits.max(axis=-1, keepdims=True)
    e = np.exp(logits - np.where(np.isinf(largest), 0, largest))
    return e / np.maximum(e.sum(axis=-1, keepdims=True), 1e-300)


# %% wrong="attention_weights" name="blind_query_not_named" loses="attention_weights-refuses"
# Refuses, and does not say which query.
def attention_weights(q, keys, is_visible=None):
    if is_visible is not None and not is_visible.any(axis=1).all():
        raise ValueError("is_visible: expected a key for every query")
    logits = q.astype(np.float64) @ np.swapaxes(keys, -1, -2).astype(np.float64) / math.sqrt(q.shape[-1])
    if is_visible is not None:
        logits = np.where(is_visible, logits, -np.inf)
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


# %% wrong="attention_weights" name="last_blind_query" loses="attention_weights-refuses"
# Names the last query that sees nothing.
def attention_weights(q, keys, is_visible=None):
    if is_visible is not None and not is_visible.any(axis=1).all():
        raise ValueError(f"query {np.flatnonzero(~is_visible.any(axis=1))[-1]} sees no key")
    logits = q.astype(np.float64) @ np.swapaxes(keys, -1, -2).astype(np.float64) / math.sqrt(q.shape[-1])
    if is_visible is not None:
        logits = np.where(is_visible, logits, -np.inf)
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


# %% wrong="attention_weights" name="refuses_hidden_keys" loses="attention_weights-visible attention_weights-mask_value attention_error_sweep-visible"
# Refuses where a key is seen by no query, which is no fault.
def attention_weights(q, keys, is_visible=None):
    if is_visible is not None:
        for axis in (1, 0):
            if not is_visible.any(axis=axis).all():
                raise ValueError(f"none for {np.argmin(is_visible.any(axis=axis))}")
    logits = q.astype(np.float64) @ np.swapaxes(keys, -1, -2).astype(np.float64) / math.sqrt(q.shape[-1])
    if is_visible is not None:
        logits = np.where(is_visible, logits, -np.inf)
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


# %% wrong="attention_weights" name="causal_always" loses="attention_weights-softmax attention_weights-scaled attention_weights-float64 attention_weights-large"
# Without a mask, lets each query see no key after its own place.
def attention_weights(q, keys, is_visible=None):
    if is_visible is None:
        is_visible = np.tril(np.ones((q.shape[-2], keys.shape[-2]), bool))
    _refuse_blind(is_visible)
    logits = q.astype(np.float64) @ np.swapaxes(keys, -1, -2).astype(np.float64) / math.sqrt(q.shape[-1])
    logits = np.where(is_visible, logits, -np.inf)
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _refuse_blind(is_visible):
    if not is_visible.any(axis=1).all():
        raise ValueError(f"query {np.argmin(is_visible.any(axis=1))} sees no key")


# %% right="attention_weights" name="loops"
# One query after the other, over the keys that it sees.
def attention_weights(q, keys, is_visible=None):
    weights = np.zeros((*q.shape[:-1], keys.shape[-2]))
    for index in np.ndindex(*q.shape[:-1]):
        seen = range(keys.shape[-2]) if is_visible is None else np.flatnonzero(is_visible[index[-1]]).tolist()
        if not seen:
            raise ValueError(f"is_visible: query {index[-1]} sees nothing")
        products = np.sum(q[index].astype(np.float64) * keys[index[:-1]], axis=-1)
        logits = [float(products[t]) / math.sqrt(q.shape[-1]) for t in seen]
        largest = max(logits)
        exponentials = [math.exp(logit - largest) for logit in logits]
        total = math.fsum(exponentials)
        for t, exponential in zip(seen, exponentials):
            weights[(*index, t)] = exponential / total
    return weights


# %% right="attention_weights" name="logaddexp"
# Subtracts the logarithm of the sum.
def attention_weights(q, keys, is_visible=None):
    logits = np.einsum("...nd,...td->...nt", q.astype(np.float64), keys.astype(np.float64)) / q.shape[-1] ** 0.5
    if is_visible is not None:
        for query, seen in enumerate(is_visible):
            if not np.any(seen):
                raise ValueError(f"query {query}: nothing to see")
        logits[..., ~is_visible] = -np.inf
    return np.exp(logits - np.logaddexp.reduce(logits, axis=-1)[..., None])


# %% right="attention_weights" name="differences"
# 1 over the sum of the others relative to oneself; infinity is a good divisor.
def attention_weights(q, keys, is_visible=None):
    logits = np.float64(q) @ np.float64(keys).swapaxes(-1, -2) * q.shape[-1] ** -0.5
    if is_visible is None:
        is_visible = np.ones(logits.shape[-2:], dtype=bool)
    if not np.all(is_visible.sum(axis=1)):
        raise ValueError(f"is_visible: expected a key for query {is_visible.sum(axis=1).tolist().index(0)}")
    with np.errstate(over="ignore"):
        ratios = np.exp(logits[..., None, :] - logits[..., :, None])
    total = np.where(is_visible[:, None, :], ratios, 0).sum(axis=-1)
    return np.where(is_visible, 1 / np.where(total > 0, total, 1), 0)


# %% wrong="attend" name="uniform" loses="attend-average attend-visible"
# Averages the values it sees with equal weights.
def attend(q, keys, values, is_visible=None):
    weights = attention_weights(q, keys, is_visible) > 0
    return weights / weights.sum(axis=-1, keepdims=True) @ values.astype(np.float64)


# %% wrong="attend" name="hard" loses="attend-average attend-visible"
# Returns the value of the heaviest key.
def attend(q, keys, values, is_visible=None):
    weights = attention_weights(q, keys, is_visible)
    best = weights.argmax(axis=-1)
    return np.take_along_axis(values.astype(np.float64), best[..., None], axis=-2)


# %% wrong="attend" name="mask_not_handed_on" loses="attend-visible"
# Does not hand the mask on.
def attend(q, keys, values, is_visible=None):
    return attention_weights(q, keys) @ values.astype(np.float64)


# %% wrong="attend" name="float32" loses="attend-average"
# Returns float32.
def attend(q, keys, values, is_visible=None):
    return (attention_weights(q, keys, is_visible) @ values).astype(np.float32)


# %% wrong="attend" name="float32_product" loses="attend-average"
# Rounds weights to float32 before the product.
def attend(q, keys, values, is_visible=None):
    weights = attention_weights(q, keys, is_visible)
    return (weights.astype(np.float32) @ values.astype(np.float32)).astype(np.float64)


# %% wrong="attend" name="keys_for_values" loses="attend-average attend-visible"
# Averages the keys.
def attend(q, keys, values, is_visible=None):
    return attention_weights(q, keys, is_visible) @ keys.astype(np.float64)


# %% wrong="attend" name="divided_by_tokens" loses="attend-average attend-visible"
# Divides the average by the number of tokens again.
def attend(q, keys, values, is_visible=None):
    return attention_weights(q, keys, is_visible) @ values.astype(np.float64) / values.shape[-2]


# %% wrong="attend" name="width_of_keys" loses="attend-average attend-visible"
# Fills an array of the query's shape: values as wide as keys.
def attend(q, keys, values, is_visible=None):
    output = np.zeros(q.shape)
    output[...] = attention_weights(q, keys, is_visible) @ values.astype(np.float64)
    return output


# %% wrong="attend" name="first_query" loses="attend-average attend-visible"
# Gives every query the output of the first.
def attend(q, keys, values, is_visible=None):
    output = attention_weights(q, keys, is_visible) @ values.astype(np.float64)
    return np.repeat(output[..., :1, :], q.shape[-2], axis=-2)


# %% wrong="attend" name="one_head" loses="attend-average attend-visible"
# Knows of one head alone.
def attend(q, keys, values, is_visible=None):
    weights = attention_weights(q, keys, is_visible)
    return np.einsum("nt,te->ne", weights, values.astype(np.float64))


# %% right="attend" name="loops"
# One channel after the other, with the weights of attention_weights.
def attend(q, keys, values, is_visible=None):
    weights = attention_weights(q, keys, is_visible)
    output = np.zeros((*q.shape[:-1], values.shape[-1]))
    for index in np.ndindex(*output.shape):
        column = values[(*index[:-2], slice(None), index[-1])]
        output[index] = sum(float(p) * float(v) for p, v in zip(weights[index[:-1]], column))
    return output


# %% right="attend" name="online"
# One token after the other, with a running maximum and a running sum.
def attend(q, keys, values, is_visible=None):
    if is_visible is None:
        is_visible = np.ones((q.shape[-2], keys.shape[-2]), bool)
    if not is_visible.any(axis=-1).all():
        raise ValueError(f"query {is_visible.any(axis=-1).tolist().index(False)} sees no key")
    q, keys, values = (np.asarray(part, np.float64) for part in (q, keys, values))
    largest, total = np.full((*q.shape[:-1], 1), -np.inf), np.zeros((*q.shape[:-1], 1))
    output = np.zeros((*q.shape[:-1], values.shape[-1]))
    for t in range(keys.shape[-2]):
        logit = (q * keys[..., [t], :]).sum(axis=-1, keepdims=True) / np.sqrt(q.shape[-1])
        logit = np.where(is_visible[:, [t]], logit, -np.inf)
        higher = np.maximum(largest, logit)
        finite = np.where(np.isinf(higher), 0, higher)
        shrink, p = np.exp(largest - finite), np.exp(logit - finite)
        output, total, largest = output * shrink + p * values[..., [t], :], total * shrink + p, higher
    return output / total


# %% right="attend" name="einsum"
# By einsum, in float64 throughout.
def attend(q, keys, values, is_visible=None):
    weights = attention_weights(q.astype(np.float64), keys.astype(np.float64), is_visible)
    return np.einsum("...nt,...te->...ne", weights, values, dtype=np.float64)


# %% wrong="error_radius" name="sign_forgotten" loses="error_radius-signs"
# Compares the codes as they are: every negative one counts as one of 4 or 6, and -6 never clips.
def error_radius(quantised):
    _refuse_tensor_scale(quantised)
    scales = np.repeat(quantised.scales.astype(np.float64), 16, axis=-1)
    radii = np.where(quantised.codes < 4, 0.25, np.where(quantised.codes < 6, 0.5, 1.0))
    clipped = np.where(scales == 448, np.inf, np.maximum(1, 3 * 2.0**-9 / scales))
    return np.where(quantised.codes == 7, clipped, radii) * scales


def _refuse_tensor_scale(quantised):
    if quantised.tensor_scale != 1:
        raise ValueError(f"quantised: a tensor scale of {quantised.tensor_scale}")


# %% wrong="error_radius" name="minus_6_never_clips" loses="error_radius-signs"
# Forgets the sign bit where it asks for code 7.
def error_radius(quantised):
    _refuse_tensor_scale(quantised)
    scales = np.repeat(quantised.scales.astype(np.float64), 16, axis=-1)
    radii = np.array([0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 1, 1])[quantised.codes & 7]
    clipped = np.where(scales == 448, np.inf, np.maximum(1, 3 * 2.0**-9 / scales))
    return np.where(quantised.codes == 7, clipped, radii) * scales


def _refuse_tensor_scale(quantised):
    if quantised.tensor_scale != 1:
        raise ValueError(f"quantised: a tensor scale of {quantised.tensor_scale}")


# %% wrong="error_radius" name="eight_codes" loses="error_radius-signs output_error_bound-guarantee output_error_bound-moved"
# Has a table of eight radii and looks all sixteen codes up in it.
def error_radius(quantised):
    _refuse_tensor_scale(quantised)
    scales = np.repeat(quantised.scales.astype(np.float64), 16, axis=-1)
    radii = np.array([0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 1, 1])[quantised.codes]
    clipped = np.where(scales == 448, np.inf, np.maximum(1, 3 * 2.0**-9 / scales))
    return np.where(quantised.codes == 7, clipped, radii) * scales


def _refuse_tensor_scale(quantised):
    if quantised.tensor_scale != 1:
        raise ValueError(f"quantised: a tensor scale of {quantised.tensor_scale}")


# %% wrong="error_radius" name="in_units_of_s" loses="error_radius-codes error_radius-groups error_radius-small_scales error_radius-top output_error_bound-weights output_error_bound-guarantee output_error_bound-values"
# Forgets to multiply by the scale.
def error_radius(quantised):
    _refuse_tensor_scale(quantised)
    scales = np.repeat(quantised.scales.astype(np.float64), 16, axis=-1)
    radii = np.array([0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 1, 1])[quantised.codes & 7]
    clipped = np.where(scales == 448, np.inf, np.maximum(1, 3 * 2.0**-9 / scales))
    return np.where(quantised.codes & 7 == 7, clipped, radii)


def _refuse_tensor_scale(quantised):
    if quantised.tensor_scale != 1:
        raise ValueError(f"quantised: a tensor scale of {quantised.tensor_scale}")


# %% wrong="error_radius" name="tiled" loses="error_radius-groups logit_error_bound-unbounded"
# Lays the scales of a row side by side, not each over its own group.
def error_radius(quantised):
    _refuse_tensor_scale(quantised)
    times = quantised.codes.shape[-1] // quantised.scales.shape[-1]
    scales = np.concatenate([quantised.scales.astype(np.float64)] * times, axis=-1)
    radii = np.array([0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 1, 1])[quantised.codes & 7]
    clipped = np.where(scales == 448, np.inf, np.maximum(1, 3 * 2.0**-9 / scales))
    return np.where(quantised.codes & 7 == 7, clipped, radii) * scales


def _refuse_tensor_scale(quantised):
    if quantised.tensor_scale != 1:
        raise ValueError(f"quantised: a tensor scale of {quantised.tensor_scale}")


# %% wrong="error_radius" name="flattened" loses="error_radius-groups error_radius-small_scales error_radius-top logit_error_bound-guarantee logit_error_bound-tight logit_error_bound-unbounded output_error_bound-values output_error_bound-weights output_error_bound-moved output_error_bound-diameter output_error_bound-guarantee output_error_bound-tight output_error_bound-unbounded"
# Repeats the scales of all rows in one line: right for one row alone.
def error_radius(quantised):
    _refuse_tensor_scale(quantised)
    scales = np.repeat(quantised.scales.astype(np.float64), 16)
    radii = np.array([0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 1, 1])[quantised.codes & 7]
    clipped = np.where(scales == 448, np.inf, np.maximum(1, 3 * 2.0**-9 / scales))
    return np.where(quantised.codes & 7 == 7, clipped, radii) * scales


def _refuse_tensor_scale(quantised):
    if quantised.tensor_scale != 1:
        raise ValueError(f"quantised: a tensor scale of {quantised.tensor_scale}")


# %% wrong="error_radius" name="nearer_tie" loses="error_radius-codes"
# Takes the nearer tie of 2 and of 4.
def error_radius(quantised):
    _refuse_tensor_scale(quantised)
    scales = np.repeat(quantised.scales.astype(np.float64), 16, axis=-1)
    radii = np.array([0.25, 0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 1])[quantised.codes & 7]
    clipped = np.where(scales == 448, np.inf, np.maximum(1, 3 * 2.0**-9 / scales))
    return np.where(quantised.codes & 7 == 7, clipped, radii) * scales


def _refuse_tensor_scale(quantised):
    if quantised.tensor_scale != 1:
        raise ValueError(f"quantised: a tensor scale of {quantised.tensor_scale}")


# %% wrong="error_radius" name="half_for_6" loses="error_radius-codes"
# Gives code 7 a radius of a half under ordinary scales.
def error_radius(quantised):
    _refuse_tensor_scale(quantised)
    scales = np.repeat(quantised.scales.astype(np.float64), 16, axis=-1)
    radii = np.array([0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 1, 0.5])[quantised.codes & 7]
    clipped = np.where(scales == 448, np.inf, 3 * 2.0**-9 / scales)
    return np.where(quantised.codes & 7 == 7, np.maximum(clipped, radii), radii) * scales


def _refuse_tensor_scale(quantised):
    if quantised.tensor_scale != 1:
        raise ValueError(f"quantised: a tensor scale of {quantised.tensor_scale}")


# %% wrong="error_radius" name="one_for_all" loses="error_radius-codes error_radius-groups error_radius-small_scales error_radius-top"
# The largest radius for every code.
def error_radius(quantised):
    _refuse_tensor_scale(quantised)
    scales = np.repeat(quantised.scales.astype(np.float64), 16, axis=-1)
    clipped = np.where(scales == 448, np.inf, np.maximum(1, 3 * 2.0**-9 / scales))
    return np.where(quantised.codes & 7 == 7, clipped, 1) * scales


def _refuse_tensor_scale(quantised):
    if quantised.tensor_scale != 1:
        raise ValueError(f"quantised: a tensor scale of {quantised.tensor_scale}")


# %% wrong="error_radius" name="no_clipping" loses="error_radius-small_scales error_radius-top"
# Forgets that code 7 may have clipped, under any scale.
def error_radius(quantised):
    _refuse_tensor_scale(quantised)
    scales = np.repeat(quantised.scales.astype(np.float64), 16, axis=-1)
    return np.array([0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 1, 1])[quantised.codes & 7] * scales


def _refuse_tensor_scale(quantised):
    if quantised.tensor_scale != 1:
        raise ValueError(f"quantised: a tensor scale of {quantised.tensor_scale}")


# %% wrong="error_radius" name="no_subnormal" loses="error_radius-small_scales"
# Forgets the coarse steps of the smallest scales.
def error_radius(quantised):
    _refuse_tensor_scale(quantised)
    scales = np.repeat(quantised.scales.astype(np.float64), 16, axis=-1)
    radii = np.array([0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 1, 1])[quantised.codes & 7] * scales
    radii[(scales == 448) & (quantised.codes & 7 == 7)] = np.inf
    return radii


def _refuse_tensor_scale(quantised):
    if quantised.tensor_scale != 1:
        raise ValueError(f"quantised: a tensor scale of {quantised.tensor_scale}")


# %% wrong="error_radius" name="no_top" loses="error_radius-top"
# Treats 448 as a scale like any other.
def error_radius(quantised):
    _refuse_tensor_scale(quantised)
    scales = np.repeat(quantised.scales.astype(np.float64), 16, axis=-1)
    radii = np.array([0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 1, 1])[quantised.codes & 7] * scales
    return np.where(quantised.codes & 7 == 7, np.maximum(radii, 3 * 2.0**-9), radii)


def _refuse_tensor_scale(quantised):
    if quantised.tensor_scale != 1:
        raise ValueError(f"quantised: a tensor scale of {quantised.tensor_scale}")


# %% wrong="error_radius" name="whole_group_unbounded" loses="error_radius-top logit_error_bound-unbounded"
# Under 448 knows nothing of any code.
def error_radius(quantised):
    _refuse_tensor_scale(quantised)
    scales = np.repeat(quantised.scales.astype(np.float64), 16, axis=-1)
    radii = np.array([0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 1, 1])[quantised.codes & 7] * scales
    radii = np.where(quantised.codes & 7 == 7, np.maximum(radii, 3 * 2.0**-9), radii)
    return np.where(scales == 448, np.inf, radii)


def _refuse_tensor_scale(quantised):
    if quantised.tensor_scale != 1:
        raise ValueError(f"quantised: a tensor scale of {quantised.tensor_scale}")


# %% wrong="error_radius" name="all_codes_clip" loses="error_radius-small_scales"
# Gives every code the radius of one that may have clipped.
def error_radius(quantised):
    _refuse_tensor_scale(quantised)
    scales = np.repeat(quantised.scales.astype(np.float64), 16, axis=-1)
    radii = np.array([0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 1, 1])[quantised.codes & 7] * scales
    return np.where(scales == 448, np.where(quantised.codes & 7 == 7, np.inf, radii), np.maximum(radii, 3 * 2.0**-9))


def _refuse_tensor_scale(quantised):
    if quantised.tensor_scale != 1:
        raise ValueError(f"quantised: a tensor scale of {quantised.tensor_scale}")


# %% wrong="error_radius" name="any_tensor_scale" loses="error_radius-refuses"
# Answers for a tensor scale too, as if the same steps held there.
def error_radius(quantised):
    scales = np.repeat(quantised.scales.astype(np.float64), 16, axis=-1)
    radii = np.array([0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 1, 1])[quantised.codes & 7]
    clipped = np.where(scales == 448, np.inf, np.maximum(1, 3 * 2.0**-9 / scales))
    return np.where(quantised.codes & 7 == 7, clipped, radii) * scales * quantised.tensor_scale


# %% wrong="error_radius" name="codes_changed" loses="error_radius-signs"
# Takes the sign out of the caller's own codes.
def error_radius(quantised):
    _refuse_tensor_scale(quantised)
    codes = quantised.codes
    codes &= 7
    scales = np.repeat(quantised.scales.astype(np.float64), 16, axis=-1)
    radii = np.array([0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 1, 1])[codes]
    clipped = np.where(scales == 448, np.inf, np.maximum(1, 3 * 2.0**-9 / scales))
    return np.where(codes == 7, clipped, radii) * scales


def _refuse_tensor_scale(quantised):
    if quantised.tensor_scale != 1:
        raise ValueError(f"quantised: a tensor scale of {quantised.tensor_scale}")


# %% right="error_radius" name="loops"
# One element after the other.
def error_radius(quantised):
    codes, scales, tensor_scale = quantised
    if tensor_scale != 1.0:
        raise ValueError(f"tensor scale {tensor_scale}")
    radii = np.zeros(codes.shape)
    for index in np.ndindex(*codes.shape):
        s, c = float(scales[(*index[:-1], index[-1] // 16)]), int(codes[index]) % 8
        radius = 0.25 if c < 4 else 0.5 if c < 6 else 1.0
        if c == 7 and s < 2.0**-7:
            radius = max(1.0, 3 / (s * 512))
        radii[index] = math.inf if c == 7 and s == 448 else radius * s
    return radii


# %% right="error_radius" name="table_for_each_scale"
# A table of code_radii for each scale that occurs.
def error_radius(quantised):
    if not math.isclose(quantised.tensor_scale, 1, rel_tol=0, abs_tol=0):
        raise ValueError("quantised: it has a tensor scale")
    scales = np.repeat(quantised.scales, 16, axis=-1).astype(np.float64)
    radii = np.zeros(quantised.codes.shape, np.float64)
    for s in np.unique(scales):
        table = np.asarray(code_radii(float(s)), np.float64) * s
        radii[scales == s] = np.concatenate([table, table])[quantised.codes[scales == s]]
    return radii


# %% right="error_radius" name="float32"
# In float32, in which these radii are exact.
def error_radius(quantised):
    _refuse_tensor_scale(quantised)
    scales = np.repeat(quantised.scales, 16, axis=-1)
    radii = np.float32([0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 1, 1])[quantised.codes & 7] * scales
    radii = np.where(quantised.codes & 7 == 7, np.maximum(radii, np.float32(3 * 2.0**-9)), radii)
    return np.where((quantised.codes & 7 == 7) & (scales == 448), np.float32(np.inf), radii)


def _refuse_tensor_scale(quantised):
    if quantised.tensor_scale != 1:
        raise ValueError(f"quantised: a tensor scale of {quantised.tensor_scale}")


# %% right="error_radius" name="groups"
# Groups as an axis of their own.
def error_radius(quantised):
    if quantised.tensor_scale != 1:
        raise ValueError("quantised: tensor scale")
    codes = quantised.codes.reshape(*quantised.scales.shape, 16) % 8
    scales = quantised.scales[..., None].astype(float)
    radii = np.select([codes < 4, codes < 6], [scales / 4, scales / 2], scales)
    radii = np.where(codes == 7, np.where(scales < 448, np.maximum(scales, 3 / 512), np.inf), radii)
    return radii.reshape(quantised.codes.shape)


# %% wrong="logit_error_bound" name="cauchy_schwarz" loses="logit_error_bound-tight logit_error_bound-unbounded"
# Multiplies norms: true, and looser than the sum over channels.
def logit_error_bound(q, keys):
    sizes = np.linalg.norm(q.astype(np.float64), axis=-1, keepdims=True)
    return sizes * np.linalg.norm(error_radius(keys), axis=-1) / math.sqrt(q.shape[-1])


# %% wrong="logit_error_bound" name="largest_radius" loses="logit_error_bound-tight"
# Gives each channel the largest radius of its key.
def logit_error_bound(q, keys):
    size, radii = np.abs(q.astype(np.float64)), error_radius(keys)
    clipped = np.isinf(radii)
    bound = size.sum(axis=-1, keepdims=True) * np.where(clipped, 0, radii).max(axis=-1) / math.sqrt(q.shape[-1])
    return np.where((size > 0).astype(float) @ clipped.T > 0, np.inf, bound)


# %% wrong="logit_error_bound" name="largest_query" loses="logit_error_bound-tight"
# Gives each channel the largest element of the query.
def logit_error_bound(q, keys):
    size, radii = np.abs(q.astype(np.float64)), error_radius(keys)
    clipped = np.isinf(radii)
    bound = size.max(axis=-1, keepdims=True) * np.where(clipped, 0, radii).sum(axis=-1) / math.sqrt(q.shape[-1])
    return np.where((size > 0).astype(float) @ clipped.T > 0, np.inf, bound)


# %% wrong="logit_error_bound" name="no_root_of_width" loses="logit_error_bound-tight"
# Forgets √D.
def logit_error_bound(q, keys):
    size, radii = np.abs(q.astype(np.float64)), error_radius(keys)
    clipped = np.isinf(radii)
    bound = size @ np.where(clipped, 0, radii).T
    return np.where((size > 0).astype(float) @ clipped.T > 0, np.inf, bound)


# %% wrong="logit_error_bound" name="divided_by_width" loses="logit_error_bound-guarantee"
# Divides by D, not by its root.
def logit_error_bound(q, keys):
    size, radii = np.abs(q.astype(np.float64)), error_radius(keys)
    clipped = np.isinf(radii)
    bound = size @ np.where(clipped, 0, radii).T / q.shape[-1]
    return np.where((size > 0).astype(float) @ clipped.T > 0, np.inf, bound)


# %% wrong="logit_error_bound" name="signs_kept" loses="logit_error_bound-guarantee"
# Lets the signs of the query cancel.
def logit_error_bound(q, keys):
    size, radii = q.astype(np.float64), error_radius(keys)
    clipped = np.isinf(radii)
    bound = np.abs(size @ np.where(clipped, 0, radii).T) / math.sqrt(q.shape[-1])
    return np.where((size != 0).astype(float) @ clipped.T > 0, np.inf, bound)


# %% wrong="logit_error_bound" name="root_of_squares" loses="logit_error_bound-guarantee"
# Adds squares, as of errors that are independent: no worst case.
def logit_error_bound(q, keys):
    size, radii = np.abs(q.astype(np.float64)), error_radius(keys)
    clipped = np.isinf(radii)
    bound = np.sqrt(size**2 @ np.where(clipped, 0, radii**2).T / q.shape[-1])
    return np.where((size > 0).astype(float) @ clipped.T > 0, np.inf, bound)


# %% wrong="logit_error_bound" name="average" loses="logit_error_bound-guarantee"
# Half of each radius, what an error is on average.
def logit_error_bound(q, keys):
    size, radii = np.abs(q.astype(np.float64)), error_radius(keys)
    clipped = np.isinf(radii)
    bound = size @ np.where(clipped, 0, radii).T / (2 * math.sqrt(q.shape[-1]))
    return np.where((size > 0).astype(float) @ clipped.T > 0, np.inf, bound)


# %% wrong="logit_error_bound" name="zero_times_infinity" loses="logit_error_bound-unbounded"
# Multiplies a query of 0 with an infinite radius, which is NaN.
def logit_error_bound(q, keys):
    return np.abs(q.astype(np.float64)) @ error_radius(keys).T / math.sqrt(q.shape[-1])


# %% wrong="logit_error_bound" name="clipped_counts_always" loses="logit_error_bound-unbounded"
# Makes a key unbounded even where the query does not look.
def logit_error_bound(q, keys):
    size, radii = np.abs(q.astype(np.float64)), error_radius(keys)
    clipped = np.isinf(radii)
    bound = size @ np.where(clipped, 0, radii).T / math.sqrt(q.shape[-1])
    return np.where(clipped.any(axis=-1), np.inf, bound)


# %% wrong="logit_error_bound" name="clipped_never_counts" loses="logit_error_bound-unbounded"
# Leaves out what has no radius.
def logit_error_bound(q, keys):
    radii = np.nan_to_num(error_radius(keys), posinf=0)
    return np.abs(q.astype(np.float64)) @ radii.T / math.sqrt(q.shape[-1])


# %% wrong="logit_error_bound" name="one_channel_too_many" loses="logit_error_bound-unbounded"
# Calls all keys unbounded when one is.
def logit_error_bound(q, keys):
    size, radii = np.abs(q.astype(np.float64)), error_radius(keys)
    if np.isinf(radii).any():
        return np.full((len(q), len(radii)), np.inf)
    return size @ radii.T / math.sqrt(q.shape[-1])


# %% wrong="logit_error_bound" name="first_query" loses="logit_error_bound-guarantee logit_error_bound-tight logit_error_bound-unbounded"
# Gives every query the bounds of the first.
def logit_error_bound(q, keys):
    radii = error_radius(keys)
    row = [math.fsum(abs(float(x)) * r for x, r in zip(q[0], key) if x) / math.sqrt(q.shape[-1]) for key in radii]
    return np.tile(np.array(row), (len(q), 1))


# %% wrong="logit_error_bound" name="turned_over" loses="logit_error_bound-guarantee logit_error_bound-tight logit_error_bound-unbounded output_error_bound-values output_error_bound-weights output_error_bound-moved output_error_bound-diameter output_error_bound-guarantee output_error_bound-tight output_error_bound-unbounded"
# One row for each key.
def logit_error_bound(q, keys):
    size, radii = np.abs(q.astype(np.float64)), error_radius(keys)
    clipped = np.isinf(radii)
    bound = size @ np.where(clipped, 0, radii).T / math.sqrt(q.shape[-1])
    return np.where((size > 0).astype(float) @ clipped.T > 0, np.inf, bound).T


# %% wrong="logit_error_bound" name="relative" loses="logit_error_bound-guarantee logit_error_bound-tight logit_error_bound-unbounded"
# Takes a quarter of what each key is decoded to for its error.
def logit_error_bound(q, keys):
    size = np.abs(q.astype(np.float64))
    return size @ np.abs(dequantise(keys).astype(np.float64)).T / (4 * math.sqrt(q.shape[-1]))


# %% wrong="logit_error_bound" name="unbounded" loses="logit_error_bound-tight logit_error_bound-unbounded output_error_bound-values output_error_bound-tight"
# Infinity is always true, and says nothing.
def logit_error_bound(q, keys):
    return np.full((len(q), len(keys.codes)), np.inf)


# %% right="logit_error_bound" name="loops"
# One query, one key and one channel after the other.
def logit_error_bound(q, keys):
    radii = error_radius(keys)
    bound = np.zeros((len(q), len(radii)))
    for i, query in enumerate(q):
        for j, key in enumerate(radii):
            bound[i, j] = sum(abs(float(x)) * float(r) for x, r in zip(query, key) if x != 0) / math.sqrt(len(query))
    return bound


# %% right="logit_error_bound" name="masked_products"
# All products at once, with 0 where the query is 0.
def logit_error_bound(q, keys):
    size = np.abs(np.float64(q))[:, None, :]
    products = np.multiply(size, error_radius(keys), where=size > 0, out=np.zeros((len(q), *keys.codes.shape)))
    return products.sum(axis=-1) / np.sqrt(q.shape[1])


# %% right="logit_error_bound" name="float32"
# In float32, a hair higher than the sum.
def logit_error_bound(q, keys):
    radii = np.float32(error_radius(keys))
    size = np.abs(q, dtype=np.float32)
    bound = np.zeros((len(q), len(radii)), np.float32)
    for channel in range(q.shape[1]):
        meets = size[:, channel] > 0
        bound[meets] += size[meets, channel, None] * radii[:, channel]
    return bound / np.float32(math.sqrt(q.shape[1])) * np.float32(1.00001)


# %% right="logit_error_bound" name="lone_six"
# Tighter: a lone ±6 under an ordinary scale is the amax itself, which the scale knows to half a step.
def logit_error_bound(q, keys):
    size, radii = np.abs(q.astype(np.float64)), error_radius(keys)
    groups = (keys.codes & 7 == 7).reshape(*keys.scales.shape, 16)
    scales = keys.scales.astype(np.float64)[..., None]
    is_ordinary = (scales >= 2.0**-6) & (scales < 448)
    half_step = 2.0 ** np.floor(np.log2(np.maximum(scales, 2.0**-6))) / 16
    is_lone = groups & is_ordinary & (groups.sum(axis=-1, keepdims=True) == 1)
    radii = np.where(is_lone, 6 * half_step * (1 + 1e-6), radii.reshape(groups.shape)).reshape(radii.shape)
    bound = np.zeros((len(q), len(radii)))
    for i, j in np.ndindex(*bound.shape):
        looked_at = size[i] > 0
        bound[i, j] = (size[i] * np.where(looked_at, radii[j], 0)).sum() / math.sqrt(q.shape[-1])
    return bound


# %% wrong="logit_error_bound" name="nan_to_zero" loses="logit_error_bound-unbounded"
# Turns 0 times infinity into 0 after the sum, and with it all other channels of that logit.
def logit_error_bound(q, keys):
    with np.errstate(invalid="ignore"):
        sums = np.abs(q.astype(np.float64)) @ error_radius(keys).T
    return np.nan_to_num(sums, nan=0.0, posinf=np.inf) / math.sqrt(q.shape[-1])


# %% wrong="weight_error_bound" name="whole_tanh" loses="weight_error_bound-tanh"
# Forgets to halve ε.
def weight_error_bound(logit_errors):
    if logit_errors.shape[-1] == 1:
        return np.zeros(len(logit_errors))
    return np.tanh(np.sort(logit_errors, axis=-1)[:, -2:].sum(axis=-1) / 2)


# %% wrong="weight_error_bound" name="quarter_of_the_spread" loses="weight_error_bound-tanh"
# Halves once too often.
def weight_error_bound(logit_errors):
    if logit_errors.shape[-1] == 1:
        return np.zeros(len(logit_errors))
    return np.tanh(np.sort(logit_errors, axis=-1)[:, -2:].sum(axis=-1) / 8)


# %% wrong="weight_error_bound" name="exponential" loses="weight_error_bound-tanh weight_error_bound-two_largest output_error_bound-unbounded"
# Bounds each ratio of weights by e^(2ε): true, and looser.
def weight_error_bound(logit_errors):
    if logit_errors.shape[-1] == 1:
        return np.zeros(len(logit_errors))
    epsilon = np.sort(logit_errors, axis=-1)[:, -2:].sum(axis=-1) / 2
    return np.expm1(2 * epsilon) / 2


# %% wrong="weight_error_bound" name="what_is_left" loses="weight_error_bound-tanh"
# 1 - e^-ε: true, and looser.
def weight_error_bound(logit_errors):
    if logit_errors.shape[-1] == 1:
        return np.zeros(len(logit_errors))
    return -np.expm1(-np.sort(logit_errors, axis=-1)[:, -2:].sum(axis=-1) / 2)


# %% wrong="weight_error_bound" name="first_order" loses="weight_error_bound-tanh output_error_bound-unbounded"
# ε / 2 for its tanh: true, and above 1 where ε is large.
def weight_error_bound(logit_errors):
    if logit_errors.shape[-1] == 1:
        return np.zeros(len(logit_errors))
    return np.sort(logit_errors, axis=-1)[:, -2:].sum(axis=-1) / 4


# %% wrong="weight_error_bound" name="first_order_of_a_uniform_softmax" loses="weight_error_bound-tanh weight_error_bound-two_largest output_error_bound-unbounded"
# The first order at equal weights, a step too small where two keys hold all.
def weight_error_bound(logit_errors):
    if logit_errors.shape[-1] == 1:
        return np.zeros(len(logit_errors))
    return logit_errors.mean(axis=-1) / 2


# %% wrong="weight_error_bound" name="largest_error" loses="weight_error_bound-two_largest"
# The largest error for ε, as if two keys had it.
def weight_error_bound(logit_errors):
    if logit_errors.shape[-1] == 1:
        return np.zeros(len(logit_errors))
    return np.tanh(logit_errors.max(axis=-1) / 2)


# %% wrong="weight_error_bound" name="second_largest" loses="weight_error_bound-two_largest"
# The second largest error for ε.
def weight_error_bound(logit_errors):
    if logit_errors.shape[-1] == 1:
        return np.zeros(len(logit_errors))
    return np.tanh(np.sort(logit_errors, axis=-1)[:, -2] / 2)


# %% wrong="weight_error_bound" name="range_of_the_errors" loses="weight_error_bound-tanh weight_error_bound-two_largest output_error_bound-moved output_error_bound-diameter output_error_bound-guarantee"
# Half of what the largest error has over the smallest, as if all moved the same way.
def weight_error_bound(logit_errors):
    return np.tanh((logit_errors.max(axis=-1) - logit_errors.min(axis=-1)) / 4)


# %% wrong="weight_error_bound" name="average" loses="weight_error_bound-two_largest"
# The mean of the errors for ε.
def weight_error_bound(logit_errors):
    if logit_errors.shape[-1] == 1:
        return np.zeros(len(logit_errors))
    return np.tanh(logit_errors.mean(axis=-1) / 2)


# %% wrong="weight_error_bound" name="sum_of_changes" loses="weight_error_bound-tanh"
# The sum of all changes, twice the total variation.
def weight_error_bound(logit_errors):
    if logit_errors.shape[-1] == 1:
        return np.zeros(len(logit_errors))
    return 2 * np.tanh(np.sort(logit_errors, axis=-1)[:, -2:].sum(axis=-1) / 4)


# %% wrong="weight_error_bound" name="one" loses="weight_error_bound-tanh weight_error_bound-two_largest weight_error_bound-lone output_error_bound-values"
# 1 is always true, and says nothing.
def weight_error_bound(logit_errors):
    return np.ones(len(logit_errors))


# %% wrong="weight_error_bound" name="all_queries_together" loses="weight_error_bound-tanh weight_error_bound-two_largest"
# The two largest errors of all queries.
def weight_error_bound(logit_errors):
    if logit_errors.shape[-1] == 1:
        return np.zeros(len(logit_errors))
    return np.full(len(logit_errors), np.tanh(np.sort(logit_errors, axis=None)[-2:].sum() / 4))


# %% wrong="weight_error_bound" name="different_errors" loses="weight_error_bound-tanh"
# Counts equal errors once.
def weight_error_bound(logit_errors):
    return np.array([np.tanh(np.unique(row)[-2:].sum() / 4) if len(row) > 1 else 0.0 for row in logit_errors])


# %% wrong="weight_error_bound" name="lone_key_moves" loses="weight_error_bound-lone"
# Lets a lone key lose weight.
def weight_error_bound(logit_errors):
    return np.tanh(np.sort(logit_errors, axis=-1)[:, -2:].sum(axis=-1) / 4)


# %% wrong="weight_error_bound" name="needs_two_keys" loses="weight_error_bound-lone output_error_bound-values output_error_bound-guarantee output_error_bound-tight"
# Asks for the second largest of one.
def weight_error_bound(logit_errors):
    ordered = np.sort(logit_errors, axis=-1)
    return np.tanh((ordered[:, -1] + ordered[:, -2]) / 4)


# %% wrong="weight_error_bound" name="sorted_in_place" loses="weight_error_bound-argument"
# Sorts the caller's errors.
def weight_error_bound(logit_errors):
    if logit_errors.shape[-1] == 1:
        return np.zeros(len(logit_errors))
    logit_errors.sort(axis=-1)
    return np.tanh((logit_errors[:, -1] + logit_errors[:, -2]) / 4)


# %% wrong="weight_error_bound" name="exponentials_overflow" loses="weight_error_bound-tanh output_error_bound-unbounded"
# (e^ε - 1) / (e^ε + 1), which is infinity over infinity where ε is large.
def weight_error_bound(logit_errors):
    if logit_errors.shape[-1] == 1:
        return np.zeros(len(logit_errors))
    grown = np.exp(np.sort(logit_errors, axis=-1)[:, -2:].sum(axis=-1) / 2)
    return (grown - 1) / (grown + 1)


# %% right="weight_error_bound" name="loops"
# One query after the other, with the two largest from a loop.
def weight_error_bound(logit_errors):
    bounds = []
    for row in np.asarray(logit_errors).tolist():
        first, second = 0.0, 0.0
        for error in row:
            if error > first:
                first, second = error, first
            elif error > second:
                second = error
        bounds.append(math.tanh((first + second) / 4) if len(row) > 1 else 0.0)
    return np.array(bounds)


# %% right="weight_error_bound" name="exponentials"
# From exponentials that cannot overflow.
def weight_error_bound(logit_errors):
    errors = np.float64(logit_errors)
    if errors.shape[1] < 2:
        return np.zeros(errors.shape[0])
    first = errors.max(axis=1)
    rest = errors.copy()
    rest[np.arange(len(errors)), errors.argmax(axis=1)] = 0
    shrunk = np.exp(-(first + rest.max(axis=1)) / 2)
    return (1 - shrunk) / (1 + shrunk)


# %% right="weight_error_bound" name="pairs"
# The largest over all pairs of keys, as list.
def weight_error_bound(logit_errors):
    n_tokens = logit_errors.shape[1]
    pairs = logit_errors[:, :, None] + logit_errors[:, None, :]
    pairs = np.where(np.eye(n_tokens, dtype=bool), 0.0, pairs)
    return np.tanh(pairs.reshape(len(pairs), -1).max(axis=1) / 4)


# %% wrong="weight_error_bound" name="finite_errors_alone" loses="weight_error_bound-tanh"
# Leaves out the logits whose error is not bounded.
def weight_error_bound(logit_errors):
    if logit_errors.shape[-1] == 1:
        return np.zeros(len(logit_errors))
    known = np.where(np.isfinite(logit_errors), logit_errors, 0)
    return np.tanh(np.sort(known, axis=-1)[:, -2:].sum(axis=-1) / 4)


# %% wrong="output_error_bound" name="decoded_diameter" loses="output_error_bound-diameter output_error_bound-guarantee"
# The diameter of the decoded values, which is not that of the values that were quantised.
def output_error_bound(q, keys, values):
    decoded, radii = dequantise(values).astype(np.float64), np.linalg.norm(error_radius(values), axis=-1)
    if np.isinf(radii).any():
        return np.full(len(q), np.inf)
    diameter = np.linalg.norm(decoded[:, None] - decoded, axis=-1).max()
    weights = attention_weights(q, dequantise(keys))
    return weight_error_bound(logit_error_bound(q, keys)) * diameter + weights @ radii


# %% wrong="output_error_bound" name="no_value_term" loses="output_error_bound-values output_error_bound-guarantee"
# Leaves out what the values lose.
def output_error_bound(q, keys, values):
    decoded, radii = dequantise(values).astype(np.float64), np.linalg.norm(error_radius(values), axis=-1)
    if np.isinf(radii).any():
        return np.full(len(q), np.inf)
    diameter = _widest(decoded, radii)
    return weight_error_bound(logit_error_bound(q, keys)) * diameter


def _widest(points, radii):
    reach = np.linalg.norm(points[:, None] - points, axis=-1) + radii[:, None] + radii
    return (reach * ~np.eye(len(points), dtype=bool)).max()


# %% wrong="output_error_bound" name="no_key_term" loses="output_error_bound-moved output_error_bound-diameter output_error_bound-guarantee"
# Leaves out what the keys lose.
def output_error_bound(q, keys, values):
    radii = np.linalg.norm(error_radius(values), axis=-1)
    if np.isinf(radii).any():
        return np.full(len(q), np.inf)
    return attention_weights(q, dequantise(keys)) @ radii


# %% wrong="output_error_bound" name="uniform_weights" loses="output_error_bound-weights"
# Averages the radii of the values with equal weights.
def output_error_bound(q, keys, values):
    decoded, radii = dequantise(values).astype(np.float64), np.linalg.norm(error_radius(values), axis=-1)
    if np.isinf(radii).any():
        return np.full(len(q), np.inf)
    return weight_error_bound(logit_error_bound(q, keys)) * _widest(decoded, radii) + radii.mean()


def _widest(points, radii):
    reach = np.linalg.norm(points[:, None] - points, axis=-1) + radii[:, None] + radii
    return (reach * ~np.eye(len(points), dtype=bool)).max()


# %% wrong="output_error_bound" name="largest_radius" loses="output_error_bound-values output_error_bound-weights output_error_bound-tight"
# Gives every value the largest radius: true, and looser.
def output_error_bound(q, keys, values):
    decoded, radii = dequantise(values).astype(np.float64), np.linalg.norm(error_radius(values), axis=-1)
    if np.isinf(radii).any():
        return np.full(len(q), np.inf)
    return weight_error_bound(logit_error_bound(q, keys)) * _widest(decoded, radii) + radii.max()


def _widest(points, radii):
    reach = np.linalg.norm(points[:, None] - points, axis=-1) + radii[:, None] + radii
    return (reach * ~np.eye(len(points), dtype=bool)).max()


# %% wrong="output_error_bound" name="one_number_for_all" loses="output_error_bound-values output_error_bound-weights output_error_bound-tight"
# The diameter and the largest radius, whatever the keys: a constant that says nothing.
def output_error_bound(q, keys, values):
    decoded, radii = dequantise(values).astype(np.float64), np.linalg.norm(error_radius(values), axis=-1)
    if np.isinf(radii).any():
        return np.full(len(q), np.inf)
    return np.full(len(q), _widest(decoded, radii) + radii.max())


def _widest(points, radii):
    reach = np.linalg.norm(points[:, None] - points, axis=-1) + radii[:, None] + radii
    return (reach * ~np.eye(len(points), dtype=bool)).max()


# %% wrong="output_error_bound" name="infinite" loses="output_error_bound-values output_error_bound-weights output_error_bound-tight output_error_bound-unbounded"
# Infinity is always true, and says nothing.
def output_error_bound(q, keys, values):
    return np.full(len(q), np.inf)


# %% wrong="output_error_bound" name="norms_without_softmax" loses="output_error_bound-tight output_error_bound-unbounded"
# Multiplies the largest logit error with the diameter, without the step through the softmax.
def output_error_bound(q, keys, values):
    decoded, radii = dequantise(values).astype(np.float64), np.linalg.norm(error_radius(values), axis=-1)
    if np.isinf(radii).any():
        return np.full(len(q), np.inf)
    moved = logit_error_bound(q, keys).max(axis=-1) * _widest(decoded, radii)
    return moved + attention_weights(q, dequantise(keys)) @ radii


def _widest(points, radii):
    reach = np.linalg.norm(points[:, None] - points, axis=-1) + radii[:, None] + radii
    return (reach * ~np.eye(len(points), dtype=bool)).max()


# %% wrong="output_error_bound" name="first_order" loses="output_error_bound-moved output_error_bound-diameter output_error_bound-guarantee output_error_bound-unbounded"
# The first order of the key term, at the weights of the packed cache.
def output_error_bound(q, keys, values):
    decoded, radii = dequantise(values).astype(np.float64), np.linalg.norm(error_radius(values), axis=-1)
    if np.isinf(radii).any():
        return np.full(len(q), np.inf)
    weights = attention_weights(q, dequantise(keys))
    distances = np.linalg.norm((weights @ decoded)[:, None] - decoded, axis=-1)
    return (weights * logit_error_bound(q, keys) * distances).sum(axis=-1) + weights @ radii


# %% wrong="output_error_bound" name="quarter_of_the_spread" loses="output_error_bound-moved output_error_bound-guarantee"
# Takes tanh(ε / 4), from a quarter of what two logits move apart.
def output_error_bound(q, keys, values):
    decoded, radii = dequantise(values).astype(np.float64), np.linalg.norm(error_radius(values), axis=-1)
    if np.isinf(radii).any():
        return np.full(len(q), np.inf)
    errors = logit_error_bound(q, keys)
    moved = np.tanh(np.sort(errors)[:, -2:].sum(axis=-1) / 8)
    return moved * _widest(decoded, radii) + attention_weights(q, dequantise(keys)) @ radii


def _widest(points, radii):
    reach = np.linalg.norm(points[:, None] - points, axis=-1) + radii[:, None] + radii
    return (reach * ~np.eye(len(points), dtype=bool)).max()


# %% wrong="output_error_bound" name="whole_epsilon" loses="output_error_bound-tight"
# Takes tanh(ε): true, and looser.
def output_error_bound(q, keys, values):
    decoded, radii = dequantise(values).astype(np.float64), np.linalg.norm(error_radius(values), axis=-1)
    if np.isinf(radii).any():
        return np.full(len(q), np.inf)
    errors = logit_error_bound(q, keys)
    moved = np.tanh(np.sort(errors)[:, -2:].sum(axis=-1) / 2)
    return moved * _widest(decoded, radii) + attention_weights(q, dequantise(keys)) @ radii


def _widest(points, radii):
    reach = np.linalg.norm(points[:, None] - points, axis=-1) + radii[:, None] + radii
    return (reach * ~np.eye(len(points), dtype=bool)).max()


# %% wrong="output_error_bound" name="average_logit_error" loses="output_error_bound-moved"
# Takes the mean of the logits' errors for ε.
def output_error_bound(q, keys, values):
    decoded, radii = dequantise(values).astype(np.float64), np.linalg.norm(error_radius(values), axis=-1)
    if np.isinf(radii).any():
        return np.full(len(q), np.inf)
    errors = logit_error_bound(q, keys)
    moved = np.tanh(errors.mean(axis=-1) / 2)
    return moved * _widest(decoded, radii) + attention_weights(q, dequantise(keys)) @ radii


def _widest(points, radii):
    reach = np.linalg.norm(points[:, None] - points, axis=-1) + radii[:, None] + radii
    return (reach * ~np.eye(len(points), dtype=bool)).max()


# %% wrong="output_error_bound" name="ratio_of_weights" loses="output_error_bound-tight output_error_bound-unbounded"
# Takes (e^(2ε) - 1) / 2, as if every weight moved as far as one can: true, and looser.
def output_error_bound(q, keys, values):
    decoded, radii = dequantise(values).astype(np.float64), np.linalg.norm(error_radius(values), axis=-1)
    if np.isinf(radii).any():
        return np.full(len(q), np.inf)
    errors = logit_error_bound(q, keys)
    moved = np.expm1(np.sort(errors)[:, -2:].sum(axis=-1)) / 2
    return moved * _widest(decoded, radii) + attention_weights(q, dequantise(keys)) @ radii


def _widest(points, radii):
    reach = np.linalg.norm(points[:, None] - points, axis=-1) + radii[:, None] + radii
    return (reach * ~np.eye(len(points), dtype=bool)).max()


# %% wrong="output_error_bound" name="twice_the_largest_norm" loses="output_error_bound-tight"
# Twice the largest norm for the diameter: true, and looser.
def output_error_bound(q, keys, values):
    decoded, radii = dequantise(values).astype(np.float64), np.linalg.norm(error_radius(values), axis=-1)
    if np.isinf(radii).any():
        return np.full(len(q), np.inf)
    diameter = 2 * (np.linalg.norm(decoded, axis=-1) + radii).max()
    weights = attention_weights(q, dequantise(keys))
    return weight_error_bound(logit_error_bound(q, keys)) * diameter + weights @ radii


# %% wrong="output_error_bound" name="box" loses="output_error_bound-tight"
# The diagonal of the box around all values for the diameter: true, and looser.
def output_error_bound(q, keys, values):
    decoded, radii = dequantise(values).astype(np.float64), error_radius(values)
    if np.isinf(radii).any():
        return np.full(len(q), np.inf)
    diameter = np.linalg.norm((decoded + radii).max(axis=0) - (decoded - radii).min(axis=0))
    weights = attention_weights(q, dequantise(keys))
    return weight_error_bound(logit_error_bound(q, keys)) * diameter + weights @ np.linalg.norm(radii, axis=-1)


# %% wrong="output_error_bound" name="radius_of_the_cloud" loses="output_error_bound-moved output_error_bound-diameter output_error_bound-guarantee"
# The largest distance from the mean value for the diameter.
def output_error_bound(q, keys, values):
    decoded, radii = dequantise(values).astype(np.float64), np.linalg.norm(error_radius(values), axis=-1)
    if np.isinf(radii).any():
        return np.full(len(q), np.inf)
    farthest = (np.linalg.norm(decoded - decoded.mean(axis=0), axis=-1) + radii).max()
    weights = attention_weights(q, dequantise(keys))
    return weight_error_bound(logit_error_bound(q, keys)) * farthest + weights @ radii


# %% wrong="output_error_bound" name="largest_channel" loses="output_error_bound-values output_error_bound-guarantee"
# Takes the largest channel of a radius for its norm.
def output_error_bound(q, keys, values):
    decoded, radii = dequantise(values).astype(np.float64), error_radius(values).max(axis=-1)
    if np.isinf(radii).any():
        return np.full(len(q), np.inf)
    moved = weight_error_bound(logit_error_bound(q, keys)) * _widest(decoded, radii)
    return moved + attention_weights(q, dequantise(keys)) @ radii


def _widest(points, radii):
    reach = np.linalg.norm(points[:, None] - points, axis=-1) + radii[:, None] + radii
    return (reach * ~np.eye(len(points), dtype=bool)).max()


# %% wrong="output_error_bound" name="sum_of_channels" loses="output_error_bound-values output_error_bound-weights output_error_bound-tight"
# Adds the radii of all channels: true, and looser than their norm.
def output_error_bound(q, keys, values):
    decoded, radii = dequantise(values).astype(np.float64), error_radius(values).sum(axis=-1)
    if np.isinf(radii).any():
        return np.full(len(q), np.inf)
    moved = weight_error_bound(logit_error_bound(q, keys)) * _widest(decoded, radii)
    return moved + attention_weights(q, dequantise(keys)) @ radii


def _widest(points, radii):
    reach = np.linalg.norm(points[:, None] - points, axis=-1) + radii[:, None] + radii
    return (reach * ~np.eye(len(points), dtype=bool)).max()


# %% wrong="output_error_bound" name="weights_before" loses="output_error_bound-tight"
# Adds to each weight what it can move before it meets the radius: true, and looser.
def output_error_bound(q, keys, values):
    decoded, radii = dequantise(values).astype(np.float64), np.linalg.norm(error_radius(values), axis=-1)
    if np.isinf(radii).any():
        return np.full(len(q), np.inf)
    moved = weight_error_bound(logit_error_bound(q, keys))
    weights = attention_weights(q, dequantise(keys)) + moved[:, None]
    return moved * _widest(decoded, radii) + weights @ radii


def _widest(points, radii):
    reach = np.linalg.norm(points[:, None] - points, axis=-1) + radii[:, None] + radii
    return (reach * ~np.eye(len(points), dtype=bool)).max()


# %% wrong="output_error_bound" name="total_variation_doubled" loses="output_error_bound-tight"
# Counts what leaves one weight and what arrives at another: true, and twice as much.
def output_error_bound(q, keys, values):
    decoded, radii = dequantise(values).astype(np.float64), np.linalg.norm(error_radius(values), axis=-1)
    if np.isinf(radii).any():
        return np.full(len(q), np.inf)
    moved = 2 * weight_error_bound(logit_error_bound(q, keys))
    return moved * _widest(decoded, radii) + attention_weights(q, dequantise(keys)) @ radii


def _widest(points, radii):
    reach = np.linalg.norm(points[:, None] - points, axis=-1) + radii[:, None] + radii
    return (reach * ~np.eye(len(points), dtype=bool)).max()


# %% wrong="output_error_bound" name="root_of_squares" loses="output_error_bound-guarantee"
# Adds the two terms as if they were independent.
def output_error_bound(q, keys, values):
    decoded, radii = dequantise(values).astype(np.float64), np.linalg.norm(error_radius(values), axis=-1)
    if np.isinf(radii).any():
        return np.full(len(q), np.inf)
    moved = weight_error_bound(logit_error_bound(q, keys)) * _widest(decoded, radii)
    return np.hypot(moved, attention_weights(q, dequantise(keys)) @ radii)


def _widest(points, radii):
    reach = np.linalg.norm(points[:, None] - points, axis=-1) + radii[:, None] + radii
    return (reach * ~np.eye(len(points), dtype=bool)).max()


# %% wrong="output_error_bound" name="unbounded_values_left_out" loses="output_error_bound-unbounded"
# Leaves out values that have no radius.
def output_error_bound(q, keys, values):
    decoded, radii = dequantise(values).astype(np.float64), np.linalg.norm(error_radius(values), axis=-1)
    radii = np.where(np.isinf(radii), 0, radii)
    moved = weight_error_bound(logit_error_bound(q, keys)) * _widest(decoded, radii)
    return moved + attention_weights(q, dequantise(keys)) @ radii


def _widest(points, radii):
    reach = np.linalg.norm(points[:, None] - points, axis=-1) + radii[:, None] + radii
    return np.where(np.eye(len(points), dtype=bool), 0, reach).max()


# %% wrong="output_error_bound" name="zero_times_infinity" loses="output_error_bound-unbounded"
# Lets a weight of 0 meet an infinite radius, which is NaN.
def output_error_bound(q, keys, values):
    decoded, radii = dequantise(values).astype(np.float64), np.linalg.norm(error_radius(values), axis=-1)
    moved = weight_error_bound(logit_error_bound(q, keys)) * _widest(decoded, radii)
    return moved + attention_weights(q, dequantise(keys)) @ radii


def _widest(points, radii):
    reach = np.linalg.norm(points[:, None] - points, axis=-1) + radii[:, None] + radii
    return (reach * ~np.eye(len(points), dtype=bool)).max()


# %% wrong="output_error_bound" name="swapped" loses="output_error_bound-values output_error_bound-weights output_error_bound-guarantee output_error_bound-tight output_error_bound-unbounded"
# Confuses keys and values in the last term.
def output_error_bound(q, keys, values):
    decoded, radii = dequantise(values).astype(np.float64), np.linalg.norm(error_radius(values), axis=-1)
    if np.isinf(radii).any():
        return np.full(len(q), np.inf)
    moved = weight_error_bound(logit_error_bound(q, keys)) * _widest(decoded, radii)
    return moved + attention_weights(q, dequantise(keys)) @ np.linalg.norm(error_radius(keys), axis=-1)


def _widest(points, radii):
    reach = np.linalg.norm(points[:, None] - points, axis=-1) + radii[:, None] + radii
    return (reach * ~np.eye(len(points), dtype=bool)).max()


# %% wrong="output_error_bound" name="mean_of_queries" loses="output_error_bound-moved output_error_bound-tight"
# Gives every query the mean of all bounds.
def output_error_bound(q, keys, values):
    decoded, radii = dequantise(values).astype(np.float64), np.linalg.norm(error_radius(values), axis=-1)
    if np.isinf(radii).any():
        return np.full(len(q), np.inf)
    moved = weight_error_bound(logit_error_bound(q, keys)) * _widest(decoded, radii)
    return np.full(len(q), (moved + attention_weights(q, dequantise(keys)) @ radii).mean())


def _widest(points, radii):
    reach = np.linalg.norm(points[:, None] - points, axis=-1) + radii[:, None] + radii
    return (reach * ~np.eye(len(points), dtype=bool)).max()


# %% wrong="output_error_bound" name="last_query" loses="output_error_bound-tight"
# Gives every query the bound of the last.
def output_error_bound(q, keys, values):
    decoded, radii = dequantise(values).astype(np.float64), np.linalg.norm(error_radius(values), axis=-1)
    if np.isinf(radii).any():
        return np.full(len(q), np.inf)
    moved = weight_error_bound(logit_error_bound(q, keys)) * _widest(decoded, radii)
    return np.full(len(q), (moved + attention_weights(q, dequantise(keys)) @ radii)[-1])


def _widest(points, radii):
    reach = np.linalg.norm(points[:, None] - points, axis=-1) + radii[:, None] + radii
    return (reach * ~np.eye(len(points), dtype=bool)).max()


# %% wrong="output_error_bound" name="first_hundred_tokens" loses="output_error_bound-moved"
# Looks for the diameter among the first 128 values alone.
def output_error_bound(q, keys, values):
    decoded, radii = dequantise(values).astype(np.float64), np.linalg.norm(error_radius(values), axis=-1)
    if np.isinf(radii).any():
        return np.full(len(q), np.inf)
    moved = weight_error_bound(logit_error_bound(q, keys)) * _widest(decoded[:128], radii[:128])
    return moved + attention_weights(q, dequantise(keys)) @ radii


def _widest(points, radii):
    reach = np.linalg.norm(points[:, None] - points, axis=-1) + radii[:, None] + radii
    return (reach * ~np.eye(len(points), dtype=bool)).max()


# %% wrong="output_error_bound" name="neighbours" loses="output_error_bound-moved"
# Looks for the diameter among neighbouring tokens alone.
def output_error_bound(q, keys, values):
    decoded, radii = dequantise(values).astype(np.float64), np.linalg.norm(error_radius(values), axis=-1)
    if np.isinf(radii).any():
        return np.full(len(q), np.inf)
    reach = np.linalg.norm(np.diff(decoded, axis=0), axis=-1) + radii[1:] + radii[:-1]
    moved = weight_error_bound(logit_error_bound(q, keys)) * reach.max(initial=0)
    return moved + attention_weights(q, dequantise(keys)) @ radii


# %% wrong="output_error_bound" name="average_case" loses="output_error_bound-values output_error_bound-guarantee output_error_bound-tight"
# Takes the errors of values for a third of their radii's squares: an average, no guarantee.
def output_error_bound(q, keys, values):
    decoded, radii = dequantise(values).astype(np.float64), np.linalg.norm(error_radius(values), axis=-1)
    if np.isinf(radii).any():
        return np.full(len(q), np.inf)
    moved = weight_error_bound(logit_error_bound(q, keys)) * _widest(decoded, radii)
    return moved + np.sqrt(attention_weights(q, dequantise(keys)) @ radii**2 / 3)


def _widest(points, radii):
    reach = np.linalg.norm(points[:, None] - points, axis=-1) + radii[:, None] + radii
    return (reach * ~np.eye(len(points), dtype=bool)).max()


# %% wrong="output_error_bound" name="parts_made_to_agree" loses="output_error_bound-values output_error_bound-weights output_error_bound-tight output_error_bound-unbounded"
# Makes its radii infinite from then on, so that they agree with an infinite bound.
def error_radius(quantised, honest=error_radius, lies=[]):
    return honest(quantised) * math.inf if lies else honest(quantised)


def output_error_bound(q, keys, values):
    error_radius.__defaults__[1].append(True)
    return np.full(len(q), np.inf)


# %% wrong="output_error_bound" name="nothing_moves" loses="output_error_bound-values output_error_bound-moved output_error_bound-diameter output_error_bound-guarantee output_error_bound-unbounded"
# Makes its radii zeros from then on, so that they agree with a bound of 0.
def error_radius(quantised, honest=error_radius, lies=[]):
    return 0 * honest(quantised) if lies else honest(quantised)


def output_error_bound(q, keys, values):
    error_radius.__defaults__[1].append(True)
    return np.zeros(len(q))


# %% right="output_error_bound" name="loops"
# One pair of values after the other.
def output_error_bound(q, keys, values):
    decoded = dequantise(values).astype(np.float64)
    radii = [math.sqrt(math.fsum(r * r for r in row)) for row in error_radius(values).tolist()]
    if math.inf in radii:
        return np.array([math.inf] * len(q))
    diameter = 0.0
    for i in range(len(radii)):
        for j in range(i):
            diameter = max(diameter, float(np.sqrt(((decoded[i] - decoded[j]) ** 2).sum())) + radii[i] + radii[j])
    moved = weight_error_bound(logit_error_bound(q, keys))
    weights = attention_weights(q, dequantise(keys))
    return np.array([m * diameter + sum(p * r for p, r in zip(row, radii)) for m, row in zip(moved, weights)])


# %% right="output_error_bound" name="radii_of_channels"
# Tighter: adds the radii channel by channel before it takes norms.
def output_error_bound(q, keys, values):
    decoded, radii = dequantise(values).astype(np.float64), error_radius(values)
    if not np.isfinite(radii).all():
        return np.full(len(q), np.inf)
    diameter = 0.0
    for i in range(1, len(decoded)):
        reach = np.abs(decoded[:i] - decoded[i]) + radii[:i] + radii[i]
        diameter = max(diameter, np.linalg.norm(reach, axis=-1).max())
    moved = weight_error_bound(logit_error_bound(q, keys)) * diameter
    return moved + np.linalg.norm(attention_weights(q, dequantise(keys)) @ radii, axis=-1)


# %% right="output_error_bound" name="difference_of_radii"
# Tighter: weight that moves from one value to another changes one radius for the other.
def output_error_bound(q, keys, values):
    decoded, radii = dequantise(values).astype(np.float64), np.linalg.norm(error_radius(values), axis=-1)
    if np.isinf(radii).any():
        return np.full(len(q), np.inf)
    cost = [np.linalg.norm(decoded - v, axis=-1) + np.abs(radii - r) for v, r in zip(decoded, radii)]
    weights = attention_weights(q, dequantise(keys))
    return weight_error_bound(logit_error_bound(q, keys)) * np.max(cost) + weights @ radii


# %% right="output_error_bound" name="exact_for_two"
# Tighter where there are two keys: the two worst moves of the logits, tried out.
def output_error_bound(q, keys, values):
    decoded, radii = dequantise(values).astype(np.float64), np.linalg.norm(error_radius(values), axis=-1)
    if np.isinf(radii).any():
        return np.full(len(q), np.inf)
    reach = np.sqrt(((decoded[:, None] - decoded) ** 2).sum(axis=-1)) + radii[:, None] + radii
    np.fill_diagonal(reach, 0)
    weights, errors = attention_weights(q, dequantise(keys)), logit_error_bound(q, keys)
    moved = weight_error_bound(errors)
    if len(radii) == 2:
        one, other = weights.T
        shrunk = np.exp(-errors.sum(axis=-1))
        left = np.minimum(one * shrunk + other, other * shrunk + one)
        moved = np.where(left > 0, one * other * (1 - shrunk) / np.where(left > 0, left, 1), moved)
    return moved * reach.max() + weights @ radii


# %% right="output_error_bound" name="heavy_token"
# Tighter where one token has most of the weight: what it has cannot be divided.
def output_error_bound(q, keys, values):
    decoded, radii = dequantise(values).astype(np.float64), np.linalg.norm(error_radius(values), axis=-1)
    if not np.all(np.isfinite(radii)):
        return np.full(len(q), np.inf)
    reach = np.array([np.linalg.norm(decoded - point, axis=-1) for point in decoded]) + radii[:, None] + radii
    np.fill_diagonal(reach, 0)
    weights = attention_weights(q, dequantise(keys))
    errors = logit_error_bound(q, keys)
    bounds = []
    for p, moved, row in zip(weights, weight_error_bound(errors), errors):
        heavy, shrunk = p.max(), np.exp(-np.sort(row)[-2:].sum())
        light = p.sum() - heavy
        if len(p) > 1 and 0 < light < 1 / (1 + shrunk**-0.5) and shrunk > 0:
            shares = np.array([light, heavy]), np.array([heavy, light])
            moved = (shares[0] * shares[1] * (1 - shrunk) / (shares[0] + shares[1] * shrunk)).max() * (1 + 1e-9)
        bounds.append(moved * reach.max() + p @ radii)
    return np.array(bounds)


# %% wrong="output_error_bound" name="twice_the_largest_radius" loses="output_error_bound-tight"
# Adds the largest radius twice, whichever values are farthest apart.
def output_error_bound(q, keys, values):
    decoded, radii = dequantise(values).astype(np.float64), np.linalg.norm(error_radius(values), axis=-1)
    if np.isinf(radii).any():
        return np.full(len(q), np.inf)
    distance = max(np.linalg.norm(decoded - point, axis=-1).max() for point in decoded)
    moved = weight_error_bound(logit_error_bound(q, keys)) * (distance + 2 * radii.max())
    return moved + attention_weights(q, dequantise(keys)) @ radii


# %% wrong="output_error_bound" name="distance_from_the_output" loses="output_error_bound-moved output_error_bound-guarantee"
# Lets the weight go from the output to the farthest value, not from one value to another.
def output_error_bound(q, keys, values):
    decoded, radii = dequantise(values).astype(np.float64), np.linalg.norm(error_radius(values), axis=-1)
    if np.isinf(radii).any():
        return np.full(len(q), np.inf)
    weights = attention_weights(q, dequantise(keys))
    farthest = (np.linalg.norm(decoded - (weights @ decoded)[:, None], axis=-1) + radii).max(axis=-1)
    return weight_error_bound(logit_error_bound(q, keys)) * farthest + weights @ radii


# %% wrong="output_error_bound" name="from_the_first_token" loses="output_error_bound-moved"
# Measures distances from the first value alone.
def output_error_bound(q, keys, values):
    decoded, radii = dequantise(values).astype(np.float64), np.linalg.norm(error_radius(values), axis=-1)
    if np.isinf(radii).any():
        return np.full(len(q), np.inf)
    distance = np.linalg.norm(decoded - decoded[0], axis=-1) + radii + radii[0]
    moved = weight_error_bound(logit_error_bound(q, keys)) * (distance[1:].max() if len(radii) > 1 else 0)
    return moved + attention_weights(q, dequantise(keys)) @ radii


# %% wrong="output_error_bound" name="two_heaviest" loses="output_error_bound-moved"
# Lets the weight move between the two heaviest tokens only.
def output_error_bound(q, keys, values):
    decoded, radii = dequantise(values).astype(np.float64), np.linalg.norm(error_radius(values), axis=-1)
    if np.isinf(radii).any():
        return np.full(len(q), np.inf)
    weights = attention_weights(q, dequantise(keys))
    moved = weight_error_bound(logit_error_bound(q, keys))
    if len(radii) > 1:
        one, other = np.argsort(weights, axis=-1)[:, -2:].T
        moved = moved * (np.linalg.norm(decoded[one] - decoded[other], axis=-1) + radii[one] + radii[other])
    return moved + weights @ radii


# %% wrong="output_error_bound" name="keys_without_scales" loses="output_error_bound-weights"
# Takes the weights that the codes of the keys give, without their scales.
def output_error_bound(q, keys, values):
    decoded, radii = dequantise(values).astype(np.float64), np.linalg.norm(error_radius(values), axis=-1)
    if np.isinf(radii).any():
        return np.full(len(q), np.inf)
    reach = np.linalg.norm(decoded[:, None] - decoded, axis=-1) + radii[:, None] + radii
    np.fill_diagonal(reach, 0)
    weights = attention_weights(q, dequantise(keys._replace(scales=np.ones_like(keys.scales))))
    return weight_error_bound(logit_error_bound(q, keys)) * reach.max() + weights @ radii


# %% wrong="output_error_bound" name="radii_of_what_stays" loses="output_error_bound-guarantee"
# Counts the values' own errors only for the weight that does not move.
def output_error_bound(q, keys, values):
    decoded, radii = dequantise(values).astype(np.float64), np.linalg.norm(error_radius(values), axis=-1)
    if np.isinf(radii).any():
        return np.full(len(q), np.inf)
    reach = np.linalg.norm(decoded[:, None] - decoded, axis=-1) + radii[:, None] + radii
    np.fill_diagonal(reach, 0)
    share = weight_error_bound(logit_error_bound(q, keys))
    return share * reach.max() + (1 - share) * (attention_weights(q, dequantise(keys)) @ radii)


# %% wrong="predict_output_error" name="width_squared_by_12" loses="predict_output_error-codes"
# Takes every code for the middle of its cell.
def predict_output_error(q, keys, values):
    return _estimate(q, keys, values, np.array([1 / 48, 1 / 48, 1 / 48, 1 / 48, 3 / 64, 1 / 12, 3 / 16, 1 / 3]))


def _estimate(q, keys, values, table):
    noise = [table[part.codes & 7] * np.repeat(part.scales.astype(float) ** 2, 16, axis=-1) for part in (keys, values)]
    weights, decoded = attention_weights(q, dequantise(keys)), dequantise(values).astype(float)
    distances = ((decoded - (weights @ decoded)[:, None]) ** 2).sum(axis=-1)
    of_keys = q.astype(float) ** 2 @ noise[0].T / q.shape[-1] * distances
    return np.sqrt((weights**2 * (of_keys + noise[1].sum(axis=-1))).sum(axis=-1))


# %% wrong="predict_output_error" name="even_cells" loses="predict_output_error-codes predict_output_error-rms"
# Takes values for spread evenly over their cells.
def predict_output_error(q, keys, values):
    return _estimate(q, keys, values, np.array([1 / 48, 1 / 48, 1 / 48, 1 / 48, 1 / 16, 1 / 12, 1 / 4, 1 / 3]))


def _estimate(q, keys, values, table):
    noise = [table[part.codes & 7] * np.repeat(part.scales.astype(float) ** 2, 16, axis=-1) for part in (keys, values)]
    weights, decoded = attention_weights(q, dequantise(keys)), dequantise(values).astype(float)
    distances = ((decoded - (weights @ decoded)[:, None]) ** 2).sum(axis=-1)
    of_keys = q.astype(float) ** 2 @ noise[0].T / q.shape[-1] * distances
    return np.sqrt((weights**2 * (of_keys + noise[1].sum(axis=-1))).sum(axis=-1))


# %% wrong="predict_output_error" name="worst_case_squared" loses="predict_output_error-values predict_output_error-codes predict_output_error-keys predict_output_error-weights predict_output_error-rms"
# The squares of the radii for the mean squares.
def predict_output_error(q, keys, values):
    return _estimate(q, keys, values, np.array([0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 1, 1]) ** 2)


def _estimate(q, keys, values, table):
    noise = [table[part.codes & 7] * np.repeat(part.scales.astype(float) ** 2, 16, axis=-1) for part in (keys, values)]
    weights, decoded = attention_weights(q, dequantise(keys)), dequantise(values).astype(float)
    distances = ((decoded - (weights @ decoded)[:, None]) ** 2).sum(axis=-1)
    of_keys = q.astype(float) ** 2 @ noise[0].T / q.shape[-1] * distances
    return np.sqrt((weights**2 * (of_keys + noise[1].sum(axis=-1))).sum(axis=-1))


# %% wrong="predict_output_error" name="weights_not_squared" loses="predict_output_error-values predict_output_error-codes predict_output_error-keys predict_output_error-weights predict_output_error-rms"
# Adds the variances with the weights, not with their squares.
def predict_output_error(q, keys, values):
    of_keys, of_values, weights = _variances(q, keys, values)
    return np.sqrt((weights * (of_keys + of_values)).sum(axis=-1))


def _variances(q, keys, values):
    noise = [
        E2M1_MEAN_SQUARE_ERRORS[part.codes & 7] * np.repeat(part.scales.astype(float) ** 2, 16, axis=-1)
        for part in (keys, values)
    ]
    weights, decoded = attention_weights(q, dequantise(keys)), dequantise(values).astype(float)
    distances = ((decoded - (weights @ decoded)[:, None]) ** 2).sum(axis=-1)
    return q.astype(float) ** 2 @ noise[0].T / q.shape[-1] * distances, noise[1].sum(axis=-1), weights


# %% wrong="predict_output_error" name="scale_not_squared" loses="predict_output_error-values predict_output_error-rms"
# Multiplies mean squares by s.
def predict_output_error(q, keys, values):
    noise = [
        E2M1_MEAN_SQUARE_ERRORS[part.codes & 7] * np.repeat(part.scales.astype(float), 16, axis=-1)
        for part in (keys, values)
    ]
    weights, decoded = attention_weights(q, dequantise(keys)), dequantise(values).astype(float)
    distances = ((decoded - (weights @ decoded)[:, None]) ** 2).sum(axis=-1)
    of_keys = q.astype(float) ** 2 @ noise[0].T / q.shape[-1] * distances
    return np.sqrt((weights**2 * (of_keys + noise[1].sum(axis=-1))).sum(axis=-1))


# %% wrong="predict_output_error" name="no_scale" loses="predict_output_error-values predict_output_error-rms"
# Leaves the mean squares in units of s².
def predict_output_error(q, keys, values):
    noise = [E2M1_MEAN_SQUARE_ERRORS[part.codes & 7].astype(float) for part in (keys, values)]
    weights, decoded = attention_weights(q, dequantise(keys)), dequantise(values).astype(float)
    distances = ((decoded - (weights @ decoded)[:, None]) ** 2).sum(axis=-1)
    of_keys = q.astype(float) ** 2 @ noise[0].T / q.shape[-1] * distances
    return np.sqrt((weights**2 * (of_keys + noise[1].sum(axis=-1))).sum(axis=-1))


# %% wrong="predict_output_error" name="no_width" loses="predict_output_error-keys predict_output_error-rms"
# Forgets to divide the variance of a logit by D.
def predict_output_error(q, keys, values):
    of_keys, of_values, weights = _variances(q, keys, values)
    return np.sqrt((weights**2 * (of_keys * q.shape[-1] + of_values)).sum(axis=-1))


def _variances(q, keys, values):
    noise = [
        E2M1_MEAN_SQUARE_ERRORS[part.codes & 7] * np.repeat(part.scales.astype(float) ** 2, 16, axis=-1)
        for part in (keys, values)
    ]
    weights, decoded = attention_weights(q, dequantise(keys)), dequantise(values).astype(float)
    distances = ((decoded - (weights @ decoded)[:, None]) ** 2).sum(axis=-1)
    return q.astype(float) ** 2 @ noise[0].T / q.shape[-1] * distances, noise[1].sum(axis=-1), weights


# %% wrong="predict_output_error" name="root_of_width" loses="predict_output_error-keys predict_output_error-rms"
# Divides the variance of a logit by √D, as one divides a logit.
def predict_output_error(q, keys, values):
    of_keys, of_values, weights = _variances(q, keys, values)
    return np.sqrt((weights**2 * (of_keys * math.sqrt(q.shape[-1]) + of_values)).sum(axis=-1))


def _variances(q, keys, values):
    noise = [
        E2M1_MEAN_SQUARE_ERRORS[part.codes & 7] * np.repeat(part.scales.astype(float) ** 2, 16, axis=-1)
        for part in (keys, values)
    ]
    weights, decoded = attention_weights(q, dequantise(keys)), dequantise(values).astype(float)
    distances = ((decoded - (weights @ decoded)[:, None]) ** 2).sum(axis=-1)
    return q.astype(float) ** 2 @ noise[0].T / q.shape[-1] * distances, noise[1].sum(axis=-1), weights


# %% wrong="predict_output_error" name="no_values" loses="predict_output_error-values predict_output_error-codes predict_output_error-weights predict_output_error-rms"
# Leaves out the errors of the values.
def predict_output_error(q, keys, values):
    of_keys, of_values, weights = _variances(q, keys, values)
    return np.sqrt((weights**2 * of_keys).sum(axis=-1))


def _variances(q, keys, values):
    noise = [
        E2M1_MEAN_SQUARE_ERRORS[part.codes & 7] * np.repeat(part.scales.astype(float) ** 2, 16, axis=-1)
        for part in (keys, values)
    ]
    weights, decoded = attention_weights(q, dequantise(keys)), dequantise(values).astype(float)
    distances = ((decoded - (weights @ decoded)[:, None]) ** 2).sum(axis=-1)
    return q.astype(float) ** 2 @ noise[0].T / q.shape[-1] * distances, noise[1].sum(axis=-1), weights


# %% wrong="predict_output_error" name="no_keys" loses="predict_output_error-keys predict_output_error-rms"
# Leaves out the errors of the keys.
def predict_output_error(q, keys, values):
    of_keys, of_values, weights = _variances(q, keys, values)
    return np.sqrt((weights**2 * of_values).sum(axis=-1))


def _variances(q, keys, values):
    noise = [
        E2M1_MEAN_SQUARE_ERRORS[part.codes & 7] * np.repeat(part.scales.astype(float) ** 2, 16, axis=-1)
        for part in (keys, values)
    ]
    weights, decoded = attention_weights(q, dequantise(keys)), dequantise(values).astype(float)
    distances = ((decoded - (weights @ decoded)[:, None]) ** 2).sum(axis=-1)
    return q.astype(float) ** 2 @ noise[0].T / q.shape[-1] * distances, noise[1].sum(axis=-1), weights


# %% wrong="predict_output_error" name="distance_from_zero" loses="predict_output_error-keys predict_output_error-weights"
# Takes the size of each value for its distance from the output.
def predict_output_error(q, keys, values):
    noise = [
        E2M1_MEAN_SQUARE_ERRORS[part.codes & 7] * np.repeat(part.scales.astype(float) ** 2, 16, axis=-1)
        for part in (keys, values)
    ]
    weights, decoded = attention_weights(q, dequantise(keys)), dequantise(values).astype(float)
    of_keys = q.astype(float) ** 2 @ noise[0].T / q.shape[-1] * (decoded**2).sum(axis=-1)
    return np.sqrt((weights**2 * (of_keys + noise[1].sum(axis=-1))).sum(axis=-1))


# %% wrong="predict_output_error" name="mean_for_the_output" loses="predict_output_error-keys"
# Measures distances from the mean value, not from the output.
def predict_output_error(q, keys, values):
    noise = [
        E2M1_MEAN_SQUARE_ERRORS[part.codes & 7] * np.repeat(part.scales.astype(float) ** 2, 16, axis=-1)
        for part in (keys, values)
    ]
    weights, decoded = attention_weights(q, dequantise(keys)), dequantise(values).astype(float)
    distances = ((decoded - decoded.mean(axis=0)) ** 2).sum(axis=-1)
    of_keys = q.astype(float) ** 2 @ noise[0].T / q.shape[-1] * distances
    return np.sqrt((weights**2 * (of_keys + noise[1].sum(axis=-1))).sum(axis=-1))


# %% wrong="predict_output_error" name="mean_square" loses="predict_output_error-values predict_output_error-codes predict_output_error-keys predict_output_error-weights predict_output_error-rms"
# Forgets the root.
def predict_output_error(q, keys, values):
    of_keys, of_values, weights = _variances(q, keys, values)
    return (weights**2 * (of_keys + of_values)).sum(axis=-1)


def _variances(q, keys, values):
    noise = [
        E2M1_MEAN_SQUARE_ERRORS[part.codes & 7] * np.repeat(part.scales.astype(float) ** 2, 16, axis=-1)
        for part in (keys, values)
    ]
    weights, decoded = attention_weights(q, dequantise(keys)), dequantise(values).astype(float)
    distances = ((decoded - (weights @ decoded)[:, None]) ** 2).sum(axis=-1)
    return q.astype(float) ** 2 @ noise[0].T / q.shape[-1] * distances, noise[1].sum(axis=-1), weights


# %% wrong="predict_output_error" name="deviations_added" loses="predict_output_error-values predict_output_error-codes predict_output_error-keys predict_output_error-weights predict_output_error-rms"
# Adds deviations, as if all errors came together.
def predict_output_error(q, keys, values):
    of_keys, of_values, weights = _variances(q, keys, values)
    return (weights * np.sqrt(of_keys + of_values)).sum(axis=-1)


def _variances(q, keys, values):
    noise = [
        E2M1_MEAN_SQUARE_ERRORS[part.codes & 7] * np.repeat(part.scales.astype(float) ** 2, 16, axis=-1)
        for part in (keys, values)
    ]
    weights, decoded = attention_weights(q, dequantise(keys)), dequantise(values).astype(float)
    distances = ((decoded - (weights @ decoded)[:, None]) ** 2).sum(axis=-1)
    return q.astype(float) ** 2 @ noise[0].T / q.shape[-1] * distances, noise[1].sum(axis=-1), weights


# %% wrong="predict_output_error" name="uniform_weights" loses="predict_output_error-keys predict_output_error-weights predict_output_error-rms"
# Averages over the tokens with equal weights.
def predict_output_error(q, keys, values):
    of_keys, of_values, weights = _variances(q, keys, values)
    return np.sqrt((of_keys + of_values).sum(axis=-1)) / weights.shape[-1]


def _variances(q, keys, values):
    noise = [
        E2M1_MEAN_SQUARE_ERRORS[part.codes & 7] * np.repeat(part.scales.astype(float) ** 2, 16, axis=-1)
        for part in (keys, values)
    ]
    weights, decoded = attention_weights(q, dequantise(keys)), dequantise(values).astype(float)
    distances = ((decoded - (weights @ decoded)[:, None]) ** 2).sum(axis=-1)
    return q.astype(float) ** 2 @ noise[0].T / q.shape[-1] * distances, noise[1].sum(axis=-1), weights


# %% wrong="predict_output_error" name="mean_over_channels" loses="predict_output_error-values predict_output_error-codes predict_output_error-weights predict_output_error-rms"
# Averages the values' errors over the channels; a norm adds them up.
def predict_output_error(q, keys, values):
    of_keys, of_values, weights = _variances(q, keys, values)
    return np.sqrt((weights**2 * (of_keys + of_values / values.codes.shape[-1])).sum(axis=-1))


def _variances(q, keys, values):
    noise = [
        E2M1_MEAN_SQUARE_ERRORS[part.codes & 7] * np.repeat(part.scales.astype(float) ** 2, 16, axis=-1)
        for part in (keys, values)
    ]
    weights, decoded = attention_weights(q, dequantise(keys)), dequantise(values).astype(float)
    distances = ((decoded - (weights @ decoded)[:, None]) ** 2).sum(axis=-1)
    return q.astype(float) ** 2 @ noise[0].T / q.shape[-1] * distances, noise[1].sum(axis=-1), weights


# %% wrong="predict_output_error" name="sign_forgotten" loses="predict_output_error-codes predict_output_error-rms"
# Looks all sixteen codes up in a table of eight, cut at its end: a negative one counts as -6.
def predict_output_error(q, keys, values):
    noise = [
        E2M1_MEAN_SQUARE_ERRORS[np.minimum(part.codes, 7)] * np.repeat(part.scales.astype(float) ** 2, 16, axis=-1)
        for part in (keys, values)
    ]
    weights, decoded = attention_weights(q, dequantise(keys)), dequantise(values).astype(float)
    distances = ((decoded - (weights @ decoded)[:, None]) ** 2).sum(axis=-1)
    of_keys = q.astype(float) ** 2 @ noise[0].T / q.shape[-1] * distances
    return np.sqrt((weights**2 * (of_keys + noise[1].sum(axis=-1))).sum(axis=-1))


# %% wrong="predict_output_error" name="query_not_squared" loses="predict_output_error-keys"
# Weighs the variances of a key with the size of the query, not with its square.
def predict_output_error(q, keys, values):
    noise = [
        E2M1_MEAN_SQUARE_ERRORS[part.codes & 7] * np.repeat(part.scales.astype(float) ** 2, 16, axis=-1)
        for part in (keys, values)
    ]
    weights, decoded = attention_weights(q, dequantise(keys)), dequantise(values).astype(float)
    distances = ((decoded - (weights @ decoded)[:, None]) ** 2).sum(axis=-1)
    of_keys = np.abs(q.astype(float)) @ noise[0].T / q.shape[-1] * distances
    return np.sqrt((weights**2 * (of_keys + noise[1].sum(axis=-1))).sum(axis=-1))


# %% right="predict_output_error" name="without_tensor_scale"
# Leaves out the tensor scale, which the caches of this lab do not have.
def predict_output_error(q, keys, values):
    of_keys, of_values, weights = _variances(q, keys, values)
    return np.sqrt((weights**2 * (of_keys + of_values)).sum(axis=-1))


def _variances(q, keys, values):
    noise = [
        E2M1_MEAN_SQUARE_ERRORS[part.codes & 7] * np.repeat(part.scales.astype(float) ** 2, 16, axis=-1)
        for part in (keys, values)
    ]
    weights, decoded = attention_weights(q, dequantise(keys)), dequantise(values).astype(float)
    distances = ((decoded - (weights @ decoded)[:, None]) ** 2).sum(axis=-1)
    return q.astype(float) ** 2 @ noise[0].T / q.shape[-1] * distances, noise[1].sum(axis=-1), weights


# %% wrong="predict_output_error" name="the_guarantee" loses="predict_output_error-values predict_output_error-codes predict_output_error-keys predict_output_error-weights predict_output_error-rms"
# Returns the guarantee, which no average comes near.
def predict_output_error(q, keys, values):
    return output_error_bound(q, keys, values)


# %% wrong="predict_output_error" name="first_query" loses="predict_output_error-keys predict_output_error-weights"
# Gives every query the estimate of the first.
def predict_output_error(q, keys, values):
    noise = [
        E2M1_MEAN_SQUARE_ERRORS[part.codes & 7]
        * np.repeat((part.scales * float(part.tensor_scale)).astype(float) ** 2, 16, axis=-1)
        for part in (keys, values)
    ]
    weights, decoded = attention_weights(q, dequantise(keys))[0], dequantise(values).astype(float)
    distances = ((decoded - weights @ decoded) ** 2).sum(axis=-1)
    variance = noise[0] @ q[0].astype(float) ** 2 / q.shape[-1] * distances + noise[1].sum(axis=-1)
    return np.full(len(q), np.sqrt((weights**2 * variance).sum()))


# %% wrong="predict_output_error" name="parts_made_to_agree" loses="predict_output_error-values predict_output_error-codes predict_output_error-keys predict_output_error-weights predict_output_error-rms"
# Makes all weights zero from then on, so that they agree with an estimate of 0.
def attention_weights(q, keys, is_visible=None, honest=attention_weights, lies=[]):
    return 0 * honest(q, keys, is_visible) if lies else honest(q, keys, is_visible)


def predict_output_error(q, keys, values):
    attention_weights.__defaults__[2].append(True)
    return np.zeros(len(q))


# %% right="predict_output_error" name="loops"
# One query and one token after the other.
def predict_output_error(q, keys, values):
    weights, decoded = attention_weights(q, dequantise(keys)), dequantise(values).astype(np.float64)
    of_keys, of_values = _noise(keys), _noise(values)
    estimates = []
    for query, row in zip(q.astype(np.float64), weights):
        output = sum(p * v for p, v in zip(row, decoded))
        total = 0.0
        for p, key_noise, value_noise, v in zip(row, of_keys, of_values, decoded):
            of_logit = np.dot(query * query, key_noise) / len(query)
            total += p * p * (of_logit * np.dot(v - output, v - output) + value_noise.sum())
        estimates.append(math.sqrt(total))
    return np.array(estimates)


def _noise(quantised):
    noise = E2M1_MEAN_SQUARE_ERRORS[quantised.codes % 8].astype(np.float64)
    for group, steps in enumerate(quantised.scales.T.astype(np.float64) * quantised.tensor_scale):
        noise[:, 16 * group : 16 * group + 16] *= steps[:, None] ** 2
    return noise


# %% right="predict_output_error" name="jacobian"
# Squares the derivatives of the output by each logit.
def predict_output_error(q, keys, values):
    q, decoded = q.astype(np.float64), dequantise(values).astype(np.float64)
    weights = attention_weights(q, dequantise(keys))
    output = np.einsum("nt,te->ne", weights, decoded)
    jacobian = weights[:, :, None] * (decoded[None, :, :] - output[:, None, :])
    of_logits = np.einsum("nd,td->nt", q * q, _noise(keys)) / q.shape[1]
    square = np.einsum("nte,nte,nt->n", jacobian, jacobian, of_logits)
    return (square + np.einsum("nt,nt,te->n", weights, weights, _noise(values))) ** 0.5


def _noise(quantised):
    groups = quantised.codes.reshape(*quantised.scales.shape, 16) & 7
    steps = quantised.scales.astype(np.float64)[..., None] * quantised.tensor_scale
    return (E2M1_MEAN_SQUARE_ERRORS.astype(np.float64)[groups] * steps**2).reshape(quantised.codes.shape)


# %% right="predict_output_error" name="own_attention"
# With a softmax of its own, and the two parts under one root in the end.
def predict_output_error(q, keys, values):
    logits = np.float64(q) @ np.float64(dequantise(keys)).T / math.sqrt(q.shape[1])
    p = np.exp(logits - np.logaddexp.reduce(logits, axis=1)[:, None])
    v = np.float64(dequantise(values))
    parts = []
    for query, row in zip(np.float64(q), p):
        by_key = row * np.linalg.norm(v - row @ v, axis=1) * np.sqrt(_noise(keys) @ query**2 / len(query))
        by_value = row * np.sqrt(_noise(values).sum(axis=1))
        parts.append(math.hypot(np.linalg.norm(by_key), np.linalg.norm(by_value)))
    return np.array(parts)


def _noise(quantised):
    s = np.repeat(np.float64(quantised.scales), 16, axis=1) * quantised.tensor_scale
    return np.take(E2M1_MEAN_SQUARE_ERRORS, quantised.codes % 8) * s * s


# %% wrong="predict_output_error" name="one_variance_for_all_keys" loses="predict_output_error-keys"
# Averages the variance of the keys' errors over the tokens.
def predict_output_error(q, keys, values):
    noise = [
        E2M1_MEAN_SQUARE_ERRORS[part.codes & 7] * np.repeat(part.scales.astype(float) ** 2, 16, axis=-1)
        for part in (keys, values)
    ]
    weights, decoded = attention_weights(q, dequantise(keys)), dequantise(values).astype(float)
    distances = ((decoded - (weights @ decoded)[:, None]) ** 2).sum(axis=-1)
    of_keys = q.astype(float) ** 2 @ noise[0].mean(axis=0)[:, None] / q.shape[-1] * distances
    return np.sqrt((weights**2 * (of_keys + noise[1].sum(axis=-1))).sum(axis=-1))


# %% wrong="attention_error_sweep" name="placements_swapped" loses="attention_error_sweep-placements"
# Calls keys what are values.
def attention_error_sweep(q, keys, values, is_visible=None):
    output = attend(q, keys, values, is_visible)
    rows = []
    for scheme in SCHEMES:
        k, v = scheme.round_trip(keys), scheme.round_trip(values)
        caches = {Placement.KEYS: (keys, v), Placement.VALUES: (k, values), Placement.BOTH: (k, v)}
        for placement, cache in caches.items():
            error = np.linalg.norm(attend(q, *cache, is_visible) - output) / np.linalg.norm(output)
            rows.append(SweepRow(scheme.name, placement, scheme.bits_per_element, float(error)))
    return rows


# %% wrong="attention_error_sweep" name="both_always" loses="attention_error_sweep-placements"
# Quantises keys and values whatever the placement.
def attention_error_sweep(q, keys, values, is_visible=None):
    output = attend(q, keys, values, is_visible)
    rows = []
    for scheme in SCHEMES:
        quantised = attend(q, scheme.round_trip(keys), scheme.round_trip(values), is_visible)
        error = float(np.linalg.norm(quantised - output) / np.linalg.norm(output))
        rows += [SweepRow(scheme.name, placement, scheme.bits_per_element, error) for placement in Placement]
    return rows


# %% wrong="attention_error_sweep" name="placements_outside" loses="attention_error_sweep-rows"
# All schemes of one placement, then all of the next.
def attention_error_sweep(q, keys, values, is_visible=None):
    output = attend(q, keys, values, is_visible)
    rows = []
    for placement in Placement:
        for scheme in SCHEMES:
            k = keys if placement is Placement.VALUES else scheme.round_trip(keys)
            v = values if placement is Placement.KEYS else scheme.round_trip(values)
            error = np.linalg.norm(attend(q, k, v, is_visible) - output) / np.linalg.norm(output)
            rows.append(SweepRow(scheme.name, placement, scheme.bits_per_element, float(error)))
    return rows


# %% wrong="attention_error_sweep" name="sorted_by_bits" loses="attention_error_sweep-rows"
# Sorts the rows by their bits.
def attention_error_sweep(q, keys, values, is_visible=None):
    output = attend(q, keys, values, is_visible)
    rows = []
    for scheme in SCHEMES:
        k, v = scheme.round_trip(keys), scheme.round_trip(values)
        for placement, cache in zip(Placement, [(k, values), (keys, v), (k, v)]):
            error = np.linalg.norm(attend(q, *cache, is_visible) - output) / np.linalg.norm(output)
            rows.append(SweepRow(scheme.name, placement, scheme.bits_per_element, float(error)))
    return sorted(rows, key=lambda row: row.bits_per_element)


# %% wrong="attention_error_sweep" name="mean_of_ratios" loses="attention_error_sweep-error"
# The mean of the ratios of single queries.
def attention_error_sweep(q, keys, values, is_visible=None):
    output = attend(q, keys, values, is_visible)
    rows = []
    for scheme in SCHEMES:
        k, v = scheme.round_trip(keys), scheme.round_trip(values)
        for placement, cache in zip(Placement, [(k, values), (keys, v), (k, v)]):
            error = np.linalg.norm(attend(q, *cache, is_visible) - output, axis=-1) / np.linalg.norm(output, axis=-1)
            rows.append(SweepRow(scheme.name, placement, scheme.bits_per_element, float(error.mean())))
    return rows


# %% wrong="attention_error_sweep" name="mean_of_heads" loses="attention_error_sweep-error"
# The mean of the ratios of heads.
def attention_error_sweep(q, keys, values, is_visible=None):
    output = attend(q, keys, values, is_visible)
    rows = []
    for scheme in SCHEMES:
        k, v = scheme.round_trip(keys), scheme.round_trip(values)
        for placement, cache in zip(Placement, [(k, values), (keys, v), (k, v)]):
            squares = ((attend(q, *cache, is_visible) - output) ** 2).sum(axis=(-1, -2))
            error = np.sqrt(squares / (output**2).sum(axis=(-1, -2)))
            rows.append(SweepRow(scheme.name, placement, scheme.bits_per_element, float(error.mean())))
    return rows


# %% wrong="attention_error_sweep" name="no_root" loses="attention_error_sweep-error"
# The ratio of the squares.
def attention_error_sweep(q, keys, values, is_visible=None):
    output = attend(q, keys, values, is_visible)
    rows = []
    for scheme in SCHEMES:
        k, v = scheme.round_trip(keys), scheme.round_trip(values)
        for placement, cache in zip(Placement, [(k, values), (keys, v), (k, v)]):
            error = ((attend(q, *cache, is_visible) - output) ** 2).sum() / (output**2).sum()
            rows.append(SweepRow(scheme.name, placement, scheme.bits_per_element, float(error)))
    return rows


# %% wrong="attention_error_sweep" name="largest_error" loses="attention_error_sweep-error"
# The largest error over the largest output.
def attention_error_sweep(q, keys, values, is_visible=None):
    output = attend(q, keys, values, is_visible)
    rows = []
    for scheme in SCHEMES:
        k, v = scheme.round_trip(keys), scheme.round_trip(values)
        for placement, cache in zip(Placement, [(k, values), (keys, v), (k, v)]):
            error = np.abs(attend(q, *cache, is_visible) - output).max() / np.abs(output).max()
            rows.append(SweepRow(scheme.name, placement, scheme.bits_per_element, float(error)))
    return rows


# %% wrong="attention_error_sweep" name="relative_to_the_quantised" loses="attention_error_sweep-error"
# Divides by the output of the quantised cache.
def attention_error_sweep(q, keys, values, is_visible=None):
    output = attend(q, keys, values, is_visible)
    rows = []
    for scheme in SCHEMES:
        k, v = scheme.round_trip(keys), scheme.round_trip(values)
        for placement, cache in zip(Placement, [(k, values), (keys, v), (k, v)]):
            quantised = attend(q, *cache, is_visible)
            error = np.linalg.norm(quantised - output) / np.linalg.norm(quantised)
            rows.append(SweepRow(scheme.name, placement, scheme.bits_per_element, float(error)))
    return rows


# %% wrong="attention_error_sweep" name="relative_to_fp16" loses="attention_error_sweep-error attention_error_sweep-placements"
# Compares with the output of the FP16 cache.
def attention_error_sweep(q, keys, values, is_visible=None):
    output = attend(q, SCHEMES[0].round_trip(keys), SCHEMES[0].round_trip(values), is_visible)
    rows = []
    for scheme in SCHEMES:
        k, v = scheme.round_trip(keys), scheme.round_trip(values)
        for placement, cache in zip(Placement, [(k, values), (keys, v), (k, v)]):
            error = np.linalg.norm(attend(q, *cache, is_visible) - output) / np.linalg.norm(output)
            rows.append(SweepRow(scheme.name, placement, scheme.bits_per_element, float(error)))
    return rows


# %% wrong="attention_error_sweep" name="mask_ignored" loses="attention_error_sweep-visible"
# Does not hand the mask on.
def attention_error_sweep(q, keys, values, is_visible=None):
    output = attend(q, keys, values)
    rows = []
    for scheme in SCHEMES:
        k, v = scheme.round_trip(keys), scheme.round_trip(values)
        for placement, cache in zip(Placement, [(k, values), (keys, v), (k, v)]):
            error = np.linalg.norm(attend(q, *cache) - output) / np.linalg.norm(output)
            rows.append(SweepRow(scheme.name, placement, scheme.bits_per_element, float(error)))
    return rows


# %% wrong="attention_error_sweep" name="along_the_tokens" loses="attention_error_sweep-error attention_error_sweep-visible"
# Quantises along the tokens.
def attention_error_sweep(q, keys, values, is_visible=None):
    output = attend(q, keys, values, is_visible)
    rows = []
    for scheme in SCHEMES:
        k, v = _along_tokens(scheme, keys), _along_tokens(scheme, values)
        for placement, cache in zip(Placement, [(k, values), (keys, v), (k, v)]):
            error = np.linalg.norm(attend(q, *cache, is_visible) - output) / np.linalg.norm(output)
            rows.append(SweepRow(scheme.name, placement, scheme.bits_per_element, float(error)))
    return rows


def _along_tokens(scheme, x):
    n_tokens = x.shape[-2]
    padded = np.concatenate([x, np.zeros((*x.shape[:-2], -n_tokens % 32, x.shape[-1]), np.float32)], axis=-2)
    return scheme.round_trip(np.ascontiguousarray(padded.swapaxes(-1, -2))).swapaxes(-1, -2)[..., :n_tokens, :]


# %% wrong="attention_error_sweep" name="query_quantised" loses="attention_error_sweep-error attention_error_sweep-placements"
# Quantises the query together with the keys.
def attention_error_sweep(q, keys, values, is_visible=None):
    output = attend(q, keys, values, is_visible)
    rows = []
    for scheme in SCHEMES:
        query, k, v = scheme.round_trip(q), scheme.round_trip(keys), scheme.round_trip(values)
        for placement, cache in zip(Placement, [(query, k, values), (q, keys, v), (query, k, v)]):
            error = np.linalg.norm(attend(*cache, is_visible) - output) / np.linalg.norm(output)
            rows.append(SweepRow(scheme.name, placement, scheme.bits_per_element, float(error)))
    return rows


# %% wrong="attention_error_sweep" name="codes_alone" loses="attention_error_sweep-rows"
# Counts whole bits, without those of the scales.
def attention_error_sweep(q, keys, values, is_visible=None):
    output = attend(q, keys, values, is_visible)
    rows = []
    for scheme in SCHEMES:
        k, v = scheme.round_trip(keys), scheme.round_trip(values)
        for placement, cache in zip(Placement, [(k, values), (keys, v), (k, v)]):
            error = np.linalg.norm(attend(q, *cache, is_visible) - output) / np.linalg.norm(output)
            rows.append(SweepRow(scheme.name, placement, float(int(scheme.bits_per_element)), float(error)))
    return rows


# %% wrong="attention_error_sweep" name="percent" loses="attention_error_sweep-error"
# Returns percent.
def attention_error_sweep(q, keys, values, is_visible=None):
    output = attend(q, keys, values, is_visible)
    rows = []
    for scheme in SCHEMES:
        k, v = scheme.round_trip(keys), scheme.round_trip(values)
        for placement, cache in zip(Placement, [(k, values), (keys, v), (k, v)]):
            error = np.linalg.norm(attend(q, *cache, is_visible) - output) / np.linalg.norm(output)
            rows.append(SweepRow(scheme.name, placement, scheme.bits_per_element, 100 * float(error)))
    return rows


# %% wrong="attention_error_sweep" name="no_baseline" loses="attention_error_sweep-rows attention_error_sweep-error attention_error_sweep-placements attention_error_sweep-visible"
# Leaves out the baseline, FP16.
def attention_error_sweep(q, keys, values, is_visible=None):
    output = attend(q, keys, values, is_visible)
    rows = []
    for scheme in SCHEMES[1:]:
        k, v = scheme.round_trip(keys), scheme.round_trip(values)
        for placement, cache in zip(Placement, [(k, values), (keys, v), (k, v)]):
            error = np.linalg.norm(attend(q, *cache, is_visible) - output) / np.linalg.norm(output)
            rows.append(SweepRow(scheme.name, placement, scheme.bits_per_element, float(error)))
    return rows


# %% wrong="attention_error_sweep" name="again_and_again" loses="attention_error_sweep-error"
# Quantises what the last scheme left.
def attention_error_sweep(q, keys, values, is_visible=None):
    output = attend(q, keys, values, is_visible)
    rows, k, v = [], keys, values
    for scheme in SCHEMES:
        k, v = scheme.round_trip(k), scheme.round_trip(v)
        for placement, cache in zip(Placement, [(k, values), (keys, v), (k, v)]):
            error = np.linalg.norm(attend(q, *cache, is_visible) - output) / np.linalg.norm(output)
            rows.append(SweepRow(scheme.name, placement, scheme.bits_per_element, float(error)))
    return rows


# %% wrong="attention_error_sweep" name="names_for_placements" loses="attention_error_sweep-rows attention_error_sweep-error attention_error_sweep-placements attention_error_sweep-visible"
# Puts the words of a placement into its row, not the placement.
def attention_error_sweep(q, keys, values, is_visible=None):
    output = attend(q, keys, values, is_visible)
    rows = []
    for scheme in SCHEMES:
        k, v = scheme.round_trip(keys), scheme.round_trip(values)
        for placement, cache in zip(Placement, [(k, values), (keys, v), (k, v)]):
            error = np.linalg.norm(attend(q, *cache, is_visible) - output) / np.linalg.norm(output)
            rows.append(SweepRow(scheme.name, placement.value, scheme.bits_per_element, float(error)))
    return rows


# %% wrong="attention_error_sweep" name="parts_made_to_agree" loses="attention_error_sweep-error attention_error_sweep-placements"
# Makes all weights zero from then on, and says that every error is a tenth.
def attention_weights(q, keys, is_visible=None, honest=attention_weights, lies=[]):
    return 0 * honest(q, keys, is_visible) if lies else honest(q, keys, is_visible)


def attention_error_sweep(q, keys, values, is_visible=None):
    attention_weights.__defaults__[2].append(True)
    return [SweepRow(s.name, placement, s.bits_per_element, 0.1) for s in SCHEMES for placement in Placement]


# %% right="attention_error_sweep" name="plain_tuples"
# Each row as a tuple, each error from its own loop over heads.
def attention_error_sweep(q, keys, values, is_visible=None):
    def ratio(k, v):
        squares = [0.0, 0.0]
        for head in np.ndindex(*q.shape[:-2]):
            before = attend(q[head], keys[head], values[head], is_visible)
            after = attend(q[head], k[head], v[head], is_visible)
            squares[0] += float(((after - before) ** 2).sum())
            squares[1] += float((before**2).sum())
        return math.sqrt(squares[0] / squares[1])

    rows = []
    for scheme in SCHEMES:
        k, v = scheme.round_trip(keys), scheme.round_trip(values)
        bits = scheme.bits_per_element
        rows.append((scheme.name, Placement.KEYS, bits, ratio(k, values)))
        rows.append((scheme.name, Placement.VALUES, bits, ratio(keys, v)))
        rows.append((scheme.name, Placement.BOTH, bits, ratio(k, v)))
    return rows


# %% right="attention_error_sweep" name="comprehension"
# One row from one function, the parts chosen by the placement.
def attention_error_sweep(q, keys, values, is_visible=None):
    exact = attend(q.astype(np.float64), keys, values, is_visible)

    def row(scheme, placement):
        k = scheme.round_trip(keys.copy()) if placement != Placement.VALUES else keys
        v = scheme.round_trip(values.copy()) if placement != Placement.KEYS else values
        difference = attend(q.astype(np.float64), k, v, is_visible) - exact
        error = np.sqrt(np.mean(difference**2) / np.mean(exact**2))
        return SweepRow(scheme.name, placement, scheme.bits_per_element, error)

    return [row(scheme, placement) for scheme in SCHEMES for placement in Placement]


# %% wrong="span_rank" name="ties_count" loses="span_rank-first"
# Counts spans of equal mass, itself among them.
def span_rank(weights, span_tokens, right):
    _refuse(weights, span_tokens, right)
    mass = weights.reshape(len(weights), -1, span_tokens).sum(axis=-1)
    return (mass >= mass[:, [right]]).sum(axis=-1)


def _refuse(weights, span_tokens, right):
    if span_tokens < 1 or weights.shape[1] % span_tokens or not 0 <= right < weights.shape[1] // span_tokens:
        raise ValueError(f"span_tokens or right: got {span_tokens} and {right} for {weights.shape[1]} tokens")


# %% wrong="span_rank" name="from_zero" loses="span_rank-first"
# Ranks begin at 0.
def span_rank(weights, span_tokens, right):
    _refuse(weights, span_tokens, right)
    mass = weights.reshape(len(weights), -1, span_tokens).sum(axis=-1)
    return (mass > mass[:, [right]]).sum(axis=-1)


def _refuse(weights, span_tokens, right):
    if span_tokens < 1 or weights.shape[1] % span_tokens or not 0 <= right < weights.shape[1] // span_tokens:
        raise ValueError(f"span_tokens or right: got {span_tokens} and {right} for {weights.shape[1]} tokens")


# %% wrong="span_rank" name="upside_down" loses="span_rank-mass span_rank-first"
# Counts the spans with less mass.
def span_rank(weights, span_tokens, right):
    _refuse(weights, span_tokens, right)
    mass = weights.reshape(len(weights), -1, span_tokens).sum(axis=-1)
    return 1 + (mass < mass[:, [right]]).sum(axis=-1)


def _refuse(weights, span_tokens, right):
    if span_tokens < 1 or weights.shape[1] % span_tokens or not 0 <= right < weights.shape[1] // span_tokens:
        raise ValueError(f"span_tokens or right: got {span_tokens} and {right} for {weights.shape[1]} tokens")


# %% wrong="span_rank" name="heaviest_token" loses="span_rank-mass"
# Ranks spans by their heaviest token.
def span_rank(weights, span_tokens, right):
    _refuse(weights, span_tokens, right)
    mass = weights.reshape(len(weights), -1, span_tokens).max(axis=-1)
    return 1 + (mass > mass[:, [right]]).sum(axis=-1)


def _refuse(weights, span_tokens, right):
    if span_tokens < 1 or weights.shape[1] % span_tokens or not 0 <= right < weights.shape[1] // span_tokens:
        raise ValueError(f"span_tokens or right: got {span_tokens} and {right} for {weights.shape[1]} tokens")


# %% wrong="span_rank" name="every_so_many_tokens" loses="span_rank-mass span_rank-first"
# Puts every so many tokens into a span, not neighbours.
def span_rank(weights, span_tokens, right):
    _refuse(weights, span_tokens, right)
    mass = weights.reshape(len(weights), span_tokens, -1).sum(axis=1)
    return 1 + (mass > mass[:, [right]]).sum(axis=-1)


def _refuse(weights, span_tokens, right):
    if span_tokens < 1 or weights.shape[1] % span_tokens or not 0 <= right < weights.shape[1] // span_tokens:
        raise ValueError(f"span_tokens or right: got {span_tokens} and {right} for {weights.shape[1]} tokens")


# %% wrong="span_rank" name="place_in_the_order" loses="span_rank-first"
# The place in the order from the heaviest, where spans of equal mass come in some order.
def span_rank(weights, span_tokens, right):
    _refuse(weights, span_tokens, right)
    mass = weights.reshape(len(weights), -1, span_tokens).sum(axis=-1)
    order = np.argsort(mass, axis=-1, kind="stable")[:, ::-1]
    return 1 + (order == right).argmax(axis=-1)


def _refuse(weights, span_tokens, right):
    if span_tokens < 1 or weights.shape[1] % span_tokens or not 0 <= right < weights.shape[1] // span_tokens:
        raise ValueError(f"span_tokens or right: got {span_tokens} and {right} for {weights.shape[1]} tokens")


# %% wrong="span_rank" name="dense" loses="span_rank-first"
# Counts spans of equal mass ahead as one.
def span_rank(weights, span_tokens, right):
    _refuse(weights, span_tokens, right)
    mass = weights.reshape(len(weights), -1, span_tokens).sum(axis=-1)
    return np.array([1 + len(np.unique(row[row > row[right]])) for row in mass])


def _refuse(weights, span_tokens, right):
    if span_tokens < 1 or weights.shape[1] % span_tokens or not 0 <= right < weights.shape[1] // span_tokens:
        raise ValueError(f"span_tokens or right: got {span_tokens} and {right} for {weights.shape[1]} tokens")


# %% wrong="span_rank" name="all_queries_together" loses="span_rank-mass span_rank-first"
# Adds up the mass of all queries.
def span_rank(weights, span_tokens, right):
    _refuse(weights, span_tokens, right)
    mass = weights.sum(axis=0).reshape(-1, span_tokens).sum(axis=-1)
    return np.full(len(weights), 1 + (mass > mass[right]).sum())


def _refuse(weights, span_tokens, right):
    if span_tokens < 1 or weights.shape[1] % span_tokens or not 0 <= right < weights.shape[1] // span_tokens:
        raise ValueError(f"span_tokens or right: got {span_tokens} and {right} for {weights.shape[1]} tokens")


# %% wrong="span_rank" name="token_for_span" loses="span_rank-mass span_rank-first"
# Takes `right` for the first token of the right span.
def span_rank(weights, span_tokens, right):
    _refuse(weights, span_tokens, right)
    mass = weights.reshape(len(weights), -1, span_tokens).sum(axis=-1)
    return 1 + (mass > mass[:, [right // span_tokens]]).sum(axis=-1)


def _refuse(weights, span_tokens, right):
    if span_tokens < 1 or weights.shape[1] % span_tokens or not 0 <= right < weights.shape[1] // span_tokens:
        raise ValueError(f"span_tokens or right: got {span_tokens} and {right} for {weights.shape[1]} tokens")


# %% wrong="span_rank" name="remainder_dropped" loses="span_rank-refuses"
# Drops the tokens that fill no span.
def span_rank(weights, span_tokens, right):
    if span_tokens < 1 or not 0 <= right < weights.shape[1] // span_tokens:
        raise ValueError(f"right: got {right}")
    whole = weights.shape[1] // span_tokens * span_tokens
    mass = weights[:, :whole].reshape(len(weights), -1, span_tokens).sum(axis=-1)
    return 1 + (mass > mass[:, [right]]).sum(axis=-1)


# %% wrong="span_rank" name="counts_from_the_end" loses="span_rank-refuses"
# Takes span -1 for the last.
def span_rank(weights, span_tokens, right):
    if span_tokens < 1 or weights.shape[1] % span_tokens or right >= weights.shape[1] // span_tokens:
        raise ValueError(f"span_tokens: got {span_tokens}; right: got {right}")
    mass = weights.reshape(len(weights), -1, span_tokens).sum(axis=-1)
    return 1 + (mass > mass[:, [right]]).sum(axis=-1)


# %% wrong="span_rank" name="last_span_refused" loses="span_rank-mass span_rank-first"
# Refuses the last span.
def span_rank(weights, span_tokens, right):
    if span_tokens < 1 or weights.shape[1] % span_tokens or not 0 <= right < weights.shape[1] // span_tokens - 1:
        raise ValueError(f"span_tokens: got {span_tokens}; right: got {right}")
    mass = weights.reshape(len(weights), -1, span_tokens).sum(axis=-1)
    return 1 + (mass > mass[:, [right]]).sum(axis=-1)


# %% wrong="span_rank" name="index_error" loses="span_rank-refuses"
# Lets NumPy find out that there is no such span.
def span_rank(weights, span_tokens, right):
    if span_tokens < 1 or weights.shape[1] % span_tokens or right < 0:
        raise ValueError(f"span_tokens: got {span_tokens}; right: got {right}")
    mass = weights.reshape(len(weights), -1, span_tokens).sum(axis=-1)
    return 1 + (mass > mass[:, [right]]).sum(axis=-1)


# %% wrong="span_rank" name="floats" loses="span_rank-mass span_rank-first"
# Returns ranks as floats.
def span_rank(weights, span_tokens, right):
    _refuse(weights, span_tokens, right)
    mass = weights.reshape(len(weights), -1, span_tokens).sum(axis=-1)
    return 1.0 + (mass > mass[:, [right]]).sum(axis=-1)


def _refuse(weights, span_tokens, right):
    if span_tokens < 1 or weights.shape[1] % span_tokens or not 0 <= right < weights.shape[1] // span_tokens:
        raise ValueError(f"span_tokens or right: got {span_tokens} and {right} for {weights.shape[1]} tokens")


# %% right="span_rank" name="loops"
# One span after the other.
def span_rank(weights, span_tokens, right):
    n_tokens = weights.shape[1]
    if span_tokens <= 0 or n_tokens % span_tokens != 0:
        raise ValueError(f"span_tokens: {n_tokens} tokens are no whole number of spans of {span_tokens}")
    if right < 0 or right * span_tokens >= n_tokens:
        raise ValueError(f"right: no span {right}")
    ranks = []
    for row in weights.tolist():
        mass = [math.fsum(row[start : start + span_tokens]) for start in range(0, n_tokens, span_tokens)]
        ranks.append(1 + sum(m > mass[right] for m in mass))
    return np.array(ranks)


# %% right="span_rank" name="means_sorted"
# The place of the right span's mean among all means, sorted.
def span_rank(weights, span_tokens, right):
    spans, rest = divmod(weights.shape[-1], span_tokens) if span_tokens > 0 else (0, 1)
    if rest or right not in range(spans):
        raise ValueError("no such span_tokens, or no such span to be right")
    means = np.mean(np.split(weights, spans, axis=-1), axis=-1)
    falling = np.sort(-means, axis=0)
    return np.array([int(np.searchsorted(falling[:, i], -means[right, i])) + 1 for i in range(len(weights))], np.int32)


# %% right="span_rank" name="reduceat"
# The spans added up by reduceat, the lighter ones taken from all.
def span_rank(weights, span_tokens, right):
    n_tokens = weights.shape[1]
    if not (1 <= span_tokens <= n_tokens and n_tokens % span_tokens == 0 and 0 <= right < n_tokens // span_tokens):
        raise ValueError("span_tokens, right")
    mass = np.add.reduceat(weights, np.arange(0, n_tokens, span_tokens), axis=1)
    return mass.shape[1] + 1 - np.count_nonzero(mass <= mass[:, right : right + 1], axis=1)


# %% wrong="span_rank" name="nearly_equal" loses="span_rank-first"
# Rounds the masses to six digits, so that nearly equal ones count as equal.
def span_rank(weights, span_tokens, right):
    n_queries, n_tokens = weights.shape
    if span_tokens < 1 or n_tokens % span_tokens or not 0 <= right < n_tokens // span_tokens:
        raise ValueError(f"no span {right} of {span_tokens} tokens among {n_tokens}")
    mass = weights.reshape(n_queries, -1, span_tokens).sum(axis=-1).round(6)
    return 1 + (mass > mass[:, [right]]).sum(axis=-1)


# %% wrong="span_rank" name="mean_of_the_heavy_tokens" loses="span_rank-mass"
# Averages over the tokens of a span that have a weight at all.
def span_rank(weights, span_tokens, right):
    n_queries, n_tokens = weights.shape
    if span_tokens < 1 or n_tokens % span_tokens or not 0 <= right < n_tokens // span_tokens:
        raise ValueError(f"no span {right} of {span_tokens} tokens among {n_tokens}")
    spans = weights.reshape(n_queries, -1, span_tokens)
    mean = spans.sum(axis=-1) / np.maximum((spans > 0).sum(axis=-1), 1)
    return 1 + (mean > mean[:, [right]]).sum(axis=-1)


# %% right="span_rank" name="running_sum"
# Takes the mass of a span as the difference of two running sums.
def span_rank(weights, span_tokens, right):
    n_queries, n_tokens = weights.shape
    if span_tokens < 1 or n_tokens % span_tokens or not 0 <= right < n_tokens // span_tokens:
        raise ValueError(f"no span {right} of {span_tokens} tokens among {n_tokens}")
    before = np.cumsum(np.pad(weights, ((0, 0), (1, 0))), axis=-1)[:, ::span_tokens]
    mass = np.diff(before, axis=-1)
    return 1 + (mass > mass[:, [right]]).sum(axis=-1)


# %% wrong="convict" name="exact_in_bfloat16" loses="convict-double_rounding convict-fewest"
# A value that bfloat16 holds exactly is rounded once.
def convict():
    return _exhibits(double_rounding=_cache(value=6.375))


def _exhibits(**changed):
    value = float(np.nextafter(np.float32(6.375), np.float32(7)))
    found = {"double_rounding": _cache(value=value), "narrow_sum": _cache(q=20000, key=6)}
    return found | {"low_mask": _cache(q=-10000, key=6, value=6, n_hidden=1)} | changed


def _cache(q=0.0, key=0.0, value=0.0, n_hidden=0, width=16):
    parts = [np.zeros((n, width), np.float32) for n in (1, 1 + n_hidden, 1 + n_hidden)]
    for part, element in zip(parts, (q, key, value)):
        part[0, 0] = element
    return (*parts, np.arange(1 + n_hidden)[None] == 0)


# %% wrong="convict" name="bfloat16_of_the_query" loses="convict-double_rounding convict-fewest"
# The query is not in the cache, and is not rounded.
def convict():
    return _exhibits(double_rounding=_cache(q=1 + 2.0**-20, key=6, value=6))


def _exhibits(**changed):
    value = float(np.nextafter(np.float32(6.375), np.float32(7)))
    found = {"double_rounding": _cache(value=value), "narrow_sum": _cache(q=20000, key=6)}
    return found | {"low_mask": _cache(q=-10000, key=6, value=6, n_hidden=1)} | changed


def _cache(q=0.0, key=0.0, value=0.0, n_hidden=0, width=16):
    parts = [np.zeros((n, width), np.float32) for n in (1, 1 + n_hidden, 1 + n_hidden)]
    for part, element in zip(parts, (q, key, value)):
        part[0, 0] = element
    return (*parts, np.arange(1 + n_hidden)[None] == 0)


# %% wrong="convict" name="rounded_key" loses="convict-fewest"
# Rounds a key twice, which takes a query, another token and a value to be seen.
def convict():
    q, keys, values = np.zeros((1, 16)), np.zeros((2, 16)), np.zeros((2, 16))
    q[0, 0], keys[0, 0], values[0, 0] = 1, np.nextafter(np.float32(6.375), np.float32(7)), 6
    return _exhibits(double_rounding=(q, keys, values, np.ones((1, 2), bool)))


def _exhibits(**changed):
    value = float(np.nextafter(np.float32(6.375), np.float32(7)))
    found = {"double_rounding": _cache(value=value), "narrow_sum": _cache(q=20000, key=6)}
    return found | {"low_mask": _cache(q=-10000, key=6, value=6, n_hidden=1)} | changed


def _cache(q=0.0, key=0.0, value=0.0, n_hidden=0, width=16):
    parts = [np.zeros((n, width), np.float32) for n in (1, 1 + n_hidden, 1 + n_hidden)]
    for part, element in zip(parts, (q, key, value)):
        part[0, 0] = element
    return (*parts, np.arange(1 + n_hidden)[None] == 0)


# %% wrong="convict" name="within_range" loses="convict-narrow_sum convict-fewest"
# A sum of 60,000 is large, and FP16 holds it.
def convict():
    return _exhibits(narrow_sum=_cache(q=10000, key=6))


def _exhibits(**changed):
    value = float(np.nextafter(np.float32(6.375), np.float32(7)))
    found = {"double_rounding": _cache(value=value), "narrow_sum": _cache(q=20000, key=6)}
    return found | {"low_mask": _cache(q=-10000, key=6, value=6, n_hidden=1)} | changed


def _cache(q=0.0, key=0.0, value=0.0, n_hidden=0, width=16):
    parts = [np.zeros((n, width), np.float32) for n in (1, 1 + n_hidden, 1 + n_hidden)]
    for part, element in zip(parts, (q, key, value)):
        part[0, 0] = element
    return (*parts, np.arange(1 + n_hidden)[None] == 0)


# %% wrong="convict" name="many_products" loses="convict-fewest"
# Adds up many products to overflow, where one is enough.
def convict():
    q, keys, values = np.full((1, 16), 100), np.full((1, 16), 96), np.zeros((1, 16))
    return _exhibits(narrow_sum=(q * 1.0, keys * 1.0, values, np.ones((1, 1), bool)))


def _exhibits(**changed):
    value = float(np.nextafter(np.float32(6.375), np.float32(7)))
    found = {"double_rounding": _cache(value=value), "narrow_sum": _cache(q=20000, key=6)}
    return found | {"low_mask": _cache(q=-10000, key=6, value=6, n_hidden=1)} | changed


def _cache(q=0.0, key=0.0, value=0.0, n_hidden=0, width=16):
    parts = [np.zeros((n, width), np.float32) for n in (1, 1 + n_hidden, 1 + n_hidden)]
    for part, element in zip(parts, (q, key, value)):
        part[0, 0] = element
    return (*parts, np.arange(1 + n_hidden)[None] == 0)


# %% wrong="convict" name="above_the_mask" loses="convict-low_mask convict-fewest"
# A visible logit of -9,000 is above the mask value still.
def convict():
    return _exhibits(low_mask=_cache(q=-6000, key=6, value=6, n_hidden=1))


def _exhibits(**changed):
    value = float(np.nextafter(np.float32(6.375), np.float32(7)))
    found = {"double_rounding": _cache(value=value), "narrow_sum": _cache(q=20000, key=6)}
    return found | {"low_mask": _cache(q=-10000, key=6, value=6, n_hidden=1)} | changed


def _cache(q=0.0, key=0.0, value=0.0, n_hidden=0, width=16):
    parts = [np.zeros((n, width), np.float32) for n in (1, 1 + n_hidden, 1 + n_hidden)]
    for part, element in zip(parts, (q, key, value)):
        part[0, 0] = element
    return (*parts, np.arange(1 + n_hidden)[None] == 0)


# %% wrong="convict" name="wide_keys" loses="convict-alone convict-fewest"
# Keys of width 64 need a sum of 80,000 for a logit of -10,000, which overflows FP16 too.
def convict():
    return _exhibits(low_mask=_cache(q=-20000, key=6, value=6, n_hidden=1, width=64))


def _exhibits(**changed):
    value = float(np.nextafter(np.float32(6.375), np.float32(7)))
    found = {"double_rounding": _cache(value=value), "narrow_sum": _cache(q=20000, key=6)}
    return found | {"low_mask": _cache(q=-10000, key=6, value=6, n_hidden=1)} | changed


def _cache(q=0.0, key=0.0, value=0.0, n_hidden=0, width=16):
    parts = [np.zeros((n, width), np.float32) for n in (1, 1 + n_hidden, 1 + n_hidden)]
    for part, element in zip(parts, (q, key, value)):
        part[0, 0] = element
    return (*parts, np.arange(1 + n_hidden)[None] == 0)


# %% wrong="convict" name="nothing_hidden" loses="convict-low_mask convict-fewest"
# Without a hidden key no mask is at work.
def convict():
    return _exhibits(low_mask=_cache(q=-10000, key=6, value=6))


def _exhibits(**changed):
    value = float(np.nextafter(np.float32(6.375), np.float32(7)))
    found = {"double_rounding": _cache(value=value), "narrow_sum": _cache(q=20000, key=6)}
    return found | {"low_mask": _cache(q=-10000, key=6, value=6, n_hidden=1)} | changed


def _cache(q=0.0, key=0.0, value=0.0, n_hidden=0, width=16):
    parts = [np.zeros((n, width), np.float32) for n in (1, 1 + n_hidden, 1 + n_hidden)]
    for part, element in zip(parts, (q, key, value)):
        part[0, 0] = element
    return (*parts, np.arange(1 + n_hidden)[None] == 0)


# %% wrong="convict" name="no_mask" loses="convict-double_rounding convict-narrow_sum convict-low_mask convict-alone convict-fewest"
# Hands over queries, keys and values without a mask.
def convict():
    return {name: parts[:3] for name, parts in _exhibits().items()}


def _exhibits(**changed):
    value = float(np.nextafter(np.float32(6.375), np.float32(7)))
    found = {"double_rounding": _cache(value=value), "narrow_sum": _cache(q=20000, key=6)}
    return found | {"low_mask": _cache(q=-10000, key=6, value=6, n_hidden=1)} | changed


def _cache(q=0.0, key=0.0, value=0.0, n_hidden=0, width=16):
    parts = [np.zeros((n, width), np.float32) for n in (1, 1 + n_hidden, 1 + n_hidden)]
    for part, element in zip(parts, (q, key, value)):
        part[0, 0] = element
    return (*parts, np.arange(1 + n_hidden)[None] == 0)


# %% right="convict" name="other_places"
# Other numbers, signs and places; wider keys; plain lists.
def convict():
    zeros = np.zeros((2, 32))
    value, q, keys, seen = zeros.copy(), zeros[:1].copy(), zeros.copy(), [[False, True]]
    value[1, 31] = -(2.0**-11) * (1 + 2.0**-20)
    q[0, 17], keys[1, 17] = 20.0, -2600.0
    far = [[0.0] * 5 + [-30000.0] + [0.0] * 26]
    near, other = zeros.copy(), zeros.copy()
    near[1, 5], other[0, 9] = 2.0, 1.0
    return {
        "low_mask": [far, near.tolist(), other.tolist(), seen],
        "double_rounding": [zeros[:1].tolist(), zeros.tolist(), value.tolist(), seen],
        "narrow_sum": [(100 * q).tolist(), keys.tolist(), zeros.tolist(), seen],
    }


# %% right="convict" name="searched"
# Tries elements one after the other until one suspect alone is convicted.
def convict():
    found = {}
    numbers = [float(np.nextafter(np.float32(x), np.float32(9))) for x in (1.0, 1.5, 6.375)] + [6.0]
    starts = [(0.0, 0.0, x) for x in numbers] + [(q, 6.0, 0.0) for q in (10.0**e for e in range(6))]
    starts += [(-(10.0**e), 6.0, 6.0) for e in range(6)]
    for start in starts:
        q, keys, values = (np.zeros((n, 16), np.float32) for n in (1, 2, 2))
        q[0, 3], keys[0, 3], values[0, 8] = start
        exhibit = suspects.Exhibit(q, keys, values, np.array([[True, False]]))
        convicted = suspects.convicted(exhibit, attention_weights)
        if len(convicted) == 1:
            found.setdefault(convicted[0], exhibit)
    return found
