# Planted answers of lab 6, one cell each: the text that replaces the answer cell of the task that it names.
# A wrong one is a mistake that a person makes, said in its first line; `loses` lists the checks that it loses while
# all other tasks are solved. A right one is written differently from the reference and loses none.

# %% wrong="window_slots" name="one_more" loses="window_slots-last"
# Reads W tokens and the own one.
def window_slots(position, start, window, length):
    if window < 1 or length < window or position < start:
        raise ValueError("window, length or position: expected what a ring can hold")
    first = max(start, position - window)
    return np.arange(first, position + 1) % length


# %% wrong="window_slots" name="one_less" loses="window_slots-last"
# Reads W - 1 tokens, the own one among them.
def window_slots(position, start, window, length):
    if window < 1 or length < window or position < start:
        raise ValueError("window, length or position: expected what a ring can hold")
    first = max(start, position - window + 2)
    return np.arange(first, position + 1) % length


# %% wrong="window_slots" name="without_own" loses="window_slots-last window_slots-length window_slots-start"
# Reads the tokens before, and leaves the own one out.
def window_slots(position, start, window, length):
    if window < 1 or length < window or position < start:
        raise ValueError("window, length or position: expected what a ring can hold")
    first = max(start, position - window + 1)
    return np.arange(first, position) % length


# %% wrong="window_slots" name="newest_first" loses="window_slots-last window_slots-length window_slots-start"
# Gives the newest position first.
def window_slots(position, start, window, length):
    if window < 1 or length < window or position < start:
        raise ValueError("window, length or position: expected what a ring can hold")
    first = max(start, position - window + 1)
    return np.arange(first, position + 1)[::-1] % length


# %% wrong="window_slots" name="slot_is_position" loses="window_slots-last window_slots-length window_slots-start"
# Takes positions for slots.
def window_slots(position, start, window, length):
    if window < 1 or length < window or position < start:
        raise ValueError("window, length or position: expected what a ring can hold")
    first = max(start, position - window + 1)
    return np.arange(first, position + 1)


# %% wrong="window_slots" name="modulo_window" loses="window_slots-length"
# Takes the position modulo the window, however long the ring is.
def window_slots(position, start, window, length):
    if window < 1 or length < window or position < start:
        raise ValueError("window, length or position: expected what a ring can hold")
    first = max(start, position - window + 1)
    return np.arange(first, position + 1) % window


# %% wrong="window_slots" name="from_the_start" loses="window_slots-length"
# Counts slots from the start of the request.
def window_slots(position, start, window, length):
    if window < 1 or length < window or position < start:
        raise ValueError("window, length or position: expected what a ring can hold")
    first = max(start, position - window + 1)
    return (np.arange(first, position + 1) - start) % length


# %% wrong="window_slots" name="below_the_start" loses="window_slots-start"
# Reads below the start, where another request's rows lie.
def window_slots(position, start, window, length):
    if window < 1 or length < window or position < start:
        raise ValueError("window, length or position: expected what a ring can hold")
    first = max(0, position - window + 1)
    return np.arange(first, position + 1) % length


# %% wrong="window_slots" name="before_the_text" loses="window_slots-start"
# Reads rows from before the first token.
def window_slots(position, start, window, length):
    if window < 1 or length < window or position < start:
        raise ValueError("window, length or position: expected what a ring can hold")
    first = position - window + 1
    return np.arange(first, position + 1) % length


# %% wrong="window_slots" name="refuses_nothing" loses="window_slots-refuses"
# Computes with whatever it is given.
def window_slots(position, start, window, length):
    first = max(start, position - window + 1)
    return np.arange(first, position + 1) % length


# %% wrong="window_slots" name="whole_ring" loses="window_slots-length"
# Reads every slot of the ring, oldest first.
def window_slots(position, start, window, length):
    if window < 1 or length < window or position < start:
        raise ValueError("window, length or position: expected what a ring can hold")
    first = max(start, position - length + 1)
    return np.arange(first, position + 1) % length


# %% wrong="window_slots" name="sorted_slots" loses="window_slots-last window_slots-length"
# Sorts the slots, so that a wrapped window is out of order.
def window_slots(position, start, window, length):
    if window < 1 or length < window or position < start:
        raise ValueError("window, length or position: expected what a ring can hold")
    first = max(start, position - window + 1)
    return np.sort(np.arange(first, position + 1) % length)


# %% wrong="window_slots" name="window_of_one" loses="window_slots-last"
# Takes a window of 1 for no row.
def window_slots(position, start, window, length):
    if window < 1 or length < window or position < start:
        raise ValueError("window, length or position: expected what a ring can hold")
    if window == 1:
        return np.zeros(0, int)
    first = max(start, position - window + 1)
    return np.arange(first, position + 1) % length


# %% right="window_slots" name="loop"
# Collects the slots one by one, walking back.
def window_slots(position, start, window, length):
    if window < 1 or length < window or position < start:
        raise ValueError("window, length or position: expected what a ring can hold")
    slots, at = [], position
    while at >= start and at > position - window:
        slots.insert(0, at % length)
        at -= 1
    return np.array(slots)


# %% right="window_slots" name="roll"
# Counts back from the slot of the newest position.
def window_slots(position, start, window, length):
    if window < 1 or length < window or position < start:
        raise ValueError("window, length or position: expected what a ring can hold")
    n_rows = min(window, position - start + 1)
    slots = position % length - np.arange(n_rows - 1, -1, -1)
    return np.where(slots < 0, slots + length, slots)


# %% right="window_slots" name="recursion"
# Recursion.
def window_slots(position, start, window, length):
    if window < 1:
        raise ValueError("window")
    if length < window:
        raise ValueError("length")
    if position < start:
        raise ValueError("position")
    older = (
        window_slots(position - 1, start, window - 1, length) if window > 1 and position > start else np.zeros(0, int)
    )
    return np.append(older, position % length)


# %% wrong="ring_length" name="window_alone" loses="ring_length-survives ring_length-fewest"
# Makes the ring as long as the window, so that rejected drafts overwrite rows.
def ring_length(window, drafts, is_written_first):
    if window < 1 or drafts < 0:
        raise ValueError("window or drafts: expected at least 1 and 0")
    return window


# %% wrong="ring_length" name="one_short" loses="ring_length-survives ring_length-fewest"
# Forgets that the own token is written before it is attended.
def ring_length(window, drafts, is_written_first):
    if window < 1 or drafts < 0:
        raise ValueError("window or drafts: expected at least 1 and 0")
    return window - 1 + drafts


# %% wrong="ring_length" name="one_draft_less" loses="ring_length-survives ring_length-fewest"
# Counts one draft less: the last one, it thinks, is never read.
def ring_length(window, drafts, is_written_first):
    if window < 1 or drafts < 0:
        raise ValueError("window or drafts: expected at least 1 and 0")
    return window - 1 + max(0, drafts - 1) + is_written_first


# %% wrong="ring_length" name="always_w_plus_d" loses="ring_length-fewest"
# Takes W + d, whichever comes first.
def ring_length(window, drafts, is_written_first):
    if window < 1 or drafts < 0:
        raise ValueError("window or drafts: expected at least 1 and 0")
    return window + drafts


# %% wrong="ring_length" name="the_other_way" loses="ring_length-survives ring_length-fewest"
# Takes the two orders for each other.
def ring_length(window, drafts, is_written_first):
    if window < 1 or drafts < 0:
        raise ValueError("window or drafts: expected at least 1 and 0")
    return window - 1 + drafts if is_written_first else window + drafts


# %% wrong="ring_length" name="twice_the_window" loses="ring_length-fewest"
# Makes the ring twice as long, to be safe.
def ring_length(window, drafts, is_written_first):
    if window < 1 or drafts < 0:
        raise ValueError("window or drafts: expected at least 1 and 0")
    return 2 * window + drafts


# %% wrong="ring_length" name="drafts_times_window" loses="ring_length-fewest"
# Reserves a window for each draft.
def ring_length(window, drafts, is_written_first):
    if window < 1 or drafts < 0:
        raise ValueError("window or drafts: expected at least 1 and 0")
    return window * (drafts + 1)


# %% wrong="ring_length" name="refuses_nothing" loses="ring_length-refuses"
# Computes with whatever it is given.
def ring_length(window, drafts, is_written_first):
    return window + drafts if is_written_first else window - 1 + drafts


# %% wrong="ring_length" name="next_power_of_two" loses="ring_length-fewest"
# Rounds up to a power of two, so that the modulo is cheap.
def ring_length(window, drafts, is_written_first):
    if window < 1 or drafts < 0:
        raise ValueError("window or drafts: expected at least 1 and 0")
    return 1 << (window + drafts - 1).bit_length()


# %% wrong="ring_length" name="at_least_a_draft" loses="ring_length-fewest"
# Counts one draft where there is none.
def ring_length(window, drafts, is_written_first):
    if window < 1 or drafts < 0:
        raise ValueError("window or drafts: expected at least 1 and 0")
    drafts = max(drafts, 1)
    return window + drafts if is_written_first else window - 1 + drafts


# %% wrong="ring_length" name="max_of_both" loses="ring_length-fewest"
# max(window, window - 1 + drafts): as long as the window at least.
def ring_length(window, drafts, is_written_first):
    if window < 1 or drafts < 0:
        raise ValueError("window or drafts: expected at least 1 and 0")
    return window + drafts if is_written_first else max(window, window - 1 + drafts)


# %% right="ring_length" name="sum"
# Adds the order up as a number.
def ring_length(window, drafts, is_written_first):
    if window < 1 or drafts < 0:
        raise ValueError("window or drafts: expected at least 1 and 0")
    return sum((window, drafts, -1 if not is_written_first else 0))


# %% right="ring_length" name="positions"
# Counts the positions from the oldest that is read to the newest that is written.
def ring_length(window, drafts, is_written_first):
    if window < 1 or drafts < 0:
        raise ValueError("window or drafts: expected at least 1 and 0")
    oldest_read = 1 - window
    newest_written = drafts if is_written_first else drafts - 1
    return len(range(oldest_read, newest_written + 1))


# %% wrong="exact_rows" name="steps_of_w" loses="exact_rows-staircase"
# Counts W tokens for each layer, not W - 1.
def exact_rows(layers, window, hit, replay_tokens):
    if layers < 1 or window < 1 or hit < 0 or replay_tokens < 0:
        raise ValueError("layers, window, hit or replay_tokens: expected at least 1, 1, 0 and 0")
    start = max(0, hit - replay_tokens)
    step = window if start > 0 else 0
    return np.arange(start, hit)[None] >= start + step * np.arange(layers)[:, None]


# %% wrong="exact_rows" name="layers_from_one" loses="exact_rows-staircase"
# Counts layers from 1, so that layer 0 is not exact either.
def exact_rows(layers, window, hit, replay_tokens):
    if layers < 1 or window < 1 or hit < 0 or replay_tokens < 0:
        raise ValueError("layers, window, hit or replay_tokens: expected at least 1, 1, 0 and 0")
    start = max(0, hit - replay_tokens)
    step = window - 1 if start > 0 else 0
    return np.arange(start, hit)[None] >= start + step * np.arange(1, layers + 1)[:, None]


# %% wrong="exact_rows" name="before_the_stairs" loses="exact_rows-staircase exact_rows-cold"
# Takes the rows before the step for the exact ones.
def exact_rows(layers, window, hit, replay_tokens):
    if layers < 1 or window < 1 or hit < 0 or replay_tokens < 0:
        raise ValueError("layers, window, hit or replay_tokens: expected at least 1, 1, 0 and 0")
    start = max(0, hit - replay_tokens)
    step = window - 1 if start > 0 else 0
    return np.arange(start, hit)[None] < start + step * np.arange(layers)[:, None]


# %% wrong="exact_rows" name="one_column_late" loses="exact_rows-staircase"
# Begins one token later in each layer but the first.
def exact_rows(layers, window, hit, replay_tokens):
    if layers < 1 or window < 1 or hit < 0 or replay_tokens < 0:
        raise ValueError("layers, window, hit or replay_tokens: expected at least 1, 1, 0 and 0")
    start = max(0, hit - replay_tokens)
    step = window - 1 if start > 0 else 0
    return np.arange(start, hit)[None] >= start + (step + (start > 0)) * np.arange(layers)[:, None]


# %% wrong="exact_rows" name="cold_run_has_stairs" loses="exact_rows-cold"
# Draws stairs even where the replay begins with the first token.
def exact_rows(layers, window, hit, replay_tokens):
    if layers < 1 or window < 1 or hit < 0 or replay_tokens < 0:
        raise ValueError("layers, window, hit or replay_tokens: expected at least 1, 1, 0 and 0")
    start = max(0, hit - replay_tokens)
    step = window - 1
    return np.arange(start, hit)[None] >= start + step * np.arange(layers)[:, None]


# %% wrong="exact_rows" name="always_n_columns" loses="exact_rows-cold"
# Gives a column for each replayed token, even where there are fewer tokens.
def exact_rows(layers, window, hit, replay_tokens):
    if layers < 1 or window < 1 or hit < 0 or replay_tokens < 0:
        raise ValueError("layers, window, hit or replay_tokens: expected at least 1, 1, 0 and 0")
    start = max(0, hit - replay_tokens)
    step = window - 1 if start > 0 else 0
    return np.arange(hit - replay_tokens, hit)[None] >= start + step * np.arange(layers)[:, None]


# %% wrong="exact_rows" name="transposed" loses="exact_rows-staircase exact_rows-cold"
# Puts tokens in lines and layers in columns.
def exact_rows(layers, window, hit, replay_tokens):
    if layers < 1 or window < 1 or hit < 0 or replay_tokens < 0:
        raise ValueError("layers, window, hit or replay_tokens: expected at least 1, 1, 0 and 0")
    start = max(0, hit - replay_tokens)
    step = window - 1 if start > 0 else 0
    return np.arange(start, hit)[:, None] >= start + step * np.arange(layers)


# %% wrong="exact_rows" name="top_is_best" loses="exact_rows-staircase"
# Draws the stairs from the top layer down.
def exact_rows(layers, window, hit, replay_tokens):
    if layers < 1 or window < 1 or hit < 0 or replay_tokens < 0:
        raise ValueError("layers, window, hit or replay_tokens: expected at least 1, 1, 0 and 0")
    start = max(0, hit - replay_tokens)
    step = window - 1 if start > 0 else 0
    return np.arange(start, hit)[None] >= start + step * np.arange(layers)[::-1, None]


# %% wrong="exact_rows" name="refuses_nothing" loses="exact_rows-refuses"
# Draws whatever it is given.
def exact_rows(layers, window, hit, replay_tokens):
    start = max(0, hit - replay_tokens)
    step = window - 1 if start > 0 else 0
    return np.arange(start, hit)[None] >= start + step * np.arange(layers)[:, None]


# %% wrong="exact_rows" name="all_or_nothing" loses="exact_rows-staircase"
# Takes a layer for exact only where all of its rows are.
def exact_rows(layers, window, hit, replay_tokens):
    if layers < 1 or window < 1 or hit < 0 or replay_tokens < 0:
        raise ValueError("layers, window, hit or replay_tokens: expected at least 1, 1, 0 and 0")
    start = max(0, hit - replay_tokens)
    step = window - 1 if start > 0 else 0
    is_exact = np.arange(start, hit)[None] >= start + step * np.arange(layers)[:, None]
    return np.broadcast_to(is_exact.all(axis=1, keepdims=True), is_exact.shape)


# %% wrong="exact_rows" name="cold_within_a_window" loses="exact_rows-staircase"
# Takes a replay for a cold run where less than a window is missing in front.
def exact_rows(layers, window, hit, replay_tokens):
    if layers < 1 or window < 1 or hit < 0 or replay_tokens < 0:
        raise ValueError("layers, window, hit or replay_tokens: expected at least 1, 1, 0 and 0")
    start = max(0, hit - replay_tokens)
    step = window - 1 if start >= window else 0
    return np.arange(start, hit)[None] >= start + step * np.arange(layers)[:, None]


# %% wrong="exact_rows" name="cold_by_one" loses="exact_rows-staircase"
# Takes a replay that lacks the first token alone for a cold run.
def exact_rows(layers, window, hit, replay_tokens):
    if layers < 1 or window < 1 or hit < 0 or replay_tokens < 0:
        raise ValueError("layers, window, hit or replay_tokens: expected at least 1, 1, 0 and 0")
    start = max(0, hit - replay_tokens)
    step = window - 1 if start > 1 else 0
    return np.arange(start, hit)[None] >= start + step * np.arange(layers)[:, None]


# %% right="exact_rows" name="layer_by_layer"
# Lets exactness pass from layer to layer: a row is exact if all that it reads are.
def exact_rows(layers, window, hit, replay_tokens):
    if layers < 1 or window < 1 or hit < 0 or replay_tokens < 0:
        raise ValueError("layers, window, hit or replay_tokens: expected at least 1, 1, 0 and 0")
    start = max(0, hit - replay_tokens)
    n_tokens = hit - start
    rows = np.ones((layers, n_tokens), bool)
    for layer in range(1, layers):
        for t in range(n_tokens):
            first = t - window + 1
            sees_all = first >= 0 or start == 0
            rows[layer, t] = sees_all and rows[layer - 1, max(0, first) : t + 1].all()
    return rows


# %% right="exact_rows" name="light_cone"
# Counts how far back each row reaches, and compares with what was replayed.
def exact_rows(layers, window, hit, replay_tokens):
    if min(layers - 1, window - 1, hit, replay_tokens) < 0:
        raise ValueError("layers, window, hit or replay_tokens: expected at least 1, 1, 0 and 0")
    n_tokens = min(hit, replay_tokens)
    lines = []
    for layer in range(layers):
        n_inexact = 0 if n_tokens == hit else min(n_tokens, layer * (window - 1))
        lines.append([False] * n_inexact + [True] * (n_tokens - n_inexact))
    return np.array(lines, dtype=bool).reshape(layers, n_tokens)


# %% wrong="window_mask" name="one_more" loses="window_mask-width"
# Sees W keys and the own one: W + 1.
def window_mask(query_positions, key_positions, window):
    if window < 1:
        raise ValueError(f"window: expected at least 1 token, got {window}")
    age = query_positions[:, None] - key_positions[None]
    return (age >= 0) & (age <= window)


# %% wrong="window_mask" name="one_less" loses="window_mask-width bounded_replay-short"
# Sees W - 1 keys, the own one among them.
def window_mask(query_positions, key_positions, window):
    if window < 1:
        raise ValueError(f"window: expected at least 1 token, got {window}")
    age = query_positions[:, None] - key_positions[None]
    return (age >= 0) & (age < window - 1)


# %% wrong="window_mask" name="without_own" loses="window_mask-width window_mask-causal window_mask-positions bounded_replay-tokens bounded_replay-rows bounded_replay-positions bounded_replay-count bounded_replay-global_kept bounded_replay-global_read bounded_replay-short bounded_replay-refuses exact_replay-tokens exact_replay-states exact_replay-short"
# Does not see its own key.
def window_mask(query_positions, key_positions, window):
    if window < 1:
        raise ValueError(f"window: expected at least 1 token, got {window}")
    age = query_positions[:, None] - key_positions[None]
    return (age > 0) & (age < window)


# %% wrong="window_mask" name="not_causal" loses="window_mask-causal"
# Sees the keys of later tokens too.
def window_mask(query_positions, key_positions, window):
    if window < 1:
        raise ValueError(f"window: expected at least 1 token, got {window}")
    age = query_positions[:, None] - key_positions[None]
    return age < window


# %% wrong="window_mask" name="both_sides" loses="window_mask-causal"
# Sees W - 1 tokens to either side.
def window_mask(query_positions, key_positions, window):
    if window < 1:
        raise ValueError(f"window: expected at least 1 token, got {window}")
    age = query_positions[:, None] - key_positions[None]
    return np.abs(age) < window


# %% wrong="window_mask" name="causal_alone" loses="window_mask-width window_mask-positions"
# Sees all keys up to its own: no window.
def window_mask(query_positions, key_positions, window):
    if window < 1:
        raise ValueError(f"window: expected at least 1 token, got {window}")
    age = query_positions[:, None] - key_positions[None]
    return age >= 0


# %% wrong="window_mask" name="rows_and_columns" loses="window_mask-width window_mask-positions"
# Counts lines and columns of the mask instead of positions.
def window_mask(query_positions, key_positions, window):
    if window < 1:
        raise ValueError(f"window: expected at least 1 token, got {window}")
    age = np.arange(len(query_positions))[:, None] - np.arange(len(key_positions))
    return (age >= 0) & (age < window)


# %% wrong="window_mask" name="from_the_first_key" loses="window_mask-positions bounded_replay-short exact_replay-short"
# Counts columns from the first key, as if keys were in order.
def window_mask(query_positions, key_positions, window):
    if window < 1:
        raise ValueError(f"window: expected at least 1 token, got {window}")
    age = query_positions[:, None] - (key_positions[0] + np.arange(len(key_positions)))[None]
    return (age >= 0) & (age < window)


# %% wrong="window_mask" name="transposed" loses="window_mask-width window_mask-causal window_mask-positions"
# Puts keys in lines and queries in columns.
def window_mask(query_positions, key_positions, window):
    if window < 1:
        raise ValueError(f"window: expected at least 1 token, got {window}")
    age = query_positions[:, None] - key_positions[None]
    return ((age >= 0) & (age < window)).T


# %% wrong="window_mask" name="hidden" loses="window_mask-width window_mask-causal window_mask-positions bounded_replay-tokens bounded_replay-rows bounded_replay-positions bounded_replay-count bounded_replay-global_kept bounded_replay-global_read bounded_replay-short bounded_replay-refuses exact_replay-tokens exact_replay-short"
# Marks what is hidden, as some libraries do.
def window_mask(query_positions, key_positions, window):
    if window < 1:
        raise ValueError(f"window: expected at least 1 token, got {window}")
    age = query_positions[:, None] - key_positions[None]
    return ~((age >= 0) & (age < window))


# %% wrong="window_mask" name="refuses_nothing" loses="window_mask-refuses"
# Gives a mask for a window of 0.
def window_mask(query_positions, key_positions, window):
    age = query_positions[:, None] - key_positions[None]
    return (age >= 0) & (age < window)


# %% wrong="window_mask" name="last_columns" loses="window_mask-positions"
# Shows the last W columns up to the diagonal, whatever the positions.
def window_mask(query_positions, key_positions, window):
    if window < 1:
        raise ValueError(f"window: expected at least 1 token, got {window}")
    shape = len(query_positions), len(key_positions)
    late = shape[1] - shape[0]
    return np.tri(*shape, late, dtype=bool) & ~np.tri(*shape, late - window, dtype=bool)


# %% right="window_mask" name="loop"
# Compares one pair of positions after another.
def window_mask(query_positions, key_positions, window):
    if window < 1:
        raise ValueError(f"window: expected at least 1 token, got {window}")
    mask = np.zeros((len(query_positions), len(key_positions)), bool)
    for line, query in enumerate(query_positions):
        for column, key in enumerate(key_positions):
            mask[line, column] = query - window < key <= query
    return mask


# %% right="window_mask" name="isin"
# Looks each age up among those that are seen.
def window_mask(query_positions, key_positions, window):
    if not window >= 1:
        raise ValueError(f"window: expected at least 1 token, got {window}")
    return np.isin(np.subtract.outer(query_positions, key_positions), np.arange(window))


# %% wrong="bounded_replay" name="one_token_fewer" loses="bounded_replay-tokens bounded_replay-rows bounded_replay-positions bounded_replay-global_read bounded_replay-short exact_replay-tokens"
# Starts at H - n + 1: one token fewer is replayed.
def bounded_replay(network, tokens, hit, replay_tokens, global_rows):
    n_rows = min(hit, network.window - 1)
    if not 0 <= hit <= len(tokens) or replay_tokens < n_rows:
        raise ValueError("hit or replay_tokens: expected a prefix of the text, and as many tokens as rows")
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL and (layer not in global_rows or global_rows[layer].keys.shape[1] != hit):
            raise ValueError(f"global_rows: expected {hit} rows of layer {layer}")
    start = max(0, hit - max(replay_tokens - 1, n_rows))
    positions = np.arange(start, hit)
    mask = window_mask(positions, positions, network.window)
    hidden, cache = network.embed(tokens[start:hit]), []
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL:
            rows = global_rows[layer]
            hidden = network.attend(layer, hidden, positions, rows)
        else:
            rows = network.rows(layer, hidden, positions)
            hidden = network.attend(layer, hidden, positions, rows, mask)
            first = len(positions) - n_rows
            rows = Rows(rows.keys[:, first:], rows.values[:, first:])
        cache.append(rows)
    return cache


# %% wrong="bounded_replay" name="one_token_more" loses="bounded_replay-tokens bounded_replay-rows bounded_replay-positions bounded_replay-global_kept bounded_replay-global_read exact_replay-tokens exact_replay-short"
# Starts one token early.
def bounded_replay(network, tokens, hit, replay_tokens, global_rows):
    n_rows = min(hit, network.window - 1)
    if not 0 <= hit <= len(tokens) or replay_tokens < n_rows:
        raise ValueError("hit or replay_tokens: expected a prefix of the text, and as many tokens as rows")
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL and (layer not in global_rows or global_rows[layer].keys.shape[1] != hit):
            raise ValueError(f"global_rows: expected {hit} rows of layer {layer}")
    start = max(0, hit - replay_tokens - 1)
    positions = np.arange(start, hit)
    mask = window_mask(positions, positions, network.window)
    hidden, cache = network.embed(tokens[start:hit]), []
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL:
            rows = global_rows[layer]
            hidden = network.attend(layer, hidden, positions, rows)
        else:
            rows = network.rows(layer, hidden, positions)
            hidden = network.attend(layer, hidden, positions, rows, mask)
            first = len(positions) - n_rows
            rows = Rows(rows.keys[:, first:], rows.values[:, first:])
        cache.append(rows)
    return cache


# %% wrong="bounded_replay" name="rows_for_tokens" loses="bounded_replay-tokens bounded_replay-rows bounded_replay-positions bounded_replay-global_read bounded_replay-short exact_replay-tokens exact_replay-short"
# Replays W - 1 tokens, as many as there are rows, whatever it is told.
def bounded_replay(network, tokens, hit, replay_tokens, global_rows):
    n_rows = min(hit, network.window - 1)
    if not 0 <= hit <= len(tokens) or replay_tokens < n_rows:
        raise ValueError("hit or replay_tokens: expected a prefix of the text, and as many tokens as rows")
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL and (layer not in global_rows or global_rows[layer].keys.shape[1] != hit):
            raise ValueError(f"global_rows: expected {hit} rows of layer {layer}")
    start = max(0, hit - n_rows)
    positions = np.arange(start, hit)
    mask = window_mask(positions, positions, network.window)
    hidden, cache = network.embed(tokens[start:hit]), []
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL:
            rows = global_rows[layer]
            hidden = network.attend(layer, hidden, positions, rows)
        else:
            rows = network.rows(layer, hidden, positions)
            hidden = network.attend(layer, hidden, positions, rows, mask)
            first = len(positions) - n_rows
            rows = Rows(rows.keys[:, first:], rows.values[:, first:])
        cache.append(rows)
    return cache


# %% wrong="bounded_replay" name="cold_run" loses="bounded_replay-tokens bounded_replay-rows bounded_replay-positions bounded_replay-global_kept bounded_replay-global_read exact_replay-tokens exact_replay-short"
# Runs the whole prefix: the rows are exact, which was not asked for.
def bounded_replay(network, tokens, hit, replay_tokens, global_rows):
    n_rows = min(hit, network.window - 1)
    if not 0 <= hit <= len(tokens) or replay_tokens < n_rows:
        raise ValueError("hit or replay_tokens: expected a prefix of the text, and as many tokens as rows")
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL and (layer not in global_rows or global_rows[layer].keys.shape[1] != hit):
            raise ValueError(f"global_rows: expected {hit} rows of layer {layer}")
    start = 0
    positions = np.arange(start, hit)
    mask = window_mask(positions, positions, network.window)
    hidden, cache = network.embed(tokens[start:hit]), []
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL:
            rows = global_rows[layer]
            hidden = network.attend(layer, hidden, positions, rows)
        else:
            rows = network.rows(layer, hidden, positions)
            hidden = network.attend(layer, hidden, positions, rows, mask)
            first = len(positions) - n_rows
            rows = Rows(rows.keys[:, first:], rows.values[:, first:])
        cache.append(rows)
    return cache


# %% wrong="bounded_replay" name="exact" loses="bounded_replay-tokens bounded_replay-rows bounded_replay-positions bounded_replay-global_kept bounded_replay-global_read exact_replay-tokens"
# Replays L(W - 1) tokens, so that the rows are exact.
def bounded_replay(network, tokens, hit, replay_tokens, global_rows):
    n_rows = min(hit, network.window - 1)
    if not 0 <= hit <= len(tokens) or replay_tokens < n_rows:
        raise ValueError("hit or replay_tokens: expected a prefix of the text, and as many tokens as rows")
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL and (layer not in global_rows or global_rows[layer].keys.shape[1] != hit):
            raise ValueError(f"global_rows: expected {hit} rows of layer {layer}")
    start = max(0, hit - len(network.kinds) * (network.window - 1))
    positions = np.arange(start, hit)
    mask = window_mask(positions, positions, network.window)
    hidden, cache = network.embed(tokens[start:hit]), []
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL:
            rows = global_rows[layer]
            hidden = network.attend(layer, hidden, positions, rows)
        else:
            rows = network.rows(layer, hidden, positions)
            hidden = network.attend(layer, hidden, positions, rows, mask)
            first = len(positions) - n_rows
            rows = Rows(rows.keys[:, first:], rows.values[:, first:])
        cache.append(rows)
    return cache


# %% wrong="bounded_replay" name="tokens_from_the_end" loses="bounded_replay-tokens bounded_replay-rows bounded_replay-positions bounded_replay-global_read bounded_replay-short exact_replay-states exact_replay-short"
# Takes the last tokens of the text, not those before the hit.
def bounded_replay(network, tokens, hit, replay_tokens, global_rows):
    n_rows = min(hit, network.window - 1)
    if not 0 <= hit <= len(tokens) or replay_tokens < n_rows:
        raise ValueError("hit or replay_tokens: expected a prefix of the text, and as many tokens as rows")
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL and (layer not in global_rows or global_rows[layer].keys.shape[1] != hit):
            raise ValueError(f"global_rows: expected {hit} rows of layer {layer}")
    start = max(0, hit - replay_tokens)
    positions = np.arange(start, hit)
    mask = window_mask(positions, positions, network.window)
    hidden, cache = network.embed(tokens[len(tokens) - (hit - start) :]), []
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL:
            rows = global_rows[layer]
            hidden = network.attend(layer, hidden, positions, rows)
        else:
            rows = network.rows(layer, hidden, positions)
            hidden = network.attend(layer, hidden, positions, rows, mask)
            first = len(positions) - n_rows
            rows = Rows(rows.keys[:, first:], rows.values[:, first:])
        cache.append(rows)
    return cache


# %% wrong="bounded_replay" name="positions_from_zero" loses="bounded_replay-positions"
# Counts positions from the start of the replay.
def bounded_replay(network, tokens, hit, replay_tokens, global_rows):
    n_rows = min(hit, network.window - 1)
    if not 0 <= hit <= len(tokens) or replay_tokens < n_rows:
        raise ValueError("hit or replay_tokens: expected a prefix of the text, and as many tokens as rows")
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL and (layer not in global_rows or global_rows[layer].keys.shape[1] != hit):
            raise ValueError(f"global_rows: expected {hit} rows of layer {layer}")
    start = max(0, hit - replay_tokens)
    positions = np.arange(start, hit)
    mask = window_mask(positions, positions, network.window)
    positions = np.arange(hit - start)
    hidden, cache = network.embed(tokens[start:hit]), []
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL:
            rows = global_rows[layer]
            hidden = network.attend(layer, hidden, positions, rows)
        else:
            rows = network.rows(layer, hidden, positions)
            hidden = network.attend(layer, hidden, positions, rows, mask)
            first = len(positions) - n_rows
            rows = Rows(rows.keys[:, first:], rows.values[:, first:])
        cache.append(rows)
    return cache


# %% wrong="bounded_replay" name="positions_one_late" loses="bounded_replay-positions exact_replay-states exact_replay-short"
# Counts positions from 1.
def bounded_replay(network, tokens, hit, replay_tokens, global_rows):
    n_rows = min(hit, network.window - 1)
    if not 0 <= hit <= len(tokens) or replay_tokens < n_rows:
        raise ValueError("hit or replay_tokens: expected a prefix of the text, and as many tokens as rows")
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL and (layer not in global_rows or global_rows[layer].keys.shape[1] != hit):
            raise ValueError(f"global_rows: expected {hit} rows of layer {layer}")
    start = max(0, hit - replay_tokens)
    positions = np.arange(start, hit)
    mask = window_mask(positions, positions, network.window)
    positions = positions + 1
    hidden, cache = network.embed(tokens[start:hit]), []
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL:
            rows = global_rows[layer]
            hidden = network.attend(layer, hidden, positions, rows)
        else:
            rows = network.rows(layer, hidden, positions)
            hidden = network.attend(layer, hidden, positions, rows, mask)
            first = len(positions) - n_rows
            rows = Rows(rows.keys[:, first:], rows.values[:, first:])
        cache.append(rows)
    return cache


# %% wrong="bounded_replay" name="all_rows" loses="bounded_replay-count bounded_replay-short"
# Returns a row for every replayed token.
def bounded_replay(network, tokens, hit, replay_tokens, global_rows):
    n_rows = min(hit, network.window - 1)
    if not 0 <= hit <= len(tokens) or replay_tokens < n_rows:
        raise ValueError("hit or replay_tokens: expected a prefix of the text, and as many tokens as rows")
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL and (layer not in global_rows or global_rows[layer].keys.shape[1] != hit):
            raise ValueError(f"global_rows: expected {hit} rows of layer {layer}")
    start = max(0, hit - replay_tokens)
    positions = np.arange(start, hit)
    mask = window_mask(positions, positions, network.window)
    hidden, cache = network.embed(tokens[start:hit]), []
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL:
            rows = global_rows[layer]
            hidden = network.attend(layer, hidden, positions, rows)
        else:
            rows = network.rows(layer, hidden, positions)
            hidden = network.attend(layer, hidden, positions, rows, mask)
            first = 0
            rows = Rows(rows.keys[:, first:], rows.values[:, first:])
        cache.append(rows)
    return cache


# %% wrong="bounded_replay" name="w_rows" loses="bounded_replay-count bounded_replay-short"
# Returns W rows where W - 1 are read.
def bounded_replay(network, tokens, hit, replay_tokens, global_rows):
    n_rows = min(hit, network.window - 1)
    if not 0 <= hit <= len(tokens) or replay_tokens < n_rows:
        raise ValueError("hit or replay_tokens: expected a prefix of the text, and as many tokens as rows")
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL and (layer not in global_rows or global_rows[layer].keys.shape[1] != hit):
            raise ValueError(f"global_rows: expected {hit} rows of layer {layer}")
    start = max(0, hit - replay_tokens)
    positions = np.arange(start, hit)
    mask = window_mask(positions, positions, network.window)
    hidden, cache = network.embed(tokens[start:hit]), []
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL:
            rows = global_rows[layer]
            hidden = network.attend(layer, hidden, positions, rows)
        else:
            rows = network.rows(layer, hidden, positions)
            hidden = network.attend(layer, hidden, positions, rows, mask)
            first = max(0, len(positions) - network.window)
            rows = Rows(rows.keys[:, first:], rows.values[:, first:])
        cache.append(rows)
    return cache


# %% wrong="bounded_replay" name="minus_nothing" loses="bounded_replay-short"
# Cuts with [-n_rows:], which keeps all where n_rows is 0.
def bounded_replay(network, tokens, hit, replay_tokens, global_rows):
    n_rows = min(hit, network.window - 1)
    if not 0 <= hit <= len(tokens) or replay_tokens < n_rows:
        raise ValueError("hit or replay_tokens: expected a prefix of the text, and as many tokens as rows")
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL and (layer not in global_rows or global_rows[layer].keys.shape[1] != hit):
            raise ValueError(f"global_rows: expected {hit} rows of layer {layer}")
    start = max(0, hit - replay_tokens)
    positions = np.arange(start, hit)
    mask = window_mask(positions, positions, network.window)
    hidden, cache = network.embed(tokens[start:hit]), []
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL:
            rows = global_rows[layer]
            hidden = network.attend(layer, hidden, positions, rows)
        else:
            rows = network.rows(layer, hidden, positions)
            hidden = network.attend(layer, hidden, positions, rows, mask)
            first = -n_rows
            rows = Rows(rows.keys[:, first:], rows.values[:, first:])
        cache.append(rows)
    return cache


# %% wrong="bounded_replay" name="first_rows" loses="bounded_replay-rows bounded_replay-positions bounded_replay-global_read bounded_replay-short exact_replay-states exact_replay-short"
# Keeps the first rows of the replay, not the last.
def bounded_replay(network, tokens, hit, replay_tokens, global_rows):
    n_rows = min(hit, network.window - 1)
    if not 0 <= hit <= len(tokens) or replay_tokens < n_rows:
        raise ValueError("hit or replay_tokens: expected a prefix of the text, and as many tokens as rows")
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL and (layer not in global_rows or global_rows[layer].keys.shape[1] != hit):
            raise ValueError(f"global_rows: expected {hit} rows of layer {layer}")
    start = max(0, hit - replay_tokens)
    positions = np.arange(start, hit)
    mask = window_mask(positions, positions, network.window)
    hidden, cache = network.embed(tokens[start:hit]), []
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL:
            rows = global_rows[layer]
            hidden = network.attend(layer, hidden, positions, rows)
        else:
            rows = network.rows(layer, hidden, positions)
            hidden = network.attend(layer, hidden, positions, rows, mask)
            first = len(positions) - n_rows
            rows = Rows(rows.keys[:, :n_rows], rows.values[:, :n_rows])
        cache.append(rows)
    return cache


# %% wrong="bounded_replay" name="cut_in_front" loses="bounded_replay-count bounded_replay-short exact_replay-short"
# Cuts off too few tokens in front and reads before the text for a short hit.
def bounded_replay(network, tokens, hit, replay_tokens, global_rows):
    n_rows = min(hit, network.window - 1)
    if not 0 <= hit <= len(tokens) or replay_tokens < n_rows:
        raise ValueError("hit or replay_tokens: expected a prefix of the text, and as many tokens as rows")
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL and (layer not in global_rows or global_rows[layer].keys.shape[1] != hit):
            raise ValueError(f"global_rows: expected {hit} rows of layer {layer}")
    start = hit - replay_tokens
    positions = np.arange(start, hit)
    mask = window_mask(positions, positions, network.window)
    hidden, cache = network.embed(tokens[start:hit]), []
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL:
            rows = global_rows[layer]
            hidden = network.attend(layer, hidden, positions, rows)
        else:
            rows = network.rows(layer, hidden, positions)
            hidden = network.attend(layer, hidden, positions, rows, mask)
            first = len(positions) - n_rows
            rows = Rows(rows.keys[:, first:], rows.values[:, first:])
        cache.append(rows)
    return cache


# %% wrong="bounded_replay" name="writes_global_rows" loses="bounded_replay-global_kept bounded_replay-global_read"
# Computes the rows of global layers anew for the replayed tokens, and writes them over the given ones.
def bounded_replay(network, tokens, hit, replay_tokens, global_rows):
    n_rows = min(hit, network.window - 1)
    if not 0 <= hit <= len(tokens) or replay_tokens < n_rows:
        raise ValueError("hit or replay_tokens: expected a prefix of the text, and as many tokens as rows")
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL and (layer not in global_rows or global_rows[layer].keys.shape[1] != hit):
            raise ValueError(f"global_rows: expected {hit} rows of layer {layer}")
    start = max(0, hit - replay_tokens)
    positions = np.arange(start, hit)
    mask = window_mask(positions, positions, network.window)
    hidden, cache = network.embed(tokens[start:hit]), []
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL:
            rows, new = global_rows[layer], network.rows(layer, hidden, positions)
            rows.keys[:, start:hit], rows.values[:, start:hit] = new
            hidden = network.attend(layer, hidden, positions, rows)
        else:
            rows = network.rows(layer, hidden, positions)
            hidden = network.attend(layer, hidden, positions, rows, mask)
            first = len(positions) - n_rows
            rows = Rows(rows.keys[:, first:], rows.values[:, first:])
        cache.append(rows)
    return cache


# %% wrong="bounded_replay" name="returns_new_global_rows" loses="bounded_replay-global_kept"
# Returns global rows of which the replayed ones are computed anew.
def bounded_replay(network, tokens, hit, replay_tokens, global_rows):
    n_rows = min(hit, network.window - 1)
    if not 0 <= hit <= len(tokens) or replay_tokens < n_rows:
        raise ValueError("hit or replay_tokens: expected a prefix of the text, and as many tokens as rows")
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL and (layer not in global_rows or global_rows[layer].keys.shape[1] != hit):
            raise ValueError(f"global_rows: expected {hit} rows of layer {layer}")
    start = max(0, hit - replay_tokens)
    positions = np.arange(start, hit)
    mask = window_mask(positions, positions, network.window)
    hidden, cache = network.embed(tokens[start:hit]), []
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL:
            new, old = network.rows(layer, hidden, positions), global_rows[layer]
            hidden = network.attend(layer, hidden, positions, old)
            rows = Rows(*(np.concatenate([a[:, :start], b], axis=1) for a, b in zip(old, new)))
        else:
            rows = network.rows(layer, hidden, positions)
            hidden = network.attend(layer, hidden, positions, rows, mask)
            first = len(positions) - n_rows
            rows = Rows(rows.keys[:, first:], rows.values[:, first:])
        cache.append(rows)
    return cache


# %% wrong="bounded_replay" name="cuts_global_rows" loses="bounded_replay-global_kept"
# Returns the last W - 1 rows of global layers too.
def bounded_replay(network, tokens, hit, replay_tokens, global_rows):
    n_rows = min(hit, network.window - 1)
    if not 0 <= hit <= len(tokens) or replay_tokens < n_rows:
        raise ValueError("hit or replay_tokens: expected a prefix of the text, and as many tokens as rows")
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL and (layer not in global_rows or global_rows[layer].keys.shape[1] != hit):
            raise ValueError(f"global_rows: expected {hit} rows of layer {layer}")
    start = max(0, hit - replay_tokens)
    positions = np.arange(start, hit)
    mask = window_mask(positions, positions, network.window)
    hidden, cache = network.embed(tokens[start:hit]), []
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL:
            rows = global_rows[layer]
            hidden = network.attend(layer, hidden, positions, rows)
            rows = Rows(rows.keys[:, hit - n_rows :], rows.values[:, hit - n_rows :])
        else:
            rows = network.rows(layer, hidden, positions)
            hidden = network.attend(layer, hidden, positions, rows, mask)
            first = len(positions) - n_rows
            rows = Rows(rows.keys[:, first:], rows.values[:, first:])
        cache.append(rows)
    return cache


# %% wrong="bounded_replay" name="global_as_window" loses="bounded_replay-global_kept bounded_replay-global_read exact_replay-tokens exact_replay-states exact_replay-short"
# Attends global layers as if they were window layers.
def bounded_replay(network, tokens, hit, replay_tokens, global_rows):
    n_rows = min(hit, network.window - 1)
    if not 0 <= hit <= len(tokens) or replay_tokens < n_rows:
        raise ValueError("hit or replay_tokens: expected a prefix of the text, and as many tokens as rows")
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL and (layer not in global_rows or global_rows[layer].keys.shape[1] != hit):
            raise ValueError(f"global_rows: expected {hit} rows of layer {layer}")
    start = max(0, hit - replay_tokens)
    positions = np.arange(start, hit)
    mask = window_mask(positions, positions, network.window)
    hidden, cache = network.embed(tokens[start:hit]), []
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL:
            rows = global_rows[layer]
            part = Rows(rows.keys[:, start:], rows.values[:, start:])
            hidden = network.attend(layer, hidden, positions, part, mask)
        else:
            rows = network.rows(layer, hidden, positions)
            hidden = network.attend(layer, hidden, positions, rows, mask)
            first = len(positions) - n_rows
            rows = Rows(rows.keys[:, first:], rows.values[:, first:])
        cache.append(rows)
    return cache


# %% wrong="bounded_replay" name="skips_global_layers" loses="bounded_replay-global_read"
# Leaves global layers out, since their rows are there.
def bounded_replay(network, tokens, hit, replay_tokens, global_rows):
    n_rows = min(hit, network.window - 1)
    if not 0 <= hit <= len(tokens) or replay_tokens < n_rows:
        raise ValueError("hit or replay_tokens: expected a prefix of the text, and as many tokens as rows")
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL and (layer not in global_rows or global_rows[layer].keys.shape[1] != hit):
            raise ValueError(f"global_rows: expected {hit} rows of layer {layer}")
    start = max(0, hit - replay_tokens)
    positions = np.arange(start, hit)
    mask = window_mask(positions, positions, network.window)
    hidden, cache = network.embed(tokens[start:hit]), []
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL:
            rows = global_rows[layer]
        else:
            rows = network.rows(layer, hidden, positions)
            hidden = network.attend(layer, hidden, positions, rows, mask)
            first = len(positions) - n_rows
            rows = Rows(rows.keys[:, first:], rows.values[:, first:])
        cache.append(rows)
    return cache


# %% wrong="bounded_replay" name="mask_alone" loses="bounded_replay-rows"
# Attends without a window: every token reads all replayed ones before it.
def bounded_replay(network, tokens, hit, replay_tokens, global_rows):
    n_rows = min(hit, network.window - 1)
    if not 0 <= hit <= len(tokens) or replay_tokens < n_rows:
        raise ValueError("hit or replay_tokens: expected a prefix of the text, and as many tokens as rows")
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL and (layer not in global_rows or global_rows[layer].keys.shape[1] != hit):
            raise ValueError(f"global_rows: expected {hit} rows of layer {layer}")
    start = max(0, hit - replay_tokens)
    positions = np.arange(start, hit)
    mask = positions[:, None] >= positions
    hidden, cache = network.embed(tokens[start:hit]), []
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL:
            rows = global_rows[layer]
            hidden = network.attend(layer, hidden, positions, rows)
        else:
            rows = network.rows(layer, hidden, positions)
            hidden = network.attend(layer, hidden, positions, rows, mask)
            first = len(positions) - n_rows
            rows = Rows(rows.keys[:, first:], rows.values[:, first:])
        cache.append(rows)
    return cache


# %% wrong="bounded_replay" name="rows_after_attention" loses="bounded_replay-rows bounded_replay-positions bounded_replay-global_read bounded_replay-short exact_replay-states exact_replay-short"
# Computes a layer's rows from its output.
def bounded_replay(network, tokens, hit, replay_tokens, global_rows):
    n_rows = min(hit, network.window - 1)
    if not 0 <= hit <= len(tokens) or replay_tokens < n_rows:
        raise ValueError("hit or replay_tokens: expected a prefix of the text, and as many tokens as rows")
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL and (layer not in global_rows or global_rows[layer].keys.shape[1] != hit):
            raise ValueError(f"global_rows: expected {hit} rows of layer {layer}")
    start = max(0, hit - replay_tokens)
    positions = np.arange(start, hit)
    mask = window_mask(positions, positions, network.window)
    hidden, cache = network.embed(tokens[start:hit]), []
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL:
            rows = global_rows[layer]
            hidden = network.attend(layer, hidden, positions, rows)
        else:
            rows = network.rows(layer, hidden, positions)
            hidden = network.attend(layer, hidden, positions, rows, mask)
            rows = network.rows(layer, hidden, positions)
            first = len(positions) - n_rows
            rows = Rows(rows.keys[:, first:], rows.values[:, first:])
        cache.append(rows)
    return cache


# %% wrong="bounded_replay" name="same_hidden" loses="bounded_replay-rows bounded_replay-positions bounded_replay-global_read bounded_replay-short"
# Hands every layer the embeddings.
def bounded_replay(network, tokens, hit, replay_tokens, global_rows):
    n_rows = min(hit, network.window - 1)
    if not 0 <= hit <= len(tokens) or replay_tokens < n_rows:
        raise ValueError("hit or replay_tokens: expected a prefix of the text, and as many tokens as rows")
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL and (layer not in global_rows or global_rows[layer].keys.shape[1] != hit):
            raise ValueError(f"global_rows: expected {hit} rows of layer {layer}")
    start = max(0, hit - replay_tokens)
    positions = np.arange(start, hit)
    mask = window_mask(positions, positions, network.window)
    hidden, cache = network.embed(tokens[start:hit]), []
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL:
            rows = global_rows[layer]
            network.attend(layer, hidden, positions, rows)
        else:
            rows = network.rows(layer, hidden, positions)
            network.attend(layer, hidden, positions, rows, mask)
            first = len(positions) - n_rows
            rows = Rows(rows.keys[:, first:], rows.values[:, first:])
        cache.append(rows)
    return cache


# %% wrong="bounded_replay" name="refuses_nothing" loses="bounded_replay-refuses"
# Replays whatever it is given.
def bounded_replay(network, tokens, hit, replay_tokens, global_rows):
    n_rows = min(hit, network.window - 1)
    start = max(0, hit - replay_tokens)
    positions = np.arange(start, hit)
    mask = window_mask(positions, positions, network.window)
    hidden, cache = network.embed(tokens[start:hit]), []
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL:
            rows = global_rows[layer]
            hidden = network.attend(layer, hidden, positions, rows)
        else:
            rows = network.rows(layer, hidden, positions)
            hidden = network.attend(layer, hidden, positions, rows, mask)
            first = len(positions) - n_rows
            rows = Rows(rows.keys[:, first:], rows.values[:, first:])
        cache.append(rows)
    return cache


# %% wrong="bounded_replay" name="refuses_short_hits" loses="bounded_replay-count bounded_replay-short bounded_replay-refuses exact_replay-short"
# Adopts no hit that is shorter than the window.
def bounded_replay(network, tokens, hit, replay_tokens, global_rows):
    n_rows = min(hit, network.window - 1)
    if not 0 <= hit <= len(tokens) or replay_tokens < n_rows or hit < network.window:
        raise ValueError("hit or replay_tokens: expected a prefix of the text, and as many tokens as rows")
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL and (layer not in global_rows or global_rows[layer].keys.shape[1] != hit):
            raise ValueError(f"global_rows: expected {hit} rows of layer {layer}")
    start = max(0, hit - replay_tokens)
    positions = np.arange(start, hit)
    mask = window_mask(positions, positions, network.window)
    hidden, cache = network.embed(tokens[start:hit]), []
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL:
            rows = global_rows[layer]
            hidden = network.attend(layer, hidden, positions, rows)
        else:
            rows = network.rows(layer, hidden, positions)
            hidden = network.attend(layer, hidden, positions, rows, mask)
            first = len(positions) - n_rows
            rows = Rows(rows.keys[:, first:], rows.values[:, first:])
        cache.append(rows)
    return cache


# %% wrong="bounded_replay" name="window_layers_only" loses="bounded_replay-global_kept bounded_replay-global_read exact_replay-states exact_replay-short"
# Returns window layers alone.
def bounded_replay(network, tokens, hit, replay_tokens, global_rows):
    n_rows = min(hit, network.window - 1)
    if not 0 <= hit <= len(tokens) or replay_tokens < n_rows:
        raise ValueError("hit or replay_tokens: expected a prefix of the text, and as many tokens as rows")
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL and (layer not in global_rows or global_rows[layer].keys.shape[1] != hit):
            raise ValueError(f"global_rows: expected {hit} rows of layer {layer}")
    start = max(0, hit - replay_tokens)
    positions = np.arange(start, hit)
    mask = window_mask(positions, positions, network.window)
    hidden, cache = network.embed(tokens[start:hit]), []
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL:
            rows = global_rows[layer]
            hidden = network.attend(layer, hidden, positions, rows)
        else:
            rows = network.rows(layer, hidden, positions)
            hidden = network.attend(layer, hidden, positions, rows, mask)
            first = len(positions) - n_rows
            rows = Rows(rows.keys[:, first:], rows.values[:, first:])
        if kind is LayerKind.WINDOW:
            cache.append(rows)
    return cache


# %% wrong="bounded_replay" name="keys_twice" loses="bounded_replay-rows bounded_replay-global_read bounded_replay-short exact_replay-states exact_replay-short"
# Returns the keys for the values too.
def bounded_replay(network, tokens, hit, replay_tokens, global_rows):
    n_rows = min(hit, network.window - 1)
    if not 0 <= hit <= len(tokens) or replay_tokens < n_rows:
        raise ValueError("hit or replay_tokens: expected a prefix of the text, and as many tokens as rows")
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL and (layer not in global_rows or global_rows[layer].keys.shape[1] != hit):
            raise ValueError(f"global_rows: expected {hit} rows of layer {layer}")
    start = max(0, hit - replay_tokens)
    positions = np.arange(start, hit)
    mask = window_mask(positions, positions, network.window)
    hidden, cache = network.embed(tokens[start:hit]), []
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL:
            rows = global_rows[layer]
            hidden = network.attend(layer, hidden, positions, rows)
        else:
            rows = network.rows(layer, hidden, positions)
            hidden = network.attend(layer, hidden, positions, rows, mask)
            first = len(positions) - n_rows
            rows = Rows(rows.keys[:, first:], rows.keys[:, first:])
        cache.append(rows)
    return cache


# %% wrong="bounded_replay" name="too_many_global_rows" loses="bounded_replay-refuses"
# Accepts more global rows than the hit has.
def bounded_replay(network, tokens, hit, replay_tokens, global_rows):
    n_rows = min(hit, network.window - 1)
    if not 0 <= hit <= len(tokens) or replay_tokens < n_rows:
        raise ValueError("hit or replay_tokens: expected a prefix of the text, and as many tokens as rows")
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL and (layer not in global_rows or global_rows[layer].keys.shape[1] < hit):
            raise ValueError(f"global_rows: expected {hit} rows of layer {layer}")
    start = max(0, hit - replay_tokens)
    positions = np.arange(start, hit)
    mask = window_mask(positions, positions, network.window)
    hidden, cache = network.embed(tokens[start:hit]), []
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL:
            rows = global_rows[layer]
            hidden = network.attend(layer, hidden, positions, rows)
        else:
            rows = network.rows(layer, hidden, positions)
            hidden = network.attend(layer, hidden, positions, rows, mask)
            first = len(positions) - n_rows
            rows = Rows(rows.keys[:, first:], rows.values[:, first:])
        cache.append(rows)
    return cache


# %% wrong="bounded_replay" name="tokens_in_place" loses="bounded_replay-global_kept"
# Zeroes the caller's tokens from before the start.
def bounded_replay(network, tokens, hit, replay_tokens, global_rows):
    n_rows = min(hit, network.window - 1)
    if not 0 <= hit <= len(tokens) or replay_tokens < n_rows:
        raise ValueError("hit or replay_tokens: expected a prefix of the text, and as many tokens as rows")
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL and (layer not in global_rows or global_rows[layer].keys.shape[1] != hit):
            raise ValueError(f"global_rows: expected {hit} rows of layer {layer}")
    start = max(0, hit - replay_tokens)
    positions = np.arange(start, hit)
    mask = window_mask(positions, positions, network.window)
    tokens[:start] = 0
    hidden, cache = network.embed(tokens[start:hit]), []
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL:
            rows = global_rows[layer]
            hidden = network.attend(layer, hidden, positions, rows)
        else:
            rows = network.rows(layer, hidden, positions)
            hidden = network.attend(layer, hidden, positions, rows, mask)
            first = len(positions) - n_rows
            rows = Rows(rows.keys[:, first:], rows.values[:, first:])
        cache.append(rows)
    return cache


# %% wrong="bounded_replay" name="pops_global_rows" loses="bounded_replay-global_kept"
# Pops the caller's global rows out of the dictionary.
def bounded_replay(network, tokens, hit, replay_tokens, global_rows):
    n_rows = min(hit, network.window - 1)
    if not 0 <= hit <= len(tokens) or replay_tokens < n_rows:
        raise ValueError("hit or replay_tokens: expected a prefix of the text, and as many tokens as rows")
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL and (layer not in global_rows or global_rows[layer].keys.shape[1] != hit):
            raise ValueError(f"global_rows: expected {hit} rows of layer {layer}")
    start = max(0, hit - replay_tokens)
    positions = np.arange(start, hit)
    mask = window_mask(positions, positions, network.window)
    hidden, cache = network.embed(tokens[start:hit]), []
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL:
            rows = global_rows.pop(layer)
            hidden = network.attend(layer, hidden, positions, rows)
        else:
            rows = network.rows(layer, hidden, positions)
            hidden = network.attend(layer, hidden, positions, rows, mask)
            first = len(positions) - n_rows
            rows = Rows(rows.keys[:, first:], rows.values[:, first:])
        cache.append(rows)
    return cache


# %% wrong="bounded_replay" name="refuses_hit_T" loses="bounded_replay-refuses"
# Refuses a hit of the whole text.
def bounded_replay(network, tokens, hit, replay_tokens, global_rows):
    n_rows = min(hit, network.window - 1)
    if not 0 <= hit < len(tokens) or replay_tokens < n_rows:
        raise ValueError("hit or replay_tokens: expected a prefix of the text, and as many tokens as rows")
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL and (layer not in global_rows or global_rows[layer].keys.shape[1] != hit):
            raise ValueError(f"global_rows: expected {hit} rows of layer {layer}")
    start = max(0, hit - replay_tokens)
    positions = np.arange(start, hit)
    mask = window_mask(positions, positions, network.window)
    hidden, cache = network.embed(tokens[start:hit]), []
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL:
            rows = global_rows[layer]
            hidden = network.attend(layer, hidden, positions, rows)
        else:
            rows = network.rows(layer, hidden, positions)
            hidden = network.attend(layer, hidden, positions, rows, mask)
            first = len(positions) - n_rows
            rows = Rows(rows.keys[:, first:], rows.values[:, first:])
        cache.append(rows)
    return cache


# %% right="bounded_replay" name="token_by_token"
# Replays one token after another, with lists for rings.
def bounded_replay(network, tokens, hit, replay_tokens, global_rows):
    kept = network.window - 1
    if hit < 0 or hit > len(tokens):
        raise ValueError(f"hit: expected 0 to {len(tokens)}, got {hit}")
    if replay_tokens < min(hit, kept):
        raise ValueError(f"replay_tokens: expected at least {min(hit, kept)}, got {replay_tokens}")
    is_global = [kind is LayerKind.GLOBAL for kind in network.kinds]
    for layer in np.flatnonzero(is_global):
        if int(layer) not in global_rows or global_rows[int(layer)].keys.shape[1] != hit:
            raise ValueError(f"global_rows: expected {hit} rows of layer {layer}")
    start = max(0, hit - replay_tokens)
    at_once = np.arange(start, hit)
    hidden = network.embed(np.asarray(tokens)[at_once])
    cache = []
    for layer in range(len(is_global)):
        if is_global[layer]:
            cache.append(global_rows[layer])
            hidden = network.attend(layer, hidden, at_once, cache[-1])
            continue
        new = network.rows(layer, hidden, at_once)
        outputs = []
        for number in range(len(at_once)):
            window = slice(max(0, number - kept), number + 1)
            part = Rows(new.keys[:, window], new.values[:, window])
            seen = np.ones((1, number + 1 - window.start), bool)
            one = slice(number, number + 1)
            outputs.append(network.attend(layer, hidden[one], at_once[one], part, seen))
        n_rows = min(hit, kept)
        cut = new.keys.shape[1] - n_rows
        cache.append(Rows(new.keys[:, cut:], new.values[:, cut:]))
        hidden = np.concatenate(outputs) if outputs else hidden
    return cache


# %% right="bounded_replay" name="stops_at_the_top"
# Attends no layer whose output nobody needs.
def bounded_replay(network, tokens, hit, replay_tokens, global_rows):
    n_rows = min(hit, network.window - 1)
    if not 0 <= hit <= len(tokens) or replay_tokens < n_rows:
        raise ValueError("hit or replay_tokens: expected a prefix of the text, and as many tokens as rows")
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL and (layer not in global_rows or global_rows[layer].keys.shape[1] != hit):
            raise ValueError(f"global_rows: expected {hit} rows of layer {layer}")
    start = max(0, hit - replay_tokens)
    positions = np.arange(start, hit)
    mask = window_mask(positions, positions, network.window)
    hidden, cache = network.embed(tokens[start:hit]), []
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL:
            rows = global_rows[layer]
            if LayerKind.WINDOW in network.kinds[layer + 1 :]:
                hidden = network.attend(layer, hidden, positions, rows)
        else:
            rows = network.rows(layer, hidden, positions)
            if LayerKind.WINDOW in network.kinds[layer + 1 :]:
                hidden = network.attend(layer, hidden, positions, rows, mask)
            first = len(positions) - n_rows
            rows = Rows(rows.keys[:, first:], rows.values[:, first:])
        cache.append(rows)
    return cache


# %% right="bounded_replay" name="causal_times_young"
# Makes its own mask, and copies what it returns.
def bounded_replay(network, tokens, hit, replay_tokens, global_rows):
    n_rows = min(hit, network.window - 1)
    if not 0 <= hit <= len(tokens) or replay_tokens < n_rows:
        raise ValueError("hit or replay_tokens: expected a prefix of the text, and as many tokens as rows")
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL and (layer not in global_rows or global_rows[layer].keys.shape[1] != hit):
            raise ValueError(f"global_rows: expected {hit} rows of layer {layer}")
    start = max(0, hit - replay_tokens)
    positions = np.arange(start, hit)
    mask = np.tri(len(positions), dtype=bool) & ~np.tri(len(positions), k=-network.window, dtype=bool)
    hidden, cache = network.embed(tokens[start:hit]), []
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL:
            rows = global_rows[layer]
            hidden = network.attend(layer, hidden, positions, rows)
        else:
            rows = network.rows(layer, hidden, positions)
            hidden = network.attend(layer, hidden, positions, rows, mask)
            first = len(positions) - n_rows
            rows = Rows(rows.keys[:, first:].copy(), rows.values[:, first:].copy())
        cache.append(rows)
    return cache


# %% right="bounded_replay" name="recursion"
# Recursion over layers; tuples; lists of floats.
def bounded_replay(network, tokens, hit, replay_tokens, global_rows):
    n_rows = min(hit, network.window - 1)
    if hit < 0 or hit > len(tokens) or replay_tokens < n_rows:
        raise ValueError("hit")
    if any(
        k == LayerKind.GLOBAL
        and np.shape(global_rows.get(i, (np.zeros((1, 0, 1)),))[0])[1] != hit
        or k == LayerKind.GLOBAL
        and i not in global_rows
        for i, k in enumerate(network.kinds)
    ):
        raise ValueError("global_rows")
    p = np.arange(hit)[-replay_tokens:] if replay_tokens else np.arange(0)

    def go(layer, hidden):
        if layer == len(network.kinds):
            return ()
        if network.kinds[layer] == LayerKind.GLOBAL:
            kept = rows = global_rows[layer]
            after = network.attend(layer, hidden, p, rows)
        else:
            rows = network.rows(layer, hidden, p)
            kept = tuple(a[:, a.shape[1] - n_rows :] for a in rows)
            after = network.attend(layer, hidden, p, rows, window_mask(p, p, network.window))
        return (kept,) + go(layer + 1, after)

    return go(0, network.embed(tokens[p]))


# %% wrong="exact_replay" name="l_times_w" loses="exact_replay-tokens exact_replay-short"
# Replays L·W tokens: exact too, but not the fewest.
def exact_replay(network, tokens, hit, global_rows):
    n_window_layers = sum(kind is LayerKind.WINDOW for kind in network.kinds)
    return bounded_replay(network, tokens, hit, n_window_layers * network.window, global_rows)


# %% wrong="exact_replay" name="all_layers" loses="exact_replay-tokens"
# Counts global layers too, whose rows are there.
def exact_replay(network, tokens, hit, global_rows):
    n_window_layers = len(network.kinds)
    return bounded_replay(network, tokens, hit, n_window_layers * (network.window - 1), global_rows)


# %% wrong="exact_replay" name="one_fewer" loses="exact_replay-tokens exact_replay-states"
# Replays one token fewer: off in the top layer alone.
def exact_replay(network, tokens, hit, global_rows):
    n_window_layers = sum(kind is LayerKind.WINDOW for kind in network.kinds)
    return bounded_replay(
        network, tokens, hit, max(network.window - 1, n_window_layers * (network.window - 1) - 1), global_rows
    )


# %% wrong="exact_replay" name="one_more" loses="exact_replay-tokens exact_replay-short"
# Replays one token more, as the logits at H - 1 would need.
def exact_replay(network, tokens, hit, global_rows):
    n_window_layers = sum(kind is LayerKind.WINDOW for kind in network.kinds)
    return bounded_replay(network, tokens, hit, n_window_layers * (network.window - 1) + 1, global_rows)


# %% wrong="exact_replay" name="window_once" loses="exact_replay-tokens exact_replay-states exact_replay-short"
# Replays W tokens: bounded replay.
def exact_replay(network, tokens, hit, global_rows):
    n_window_layers = sum(kind is LayerKind.WINDOW for kind in network.kinds)
    return bounded_replay(network, tokens, hit, network.window, global_rows)


# %% wrong="exact_replay" name="layers_less_one" loses="exact_replay-tokens exact_replay-states exact_replay-short"
# Takes the first layer for free: (L - 1)(W - 1) tokens.
def exact_replay(network, tokens, hit, global_rows):
    n_window_layers = sum(kind is LayerKind.WINDOW for kind in network.kinds)
    return bounded_replay(network, tokens, hit, max(1, n_window_layers - 1) * (network.window - 1), global_rows)


# %% wrong="exact_replay" name="cold_run" loses="exact_replay-tokens exact_replay-short"
# Runs the whole prefix.
def exact_replay(network, tokens, hit, global_rows):
    n_window_layers = sum(kind is LayerKind.WINDOW for kind in network.kinds)
    return bounded_replay(network, tokens, hit, max(hit, network.window), global_rows)


# %% wrong="exact_replay" name="the_cold_cache" loses="exact_replay-tokens exact_replay-short"
# Runs everything cold and cuts the cache out, as the given functions do.
def exact_replay(network, tokens, hit, global_rows):
    if not 0 <= hit <= len(tokens):
        raise ValueError(f"hit: expected 0 to {len(tokens)}, got {hit}")
    return cache_of(swa_forward(network, tokens), network, hit)


# %% wrong="exact_replay" name="power_of_two" loses="exact_replay-tokens"
# Rounds up to blocks of 16 tokens, as a kernel would.
def exact_replay(network, tokens, hit, global_rows):
    n_window_layers = sum(kind is LayerKind.WINDOW for kind in network.kinds)
    return bounded_replay(network, tokens, hit, -(-n_window_layers * (network.window - 1) // 16) * 16, global_rows)


# %% right="exact_replay" name="trapezoid"
# Computes in each layer only the rows from which a later one is exact.
def exact_replay(network, tokens, hit, global_rows):
    if not 0 <= hit <= len(tokens):
        raise ValueError(f"hit: expected 0 to {len(tokens)}, got {hit}")
    reach = network.window - 1
    left = sum(kind is LayerKind.WINDOW for kind in network.kinds)
    first = max(0, hit - left * reach)
    positions = np.arange(first, hit)
    hidden, cache = network.embed(tokens[first:hit]), []
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL:
            if layer not in global_rows or global_rows[layer].keys.shape[1] != hit:
                raise ValueError(f"global_rows: expected {hit} rows of layer {layer}")
            cache.append(global_rows[layer])
            hidden = network.attend(layer, hidden, positions, global_rows[layer])
            continue
        rows = network.rows(layer, hidden, positions)
        n_rows = min(hit, reach)
        cut = len(positions) - n_rows
        cache.append(Rows(rows.keys[:, cut:], rows.values[:, cut:]))
        left -= 1
        kept = len(positions) - min(len(positions), left * reach if first else hit)
        later = positions[kept:]
        hidden = network.attend(layer, hidden[kept:], later, rows, window_mask(later, positions, network.window))
        positions = later
    return cache


# %% right="exact_replay" name="sum_of_layers"
# Adds up what each layer needs.
def exact_replay(network, tokens, hit, global_rows):
    needed = 0
    for kind in network.kinds:
        needed += network.window - 1 if kind == LayerKind.WINDOW else 0
    return bounded_replay(network, tokens, hit=hit, replay_tokens=needed, global_rows=global_rows)


# %% wrong="index_topk" name="mean_of_block" loses="index_topk-blocks"
# Scores a block by the mean of its tokens.
def index_topk(q, index_keys, block_tokens, top_blocks):
    if block_tokens < 1 or top_blocks < 1 or len(q) == 0:
        raise ValueError("block_tokens, top_blocks or q: expected at least 1 of each")
    if not (np.isfinite(q).all() and np.isfinite(index_keys).all()):
        raise ValueError("q or index_keys: expected finite numbers")
    scores = (q @ index_keys.T).max(axis=0)
    starts = range(0, len(scores), block_tokens)
    blocks = np.array([scores[start : start + block_tokens].mean() for start in starts])
    order = np.argsort(-blocks, kind="stable")[:top_blocks]
    return np.concatenate([order, np.full(top_blocks - len(order), -1)])


# %% wrong="index_topk" name="sum_of_block" loses="index_topk-blocks index_topk-padding"
# Scores a block by the sum of its tokens.
def index_topk(q, index_keys, block_tokens, top_blocks):
    if block_tokens < 1 or top_blocks < 1 or len(q) == 0:
        raise ValueError("block_tokens, top_blocks or q: expected at least 1 of each")
    if not (np.isfinite(q).all() and np.isfinite(index_keys).all()):
        raise ValueError("q or index_keys: expected finite numbers")
    scores = (q @ index_keys.T).max(axis=0)
    starts = range(0, len(scores), block_tokens)
    blocks = np.array([scores[start : start + block_tokens].sum() for start in starts])
    order = np.argsort(-blocks, kind="stable")[:top_blocks]
    return np.concatenate([order, np.full(top_blocks - len(order), -1)])


# %% wrong="index_topk" name="first_of_block" loses="index_topk-blocks"
# Scores a block by its first token.
def index_topk(q, index_keys, block_tokens, top_blocks):
    if block_tokens < 1 or top_blocks < 1 or len(q) == 0:
        raise ValueError("block_tokens, top_blocks or q: expected at least 1 of each")
    if not (np.isfinite(q).all() and np.isfinite(index_keys).all()):
        raise ValueError("q or index_keys: expected finite numbers")
    scores = (q @ index_keys.T).max(axis=0)
    starts = range(0, len(scores), block_tokens)
    blocks = np.array([scores[start] for start in starts])
    order = np.argsort(-blocks, kind="stable")[:top_blocks]
    return np.concatenate([order, np.full(top_blocks - len(order), -1)])


# %% wrong="index_topk" name="worst_first" loses="index_topk-blocks index_topk-heads index_topk-ties index_topk-padding"
# Gives the worst blocks.
def index_topk(q, index_keys, block_tokens, top_blocks):
    if block_tokens < 1 or top_blocks < 1 or len(q) == 0:
        raise ValueError("block_tokens, top_blocks or q: expected at least 1 of each")
    if not (np.isfinite(q).all() and np.isfinite(index_keys).all()):
        raise ValueError("q or index_keys: expected finite numbers")
    scores = (q @ index_keys.T).max(axis=0)
    starts = range(0, len(scores), block_tokens)
    blocks = np.array([scores[start : start + block_tokens].max() for start in starts])
    order = np.argsort(blocks, kind="stable")[:top_blocks]
    return np.concatenate([order, np.full(top_blocks - len(order), -1)])


# %% wrong="index_topk" name="reversed" loses="index_topk-blocks index_topk-heads index_topk-ties index_topk-padding"
# Finds the best blocks, and gives them in the order of the context.
def index_topk(q, index_keys, block_tokens, top_blocks):
    if block_tokens < 1 or top_blocks < 1 or len(q) == 0:
        raise ValueError("block_tokens, top_blocks or q: expected at least 1 of each")
    if not (np.isfinite(q).all() and np.isfinite(index_keys).all()):
        raise ValueError("q or index_keys: expected finite numbers")
    scores = (q @ index_keys.T).max(axis=0)
    starts = range(0, len(scores), block_tokens)
    blocks = np.array([scores[start : start + block_tokens].max() for start in starts])
    order = np.argsort(-blocks, kind="stable")[:top_blocks]
    order.sort()
    return np.concatenate([order, np.full(top_blocks - len(order), -1)])


# %% wrong="index_topk" name="sum_of_heads" loses="index_topk-heads"
# Adds the heads up.
def index_topk(q, index_keys, block_tokens, top_blocks):
    if block_tokens < 1 or top_blocks < 1 or len(q) == 0:
        raise ValueError("block_tokens, top_blocks or q: expected at least 1 of each")
    if not (np.isfinite(q).all() and np.isfinite(index_keys).all()):
        raise ValueError("q or index_keys: expected finite numbers")
    scores = (q @ index_keys.T).sum(axis=0)
    starts = range(0, len(scores), block_tokens)
    blocks = np.array([scores[start : start + block_tokens].max() for start in starts])
    order = np.argsort(-blocks, kind="stable")[:top_blocks]
    return np.concatenate([order, np.full(top_blocks - len(order), -1)])


# %% wrong="index_topk" name="mean_of_heads" loses="index_topk-heads"
# Averages over heads.
def index_topk(q, index_keys, block_tokens, top_blocks):
    if block_tokens < 1 or top_blocks < 1 or len(q) == 0:
        raise ValueError("block_tokens, top_blocks or q: expected at least 1 of each")
    if not (np.isfinite(q).all() and np.isfinite(index_keys).all()):
        raise ValueError("q or index_keys: expected finite numbers")
    scores = (q @ index_keys.T).mean(axis=0)
    starts = range(0, len(scores), block_tokens)
    blocks = np.array([scores[start : start + block_tokens].max() for start in starts])
    order = np.argsort(-blocks, kind="stable")[:top_blocks]
    return np.concatenate([order, np.full(top_blocks - len(order), -1)])


# %% wrong="index_topk" name="first_head" loses="index_topk-heads"
# Lets the first head choose.
def index_topk(q, index_keys, block_tokens, top_blocks):
    if block_tokens < 1 or top_blocks < 1 or len(q) == 0:
        raise ValueError("block_tokens, top_blocks or q: expected at least 1 of each")
    if not (np.isfinite(q).all() and np.isfinite(index_keys).all()):
        raise ValueError("q or index_keys: expected finite numbers")
    scores = (q @ index_keys.T)[0]
    starts = range(0, len(scores), block_tokens)
    blocks = np.array([scores[start : start + block_tokens].max() for start in starts])
    order = np.argsort(-blocks, kind="stable")[:top_blocks]
    return np.concatenate([order, np.full(top_blocks - len(order), -1)])


# %% wrong="index_topk" name="magnitude" loses="index_topk-blocks index_topk-heads index_topk-padding"
# Scores by magnitude: the most unlike token counts too.
def index_topk(q, index_keys, block_tokens, top_blocks):
    if block_tokens < 1 or top_blocks < 1 or len(q) == 0:
        raise ValueError("block_tokens, top_blocks or q: expected at least 1 of each")
    if not (np.isfinite(q).all() and np.isfinite(index_keys).all()):
        raise ValueError("q or index_keys: expected finite numbers")
    scores = np.abs(q @ index_keys.T).max(axis=0)
    starts = range(0, len(scores), block_tokens)
    blocks = np.array([scores[start : start + block_tokens].max() for start in starts])
    order = np.argsort(-blocks, kind="stable")[:top_blocks]
    return np.concatenate([order, np.full(top_blocks - len(order), -1)])


# %% wrong="index_topk" name="later_ties" loses="index_topk-ties"
# Reverses a rising order, which puts the later of equal blocks first.
def index_topk(q, index_keys, block_tokens, top_blocks):
    if block_tokens < 1 or top_blocks < 1 or len(q) == 0:
        raise ValueError("block_tokens, top_blocks or q: expected at least 1 of each")
    if not (np.isfinite(q).all() and np.isfinite(index_keys).all()):
        raise ValueError("q or index_keys: expected finite numbers")
    scores = (q @ index_keys.T).max(axis=0)
    starts = range(0, len(scores), block_tokens)
    blocks = np.array([scores[start : start + block_tokens].max() for start in starts])
    order = np.argsort(blocks, kind="stable")[::-1][:top_blocks]
    return np.concatenate([order, np.full(top_blocks - len(order), -1)])


# %% wrong="index_topk" name="no_padding" loses="index_topk-padding"
# Returns fewer numbers where there are fewer blocks.
def index_topk(q, index_keys, block_tokens, top_blocks):
    if block_tokens < 1 or top_blocks < 1 or len(q) == 0:
        raise ValueError("block_tokens, top_blocks or q: expected at least 1 of each")
    if not (np.isfinite(q).all() and np.isfinite(index_keys).all()):
        raise ValueError("q or index_keys: expected finite numbers")
    scores = (q @ index_keys.T).max(axis=0)
    starts = range(0, len(scores), block_tokens)
    blocks = np.array([scores[start : start + block_tokens].max() for start in starts])
    order = np.argsort(-blocks, kind="stable")[:top_blocks]
    return order


# %% wrong="index_topk" name="zero_padding" loses="index_topk-padding"
# Fills up with block 0.
def index_topk(q, index_keys, block_tokens, top_blocks):
    if block_tokens < 1 or top_blocks < 1 or len(q) == 0:
        raise ValueError("block_tokens, top_blocks or q: expected at least 1 of each")
    if not (np.isfinite(q).all() and np.isfinite(index_keys).all()):
        raise ValueError("q or index_keys: expected finite numbers")
    scores = (q @ index_keys.T).max(axis=0)
    starts = range(0, len(scores), block_tokens)
    blocks = np.array([scores[start : start + block_tokens].max() for start in starts])
    order = np.argsort(-blocks, kind="stable")[:top_blocks]
    return np.concatenate([order, np.full(top_blocks - len(order), 0)])


# %% wrong="index_topk" name="drops_the_rest" loses="index_topk-padding"
# Leaves the tokens of a short last block out.
def index_topk(q, index_keys, block_tokens, top_blocks):
    if block_tokens < 1 or top_blocks < 1 or len(q) == 0:
        raise ValueError("block_tokens, top_blocks or q: expected at least 1 of each")
    if not (np.isfinite(q).all() and np.isfinite(index_keys).all()):
        raise ValueError("q or index_keys: expected finite numbers")
    scores = (q @ index_keys.T).max(axis=0)
    starts = range(0, len(scores) - block_tokens + 1, block_tokens)
    blocks = np.array([scores[start : start + block_tokens].max() for start in starts])
    order = np.argsort(-blocks, kind="stable")[:top_blocks]
    return np.concatenate([order, np.full(top_blocks - len(order), -1)])


# %% wrong="index_topk" name="pads_with_zeros" loses="index_topk-padding"
# Fills a short last block up with scores of 0.
def index_topk(q, index_keys, block_tokens, top_blocks):
    if block_tokens < 1 or top_blocks < 1 or len(q) == 0:
        raise ValueError("block_tokens, top_blocks or q: expected at least 1 of each")
    if not (np.isfinite(q).all() and np.isfinite(index_keys).all()):
        raise ValueError("q or index_keys: expected finite numbers")
    scores = (q @ index_keys.T).max(axis=0)
    scores = np.pad(scores, (0, -len(scores) % block_tokens))
    starts = range(0, len(scores), block_tokens)
    blocks = np.array([scores[start : start + block_tokens].max() for start in starts])
    order = np.argsort(-blocks, kind="stable")[:top_blocks]
    return np.concatenate([order, np.full(top_blocks - len(order), -1)])


# %% wrong="index_topk" name="tokens_not_blocks" loses="index_topk-blocks index_topk-padding"
# Picks tokens, not blocks.
def index_topk(q, index_keys, block_tokens, top_blocks):
    if block_tokens < 1 or top_blocks < 1 or len(q) == 0:
        raise ValueError("block_tokens, top_blocks or q: expected at least 1 of each")
    if not (np.isfinite(q).all() and np.isfinite(index_keys).all()):
        raise ValueError("q or index_keys: expected finite numbers")
    scores = (q @ index_keys.T).max(axis=0)
    starts = range(0, len(scores), block_tokens)
    blocks = np.array([scores[start : start + block_tokens].max() for start in range(len(scores))])
    order = np.argsort(-blocks, kind="stable")[:top_blocks]
    return np.concatenate([order, np.full(top_blocks - len(order), -1)])


# %% wrong="index_topk" name="refuses_nothing" loses="index_topk-refuses"
# Ranks whatever it is given.
def index_topk(q, index_keys, block_tokens, top_blocks):
    scores = (q @ index_keys.T).max(axis=0)
    starts = range(0, len(scores), block_tokens)
    blocks = np.array([scores[start : start + block_tokens].max() for start in starts])
    order = np.argsort(-blocks, kind="stable")[:top_blocks]
    return np.concatenate([order, np.full(top_blocks - len(order), -1)])


# %% wrong="index_topk" name="keys_in_place" loses="index_topk-heads"
# Normalises nothing, but negates the caller's keys in place.
def index_topk(q, index_keys, block_tokens, top_blocks):
    if block_tokens < 1 or top_blocks < 1 or len(q) == 0:
        raise ValueError("block_tokens, top_blocks or q: expected at least 1 of each")
    if not (np.isfinite(q).all() and np.isfinite(index_keys).all()):
        raise ValueError("q or index_keys: expected finite numbers")
    index_keys *= -1
    scores = (q @ -index_keys.T).max(axis=0)
    starts = range(0, len(scores), block_tokens)
    blocks = np.array([scores[start : start + block_tokens].max() for start in starts])
    order = np.argsort(-blocks, kind="stable")[:top_blocks]
    return np.concatenate([order, np.full(top_blocks - len(order), -1)])


# %% wrong="index_topk" name="posinf_only" loses="index_topk-refuses"
# Refuses NaN and +inf, not -inf.
def index_topk(q, index_keys, block_tokens, top_blocks):
    if block_tokens < 1 or top_blocks < 1 or len(q) == 0:
        raise ValueError("block_tokens, top_blocks or q: expected at least 1 of each")
    if not ((q < np.inf).all() and (index_keys < np.inf).all()):
        raise ValueError("q or index_keys: expected finite numbers")
    scores = (q @ index_keys.T).max(axis=0)
    starts = range(0, len(scores), block_tokens)
    blocks = np.array([scores[start : start + block_tokens].max() for start in starts])
    order = np.argsort(-blocks, kind="stable")[:top_blocks]
    return np.concatenate([order, np.full(top_blocks - len(order), -1)])


# %% wrong="index_topk" name="norm_q" loses="index_topk-heads"
# Normalises the queries, so that all heads count alike.
def index_topk(q, index_keys, block_tokens, top_blocks):
    if block_tokens < 1 or top_blocks < 1 or len(q) == 0:
        raise ValueError("block_tokens, top_blocks or q: expected at least 1 of each")
    if not (np.isfinite(q).all() and np.isfinite(index_keys).all()):
        raise ValueError("q or index_keys: expected finite numbers")
    scores = (q / np.linalg.norm(q, axis=1, keepdims=True) @ index_keys.T).max(axis=0)
    starts = range(0, len(scores), block_tokens)
    blocks = np.array([scores[start : start + block_tokens].max() for start in starts])
    order = np.argsort(-blocks, kind="stable")[:top_blocks]
    return np.concatenate([order, np.full(top_blocks - len(order), -1)])


# %% wrong="index_topk" name="integer_scores" loses="index_topk-heads"
# Rounds scores to whole numbers.
def index_topk(q, index_keys, block_tokens, top_blocks):
    if block_tokens < 1 or top_blocks < 1 or len(q) == 0:
        raise ValueError("block_tokens, top_blocks or q: expected at least 1 of each")
    if not (np.isfinite(q).all() and np.isfinite(index_keys).all()):
        raise ValueError("q or index_keys: expected finite numbers")
    scores = (q @ index_keys.T).max(axis=0).astype(int)
    starts = range(0, len(scores), block_tokens)
    blocks = np.array([scores[start : start + block_tokens].max() for start in starts])
    order = np.argsort(-blocks, kind="stable")[:top_blocks]
    return np.concatenate([order, np.full(top_blocks - len(order), -1)])


# %% right="index_topk" name="knock_out"
# Takes the best block, strikes it out, and goes on.
def index_topk(q, index_keys, block_tokens, top_blocks):
    if block_tokens < 1 or top_blocks < 1 or not np.size(q):
        raise ValueError("block_tokens, top_blocks or q: expected at least 1 of each")
    if not (np.isfinite(q).all() and np.isfinite(index_keys).all()):
        raise ValueError("q or index_keys: expected finite numbers")
    best = {}
    for token, key in enumerate(np.asarray(index_keys, np.float64)):
        score = max(float(head @ key) for head in np.asarray(q, np.float64))
        block = token // block_tokens
        best[block] = max(score, best.get(block, score))
    picked = []
    while best and len(picked) < top_blocks:
        block = max(best, key=lambda b: (best[b], -b))
        picked.append(block)
        del best[block]
    return np.array(picked + [-1] * (top_blocks - len(picked)))


# %% right="index_topk" name="lexsort"
# Fills the last block up with minus infinity, and sorts by score and block.
def index_topk(q, index_keys, block_tokens, top_blocks):
    if block_tokens < 1 or top_blocks < 1 or not np.size(q):
        raise ValueError("block_tokens, top_blocks or q: expected at least 1 of each")
    if not (np.isfinite(q).all() and np.isfinite(index_keys).all()):
        raise ValueError("q or index_keys: expected finite numbers")
    scores = np.einsum("hd,td->ht", q, index_keys).max(axis=0)
    scores = np.append(scores, np.full(-len(scores) % block_tokens, -np.inf))
    blocks = scores.reshape(-1, block_tokens).max(axis=1)
    found = np.full(top_blocks, -1)
    order = np.lexsort((np.arange(len(blocks)), -blocks))[:top_blocks]
    found[: len(order)] = order
    return found


# %% right="index_topk" name="heap"
# A heap, in Python numbers.
def index_topk(q, index_keys, block_tokens, top_blocks):
    import heapq, math

    q, k = np.asarray(q).tolist(), np.asarray(index_keys).tolist()
    if block_tokens < 1 or top_blocks < 1 or not q:
        raise ValueError("no")
    if not all(math.isfinite(x) for row in q + k for x in row):
        raise ValueError("finite")
    score = [max(sum(a * b for a, b in zip(h, row)) for h in q) for row in k]
    blocks = [max(score[i : i + block_tokens]) for i in range(0, len(score), block_tokens)]
    best = [b for _, b in heapq.nsmallest(top_blocks, ((-s, b) for b, s in enumerate(blocks)))]
    return best + [-1] * (top_blocks - len(best))


# %% wrong="replay_error_bound" name="no_truncated_mass" loses="replay_error_bound-first"
# Leaves the truncated mass out: the distance of the means alone.
def replay_error_bound(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        u = layer.input_error(before)
        reach = np.array([max(u[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        moved = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            off_query = layer.query_gain[head] * u
            off_key = layer.key_gain[head] * reach
            epsilon = layer.key_diameter[head] * off_query / 2 + (layer.query_norm[head] + off_query) * off_key
            share = np.tanh(epsilon / np.sqrt(layer.head_width) / 2)
            diameter = layer.value_diameter[head]
            step = layer.mean_distance[head] + share * diameter
            moved += np.minimum(step, diameter) + layer.value_gain[head] * reach
        lines.append(layer.output_error(before + moved))
    return np.array(lines)


# %% wrong="replay_error_bound" name="mass_alone" loses="replay_error_bound-first replay_error_bound-never_below"
# Takes the truncated mass for a distance.
def replay_error_bound(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        u = layer.input_error(before)
        reach = np.array([max(u[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        moved = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            off_query = layer.query_gain[head] * u
            off_key = layer.key_gain[head] * reach
            epsilon = layer.key_diameter[head] * off_query / 2 + (layer.query_norm[head] + off_query) * off_key
            share = np.tanh(epsilon / np.sqrt(layer.head_width) / 2)
            diameter = layer.value_diameter[head]
            step = layer.truncated_mass[head] + share * diameter
            moved += np.minimum(step, diameter) + layer.value_gain[head] * reach
        lines.append(layer.output_error(before + moved))
    return np.array(lines)


# %% wrong="replay_error_bound" name="mass_twice" loses="replay_error_bound-first replay_error_bound-never_below"
# Forgets that what is cut away also makes the rest heavier: mass · (1 - mass).
def replay_error_bound(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        u = layer.input_error(before)
        reach = np.array([max(u[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        moved = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            off_query = layer.query_gain[head] * u
            off_key = layer.key_gain[head] * reach
            epsilon = layer.key_diameter[head] * off_query / 2 + (layer.query_norm[head] + off_query) * off_key
            share = np.tanh(epsilon / np.sqrt(layer.head_width) / 2)
            diameter = layer.value_diameter[head]
            step = (
                layer.truncated_mass[head] * (1 - layer.truncated_mass[head]) * layer.mean_distance[head]
                + share * diameter
            )
            moved += np.minimum(step, diameter) + layer.value_gain[head] * reach
        lines.append(layer.output_error(before + moved))
    return np.array(lines)


# %% wrong="replay_error_bound" name="largest_head" loses="replay_error_bound-first replay_error_bound-never_below"
# Lets the head that moves most stand for all.
def replay_error_bound(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        u = layer.input_error(before)
        reach = np.array([max(u[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        moved = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            off_query = layer.query_gain[head] * u
            off_key = layer.key_gain[head] * reach
            epsilon = layer.key_diameter[head] * off_query / 2 + (layer.query_norm[head] + off_query) * off_key
            share = np.tanh(epsilon / np.sqrt(layer.head_width) / 2)
            diameter = layer.value_diameter[head]
            step = layer.truncated_mass[head] * layer.mean_distance[head] + share * diameter
            moved = np.maximum(moved, np.minimum(step, diameter) + layer.value_gain[head] * reach)
        lines.append(layer.output_error(before + moved))
    return np.array(lines)


# %% wrong="replay_error_bound" name="heads_in_squares" loses="replay_error_bound-first replay_error_bound-never_below"
# Adds heads up in squares, as if they were independent.
def replay_error_bound(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        u = layer.input_error(before)
        reach = np.array([max(u[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        moved = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            off_query = layer.query_gain[head] * u
            off_key = layer.key_gain[head] * reach
            epsilon = layer.key_diameter[head] * off_query / 2 + (layer.query_norm[head] + off_query) * off_key
            share = np.tanh(epsilon / np.sqrt(layer.head_width) / 2)
            diameter = layer.value_diameter[head]
            step = layer.truncated_mass[head] * layer.mean_distance[head] + share * diameter
            moved = np.hypot(moved, np.minimum(step, diameter) + layer.value_gain[head] * reach)
        lines.append(layer.output_error(before + moved))
    return np.array(lines)


# %% wrong="replay_error_bound" name="mean_of_heads" loses="replay_error_bound-first replay_error_bound-never_below"
# Averages over heads.
def replay_error_bound(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        u = layer.input_error(before)
        reach = np.array([max(u[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        moved = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            off_query = layer.query_gain[head] * u
            off_key = layer.key_gain[head] * reach
            epsilon = layer.key_diameter[head] * off_query / 2 + (layer.query_norm[head] + off_query) * off_key
            share = np.tanh(epsilon / np.sqrt(layer.head_width) / 2)
            diameter = layer.value_diameter[head]
            step = layer.truncated_mass[head] * layer.mean_distance[head] + share * diameter
            moved += np.minimum(step, diameter) + layer.value_gain[head] * reach
        lines.append(layer.output_error(before + moved / len(layer.query_gain)))
    return np.array(lines)


# %% wrong="replay_error_bound" name="no_residual" loses="replay_error_bound-values replay_error_bound-capped replay_error_bound-norms replay_error_bound-never_below"
# Forgets what the residual carries on.
def replay_error_bound(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        u = layer.input_error(before)
        reach = np.array([max(u[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        moved = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            off_query = layer.query_gain[head] * u
            off_key = layer.key_gain[head] * reach
            epsilon = layer.key_diameter[head] * off_query / 2 + (layer.query_norm[head] + off_query) * off_key
            share = np.tanh(epsilon / np.sqrt(layer.head_width) / 2)
            diameter = layer.value_diameter[head]
            step = layer.truncated_mass[head] * layer.mean_distance[head] + share * diameter
            moved += np.minimum(step, diameter) + layer.value_gain[head] * reach
        lines.append(layer.output_error(moved))
    return np.array(lines)


# %% wrong="replay_error_bound" name="own_token_only" loses="replay_error_bound-values replay_error_bound-norms replay_error_bound-never_below"
# Takes the token's own error for that of the rows it reads.
def replay_error_bound(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        u = layer.input_error(before)
        reach = np.array([u[t] for t in range(n_tokens)])
        moved = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            off_query = layer.query_gain[head] * u
            off_key = layer.key_gain[head] * reach
            epsilon = layer.key_diameter[head] * off_query / 2 + (layer.query_norm[head] + off_query) * off_key
            share = np.tanh(epsilon / np.sqrt(layer.head_width) / 2)
            diameter = layer.value_diameter[head]
            step = layer.truncated_mass[head] * layer.mean_distance[head] + share * diameter
            moved += np.minimum(step, diameter) + layer.value_gain[head] * reach
        lines.append(layer.output_error(before + moved))
    return np.array(lines)


# %% wrong="replay_error_bound" name="mean_of_window" loses="replay_error_bound-values replay_error_bound-norms"
# Takes the mean error of the window: an estimate, no guarantee.
def replay_error_bound(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        u = layer.input_error(before)
        reach = np.array([np.mean(u[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        moved = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            off_query = layer.query_gain[head] * u
            off_key = layer.key_gain[head] * reach
            epsilon = layer.key_diameter[head] * off_query / 2 + (layer.query_norm[head] + off_query) * off_key
            share = np.tanh(epsilon / np.sqrt(layer.head_width) / 2)
            diameter = layer.value_diameter[head]
            step = layer.truncated_mass[head] * layer.mean_distance[head] + share * diameter
            moved += np.minimum(step, diameter) + layer.value_gain[head] * reach
        lines.append(layer.output_error(before + moved))
    return np.array(lines)


# %% wrong="replay_error_bound" name="all_tokens" loses="replay_error_bound-values replay_error_bound-norms"
# Takes the worst of all replayed tokens, later ones among them.
def replay_error_bound(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        u = layer.input_error(before)
        reach = np.array([max(u) for t in range(n_tokens)])
        moved = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            off_query = layer.query_gain[head] * u
            off_key = layer.key_gain[head] * reach
            epsilon = layer.key_diameter[head] * off_query / 2 + (layer.query_norm[head] + off_query) * off_key
            share = np.tanh(epsilon / np.sqrt(layer.head_width) / 2)
            diameter = layer.value_diameter[head]
            step = layer.truncated_mass[head] * layer.mean_distance[head] + share * diameter
            moved += np.minimum(step, diameter) + layer.value_gain[head] * reach
        lines.append(layer.output_error(before + moved))
    return np.array(lines)


# %% wrong="replay_error_bound" name="window_less_one" loses="replay_error_bound-values replay_error_bound-norms replay_error_bound-never_below"
# Looks at W - 1 tokens of the window.
def replay_error_bound(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        u = layer.input_error(before)
        reach = np.array([max(u[min(t, max(0, t + 2 - statistics.window)) : t + 1]) for t in range(n_tokens)])
        moved = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            off_query = layer.query_gain[head] * u
            off_key = layer.key_gain[head] * reach
            epsilon = layer.key_diameter[head] * off_query / 2 + (layer.query_norm[head] + off_query) * off_key
            share = np.tanh(epsilon / np.sqrt(layer.head_width) / 2)
            diameter = layer.value_diameter[head]
            step = layer.truncated_mass[head] * layer.mean_distance[head] + share * diameter
            moved += np.minimum(step, diameter) + layer.value_gain[head] * reach
        lines.append(layer.output_error(before + moved))
    return np.array(lines)


# %% wrong="replay_error_bound" name="no_value_errors" loses="replay_error_bound-values replay_error_bound-norms replay_error_bound-never_below"
# Forgets that the rebuilt values are off themselves.
def replay_error_bound(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        u = layer.input_error(before)
        reach = np.array([max(u[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        moved = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            off_query = layer.query_gain[head] * u
            off_key = layer.key_gain[head] * reach
            epsilon = layer.key_diameter[head] * off_query / 2 + (layer.query_norm[head] + off_query) * off_key
            share = np.tanh(epsilon / np.sqrt(layer.head_width) / 2)
            diameter = layer.value_diameter[head]
            step = layer.truncated_mass[head] * layer.mean_distance[head] + share * diameter
            moved += np.minimum(step, diameter)
        lines.append(layer.output_error(before + moved))
    return np.array(lines)


# %% wrong="replay_error_bound" name="rms_gain" loses="replay_error_bound-values replay_error_bound-norms replay_error_bound-never_below"
# Takes the gain for a random direction where the worst one counts.
def replay_error_bound(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        u = layer.input_error(before)
        reach = np.array([max(u[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        moved = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            off_query = layer.query_gain[head] * u
            off_key = layer.key_gain[head] * reach
            epsilon = layer.key_diameter[head] * off_query / 2 + (layer.query_norm[head] + off_query) * off_key
            share = np.tanh(epsilon / np.sqrt(layer.head_width) / 2)
            diameter = layer.value_diameter[head]
            step = layer.truncated_mass[head] * layer.mean_distance[head] + share * diameter
            moved += np.minimum(step, diameter) + layer.value_rms_gain[head] * reach
        lines.append(layer.output_error(before + moved))
    return np.array(lines)


# %% wrong="replay_error_bound" name="no_query_errors" loses="replay_error_bound-weights replay_error_bound-never_below"
# Forgets that the queries move.
def replay_error_bound(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        u = layer.input_error(before)
        reach = np.array([max(u[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        moved = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            off_query = layer.query_gain[head] * u
            off_key = layer.key_gain[head] * reach
            epsilon = layer.query_norm[head] * off_key
            share = np.tanh(epsilon / np.sqrt(layer.head_width) / 2)
            diameter = layer.value_diameter[head]
            step = layer.truncated_mass[head] * layer.mean_distance[head] + share * diameter
            moved += np.minimum(step, diameter) + layer.value_gain[head] * reach
        lines.append(layer.output_error(before + moved))
    return np.array(lines)


# %% wrong="replay_error_bound" name="no_product" loses="replay_error_bound-weights"
# Leaves out the product of both errors, as too small to count.
def replay_error_bound(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        u = layer.input_error(before)
        reach = np.array([max(u[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        moved = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            off_query = layer.query_gain[head] * u
            off_key = layer.key_gain[head] * reach
            epsilon = layer.key_diameter[head] * off_query / 2 + layer.query_norm[head] * off_key
            share = np.tanh(epsilon / np.sqrt(layer.head_width) / 2)
            diameter = layer.value_diameter[head]
            step = layer.truncated_mass[head] * layer.mean_distance[head] + share * diameter
            moved += np.minimum(step, diameter) + layer.value_gain[head] * reach
        lines.append(layer.output_error(before + moved))
    return np.array(lines)


# %% wrong="replay_error_bound" name="whole_diameter" loses="replay_error_bound-weights"
# Takes the whole diameter of the keys where half does: too much.
def replay_error_bound(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        u = layer.input_error(before)
        reach = np.array([max(u[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        moved = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            off_query = layer.query_gain[head] * u
            off_key = layer.key_gain[head] * reach
            epsilon = layer.key_diameter[head] * off_query + (layer.query_norm[head] + off_query) * off_key
            share = np.tanh(epsilon / np.sqrt(layer.head_width) / 2)
            diameter = layer.value_diameter[head]
            step = layer.truncated_mass[head] * layer.mean_distance[head] + share * diameter
            moved += np.minimum(step, diameter) + layer.value_gain[head] * reach
        lines.append(layer.output_error(before + moved))
    return np.array(lines)


# %% wrong="replay_error_bound" name="no_root" loses="replay_error_bound-weights"
# Forgets to divide by √D.
def replay_error_bound(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        u = layer.input_error(before)
        reach = np.array([max(u[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        moved = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            off_query = layer.query_gain[head] * u
            off_key = layer.key_gain[head] * reach
            epsilon = layer.key_diameter[head] * off_query / 2 + (layer.query_norm[head] + off_query) * off_key
            share = np.tanh(epsilon / 2)
            diameter = layer.value_diameter[head]
            step = layer.truncated_mass[head] * layer.mean_distance[head] + share * diameter
            moved += np.minimum(step, diameter) + layer.value_gain[head] * reach
        lines.append(layer.output_error(before + moved))
    return np.array(lines)


# %% wrong="replay_error_bound" name="no_half" loses="replay_error_bound-weights"
# Takes tanh(ε) for tanh(ε/2).
def replay_error_bound(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        u = layer.input_error(before)
        reach = np.array([max(u[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        moved = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            off_query = layer.query_gain[head] * u
            off_key = layer.key_gain[head] * reach
            epsilon = layer.key_diameter[head] * off_query / 2 + (layer.query_norm[head] + off_query) * off_key
            share = np.tanh(epsilon / np.sqrt(layer.head_width))
            diameter = layer.value_diameter[head]
            step = layer.truncated_mass[head] * layer.mean_distance[head] + share * diameter
            moved += np.minimum(step, diameter) + layer.value_gain[head] * reach
        lines.append(layer.output_error(before + moved))
    return np.array(lines)


# %% wrong="replay_error_bound" name="linear" loses="replay_error_bound-weights"
# Takes ε/2 itself for its tanh.
def replay_error_bound(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        u = layer.input_error(before)
        reach = np.array([max(u[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        moved = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            off_query = layer.query_gain[head] * u
            off_key = layer.key_gain[head] * reach
            epsilon = layer.key_diameter[head] * off_query / 2 + (layer.query_norm[head] + off_query) * off_key
            share = epsilon / np.sqrt(layer.head_width) / 2
            diameter = layer.value_diameter[head]
            step = layer.truncated_mass[head] * layer.mean_distance[head] + share * diameter
            moved += np.minimum(step, diameter) + layer.value_gain[head] * reach
        lines.append(layer.output_error(before + moved))
    return np.array(lines)


# %% wrong="replay_error_bound" name="no_cap" loses="replay_error_bound-capped"
# Forgets the convex hull.
def replay_error_bound(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        u = layer.input_error(before)
        reach = np.array([max(u[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        moved = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            off_query = layer.query_gain[head] * u
            off_key = layer.key_gain[head] * reach
            epsilon = layer.key_diameter[head] * off_query / 2 + (layer.query_norm[head] + off_query) * off_key
            share = np.tanh(epsilon / np.sqrt(layer.head_width) / 2)
            diameter = layer.value_diameter[head]
            step = layer.truncated_mass[head] * layer.mean_distance[head] + share * diameter
            moved += step + layer.value_gain[head] * reach
        lines.append(layer.output_error(before + moved))
    return np.array(lines)


# %% wrong="replay_error_bound" name="cap_on_all" loses="replay_error_bound-values replay_error_bound-never_below"
# Caps what rebuilt values add, too.
def replay_error_bound(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        u = layer.input_error(before)
        reach = np.array([max(u[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        moved = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            off_query = layer.query_gain[head] * u
            off_key = layer.key_gain[head] * reach
            epsilon = layer.key_diameter[head] * off_query / 2 + (layer.query_norm[head] + off_query) * off_key
            share = np.tanh(epsilon / np.sqrt(layer.head_width) / 2)
            diameter = layer.value_diameter[head]
            step = layer.truncated_mass[head] * layer.mean_distance[head] + share * diameter
            moved += np.minimum(step + layer.value_gain[head] * reach, diameter)
        lines.append(layer.output_error(before + moved))
    return np.array(lines)


# %% wrong="replay_error_bound" name="half_the_cap" loses="replay_error_bound-capped replay_error_bound-never_below"
# Caps at half of the diameter, as if the mean lay in the middle.
def replay_error_bound(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        u = layer.input_error(before)
        reach = np.array([max(u[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        moved = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            off_query = layer.query_gain[head] * u
            off_key = layer.key_gain[head] * reach
            epsilon = layer.key_diameter[head] * off_query / 2 + (layer.query_norm[head] + off_query) * off_key
            share = np.tanh(epsilon / np.sqrt(layer.head_width) / 2)
            diameter = layer.value_diameter[head]
            step = layer.truncated_mass[head] * layer.mean_distance[head] + share * diameter
            moved += np.minimum(step, diameter / 2) + layer.value_gain[head] * reach
        lines.append(layer.output_error(before + moved))
    return np.array(lines)


# %% wrong="replay_error_bound" name="no_norm" loses="replay_error_bound-norms"
# Ignores the norm in front of attention.
def replay_error_bound(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        u = before
        reach = np.array([max(u[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        moved = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            off_query = layer.query_gain[head] * u
            off_key = layer.key_gain[head] * reach
            epsilon = layer.key_diameter[head] * off_query / 2 + (layer.query_norm[head] + off_query) * off_key
            share = np.tanh(epsilon / np.sqrt(layer.head_width) / 2)
            diameter = layer.value_diameter[head]
            step = layer.truncated_mass[head] * layer.mean_distance[head] + share * diameter
            moved += np.minimum(step, diameter) + layer.value_gain[head] * reach
        lines.append(layer.output_error(before + moved))
    return np.array(lines)


# %% wrong="replay_error_bound" name="no_mlp" loses="replay_error_bound-norms"
# Ignores the MLP behind attention.
def replay_error_bound(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        u = layer.input_error(before)
        reach = np.array([max(u[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        moved = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            off_query = layer.query_gain[head] * u
            off_key = layer.key_gain[head] * reach
            epsilon = layer.key_diameter[head] * off_query / 2 + (layer.query_norm[head] + off_query) * off_key
            share = np.tanh(epsilon / np.sqrt(layer.head_width) / 2)
            diameter = layer.value_diameter[head]
            step = layer.truncated_mass[head] * layer.mean_distance[head] + share * diameter
            moved += np.minimum(step, diameter) + layer.value_gain[head] * reach
        lines.append(before + moved)
    return np.array(lines)


# %% wrong="replay_error_bound" name="mlp_of_the_step" loses="replay_error_bound-norms"
# Lets the MLP see what attention adds, without the residual.
def replay_error_bound(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        u = layer.input_error(before)
        reach = np.array([max(u[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        moved = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            off_query = layer.query_gain[head] * u
            off_key = layer.key_gain[head] * reach
            epsilon = layer.key_diameter[head] * off_query / 2 + (layer.query_norm[head] + off_query) * off_key
            share = np.tanh(epsilon / np.sqrt(layer.head_width) / 2)
            diameter = layer.value_diameter[head]
            step = layer.truncated_mass[head] * layer.mean_distance[head] + share * diameter
            moved += np.minimum(step, diameter) + layer.value_gain[head] * reach
        lines.append(before + layer.output_error(moved))
    return np.array(lines)


# %% wrong="replay_error_bound" name="estimate" loses="replay_error_bound-first replay_error_bound-values replay_error_bound-weights replay_error_bound-capped replay_error_bound-norms replay_error_bound-never_below"
# Gives the estimate for the guarantee.
def replay_error_bound(statistics):
    squares = [np.zeros(statistics.layers[0].truncated_mass.shape[-1])]
    for layer in statistics.layers:
        truncated = (layer.truncated_mass * layer.mean_distance) ** 2
        squares.append(squares[-1] + truncated.sum(axis=0))
    return np.sqrt(np.stack(squares))


# %% wrong="replay_error_bound" name="infinity" loses="replay_error_bound-first replay_error_bound-values replay_error_bound-weights replay_error_bound-capped replay_error_bound-norms"
# Promises nothing: infinity wherever anything is missing.
def replay_error_bound(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        u = layer.input_error(before)
        reach = np.array([max(u[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        moved = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            off_query = layer.query_gain[head] * u
            off_key = layer.key_gain[head] * reach
            epsilon = layer.key_diameter[head] * off_query / 2 + (layer.query_norm[head] + off_query) * off_key
            share = np.tanh(epsilon / np.sqrt(layer.head_width) / 2)
            diameter = layer.value_diameter[head]
            step = layer.truncated_mass[head] * layer.mean_distance[head] + share * diameter
            moved += np.minimum(step, diameter) + layer.value_gain[head] * reach
        lines.append(layer.output_error(before + moved))
    return np.where(np.array(lines) > 0, np.inf, 0.0)


# %% wrong="replay_error_bound" name="first_query_gain" loses="replay_error_bound-weights"
# Takes the first head's query gain for all heads.
def replay_error_bound(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        u = layer.input_error(before)
        reach = np.array([max(u[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        moved = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            off_query = layer.query_gain[0] * u
            off_key = layer.key_gain[head] * reach
            epsilon = layer.key_diameter[head] * off_query / 2 + (layer.query_norm[head] + off_query) * off_key
            share = np.tanh(epsilon / np.sqrt(layer.head_width) / 2)
            diameter = layer.value_diameter[head]
            step = layer.truncated_mass[head] * layer.mean_distance[head] + share * diameter
            moved += np.minimum(step, diameter) + layer.value_gain[head] * reach
        lines.append(layer.output_error(before + moved))
    return np.array(lines)


# %% wrong="replay_error_bound" name="first_value_gain" loses="replay_error_bound-values"
# Takes the first head's value gain for all heads.
def replay_error_bound(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        u = layer.input_error(before)
        reach = np.array([max(u[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        moved = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            off_query = layer.query_gain[head] * u
            off_key = layer.key_gain[head] * reach
            epsilon = layer.key_diameter[head] * off_query / 2 + (layer.query_norm[head] + off_query) * off_key
            share = np.tanh(epsilon / np.sqrt(layer.head_width) / 2)
            diameter = layer.value_diameter[head]
            step = layer.truncated_mass[head] * layer.mean_distance[head] + share * diameter
            moved += np.minimum(step, diameter) + layer.value_gain[0] * reach
        lines.append(layer.output_error(before + moved))
    return np.array(lines)


# %% wrong="replay_error_bound" name="first_key_gain" loses="replay_error_bound-weights"
# Takes the first head's key gain for all heads.
def replay_error_bound(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        u = layer.input_error(before)
        reach = np.array([max(u[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        moved = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            off_query = layer.query_gain[head] * u
            off_key = layer.key_gain[0] * reach
            epsilon = layer.key_diameter[head] * off_query / 2 + (layer.query_norm[head] + off_query) * off_key
            share = np.tanh(epsilon / np.sqrt(layer.head_width) / 2)
            diameter = layer.value_diameter[head]
            step = layer.truncated_mass[head] * layer.mean_distance[head] + share * diameter
            moved += np.minimum(step, diameter) + layer.value_gain[head] * reach
        lines.append(layer.output_error(before + moved))
    return np.array(lines)


# %% wrong="replay_error_bound" name="mean_query_gain" loses="replay_error_bound-weights"
# Takes the mean query gain of the heads.
def replay_error_bound(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        u = layer.input_error(before)
        reach = np.array([max(u[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        moved = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            off_query = layer.query_gain.mean() * u
            off_key = layer.key_gain[head] * reach
            epsilon = layer.key_diameter[head] * off_query / 2 + (layer.query_norm[head] + off_query) * off_key
            share = np.tanh(epsilon / np.sqrt(layer.head_width) / 2)
            diameter = layer.value_diameter[head]
            step = layer.truncated_mass[head] * layer.mean_distance[head] + share * diameter
            moved += np.minimum(step, diameter) + layer.value_gain[head] * reach
        lines.append(layer.output_error(before + moved))
    return np.array(lines)


# %% wrong="replay_error_bound" name="largest_value_gain" loses="replay_error_bound-values"
# Takes the largest value gain for all heads.
def replay_error_bound(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        u = layer.input_error(before)
        reach = np.array([max(u[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        moved = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            off_query = layer.query_gain[head] * u
            off_key = layer.key_gain[head] * reach
            epsilon = layer.key_diameter[head] * off_query / 2 + (layer.query_norm[head] + off_query) * off_key
            share = np.tanh(epsilon / np.sqrt(layer.head_width) / 2)
            diameter = layer.value_diameter[head]
            step = layer.truncated_mass[head] * layer.mean_distance[head] + share * diameter
            moved += np.minimum(step, diameter) + layer.value_gain.max() * reach
        lines.append(layer.output_error(before + moved))
    return np.array(lines)


# %% wrong="replay_error_bound" name="first_key_diameter" loses="replay_error_bound-weights"
# Takes the first head's key diameter for all.
def replay_error_bound(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        u = layer.input_error(before)
        reach = np.array([max(u[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        moved = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            off_query = layer.query_gain[head] * u
            off_key = layer.key_gain[head] * reach
            epsilon = layer.key_diameter[0] * off_query / 2 + (layer.query_norm[head] + off_query) * off_key
            share = np.tanh(epsilon / np.sqrt(layer.head_width) / 2)
            diameter = layer.value_diameter[head]
            step = layer.truncated_mass[head] * layer.mean_distance[head] + share * diameter
            moved += np.minimum(step, diameter) + layer.value_gain[head] * reach
        lines.append(layer.output_error(before + moved))
    return np.array(lines)


# %% wrong="replay_error_bound" name="flat_lines" loses="replay_error_bound-first"
# Gives the last line for every layer but the first.
def replay_error_bound(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        u = layer.input_error(before)
        reach = np.array([max(u[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        moved = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            off_query = layer.query_gain[head] * u
            off_key = layer.key_gain[head] * reach
            epsilon = layer.key_diameter[head] * off_query / 2 + (layer.query_norm[head] + off_query) * off_key
            share = np.tanh(epsilon / np.sqrt(layer.head_width) / 2)
            diameter = layer.value_diameter[head]
            step = layer.truncated_mass[head] * layer.mean_distance[head] + share * diameter
            moved += np.minimum(step, diameter) + layer.value_gain[head] * reach
        lines.append(layer.output_error(before + moved))
    return np.array([lines[0]] + [lines[-1]] * (len(lines) - 1))


# %% wrong="replay_error_bound" name="cap_mass" loses="replay_error_bound-capped"
# Caps the movement of weights at 1 - mass.
def replay_error_bound(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        u = layer.input_error(before)
        reach = np.array([max(u[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        moved = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            off_query = layer.query_gain[head] * u
            off_key = layer.key_gain[head] * reach
            epsilon = layer.key_diameter[head] * off_query / 2 + (layer.query_norm[head] + off_query) * off_key
            share = np.tanh(epsilon / np.sqrt(layer.head_width) / 2)
            diameter = layer.value_diameter[head]
            step = (
                layer.truncated_mass[head] * layer.mean_distance[head]
                + np.minimum(share, 1 - layer.truncated_mass[head]) * diameter
            )
            moved += np.minimum(step, diameter) + layer.value_gain[head] * reach
        lines.append(layer.output_error(before + moved))
    return np.array(lines)


# %% right="replay_error_bound" name="all_heads_at_once"
# All heads at once, with a sliding maximum.
def replay_error_bound(statistics):
    def worst(u):
        padded = np.concatenate([np.zeros(statistics.window - 1), u])
        return np.lib.stride_tricks.sliding_window_view(padded, statistics.window).max(axis=-1)

    e = np.zeros_like(statistics.layers[0].truncated_mass[0])
    lines = [e]
    for part in statistics.layers:
        u = part.input_error(e)
        q, k = np.outer(part.query_gain, u), np.outer(part.key_gain, worst(u))
        turned = np.expm1((part.key_diameter * q / 2 + (part.query_norm + q) * k) / part.head_width**0.5)
        share = np.where(np.isinf(turned), 1.0, turned / (turned + 2))
        step = part.truncated_mass * part.mean_distance + share * part.value_diameter
        step = np.where(step < part.value_diameter, step, part.value_diameter)
        e = part.output_error(e + step.sum(axis=0) + part.value_gain.sum() * worst(u))
        lines.append(e)
    return np.stack(lines)


# %% right="replay_error_bound" name="tighter_hull"
# Cuts where missing rows and moved weights together cannot move the output further: still a guarantee.
def replay_error_bound(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        u = layer.input_error(before)
        reach = np.array([max(u[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        moved = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            off_query = layer.query_gain[head] * u
            off_key = layer.key_gain[head] * reach
            epsilon = layer.key_diameter[head] * off_query / 2 + (layer.query_norm[head] + off_query) * off_key
            share = np.tanh(epsilon / np.sqrt(layer.head_width) / 2)
            diameter = layer.value_diameter[head]
            missing = layer.truncated_mass[head] * layer.mean_distance[head]
            step = np.minimum(missing, diameter) + share * diameter
            moved += np.minimum(step, diameter) + layer.value_gain[head] * reach
        lines.append(layer.output_error(before + moved))
    return np.array(lines)


# %% wrong="predict_replay_error" name="no_truncated_mass" loses="predict_replay_error-truncated"
# Leaves the truncated mass out.
def predict_replay_error(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        mean = np.array([np.mean(before[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        added = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            added += layer.mean_distance[head] ** 2
            added += layer.value_rms_gain[head] ** 2 * layer.weight_squares[head] * mean
        lines.append(before + added)
    return np.sqrt(lines)


# %% wrong="predict_replay_error" name="mass_not_squared" loses="predict_replay_error-truncated"
# Squares the distance alone.
def predict_replay_error(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        mean = np.array([np.mean(before[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        added = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            added += layer.truncated_mass[head] * layer.mean_distance[head] ** 2
            added += layer.value_rms_gain[head] ** 2 * layer.weight_squares[head] * mean
        lines.append(before + added)
    return np.sqrt(lines)


# %% wrong="predict_replay_error" name="no_root" loses="predict_replay_error-truncated predict_replay_error-inherited predict_replay_error-window predict_replay_error-rms"
# Gives squares.
def predict_replay_error(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        mean = np.array([np.mean(before[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        added = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            added += (layer.truncated_mass[head] * layer.mean_distance[head]) ** 2
            added += layer.value_rms_gain[head] ** 2 * layer.weight_squares[head] * mean
        lines.append(before + added)
    return np.array(lines)


# %% wrong="predict_replay_error" name="linear_sum" loses="predict_replay_error-truncated predict_replay_error-inherited predict_replay_error-window predict_replay_error-rms"
# Adds errors, not their squares: as if all pointed the same way.
def predict_replay_error(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        mean = np.array([np.mean(before[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        added = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            added += layer.truncated_mass[head] * layer.mean_distance[head]
            added += layer.value_rms_gain[head] ** 2 * layer.weight_squares[head] * mean
        lines.append(before + added)
    return np.array(lines)


# %% wrong="predict_replay_error" name="heads_then_square" loses="predict_replay_error-truncated"
# Adds heads up and squares the sum.
def predict_replay_error(statistics):
    lines = [np.zeros(statistics.layers[0].truncated_mass.shape[1])]
    for layer in statistics.layers:
        before = lines[-1]
        mean = np.array([before[max(0, t + 1 - statistics.window) : t + 1].mean() for t in range(len(before))])
        truncated = (layer.truncated_mass * layer.mean_distance).sum(axis=0) ** 2
        inherited = (layer.value_rms_gain[:, None] ** 2 * layer.weight_squares).sum(axis=0) * mean
        lines.append(before + truncated + inherited)
    return np.sqrt(lines)


# %% wrong="predict_replay_error" name="no_inherited" loses="predict_replay_error-inherited predict_replay_error-window"
# Forgets that rebuilt values are off themselves.
def predict_replay_error(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        mean = np.array([np.mean(before[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        added = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            added += (layer.truncated_mass[head] * layer.mean_distance[head]) ** 2
        lines.append(before + added)
    return np.sqrt(lines)


# %% wrong="predict_replay_error" name="gain_once" loses="predict_replay_error-inherited"
# Takes the gain once, not squared.
def predict_replay_error(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        mean = np.array([np.mean(before[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        added = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            added += (layer.truncated_mass[head] * layer.mean_distance[head]) ** 2
            added += layer.value_rms_gain[head] * layer.weight_squares[head] * mean
        lines.append(before + added)
    return np.sqrt(lines)


# %% wrong="predict_replay_error" name="worst_gain" loses="predict_replay_error-inherited predict_replay_error-window"
# Takes the gain for the worst direction.
def predict_replay_error(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        mean = np.array([np.mean(before[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        added = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            added += (layer.truncated_mass[head] * layer.mean_distance[head]) ** 2
            added += layer.value_gain[head] ** 2 * layer.weight_squares[head] * mean
        lines.append(before + added)
    return np.sqrt(lines)


# %% wrong="predict_replay_error" name="no_weight_squares" loses="predict_replay_error-inherited"
# Lets errors of the rows arrive whole: they average out.
def predict_replay_error(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        mean = np.array([np.mean(before[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        added = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            added += (layer.truncated_mass[head] * layer.mean_distance[head]) ** 2
            added += layer.value_rms_gain[head] ** 2 * mean
        lines.append(before + added)
    return np.sqrt(lines)


# %% wrong="predict_replay_error" name="weight_squares_squared" loses="predict_replay_error-inherited"
# Squares the sum of squares.
def predict_replay_error(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        mean = np.array([np.mean(before[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        added = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            added += (layer.truncated_mass[head] * layer.mean_distance[head]) ** 2
            added += layer.value_rms_gain[head] ** 2 * layer.weight_squares[head] ** 2 * mean
        lines.append(before + added)
    return np.sqrt(lines)


# %% wrong="predict_replay_error" name="all_tokens" loses="predict_replay_error-window"
# Takes the mean over all replayed tokens.
def predict_replay_error(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        mean = np.array([np.mean(before) for t in range(n_tokens)])
        added = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            added += (layer.truncated_mass[head] * layer.mean_distance[head]) ** 2
            added += layer.value_rms_gain[head] ** 2 * layer.weight_squares[head] * mean
        lines.append(before + added)
    return np.sqrt(lines)


# %% wrong="predict_replay_error" name="own_token" loses="predict_replay_error-window"
# Takes the token's own error for those of the window.
def predict_replay_error(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        mean = np.array([before[t] for t in range(n_tokens)])
        added = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            added += (layer.truncated_mass[head] * layer.mean_distance[head]) ** 2
            added += layer.value_rms_gain[head] ** 2 * layer.weight_squares[head] * mean
        lines.append(before + added)
    return np.sqrt(lines)


# %% wrong="predict_replay_error" name="always_w" loses="predict_replay_error-inherited predict_replay_error-window"
# Divides by W where fewer were replayed.
def predict_replay_error(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        mean = np.array(
            [np.sum(before[max(0, t + 1 - statistics.window) : t + 1]) / statistics.window for t in range(n_tokens)]
        )
        added = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            added += (layer.truncated_mass[head] * layer.mean_distance[head]) ** 2
            added += layer.value_rms_gain[head] ** 2 * layer.weight_squares[head] * mean
        lines.append(before + added)
    return np.sqrt(lines)


# %% wrong="predict_replay_error" name="largest" loses="predict_replay_error-window"
# Takes the largest error of the window.
def predict_replay_error(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        mean = np.array([np.max(before[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        added = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            added += (layer.truncated_mass[head] * layer.mean_distance[head]) ** 2
            added += layer.value_rms_gain[head] ** 2 * layer.weight_squares[head] * mean
        lines.append(before + added)
    return np.sqrt(lines)


# %% wrong="predict_replay_error" name="square_of_the_mean" loses="predict_replay_error-window"
# Averages errors, and squares the mean.
def predict_replay_error(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        mean = np.array(
            [np.mean(np.sqrt(before[max(0, t + 1 - statistics.window) : t + 1])) ** 2 for t in range(n_tokens)]
        )
        added = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            added += (layer.truncated_mass[head] * layer.mean_distance[head]) ** 2
            added += layer.value_rms_gain[head] ** 2 * layer.weight_squares[head] * mean
        lines.append(before + added)
    return np.sqrt(lines)


# %% wrong="predict_replay_error" name="guarantee" loses="predict_replay_error-truncated predict_replay_error-inherited predict_replay_error-window predict_replay_error-rms"
# Gives what is guaranteed: far too much.
def predict_replay_error(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        u = layer.input_error(before)
        reach = np.array([max(u[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        moved = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            off_query = layer.query_gain[head] * u
            off_key = layer.key_gain[head] * reach
            epsilon = layer.key_diameter[head] * off_query / 2 + (layer.query_norm[head] + off_query) * off_key
            share = np.tanh(epsilon / np.sqrt(layer.head_width) / 2)
            diameter = layer.value_diameter[head]
            step = layer.truncated_mass[head] * layer.mean_distance[head] + share * diameter
            moved += np.minimum(step, diameter) + layer.value_gain[head] * reach
        lines.append(layer.output_error(before + moved))
    return np.array(lines)


# %% wrong="predict_replay_error" name="root_of_the_last" loses="predict_replay_error-truncated"
# Takes the root of the last line alone.
def predict_replay_error(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        mean = np.array([np.mean(before[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        added = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            added += (layer.truncated_mass[head] * layer.mean_distance[head]) ** 2
            added += layer.value_rms_gain[head] ** 2 * layer.weight_squares[head] * mean
        lines.append(before + added)
    return np.array([*lines[:-1], np.sqrt(lines[-1])])


# %% wrong="predict_replay_error" name="first_gain" loses="predict_replay_error-inherited"
# Takes the first head's gain for all.
def predict_replay_error(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        mean = np.array([np.mean(before[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        added = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            added += (layer.truncated_mass[head] * layer.mean_distance[head]) ** 2
            added += layer.value_rms_gain[0] ** 2 * layer.weight_squares[head] * mean
        lines.append(before + added)
    return np.sqrt(lines)


# %% wrong="predict_replay_error" name="mean_gain" loses="predict_replay_error-inherited"
# Takes the mean gain of the heads.
def predict_replay_error(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        mean = np.array([np.mean(before[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        added = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            added += (layer.truncated_mass[head] * layer.mean_distance[head]) ** 2
            added += layer.value_rms_gain.mean() ** 2 * layer.weight_squares[head] * mean
        lines.append(before + added)
    return np.sqrt(lines)


# %% wrong="predict_replay_error" name="sums_before_product" loses="predict_replay_error-inherited"
# Sums gains and weights over heads, then multiplies.
def predict_replay_error(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        mean = np.array([np.mean(before[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        added = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            added += (layer.truncated_mass[head] * layer.mean_distance[head]) ** 2
        added += (layer.value_rms_gain**2).sum() * layer.weight_squares.mean(axis=0) * mean
        lines.append(before + added)
    return np.sqrt(lines)


# %% wrong="predict_replay_error" name="two_layers" loses="predict_replay_error-inherited"
# Carries on the error after the first layer alone.
def predict_replay_error(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[min(len(lines), 2) - 1]
        mean = np.array([np.mean(before[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        added = np.zeros(n_tokens)
        for head in range(len(layer.query_gain)):
            added += (layer.truncated_mass[head] * layer.mean_distance[head]) ** 2
            added += layer.value_rms_gain[head] ** 2 * layer.weight_squares[head] * mean
        lines.append(before + added)
    return np.sqrt(lines)


# %% wrong="predict_replay_error" name="in_place" loses="predict_replay_error-inherited"
# Squares the caller's statistics in place.
def predict_replay_error(statistics):
    n_tokens = statistics.layers[0].truncated_mass.shape[1]
    lines = [np.zeros(n_tokens)]
    for layer in statistics.layers:
        before = lines[-1]
        mean = np.array([np.mean(before[max(0, t + 1 - statistics.window) : t + 1]) for t in range(n_tokens)])
        added = np.zeros(n_tokens)
        layer.value_rms_gain[:] **= 2
        for head in range(len(layer.query_gain)):
            added += (layer.truncated_mass[head] * layer.mean_distance[head]) ** 2
            added += layer.value_rms_gain[head] * layer.weight_squares[head] * mean
        lines.append(before + added)
    return np.sqrt(lines)


# %% right="predict_replay_error" name="running_sums"
# Means from running sums, all heads at once.
def predict_replay_error(statistics):
    window = statistics.window
    squares = np.zeros((len(statistics.layers) + 1, statistics.layers[0].truncated_mass.shape[1]))
    for number, part in enumerate(statistics.layers):
        sums = np.concatenate([[0.0], np.cumsum(squares[number])])
        ends = np.arange(1, len(sums))
        begins = np.maximum(0, ends - window)
        mean = np.maximum(sums[ends] - sums[begins], 0) / (ends - begins)
        own = np.square(part.truncated_mass * part.mean_distance).sum(axis=0)
        passed_on = np.einsum("h,ht,t->t", part.value_rms_gain**2, part.weight_squares, mean)
        squares[number + 1] = squares[number] + own + passed_on
    return squares**0.5


# %% right="predict_replay_error" name="hypot"
# Adds root by root with np.hypot.
def predict_replay_error(statistics):
    e = np.zeros(statistics.layers[0].truncated_mass.shape[1])
    lines = [e]
    for part in statistics.layers:
        spans = [e[max(0, t - statistics.window + 1) : t + 1] for t in range(len(e))]
        typical = np.array([np.linalg.norm(span) / np.sqrt(len(span)) for span in spans])
        new = e
        for mass, distance, gain, squares in zip(
            part.truncated_mass, part.mean_distance, part.value_rms_gain, part.weight_squares
        ):
            new = np.hypot(new, mass * distance)
            new = np.hypot(new, gain * np.sqrt(squares) * typical)
        e = new
        lines.append(e)
    return np.stack(lines)


# %% right="predict_replay_error" name="lists"
# Pure Python.
def predict_replay_error(statistics):
    import math

    sq = [[0.0] * statistics.layers[0].truncated_mass.shape[1]]
    for p in statistics.layers:
        last, new = sq[-1], []
        for t in range(len(last)):
            w = last[max(0, t - statistics.window + 1) : t + 1]
            m = math.fsum(w) / len(w)
            new.append(
                last[t]
                + math.fsum(
                    float(a[t] * d[t]) ** 2 + float(g) ** 2 * float(s[t]) * m
                    for a, d, g, s in zip(p.truncated_mass, p.mean_distance, p.value_rms_gain, p.weight_squares)
                )
            )
        sq.append(new)
    return [[math.sqrt(x) for x in line] for line in sq]


# %% wrong="replay_cost" name="w_for_every_hit" loses="replay_cost-replay"
# Replays W tokens where the hit has fewer.
def replay_cost(geometry, policy, request, storage):
    prompt, hit = request
    if not 0 <= hit <= prompt or hit % storage.block_tokens:
        raise ValueError("request: expected a hit in blocks, no longer than the prompt")
    state = geometry.window_state_bytes
    loaded = geometry.global_token_bytes * hit
    exact = min(hit, geometry.window_layers * (geometry.window - 1))
    if policy is Policy.BOUNDED_REPLAY:
        return ReplayCost(geometry.window, 0, loaded)
    if policy is Policy.EXACT_REPLAY:
        return ReplayCost(exact, 0, loaded)
    if policy is Policy.FULL_CACHE:
        stored = (prompt // storage.block_tokens - hit // storage.block_tokens) * state
        return ReplayCost(0, stored, loaded + (state if hit else 0))
    stored = (prompt // storage.checkpoint_tokens - hit // storage.checkpoint_tokens) * state
    since = hit % storage.checkpoint_tokens
    if hit >= storage.checkpoint_tokens and since < exact:
        return ReplayCost(since, stored, loaded + state)
    return ReplayCost(exact, stored, loaded)


# %% wrong="replay_cost" name="l_times_w" loses="replay_cost-replay replay_cost-no_checkpoint"
# Replays L·W tokens.
def replay_cost(geometry, policy, request, storage):
    prompt, hit = request
    if not 0 <= hit <= prompt or hit % storage.block_tokens:
        raise ValueError("request: expected a hit in blocks, no longer than the prompt")
    state = geometry.window_state_bytes
    loaded = geometry.global_token_bytes * hit
    exact = min(hit, geometry.window_layers * geometry.window)
    if policy is Policy.BOUNDED_REPLAY:
        return ReplayCost(min(geometry.window, hit), 0, loaded)
    if policy is Policy.EXACT_REPLAY:
        return ReplayCost(exact, 0, loaded)
    if policy is Policy.FULL_CACHE:
        stored = (prompt // storage.block_tokens - hit // storage.block_tokens) * state
        return ReplayCost(0, stored, loaded + (state if hit else 0))
    stored = (prompt // storage.checkpoint_tokens - hit // storage.checkpoint_tokens) * state
    since = hit % storage.checkpoint_tokens
    if hit >= storage.checkpoint_tokens and since < exact:
        return ReplayCost(since, stored, loaded + state)
    return ReplayCost(exact, stored, loaded)


# %% wrong="replay_cost" name="replay_stores" loses="replay_cost-replay"
# Stores windows under replay too.
def replay_cost(geometry, policy, request, storage):
    prompt, hit = request
    if not 0 <= hit <= prompt or hit % storage.block_tokens:
        raise ValueError("request: expected a hit in blocks, no longer than the prompt")
    state = geometry.window_state_bytes
    loaded = geometry.global_token_bytes * hit
    exact = min(hit, geometry.window_layers * (geometry.window - 1))
    if policy is Policy.BOUNDED_REPLAY:
        return ReplayCost(min(geometry.window, hit), state, loaded)
    if policy is Policy.EXACT_REPLAY:
        return ReplayCost(exact, 0, loaded)
    if policy is Policy.FULL_CACHE:
        stored = (prompt // storage.block_tokens - hit // storage.block_tokens) * state
        return ReplayCost(0, stored, loaded + (state if hit else 0))
    stored = (prompt // storage.checkpoint_tokens - hit // storage.checkpoint_tokens) * state
    since = hit % storage.checkpoint_tokens
    if hit >= storage.checkpoint_tokens and since < exact:
        return ReplayCost(since, stored, loaded + state)
    return ReplayCost(exact, stored, loaded)


# %% wrong="replay_cost" name="rows_of_replay" loses="replay_cost-replay"
# Replays W - 1 tokens.
def replay_cost(geometry, policy, request, storage):
    prompt, hit = request
    if not 0 <= hit <= prompt or hit % storage.block_tokens:
        raise ValueError("request: expected a hit in blocks, no longer than the prompt")
    state = geometry.window_state_bytes
    loaded = geometry.global_token_bytes * hit
    exact = min(hit, geometry.window_layers * (geometry.window - 1))
    if policy is Policy.BOUNDED_REPLAY:
        return ReplayCost(min(geometry.window - 1, hit), 0, loaded)
    if policy is Policy.EXACT_REPLAY:
        return ReplayCost(exact, 0, loaded)
    if policy is Policy.FULL_CACHE:
        stored = (prompt // storage.block_tokens - hit // storage.block_tokens) * state
        return ReplayCost(0, stored, loaded + (state if hit else 0))
    stored = (prompt // storage.checkpoint_tokens - hit // storage.checkpoint_tokens) * state
    since = hit % storage.checkpoint_tokens
    if hit >= storage.checkpoint_tokens and since < exact:
        return ReplayCost(since, stored, loaded + state)
    return ReplayCost(exact, stored, loaded)


# %% wrong="replay_cost" name="exact_beyond_the_hit" loses="replay_cost-replay replay_cost-no_checkpoint"
# Replays L(W - 1) tokens where the hit has fewer.
def replay_cost(geometry, policy, request, storage):
    prompt, hit = request
    if not 0 <= hit <= prompt or hit % storage.block_tokens:
        raise ValueError("request: expected a hit in blocks, no longer than the prompt")
    state = geometry.window_state_bytes
    loaded = geometry.global_token_bytes * hit
    exact = geometry.window_layers * (geometry.window - 1)
    if policy is Policy.BOUNDED_REPLAY:
        return ReplayCost(min(geometry.window, hit), 0, loaded)
    if policy is Policy.EXACT_REPLAY:
        return ReplayCost(exact, 0, loaded)
    if policy is Policy.FULL_CACHE:
        stored = (prompt // storage.block_tokens - hit // storage.block_tokens) * state
        return ReplayCost(0, stored, loaded + (state if hit else 0))
    stored = (prompt // storage.checkpoint_tokens - hit // storage.checkpoint_tokens) * state
    since = hit % storage.checkpoint_tokens
    if hit >= storage.checkpoint_tokens and since < exact:
        return ReplayCost(since, stored, loaded + state)
    return ReplayCost(exact, stored, loaded)


# %% wrong="replay_cost" name="stores_again" loses="replay_cost-full_cache"
# Stores the boundaries of the hit again.
def replay_cost(geometry, policy, request, storage):
    prompt, hit = request
    if not 0 <= hit <= prompt or hit % storage.block_tokens:
        raise ValueError("request: expected a hit in blocks, no longer than the prompt")
    state = geometry.window_state_bytes
    loaded = geometry.global_token_bytes * hit
    exact = min(hit, geometry.window_layers * (geometry.window - 1))
    if policy is Policy.BOUNDED_REPLAY:
        return ReplayCost(min(geometry.window, hit), 0, loaded)
    if policy is Policy.EXACT_REPLAY:
        return ReplayCost(exact, 0, loaded)
    if policy is Policy.FULL_CACHE:
        stored = (prompt // storage.block_tokens) * state
        return ReplayCost(0, stored, loaded + (state if hit else 0))
    stored = (prompt // storage.checkpoint_tokens - hit // storage.checkpoint_tokens) * state
    since = hit % storage.checkpoint_tokens
    if hit >= storage.checkpoint_tokens and since < exact:
        return ReplayCost(since, stored, loaded + state)
    return ReplayCost(exact, stored, loaded)


# %% wrong="replay_cost" name="rounds_up" loses="replay_cost-full_cache"
# Counts a boundary that the prompt has not reached.
def replay_cost(geometry, policy, request, storage):
    prompt, hit = request
    if not 0 <= hit <= prompt or hit % storage.block_tokens:
        raise ValueError("request: expected a hit in blocks, no longer than the prompt")
    state = geometry.window_state_bytes
    loaded = geometry.global_token_bytes * hit
    exact = min(hit, geometry.window_layers * (geometry.window - 1))
    if policy is Policy.BOUNDED_REPLAY:
        return ReplayCost(min(geometry.window, hit), 0, loaded)
    if policy is Policy.EXACT_REPLAY:
        return ReplayCost(exact, 0, loaded)
    if policy is Policy.FULL_CACHE:
        stored = (-(-prompt // storage.block_tokens) - hit // storage.block_tokens) * state
        return ReplayCost(0, stored, loaded + (state if hit else 0))
    stored = (prompt // storage.checkpoint_tokens - hit // storage.checkpoint_tokens) * state
    since = hit % storage.checkpoint_tokens
    if hit >= storage.checkpoint_tokens and since < exact:
        return ReplayCost(since, stored, loaded + state)
    return ReplayCost(exact, stored, loaded)


# %% wrong="replay_cost" name="of_the_difference" loses="replay_cost-checkpoints"
# Divides the new tokens by the step, wherever they begin.
def replay_cost(geometry, policy, request, storage):
    prompt, hit = request
    if not 0 <= hit <= prompt or hit % storage.block_tokens:
        raise ValueError("request: expected a hit in blocks, no longer than the prompt")
    state = geometry.window_state_bytes
    loaded = geometry.global_token_bytes * hit
    exact = min(hit, geometry.window_layers * (geometry.window - 1))
    if policy is Policy.BOUNDED_REPLAY:
        return ReplayCost(min(geometry.window, hit), 0, loaded)
    if policy is Policy.EXACT_REPLAY:
        return ReplayCost(exact, 0, loaded)
    if policy is Policy.FULL_CACHE:
        stored = (prompt // storage.block_tokens - hit // storage.block_tokens) * state
        return ReplayCost(0, stored, loaded + (state if hit else 0))
    stored = ((prompt - hit) // storage.checkpoint_tokens) * state
    since = hit % storage.checkpoint_tokens
    if hit >= storage.checkpoint_tokens and since < exact:
        return ReplayCost(since, stored, loaded + state)
    return ReplayCost(exact, stored, loaded)


# %% wrong="replay_cost" name="checkpoints_at_blocks" loses="replay_cost-checkpoints"
# Stores checkpoints at every block.
def replay_cost(geometry, policy, request, storage):
    prompt, hit = request
    if not 0 <= hit <= prompt or hit % storage.block_tokens:
        raise ValueError("request: expected a hit in blocks, no longer than the prompt")
    state = geometry.window_state_bytes
    loaded = geometry.global_token_bytes * hit
    exact = min(hit, geometry.window_layers * (geometry.window - 1))
    if policy is Policy.BOUNDED_REPLAY:
        return ReplayCost(min(geometry.window, hit), 0, loaded)
    if policy is Policy.EXACT_REPLAY:
        return ReplayCost(exact, 0, loaded)
    if policy is Policy.FULL_CACHE:
        stored = (prompt // storage.block_tokens - hit // storage.block_tokens) * state
        return ReplayCost(0, stored, loaded + (state if hit else 0))
    stored = (prompt // storage.block_tokens - hit // storage.block_tokens) * state
    since = hit % storage.checkpoint_tokens
    if hit >= storage.checkpoint_tokens and since < exact:
        return ReplayCost(since, stored, loaded + state)
    return ReplayCost(exact, stored, loaded)


# %% wrong="replay_cost" name="start_is_a_checkpoint" loses="replay_cost-no_checkpoint replay_cost-loaded"
# Takes the first token for a checkpoint, and loads a window from there.
def replay_cost(geometry, policy, request, storage):
    prompt, hit = request
    if not 0 <= hit <= prompt or hit % storage.block_tokens:
        raise ValueError("request: expected a hit in blocks, no longer than the prompt")
    state = geometry.window_state_bytes
    loaded = geometry.global_token_bytes * hit
    exact = min(hit, geometry.window_layers * (geometry.window - 1))
    if policy is Policy.BOUNDED_REPLAY:
        return ReplayCost(min(geometry.window, hit), 0, loaded)
    if policy is Policy.EXACT_REPLAY:
        return ReplayCost(exact, 0, loaded)
    if policy is Policy.FULL_CACHE:
        stored = (prompt // storage.block_tokens - hit // storage.block_tokens) * state
        return ReplayCost(0, stored, loaded + (state if hit else 0))
    stored = (prompt // storage.checkpoint_tokens - hit // storage.checkpoint_tokens) * state
    since = hit % storage.checkpoint_tokens
    if since <= exact:
        return ReplayCost(since, stored, loaded + state)
    return ReplayCost(exact, stored, loaded)


# %% wrong="replay_cost" name="never_exact" loses="replay_cost-no_checkpoint"
# Computes on from the checkpoint, even where exact replay is shorter.
def replay_cost(geometry, policy, request, storage):
    prompt, hit = request
    if not 0 <= hit <= prompt or hit % storage.block_tokens:
        raise ValueError("request: expected a hit in blocks, no longer than the prompt")
    state = geometry.window_state_bytes
    loaded = geometry.global_token_bytes * hit
    exact = min(hit, geometry.window_layers * (geometry.window - 1))
    if policy is Policy.BOUNDED_REPLAY:
        return ReplayCost(min(geometry.window, hit), 0, loaded)
    if policy is Policy.EXACT_REPLAY:
        return ReplayCost(exact, 0, loaded)
    if policy is Policy.FULL_CACHE:
        stored = (prompt // storage.block_tokens - hit // storage.block_tokens) * state
        return ReplayCost(0, stored, loaded + (state if hit else 0))
    stored = (prompt // storage.checkpoint_tokens - hit // storage.checkpoint_tokens) * state
    since = hit % storage.checkpoint_tokens
    if hit >= storage.checkpoint_tokens:
        return ReplayCost(since, stored, loaded + state)
    return ReplayCost(exact, stored, loaded)


# %% wrong="replay_cost" name="no_global_rows" loses="replay_cost-loaded"
# Forgets the global rows, which are loaded under every policy.
def replay_cost(geometry, policy, request, storage):
    prompt, hit = request
    if not 0 <= hit <= prompt or hit % storage.block_tokens:
        raise ValueError("request: expected a hit in blocks, no longer than the prompt")
    state = geometry.window_state_bytes
    loaded = 0.0
    exact = min(hit, geometry.window_layers * (geometry.window - 1))
    if policy is Policy.BOUNDED_REPLAY:
        return ReplayCost(min(geometry.window, hit), 0, loaded)
    if policy is Policy.EXACT_REPLAY:
        return ReplayCost(exact, 0, loaded)
    if policy is Policy.FULL_CACHE:
        stored = (prompt // storage.block_tokens - hit // storage.block_tokens) * state
        return ReplayCost(0, stored, loaded + (state if hit else 0))
    stored = (prompt // storage.checkpoint_tokens - hit // storage.checkpoint_tokens) * state
    since = hit % storage.checkpoint_tokens
    if hit >= storage.checkpoint_tokens and since < exact:
        return ReplayCost(since, stored, loaded + state)
    return ReplayCost(exact, stored, loaded)


# %% wrong="replay_cost" name="window_not_loaded" loses="replay_cost-loaded"
# Forgets to load the window.
def replay_cost(geometry, policy, request, storage):
    prompt, hit = request
    if not 0 <= hit <= prompt or hit % storage.block_tokens:
        raise ValueError("request: expected a hit in blocks, no longer than the prompt")
    state = geometry.window_state_bytes
    loaded = geometry.global_token_bytes * hit
    exact = min(hit, geometry.window_layers * (geometry.window - 1))
    if policy is Policy.BOUNDED_REPLAY:
        return ReplayCost(min(geometry.window, hit), 0, loaded)
    if policy is Policy.EXACT_REPLAY:
        return ReplayCost(exact, 0, loaded)
    if policy is Policy.FULL_CACHE:
        stored = (prompt // storage.block_tokens - hit // storage.block_tokens) * state
        return ReplayCost(0, stored, loaded)
    stored = (prompt // storage.checkpoint_tokens - hit // storage.checkpoint_tokens) * state
    since = hit % storage.checkpoint_tokens
    if hit >= storage.checkpoint_tokens and since < exact:
        return ReplayCost(since, stored, loaded + state)
    return ReplayCost(exact, stored, loaded)


# %% wrong="replay_cost" name="loads_for_nothing" loses="replay_cost-loaded"
# Loads a window where nothing was hit.
def replay_cost(geometry, policy, request, storage):
    prompt, hit = request
    if not 0 <= hit <= prompt or hit % storage.block_tokens:
        raise ValueError("request: expected a hit in blocks, no longer than the prompt")
    state = geometry.window_state_bytes
    loaded = geometry.global_token_bytes * hit
    exact = min(hit, geometry.window_layers * (geometry.window - 1))
    if policy is Policy.BOUNDED_REPLAY:
        return ReplayCost(min(geometry.window, hit), 0, loaded)
    if policy is Policy.EXACT_REPLAY:
        return ReplayCost(exact, 0, loaded)
    if policy is Policy.FULL_CACHE:
        stored = (prompt // storage.block_tokens - hit // storage.block_tokens) * state
        return ReplayCost(0, stored, loaded + state)
    stored = (prompt // storage.checkpoint_tokens - hit // storage.checkpoint_tokens) * state
    since = hit % storage.checkpoint_tokens
    if hit >= storage.checkpoint_tokens and since < exact:
        return ReplayCost(since, stored, loaded + state)
    return ReplayCost(exact, stored, loaded)


# %% wrong="replay_cost" name="loads_the_prompt" loses="replay_cost-no_checkpoint replay_cost-loaded"
# Loads the global rows of the whole prompt.
def replay_cost(geometry, policy, request, storage):
    prompt, hit = request
    if not 0 <= hit <= prompt or hit % storage.block_tokens:
        raise ValueError("request: expected a hit in blocks, no longer than the prompt")
    state = geometry.window_state_bytes
    loaded = geometry.global_token_bytes * prompt
    exact = min(hit, geometry.window_layers * (geometry.window - 1))
    if policy is Policy.BOUNDED_REPLAY:
        return ReplayCost(min(geometry.window, hit), 0, loaded)
    if policy is Policy.EXACT_REPLAY:
        return ReplayCost(exact, 0, loaded)
    if policy is Policy.FULL_CACHE:
        stored = (prompt // storage.block_tokens - hit // storage.block_tokens) * state
        return ReplayCost(0, stored, loaded + (state if hit else 0))
    stored = (prompt // storage.checkpoint_tokens - hit // storage.checkpoint_tokens) * state
    since = hit % storage.checkpoint_tokens
    if hit >= storage.checkpoint_tokens and since < exact:
        return ReplayCost(since, stored, loaded + state)
    return ReplayCost(exact, stored, loaded)


# %% wrong="replay_cost" name="prices_anything" loses="replay_cost-refuses"
# Prices a hit that no prefix cache has.
def replay_cost(geometry, policy, request, storage):
    prompt, hit = request
    state = geometry.window_state_bytes
    loaded = geometry.global_token_bytes * hit
    exact = min(hit, geometry.window_layers * (geometry.window - 1))
    if policy is Policy.BOUNDED_REPLAY:
        return ReplayCost(min(geometry.window, hit), 0, loaded)
    if policy is Policy.EXACT_REPLAY:
        return ReplayCost(exact, 0, loaded)
    if policy is Policy.FULL_CACHE:
        stored = (prompt // storage.block_tokens - hit // storage.block_tokens) * state
        return ReplayCost(0, stored, loaded + (state if hit else 0))
    stored = (prompt // storage.checkpoint_tokens - hit // storage.checkpoint_tokens) * state
    since = hit % storage.checkpoint_tokens
    if hit >= storage.checkpoint_tokens and since < exact:
        return ReplayCost(since, stored, loaded + state)
    return ReplayCost(exact, stored, loaded)


# %% wrong="replay_cost" name="full_cache_computes" loses="replay_cost-full_cache"
# Computes W tokens again under the full cache.
def replay_cost(geometry, policy, request, storage):
    prompt, hit = request
    if not 0 <= hit <= prompt or hit % storage.block_tokens:
        raise ValueError("request: expected a hit in blocks, no longer than the prompt")
    state = geometry.window_state_bytes
    loaded = geometry.global_token_bytes * hit
    exact = min(hit, geometry.window_layers * (geometry.window - 1))
    if policy is Policy.BOUNDED_REPLAY:
        return ReplayCost(min(geometry.window, hit), 0, loaded)
    if policy is Policy.EXACT_REPLAY:
        return ReplayCost(exact, 0, loaded)
    if policy is Policy.FULL_CACHE:
        stored = (prompt // storage.block_tokens - hit // storage.block_tokens) * state
        return ReplayCost(min(hit, geometry.window), stored, loaded + (state if hit else 0))
    stored = (prompt // storage.checkpoint_tokens - hit // storage.checkpoint_tokens) * state
    since = hit % storage.checkpoint_tokens
    if hit >= storage.checkpoint_tokens and since < exact:
        return ReplayCost(since, stored, loaded + state)
    return ReplayCost(exact, stored, loaded)


# %% wrong="replay_cost" name="nothing_hit_costs_nothing" loses="replay_cost-full_cache replay_cost-checkpoints"
# Prices a hit of 0 at nothing: forgets that the prompt's windows are stored.
def replay_cost(geometry, policy, request, storage):
    prompt, hit = request
    if not 0 <= hit <= prompt or hit % storage.block_tokens:
        raise ValueError("request: expected a hit in blocks, no longer than the prompt")
    if hit == 0:
        return ReplayCost(0, 0, 0.0)
    state = geometry.window_state_bytes
    loaded = geometry.global_token_bytes * hit
    exact = min(hit, geometry.window_layers * (geometry.window - 1))
    if policy is Policy.BOUNDED_REPLAY:
        return ReplayCost(min(geometry.window, hit), 0, loaded)
    if policy is Policy.EXACT_REPLAY:
        return ReplayCost(exact, 0, loaded)
    if policy is Policy.FULL_CACHE:
        stored = (prompt // storage.block_tokens - hit // storage.block_tokens) * state
        return ReplayCost(0, stored, loaded + (state if hit else 0))
    stored = (prompt // storage.checkpoint_tokens - hit // storage.checkpoint_tokens) * state
    since = hit % storage.checkpoint_tokens
    if hit >= storage.checkpoint_tokens and since < exact:
        return ReplayCost(since, stored, loaded + state)
    return ReplayCost(exact, stored, loaded)


# %% wrong="replay_cost" name="one_for_nothing" loses="replay_cost-replay"
# Replays one token at least.
def replay_cost(geometry, policy, request, storage):
    prompt, hit = request
    if not 0 <= hit <= prompt or hit % storage.block_tokens:
        raise ValueError("request: expected a hit in blocks, no longer than the prompt")
    state = geometry.window_state_bytes
    loaded = geometry.global_token_bytes * hit
    exact = min(hit, geometry.window_layers * (geometry.window - 1))
    if policy is Policy.BOUNDED_REPLAY:
        return ReplayCost(max(1, min(geometry.window, hit)), 0, loaded)
    if policy is Policy.EXACT_REPLAY:
        return ReplayCost(exact, 0, loaded)
    if policy is Policy.FULL_CACHE:
        stored = (prompt // storage.block_tokens - hit // storage.block_tokens) * state
        return ReplayCost(0, stored, loaded + (state if hit else 0))
    stored = (prompt // storage.checkpoint_tokens - hit // storage.checkpoint_tokens) * state
    since = hit % storage.checkpoint_tokens
    if hit >= storage.checkpoint_tokens and since < exact:
        return ReplayCost(since, stored, loaded + state)
    return ReplayCost(exact, stored, loaded)


# %% wrong="replay_cost" name="within_the_first_checkpoint" loses="replay_cost-checkpoints"
# Takes a hit at the first checkpoint for none.
def replay_cost(geometry, policy, request, storage):
    prompt, hit = request
    if not 0 <= hit <= prompt or hit % storage.block_tokens:
        raise ValueError("request: expected a hit in blocks, no longer than the prompt")
    state = geometry.window_state_bytes
    loaded = geometry.global_token_bytes * hit
    exact = min(hit, geometry.window_layers * (geometry.window - 1))
    if policy is Policy.BOUNDED_REPLAY:
        return ReplayCost(min(geometry.window, hit), 0, loaded)
    if policy is Policy.EXACT_REPLAY:
        return ReplayCost(exact, 0, loaded)
    if policy is Policy.FULL_CACHE:
        stored = (prompt // storage.block_tokens - hit // storage.block_tokens) * state
        return ReplayCost(0, stored, loaded + (state if hit else 0))
    stored = (prompt // storage.checkpoint_tokens - hit // storage.checkpoint_tokens) * state
    since = hit % storage.checkpoint_tokens
    if hit > storage.checkpoint_tokens and since < exact:
        return ReplayCost(since, stored, loaded + state)
    return ReplayCost(exact, stored, loaded)


# %% right="replay_cost" name="boundaries_in_a_loop"
# Walks over the boundaries one by one.
def replay_cost(geometry, policy, request, storage):
    hit, prompt = request.hit_tokens, request.prompt_tokens
    if hit < 0 or hit > prompt:
        raise ValueError(f"request: expected a hit of 0 to {prompt} tokens, got {hit}")
    if hit % storage.block_tokens != 0:
        raise ValueError(f"request: expected a hit in blocks of {storage.block_tokens}, got {hit}")
    replays = {Policy.EXACT_REPLAY: geometry.window_layers * (geometry.window - 1)}
    replays[Policy.BOUNDED_REPLAY] = geometry.window
    loaded = hit * geometry.global_token_bytes
    if policy in replays:
        return ReplayCost(min(hit, replays[policy]), 0, loaded)
    steps = {Policy.FULL_CACHE: storage.block_tokens, Policy.CHECKPOINTS: storage.checkpoint_tokens}
    step = steps[policy]
    new = [at for at in range(step, prompt + 1, step) if at > hit]
    old = [at for at in range(step, hit + 1, step)]
    from_scratch = min(hit, replays[Policy.EXACT_REPLAY])
    computed = hit - old[-1] if old else from_scratch
    windows = 1 if old and computed < from_scratch else 0
    size = geometry.window_layers * geometry.window * geometry.window_row_bytes
    return ReplayCost(computed if windows else from_scratch, len(new) * size, loaded + windows * size)


# %% right="replay_cost" name="best_of_both"
# Prices a checkpoint and exact replay, and takes what computes less.
def replay_cost(geometry, policy, request, storage):
    hit, prompt = request.hit_tokens, request.prompt_tokens
    if not (0 <= hit <= prompt and hit % storage.block_tokens == 0):
        raise ValueError("request: expected a hit in blocks, within the prompt")
    rows = hit * geometry.global_token_bytes
    bounded, exact = (min(hit, n) for n in (geometry.window, geometry.window_layers * (geometry.window - 1)))
    match policy:
        case Policy.BOUNDED_REPLAY:
            return ReplayCost(bounded, 0, rows)
        case Policy.EXACT_REPLAY:
            return ReplayCost(exact, 0, rows)
        case Policy.FULL_CACHE:
            step = storage.block_tokens
        case Policy.CHECKPOINTS:
            step = storage.checkpoint_tokens
    stored = len(range(hit // step * step + step, prompt + 1, step)) * geometry.window_state_bytes
    ways = [(exact, 0)]
    if hit // step:
        ways.append((hit - hit // step * step, 1))
    computed, windows = min(ways)
    return ReplayCost(computed, stored, rows + windows * geometry.window_state_bytes)


# %% wrong="choose_policy" name="disk_alone" loses="choose_policy-fastest choose_policy-exact"
# Counts the disk alone.
def choose_policy(geometry, requests, storage, machine, must_be_exact):
    best, shortest = None, None
    for policy in Policy:
        if must_be_exact and policy is Policy.BOUNDED_REPLAY:
            continue
        seconds = sum(replay_cost(geometry, policy, request, storage).ssd_seconds(machine) for request in requests)
        if shortest is None or seconds < shortest:
            best, shortest = policy, seconds
    return best


# %% wrong="choose_policy" name="tokens_alone" loses="choose_policy-fastest choose_policy-exact choose_policy-ties"
# Counts computed tokens alone.
def choose_policy(geometry, requests, storage, machine, must_be_exact):
    best, shortest = None, None
    for policy in Policy:
        if must_be_exact and policy is Policy.BOUNDED_REPLAY:
            continue
        seconds = sum(replay_cost(geometry, policy, request, storage).tokens_recomputed for request in requests)
        if shortest is None or seconds < shortest:
            best, shortest = policy, seconds
    return best


# %% wrong="choose_policy" name="first_request" loses="choose_policy-fastest"
# Looks at the first request.
def choose_policy(geometry, requests, storage, machine, must_be_exact):
    best, shortest = None, None
    for policy in Policy:
        if must_be_exact and policy is Policy.BOUNDED_REPLAY:
            continue
        seconds = sum(replay_cost(geometry, policy, request, storage).seconds(machine) for request in requests[:1])
        if shortest is None or seconds < shortest:
            best, shortest = policy, seconds
    return best


# %% wrong="choose_policy" name="slowest_request" loses="choose_policy-fastest"
# Compares the slowest requests, not the sums.
def choose_policy(geometry, requests, storage, machine, must_be_exact):
    best, shortest = None, None
    for policy in Policy:
        if must_be_exact and policy is Policy.BOUNDED_REPLAY:
            continue
        seconds = max(replay_cost(geometry, policy, request, storage).seconds(machine) for request in requests)
        if shortest is None or seconds < shortest:
            best, shortest = policy, seconds
    return best


# %% wrong="choose_policy" name="longest" loses="choose_policy-fastest choose_policy-exact choose_policy-ties"
# Chooses the slowest policy.
def choose_policy(geometry, requests, storage, machine, must_be_exact):
    best, shortest = None, None
    for policy in Policy:
        if must_be_exact and policy is Policy.BOUNDED_REPLAY:
            continue
        seconds = sum(replay_cost(geometry, policy, request, storage).seconds(machine) for request in requests)
        if shortest is None or seconds > shortest:
            best, shortest = policy, seconds
    return best


# %% wrong="choose_policy" name="ignores_exactness" loses="choose_policy-exact"
# Chooses bounded replay where it is out of the question.
def choose_policy(geometry, requests, storage, machine, must_be_exact):
    best, shortest = None, None
    for policy in Policy:
        seconds = sum(replay_cost(geometry, policy, request, storage).seconds(machine) for request in requests)
        if shortest is None or seconds < shortest:
            best, shortest = policy, seconds
    return best


# %% wrong="choose_policy" name="never_bounded" loses="choose_policy-fastest"
# Never chooses bounded replay.
def choose_policy(geometry, requests, storage, machine, must_be_exact):
    best, shortest = None, None
    for policy in Policy:
        if policy is Policy.BOUNDED_REPLAY:
            continue
        seconds = sum(replay_cost(geometry, policy, request, storage).seconds(machine) for request in requests)
        if shortest is None or seconds < shortest:
            best, shortest = policy, seconds
    return best


# %% wrong="choose_policy" name="exactness_inverted" loses="choose_policy-fastest choose_policy-exact"
# Excludes bounded replay where it is allowed.
def choose_policy(geometry, requests, storage, machine, must_be_exact):
    best, shortest = None, None
    for policy in Policy:
        if not must_be_exact and policy is Policy.BOUNDED_REPLAY:
            continue
        seconds = sum(replay_cost(geometry, policy, request, storage).seconds(machine) for request in requests)
        if shortest is None or seconds < shortest:
            best, shortest = policy, seconds
    return best


# %% wrong="choose_policy" name="stored_is_inexact" loses="choose_policy-exact choose_policy-ties"
# Where it must be exact, allows exact replay alone: what is stored is exact too.
def choose_policy(geometry, requests, storage, machine, must_be_exact):
    best, shortest = None, None
    for policy in Policy:
        if must_be_exact and policy is not Policy.EXACT_REPLAY:
            continue
        seconds = sum(replay_cost(geometry, policy, request, storage).seconds(machine) for request in requests)
        if shortest is None or seconds < shortest:
            best, shortest = policy, seconds
    return best


# %% wrong="choose_policy" name="last_tie" loses="choose_policy-ties"
# Takes the last of equally fast policies.
def choose_policy(geometry, requests, storage, machine, must_be_exact):
    best, shortest = None, None
    for policy in Policy:
        if must_be_exact and policy is Policy.BOUNDED_REPLAY:
            continue
        seconds = sum(replay_cost(geometry, policy, request, storage).seconds(machine) for request in requests)
        if shortest is None or seconds <= shortest:
            best, shortest = policy, seconds
    return best


# %% wrong="choose_policy" name="by_name" loses="choose_policy-fastest choose_policy-exact choose_policy-ties"
# Returns the name of the policy.
def choose_policy(geometry, requests, storage, machine, must_be_exact):
    best, shortest = None, None
    for policy in Policy:
        if must_be_exact and policy is Policy.BOUNDED_REPLAY:
            continue
        seconds = sum(replay_cost(geometry, policy, request, storage).seconds(machine) for request in requests)
        if shortest is None or seconds < shortest:
            best, shortest = policy, seconds
    return best.name


# %% wrong="choose_policy" name="exact_excludes_full" loses="choose_policy-exact"
# Excludes the full cache where it must be exact: FP8 is not exact.
def choose_policy(geometry, requests, storage, machine, must_be_exact):
    best, shortest = None, None
    for policy in Policy:
        if must_be_exact and policy in (Policy.BOUNDED_REPLAY, Policy.FULL_CACHE):
            continue
        seconds = sum(replay_cost(geometry, policy, request, storage).seconds(machine) for request in requests)
        if shortest is None or seconds < shortest:
            best, shortest = policy, seconds
    return best


# %% wrong="choose_policy" name="reads_ignored" loses="choose_policy-fastest"
# Forgets what is read.
def choose_policy(geometry, requests, storage, machine, must_be_exact):
    best, shortest = None, None
    for policy in Policy:
        if must_be_exact and policy is Policy.BOUNDED_REPLAY:
            continue
        costs = [replay_cost(geometry, policy, request, storage) for request in requests]
        seconds = sum(
            c.bytes_stored / machine.write_bytes_per_second + c.tokens_recomputed / machine.prefill_tokens_per_second
            for c in costs
        )
        if shortest is None or seconds < shortest:
            best, shortest = policy, seconds
    return best


# %% right="choose_policy" name="dictionary"
# Sums up in a dictionary, and lets min take the first.
def choose_policy(geometry, requests, storage, machine, must_be_exact):
    totals = {policy: 0.0 for policy in Policy if policy is not Policy.BOUNDED_REPLAY or not must_be_exact}
    for request in requests:
        for policy in totals:
            totals[policy] += replay_cost(geometry, policy, request, storage).seconds(machine)
    return min(totals, key=totals.get)


# %% right="choose_policy" name="sorted"
# Sorts by time and place.
def choose_policy(geometry, requests, storage, machine, must_be_exact):
    order = list(Policy)
    if must_be_exact:
        order.remove(Policy.BOUNDED_REPLAY)
    rate, write, read = (
        machine.prefill_tokens_per_second,
        machine.write_bytes_per_second,
        machine.read_bytes_per_second,
    )
    times = []
    for policy in order:
        costs = [replay_cost(geometry, policy, request, storage) for request in requests]
        times.append(sum(c.bytes_stored / write + c.bytes_loaded / read + c.tokens_recomputed / rate for c in costs))
    return sorted(zip(times, range(len(order))))[0][1] and order[int(np.argmin(times))] or order[0]


# %% right="choose_policy" name="fractions"
# Fractions.
def choose_policy(geometry, requests, storage, machine, must_be_exact):
    from fractions import Fraction as F

    def busy(policy):
        total = F(0)
        for r in requests:
            c = replay_cost(geometry, policy, r, storage)
            total += (
                F(c.bytes_stored) / F(machine.write_bytes_per_second)
                + F(c.bytes_loaded) / F(machine.read_bytes_per_second)
                + F(c.tokens_recomputed) / F(machine.prefill_tokens_per_second)
            )
        return total

    names = ["FULL_CACHE", "CHECKPOINTS", "EXACT_REPLAY"] + ["BOUNDED_REPLAY"] * (not must_be_exact)
    return Policy[min(names, key=lambda n: busy(Policy[n]))]


# %% wrong="diagnose" name="always_none" loses="diagnose-none diagnose-window diagnose-start diagnose-drafts diagnose-global diagnose-second"
# Believes every engine.
def diagnose(engine):
    return Fault.NONE


# %% wrong="diagnose" name="window_too_long_only" loses="diagnose-window"
# Looks for a window that is too long alone.
def diagnose(engine):
    length = 4 * engine.window
    text, other, third = np.random.default_rng(0).integers(0, engine.vocabulary, (3, length))
    layer = engine.kinds.index(LayerKind.GLOBAL)

    def differ(one, another):
        return not np.allclose(one, another, rtol=0, atol=1e-9)

    def newest_row(age):
        changed = text.copy()
        if age is not None:
            changed[-1 - age] = (changed[-1 - age] + 1) % engine.vocabulary
        engine.prefill(changed)
        return engine.cached(1).keys[:, -1]

    def decoded(drafts):
        engine.prefill(text)
        if len(drafts):
            engine.draft(drafts)
        return engine.decode(int(other[0]))

    def resumed_after(previous):
        engine.prefill(previous)
        return engine.resume(text, length - 1)

    alone = engine.prefill(text)
    kept = engine.cached(layer).keys[:, : length - 1]
    engine.prefill(other)
    if differ(engine.prefill(text), alone):
        return Fault.SECOND
    unchanged = newest_row(None)
    if differ(newest_row(engine.window), unchanged):
        return Fault.WINDOW
    if differ(decoded(other[: engine.drafts]), decoded(other[:0])):
        return Fault.DRAFTS
    engine.prefill(text)
    engine.resume(text, length - 1)
    if differ(engine.cached(layer).keys[:, : length - 1], kept):
        return Fault.GLOBAL
    return Fault.START if differ(resumed_after(other), resumed_after(third)) else Fault.NONE


# %% wrong="diagnose" name="no_window" loses="diagnose-none diagnose-window"
# Does not ask how far a token sees.
def diagnose(engine):
    length = 4 * engine.window
    text, other, third = np.random.default_rng(0).integers(0, engine.vocabulary, (3, length))
    layer = engine.kinds.index(LayerKind.GLOBAL)

    def differ(one, another):
        return not np.allclose(one, another, rtol=0, atol=1e-9)

    def newest_row(age):
        changed = text.copy()
        if age is not None:
            changed[-1 - age] = (changed[-1 - age] + 1) % engine.vocabulary
        engine.prefill(changed)
        return engine.cached(1).keys[:, -1]

    def decoded(drafts):
        engine.prefill(text)
        if len(drafts):
            engine.draft(drafts)
        return engine.decode(int(other[0]))

    def resumed_after(previous):
        engine.prefill(previous)
        return engine.resume(text, length - 1)

    alone = engine.prefill(text)
    kept = engine.cached(layer).keys[:, : length - 1]
    engine.prefill(other)
    if differ(engine.prefill(text), alone):
        return Fault.SECOND
    if differ(decoded(other[: engine.drafts]), decoded(other[:0])):
        return Fault.DRAFTS
    engine.prefill(text)
    engine.resume(text, length - 1)
    if differ(engine.cached(layer).keys[:, : length - 1], kept):
        return Fault.GLOBAL
    return Fault.START if differ(resumed_after(other), resumed_after(third)) else Fault.NONE


# %% wrong="diagnose" name="no_drafts" loses="diagnose-none diagnose-drafts"
# Does not try drafts.
def diagnose(engine):
    length = 4 * engine.window
    text, other, third = np.random.default_rng(0).integers(0, engine.vocabulary, (3, length))
    layer = engine.kinds.index(LayerKind.GLOBAL)

    def differ(one, another):
        return not np.allclose(one, another, rtol=0, atol=1e-9)

    def newest_row(age):
        changed = text.copy()
        if age is not None:
            changed[-1 - age] = (changed[-1 - age] + 1) % engine.vocabulary
        engine.prefill(changed)
        return engine.cached(1).keys[:, -1]

    def decoded(drafts):
        engine.prefill(text)
        if len(drafts):
            engine.draft(drafts)
        return engine.decode(int(other[0]))

    def resumed_after(previous):
        engine.prefill(previous)
        return engine.resume(text, length - 1)

    alone = engine.prefill(text)
    kept = engine.cached(layer).keys[:, : length - 1]
    engine.prefill(other)
    if differ(engine.prefill(text), alone):
        return Fault.SECOND
    unchanged = newest_row(None)
    if differ(newest_row(engine.window), unchanged) or not differ(newest_row(engine.window - 1), unchanged):
        return Fault.WINDOW
    engine.prefill(text)
    engine.resume(text, length - 1)
    if differ(engine.cached(layer).keys[:, : length - 1], kept):
        return Fault.GLOBAL
    return Fault.START if differ(resumed_after(other), resumed_after(third)) else Fault.NONE


# %% wrong="diagnose" name="no_global" loses="diagnose-none diagnose-global"
# Does not look at global rows.
def diagnose(engine):
    length = 4 * engine.window
    text, other, third = np.random.default_rng(0).integers(0, engine.vocabulary, (3, length))
    layer = engine.kinds.index(LayerKind.GLOBAL)

    def differ(one, another):
        return not np.allclose(one, another, rtol=0, atol=1e-9)

    def newest_row(age):
        changed = text.copy()
        if age is not None:
            changed[-1 - age] = (changed[-1 - age] + 1) % engine.vocabulary
        engine.prefill(changed)
        return engine.cached(1).keys[:, -1]

    def decoded(drafts):
        engine.prefill(text)
        if len(drafts):
            engine.draft(drafts)
        return engine.decode(int(other[0]))

    def resumed_after(previous):
        engine.prefill(previous)
        return engine.resume(text, length - 1)

    alone = engine.prefill(text)
    kept = engine.cached(layer).keys[:, : length - 1]
    engine.prefill(other)
    if differ(engine.prefill(text), alone):
        return Fault.SECOND
    unchanged = newest_row(None)
    if differ(newest_row(engine.window), unchanged) or not differ(newest_row(engine.window - 1), unchanged):
        return Fault.WINDOW
    if differ(decoded(other[: engine.drafts]), decoded(other[:0])):
        return Fault.DRAFTS
    engine.prefill(text)
    engine.resume(text, length - 1)
    return Fault.START if differ(resumed_after(other), resumed_after(third)) else Fault.NONE


# %% wrong="diagnose" name="start_is_none" loses="diagnose-none diagnose-start"
# Takes what is left for sound.
def diagnose(engine):
    length = 4 * engine.window
    text, other, third = np.random.default_rng(0).integers(0, engine.vocabulary, (3, length))
    layer = engine.kinds.index(LayerKind.GLOBAL)

    def differ(one, another):
        return not np.allclose(one, another, rtol=0, atol=1e-9)

    def newest_row(age):
        changed = text.copy()
        if age is not None:
            changed[-1 - age] = (changed[-1 - age] + 1) % engine.vocabulary
        engine.prefill(changed)
        return engine.cached(1).keys[:, -1]

    def decoded(drafts):
        engine.prefill(text)
        if len(drafts):
            engine.draft(drafts)
        return engine.decode(int(other[0]))

    def resumed_after(previous):
        engine.prefill(previous)
        return engine.resume(text, length - 1)

    alone = engine.prefill(text)
    kept = engine.cached(layer).keys[:, : length - 1]
    engine.prefill(other)
    if differ(engine.prefill(text), alone):
        return Fault.SECOND
    unchanged = newest_row(None)
    if differ(newest_row(engine.window), unchanged) or not differ(newest_row(engine.window - 1), unchanged):
        return Fault.WINDOW
    if differ(decoded(other[: engine.drafts]), decoded(other[:0])):
        return Fault.DRAFTS
    engine.prefill(text)
    engine.resume(text, length - 1)
    if differ(engine.cached(layer).keys[:, : length - 1], kept):
        return Fault.GLOBAL
    return Fault.NONE


# %% wrong="diagnose" name="none_is_start" loses="diagnose-none diagnose-start"
# Takes what is left for a replay that reads below its start.
def diagnose(engine):
    length = 4 * engine.window
    text, other, third = np.random.default_rng(0).integers(0, engine.vocabulary, (3, length))
    layer = engine.kinds.index(LayerKind.GLOBAL)

    def differ(one, another):
        return not np.allclose(one, another, rtol=0, atol=1e-9)

    def newest_row(age):
        changed = text.copy()
        if age is not None:
            changed[-1 - age] = (changed[-1 - age] + 1) % engine.vocabulary
        engine.prefill(changed)
        return engine.cached(1).keys[:, -1]

    def decoded(drafts):
        engine.prefill(text)
        if len(drafts):
            engine.draft(drafts)
        return engine.decode(int(other[0]))

    def resumed_after(previous):
        engine.prefill(previous)
        return engine.resume(text, length - 1)

    alone = engine.prefill(text)
    kept = engine.cached(layer).keys[:, : length - 1]
    engine.prefill(other)
    if differ(engine.prefill(text), alone):
        return Fault.SECOND
    unchanged = newest_row(None)
    if differ(newest_row(engine.window), unchanged) or not differ(newest_row(engine.window - 1), unchanged):
        return Fault.WINDOW
    if differ(decoded(other[: engine.drafts]), decoded(other[:0])):
        return Fault.DRAFTS
    engine.prefill(text)
    engine.resume(text, length - 1)
    if differ(engine.cached(layer).keys[:, : length - 1], kept):
        return Fault.GLOBAL
    return Fault.START


# %% wrong="diagnose" name="cold_run_compared" loses="diagnose-none diagnose-start"
# Compares a resumed request with a cold one: bounded replay differs in a sound engine too.
def diagnose(engine):
    length = 4 * engine.window
    text, other, third = np.random.default_rng(0).integers(0, engine.vocabulary, (3, length))
    layer = engine.kinds.index(LayerKind.GLOBAL)

    def differ(one, another):
        return not np.allclose(one, another, rtol=0, atol=1e-9)

    def newest_row(age):
        changed = text.copy()
        if age is not None:
            changed[-1 - age] = (changed[-1 - age] + 1) % engine.vocabulary
        engine.prefill(changed)
        return engine.cached(1).keys[:, -1]

    def decoded(drafts):
        engine.prefill(text)
        if len(drafts):
            engine.draft(drafts)
        return engine.decode(int(other[0]))

    def resumed_after(previous):
        engine.prefill(previous)
        return engine.resume(text, length - 1)

    alone = engine.prefill(text)
    kept = engine.cached(layer).keys[:, : length - 1]
    engine.prefill(other)
    if differ(engine.prefill(text), alone):
        return Fault.SECOND
    unchanged = newest_row(None)
    if differ(newest_row(engine.window), unchanged) or not differ(newest_row(engine.window - 1), unchanged):
        return Fault.WINDOW
    if differ(decoded(other[: engine.drafts]), decoded(other[:0])):
        return Fault.DRAFTS
    engine.prefill(text)
    engine.resume(text, length - 1)
    if differ(engine.cached(layer).keys[:, : length - 1], kept):
        return Fault.GLOBAL
    return Fault.START if differ(resumed_after(other), alone) else Fault.NONE


# %% wrong="diagnose" name="window_too_short_only" loses="diagnose-none diagnose-window"
# Looks for a window that is too short alone.
def diagnose(engine):
    length = 4 * engine.window
    text, other, third = np.random.default_rng(0).integers(0, engine.vocabulary, (3, length))
    layer = engine.kinds.index(LayerKind.GLOBAL)

    def differ(one, another):
        return not np.allclose(one, another, rtol=0, atol=1e-9)

    def newest_row(age):
        changed = text.copy()
        if age is not None:
            changed[-1 - age] = (changed[-1 - age] + 1) % engine.vocabulary
        engine.prefill(changed)
        return engine.cached(1).keys[:, -1]

    def decoded(drafts):
        engine.prefill(text)
        if len(drafts):
            engine.draft(drafts)
        return engine.decode(int(other[0]))

    def resumed_after(previous):
        engine.prefill(previous)
        return engine.resume(text, length - 1)

    alone = engine.prefill(text)
    kept = engine.cached(layer).keys[:, : length - 1]
    engine.prefill(other)
    if differ(engine.prefill(text), alone):
        return Fault.SECOND
    unchanged = newest_row(None)
    if not differ(newest_row(engine.window - 1), unchanged):
        return Fault.WINDOW
    if differ(decoded(other[: engine.drafts]), decoded(other[:0])):
        return Fault.DRAFTS
    engine.prefill(text)
    engine.resume(text, length - 1)
    if differ(engine.cached(layer).keys[:, : length - 1], kept):
        return Fault.GLOBAL
    return Fault.START if differ(resumed_after(other), resumed_after(third)) else Fault.NONE


# %% wrong="diagnose" name="two_drafts" loses="diagnose-none diagnose-drafts"
# Tries two drafts, whatever the engine is made for.
def diagnose(engine):
    length = 4 * engine.window
    text, other, third = np.random.default_rng(0).integers(0, engine.vocabulary, (3, length))
    layer = engine.kinds.index(LayerKind.GLOBAL)

    def differ(one, another):
        return not np.allclose(one, another, rtol=0, atol=1e-9)

    def newest_row(age):
        changed = text.copy()
        if age is not None:
            changed[-1 - age] = (changed[-1 - age] + 1) % engine.vocabulary
        engine.prefill(changed)
        return engine.cached(1).keys[:, -1]

    def decoded(drafts):
        engine.prefill(text)
        if len(drafts):
            engine.draft(drafts)
        return engine.decode(int(other[0]))

    def resumed_after(previous):
        engine.prefill(previous)
        return engine.resume(text, length - 1)

    alone = engine.prefill(text)
    kept = engine.cached(layer).keys[:, : length - 1]
    engine.prefill(other)
    if differ(engine.prefill(text), alone):
        return Fault.SECOND
    unchanged = newest_row(None)
    if differ(newest_row(engine.window), unchanged) or not differ(newest_row(engine.window - 1), unchanged):
        return Fault.WINDOW
    if differ(decoded(other[:2]), decoded(other[:0])):
        return Fault.DRAFTS
    engine.prefill(text)
    engine.resume(text, length - 1)
    if differ(engine.cached(layer).keys[:, : length - 1], kept):
        return Fault.GLOBAL
    return Fault.START if differ(resumed_after(other), resumed_after(third)) else Fault.NONE


# %% right="diagnose" name="other_texts"
# Asks the same questions of other texts, with tokens of its own choice.
def diagnose(engine):
    length = 4 * engine.window
    text, other, third = np.random.default_rng(2026).integers(0, engine.vocabulary, (3, length))
    layer = engine.kinds.index(LayerKind.GLOBAL)

    def differ(one, another):
        return not np.allclose(one, another, rtol=0, atol=1e-7)

    def newest_row(age):
        changed = text.copy()
        if age is not None:
            changed[-1 - age] = (changed[-1 - age] + 1) % engine.vocabulary
        engine.prefill(changed)
        return engine.cached(1).keys[:, -1]

    def decoded(drafts):
        engine.prefill(text)
        if len(drafts):
            engine.draft(drafts)
        return engine.decode(int(other[0]))

    def resumed_after(previous):
        engine.prefill(previous)
        return engine.resume(text, length - 1)

    alone = engine.prefill(text)
    kept = engine.cached(layer).keys[:, : length - 1]
    engine.prefill(other)
    if differ(engine.prefill(text), alone):
        return Fault.SECOND
    unchanged = newest_row(None)
    if differ(newest_row(engine.window), unchanged) or not differ(newest_row(engine.window - 1), unchanged):
        return Fault.WINDOW
    if differ(decoded(other[: engine.drafts]), decoded(other[:0])):
        return Fault.DRAFTS
    engine.prefill(text)
    engine.resume(text, length - 1)
    if differ(engine.cached(layer).keys[:, : length - 1], kept):
        return Fault.GLOBAL
    return Fault.START if differ(resumed_after(other), resumed_after(third)) else Fault.NONE


# %% right="diagnose" name="other_order"
# Looks at global rows before drafts.
def diagnose(engine):
    length = 4 * engine.window
    text, other, third = np.random.default_rng(0).integers(0, engine.vocabulary, (3, length))
    layer = engine.kinds.index(LayerKind.GLOBAL)

    def differ(one, another):
        return not np.allclose(one, another, rtol=0, atol=1e-9)

    def newest_row(age):
        changed = text.copy()
        if age is not None:
            changed[-1 - age] = (changed[-1 - age] + 1) % engine.vocabulary
        engine.prefill(changed)
        return engine.cached(1).keys[:, -1]

    def decoded(drafts):
        engine.prefill(text)
        if len(drafts):
            engine.draft(drafts)
        return engine.decode(int(other[0]))

    def resumed_after(previous):
        engine.prefill(previous)
        return engine.resume(text, length - 1)

    alone = engine.prefill(text)
    kept = engine.cached(layer).keys[:, : length - 1]
    engine.prefill(other)
    if differ(engine.prefill(text), alone):
        return Fault.SECOND
    unchanged = newest_row(None)
    if differ(newest_row(engine.window), unchanged) or not differ(newest_row(engine.window - 1), unchanged):
        return Fault.WINDOW
    engine.prefill(text)
    engine.resume(text, length - 1)
    if differ(engine.cached(layer).keys[:, : length - 1], kept):
        return Fault.GLOBAL
    if differ(decoded(other[: engine.drafts]), decoded(other[:0])):
        return Fault.DRAFTS
    return Fault.START if differ(resumed_after(other), resumed_after(third)) else Fault.NONE


# %% right="diagnose" name="order_start_first"
# Asks for START first: a resume begins with a clean ring in an engine with any other fault.
def diagnose(engine):
    length = 4 * engine.window
    text, other, third = np.random.default_rng(0).integers(0, engine.vocabulary, (3, length))
    layer = engine.kinds.index(LayerKind.GLOBAL)

    def differ(one, another):
        return not np.allclose(one, another, rtol=0, atol=1e-9)

    def newest_row(age):
        changed = text.copy()
        if age is not None:
            changed[-1 - age] = (changed[-1 - age] + 1) % engine.vocabulary
        engine.prefill(changed)
        return engine.cached(1).keys[:, -1]

    def decoded(drafts):
        engine.prefill(text)
        if len(drafts):
            engine.draft(drafts)
        return engine.decode(int(other[0]))

    def resumed_after(previous):
        engine.prefill(previous)
        return engine.resume(text, length - 1)

    engine.prefill(text)
    if differ(resumed_after(other), resumed_after(third)):
        return Fault.START
    alone = engine.prefill(text)
    kept = engine.cached(layer).keys[:, : length - 1]
    engine.prefill(other)
    if differ(engine.prefill(text), alone):
        return Fault.SECOND
    unchanged = newest_row(None)
    if differ(newest_row(engine.window), unchanged) or not differ(newest_row(engine.window - 1), unchanged):
        return Fault.WINDOW
    if differ(decoded(other[: engine.drafts]), decoded(other[:0])):
        return Fault.DRAFTS
    engine.prefill(text)
    engine.resume(text, length - 1)
    if differ(engine.cached(layer).keys[:, : length - 1], kept):
        return Fault.GLOBAL
    return Fault.START if differ(resumed_after(other), resumed_after(third)) else Fault.NONE


# %% right="diagnose" name="bitwise"
# Compares bit for bit.
def diagnose(engine):
    length = 4 * engine.window
    text, other, third = np.random.default_rng(0).integers(0, engine.vocabulary, (3, length))
    layer = engine.kinds.index(LayerKind.GLOBAL)

    def differ(one, another):
        return not np.array_equal(one, another)

    def newest_row(age):
        changed = text.copy()
        if age is not None:
            changed[-1 - age] = (changed[-1 - age] + 1) % engine.vocabulary
        engine.prefill(changed)
        return engine.cached(1).keys[:, -1]

    def decoded(drafts):
        engine.prefill(text)
        if len(drafts):
            engine.draft(drafts)
        return engine.decode(int(other[0]))

    def resumed_after(previous):
        engine.prefill(previous)
        return engine.resume(text, length - 1)

    alone = engine.prefill(text)
    kept = engine.cached(layer).keys[:, : length - 1]
    engine.prefill(other)
    if differ(engine.prefill(text), alone):
        return Fault.SECOND
    unchanged = newest_row(None)
    if differ(newest_row(engine.window), unchanged) or not differ(newest_row(engine.window - 1), unchanged):
        return Fault.WINDOW
    if differ(decoded(other[: engine.drafts]), decoded(other[:0])):
        return Fault.DRAFTS
    engine.prefill(text)
    engine.resume(text, length - 1)
    if differ(engine.cached(layer).keys[:, : length - 1], kept):
        return Fault.GLOBAL
    return Fault.START if differ(resumed_after(other), resumed_after(third)) else Fault.NONE
