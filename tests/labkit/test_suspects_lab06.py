"""Engines: a sound one computes what the network says, and each fault breaks one law, which the others keep."""

import fp4kv
import numpy as np
import pytest
from labkit.replay import LayerKind, Rows, cache_of, decode_step, swa_forward
from labkit.suspects.lab06 import MAX_TOKENS, Engine, Fault, make_engine

SEEDS = range(12)

CLOSE = 1e-11
"""A sound engine computes token by token what others compute in batches: sums of up to 40 numbers of size 10 in another
order, and through four layers, each of which may make an error ten times larger."""

SHOWS = 1e-6
"""What a broken law must differ by; a law that is kept differs by nothing at all."""


def engine_of(fault: Fault, seed: int) -> Engine:
    """The engine of a seed."""
    return make_engine(fault, np.random.default_rng(seed))


def texts_for(engine: Engine, seed: int, length: int) -> np.ndarray:
    """Three texts."""
    return np.random.default_rng(1000 + seed).integers(0, engine.vocabulary, (3, length))


def apart(one: np.ndarray, other: np.ndarray) -> float:
    """The largest difference."""
    return float(np.abs(one - other).max())


def depends_on_age(engine: Engine, text: np.ndarray, age: int) -> float:
    """How much the newest row of layer 1 changes with the token of an age."""
    newest = []
    for shift in (0, 1):
        changed = text.copy()
        changed[-1 - age] = (changed[-1 - age] + shift) % engine.vocabulary
        engine.prefill(changed)
        newest.append(engine.cached(1).keys[:, -1])
    return apart(*newest)


def breaks_window(engine: Engine, texts: np.ndarray) -> bool:
    """A token of age W is not seen, one of age W - 1 is."""
    too_old, oldest = (depends_on_age(engine, texts[0], age) for age in (engine.window, engine.window - 1))
    assert too_old == 0 or too_old > SHOWS
    assert oldest == 0 or oldest > SHOWS
    return too_old > 0 or oldest == 0


def breaks_start(engine: Engine, texts: np.ndarray) -> bool:
    """What a replay gives does not depend on what the ring held."""
    text, hit = texts[0], len(texts[0]) - 1
    engine.prefill(text)
    logits = []
    for other in texts[1:]:
        engine.prefill(other)
        logits.append(engine.resume(text, hit))
    return differs(*logits)


def breaks_drafts(engine: Engine, texts: np.ndarray) -> bool:
    """Rejected drafts leave everything as it was."""
    logits = []
    for n_drafts in (0, engine.drafts):
        engine.prefill(texts[0])
        if n_drafts:
            engine.draft(texts[1][:n_drafts])
        logits.append(engine.decode(3))
    return differs(*logits)


def breaks_global(engine: Engine, texts: np.ndarray) -> bool:
    """A replay leaves the global rows of the hit as they were."""
    text, hit = texts[0], len(texts[0]) - 1
    layer = engine.kinds.index(LayerKind.GLOBAL)
    engine.prefill(text)
    before = engine.cached(layer)
    engine.resume(text, hit)
    return differs(before.keys[:, :hit], engine.cached(layer).keys[:, :hit])


def breaks_second(engine: Engine, texts: np.ndarray) -> bool:
    """A request is served alike, whatever came before."""
    engine.prefill(texts[1])
    first = engine.prefill(texts[0])
    engine.prefill(texts[2])
    return differs(first, engine.prefill(texts[0]))


def differs(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two answers differ, and then by more than rounding could."""
    assert apart(one, other) == 0 or apart(one, other) > SHOWS
    return apart(one, other) > 0


LAWS = {
    Fault.WINDOW: breaks_window,
    Fault.START: breaks_start,
    Fault.DRAFTS: breaks_drafts,
    Fault.GLOBAL: breaks_global,
    Fault.SECOND: breaks_second,
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("fault", LAWS)
def test_each_fault_breaks_its_law(fault, seed):
    engine = engine_of(fault, seed)
    assert LAWS[fault](engine, texts_for(engine, seed, 4 * engine.window))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("fault", [fault for fault in Fault if fault is not Fault.SECOND])
def test_it_keeps_the_laws_of_the_others(fault, seed):
    for law, breaks in LAWS.items():
        engine = engine_of(fault, seed)
        assert breaks(engine, texts_for(engine, seed, 4 * engine.window)) == (law is fault), law


@pytest.mark.parametrize("seed", SEEDS)
def test_a_sound_engine_computes_what_the_network_says(seed):
    engine = engine_of(Fault.NONE, seed)
    network, text = engine._network, texts_for(engine, seed, 40)[0]
    run = swa_forward(network, text)
    assert apart(engine.prefill(text[:30]), run.logits[29]) < CLOSE
    engine.draft(text[: engine.drafts])
    for position in range(30, 40):
        assert apart(engine.decode(int(text[position])), run.logits[position]) < CLOSE
    for layer, rows in enumerate(cache_of(run, network, 40)):
        np.testing.assert_allclose(engine.cached(layer).keys, rows.keys, rtol=0, atol=CLOSE)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_sound_engine_resumes_as_bounded_replay_does(seed):
    engine = engine_of(Fault.NONE, seed)
    network, text = engine._network, texts_for(engine, seed, 40)[0]
    kept = {
        layer: Rows(*(array[:, :30] for array in rows))
        for layer, rows in enumerate(swa_forward(network, text).rows)
        if network.kinds[layer] is LayerKind.GLOBAL
    }
    cache = fp4kv.bounded_replay(network, text, 30, network.window, kept)
    engine.prefill(text)
    expected = decode_step(network, int(text[30]), 30, cache)
    np.testing.assert_allclose(engine.resume(text[:31], 30), expected, rtol=0, atol=CLOSE)


def test_one_draft_fewer_may_hide_the_fault():
    hidden = 0
    for seed in SEEDS:
        engine = engine_of(Fault.DRAFTS, seed)
        text = texts_for(engine, seed, 4 * engine.window)[0]
        engine.prefill(text)
        expected = engine.decode(3)
        engine.prefill(text)
        engine.draft(text[: engine.drafts - 1])
        hidden += apart(expected, engine.decode(3)) == 0
    assert 0 < hidden < len(SEEDS)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda engine: engine.prefill(np.zeros(3)), "tokens: expected one row of whole numbers, got float64"),
        (lambda engine: engine.prefill(np.zeros((1, 3), int)), "tokens: expected one row of whole numbers"),
        (lambda engine: engine.prefill(np.zeros(0, int)), "tokens: expected 1 to 256, got 0"),
        (lambda engine: engine.prefill(np.zeros(MAX_TOKENS + 1, int)), "tokens: expected 1 to 256, got 257"),
        (lambda engine: engine.prefill(np.array([1, 64])), "tokens: expected numbers from 0 to 63, got 1 to 64"),
        (lambda engine: engine.resume(np.arange(5), 5), "hit: expected 1 to 4, so that a token is left"),
        (lambda engine: engine.resume(np.arange(5), True), "hit: expected 1 to 4"),
        (lambda engine: engine.resume(np.arange(5) + 1, 3), "tokens: expected the first 3 of a text served before"),
        (lambda engine: engine.draft(np.arange(engine.drafts + 1)), "tokens: expected 1 to"),
        (lambda engine: engine.decode(-1), "tokens: expected numbers from 0 to 63"),
        (lambda engine: engine.cached(9), "layer: expected 0 to"),
    ],
)
def test_what_is_no_request_is_refused(call, message):
    engine = engine_of(Fault.NONE, 0)
    engine.prefill(np.arange(12))
    with pytest.raises(ValueError, match="^" + message.replace("(", r"\(")):
        call(engine)


def test_nothing_runs_before_the_first_request():
    engine = engine_of(Fault.NONE, 0)
    for call in (lambda: engine.decode(1), lambda: engine.draft(np.arange(1)), lambda: engine.cached(0)):
        with pytest.raises(ValueError, match=r"^engine: expected a request that is running, got none"):
            call()


def test_a_text_may_be_as_long_as_it_says():
    engine = engine_of(Fault.NONE, 0)
    engine.prefill(np.zeros(MAX_TOKENS - 1, int))
    engine.decode(0)
    with pytest.raises(ValueError, match=r"^token: expected a text of at most 256, got one more"):
        engine.decode(0)
