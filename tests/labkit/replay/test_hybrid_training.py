"""The training script: it learns, and what it writes is what labkit reads."""

import numpy as np
import pytest
import torch
from labkit.replay.hybrid import HYBRID_KINDS, WINDOW_ONLY, assemble, read_weights
from labkit.replay.hybrid_task import VOCABULARY, play, records_task
from labkit.replay.network import swa_forward

FLOAT16_ROUNDING = 2e-2
"""Relative to the largest logit: weights are rounded by up to 2^-11 each, logits are sums of hundreds of products."""


@pytest.fixture
def training(project, monkeypatch):
    """The script's modules, which are no part of a package that is installed."""
    monkeypatch.syspath_prepend(str(project))
    from tools.train_hybrid import __main__, model, training

    return __main__, model, training


@pytest.mark.parametrize(("is_hybrid", "kinds"), [(True, HYBRID_KINDS), (False, WINDOW_ONLY)])
def test_weights_written_are_the_network_trained(training, tmp_path, is_hybrid, kinds):
    main, model, curriculum = training
    torch.manual_seed(0)
    network = model.Hybrid(model.Config(VOCABULARY, is_hybrid=is_hybrid))
    courses = (curriculum.Course((curriculum.Stage(3, 2, 64, 2, 8),), 2e-3, 0.02, 0.1),)
    curriculum.run_course(network, play(), courses[0], np.random.default_rng(0))
    main.write(tmp_path / "weights.npz", network, main.header(network, 0, courses, {"recall": 0.5}))

    header, weights = read_weights(tmp_path / "weights.npz")
    task = records_task(seed=1, tokens=96, records=8)
    got = swa_forward(assemble(weights, header["config"], None, 0, kinds), task.tokens).logits
    with torch.no_grad():
        expected = network(torch.from_numpy(task.tokens)[None])[0].numpy()
    assert header["reached"] == {"recall": 0.5} and header["curriculum"] == [[[[3, 2, 64, 2, 8]], 2e-3, 0.02, 0.1]]
    assert np.abs(got - expected).max() <= FLOAT16_ROUNDING * np.abs(expected).max()


def test_loss_falls_on_text_and_on_answers(training):
    _, model, curriculum = training
    torch.manual_seed(0)
    network, rng = model.Hybrid(model.Config(VOCABULARY)), np.random.default_rng(0)
    batch = curriculum.draw_batch(play(), 32, 48, 8, rng)
    before = [loss.item() for loss in curriculum.losses(network, batch)]
    curriculum.run_course(
        network, play(), curriculum.Course((curriculum.Stage(20, 16, 48, 8, 8),), 2e-3, 0.02, 1.0), rng
    )
    after = [loss.item() for loss in curriculum.losses(network, batch)]
    assert after[0] < before[0] - 0.5 and after[1] < before[1] - 0.5


def test_text_loss_counts_bytes_alone(training):
    _, model, curriculum = training
    torch.manual_seed(0)
    network = model.Hybrid(model.Config(VOCABULARY))
    batch = curriculum.draw_batch(play(), 1, 64, 8, np.random.default_rng(1))
    with torch.no_grad():
        _, on_text = curriculum.losses(network, batch)
        logits = network(batch.tokens)[0].log_softmax(-1)
    following = batch.tokens[0, 1:]
    by_hand = [-logits[t, token].item() for t, token in enumerate(following) if token < 256]
    assert on_text.item() == pytest.approx(np.mean(by_hand), rel=1e-5)  # float32 sums of 64 terms


def test_batch_without_text_has_no_text_loss(training):
    _, model, curriculum = training
    network = model.Hybrid(model.Config(VOCABULARY))
    batch = curriculum.draw_batch(play(), 2, 64, 16, np.random.default_rng(2))
    on_answers, on_text = curriculum.losses(network, batch)
    assert on_text.item() == 0
    (on_answers + on_text).backward()
    assert all(torch.isfinite(weight.grad).all() for weight in network.parameters())
