"""The real tensors: all there, finite, as described, small, and quick to load."""

import numpy as np
import pytest
from labkit import tensors

MAX_BYTES = 4 * 2**20
# Medians over layers of the table beside which they were chosen: key outliers sit in fixed channels, values have few.
MIN_KEY_OUTLIER_RATIO = 3.0


@pytest.mark.parametrize("layer", tensors.LAYERS)
def test_every_layer_has_its_tensors(layer: int) -> None:
    shapes = [(tensors.load_keys, 512, 3), (tensors.load_values, 512, 3), (tensors.load_queries, 64, 9)]
    for load, n_tokens, n_heads in shapes:
        x = load(layer)
        assert x.shape == (n_tokens, n_heads, 64), load.__name__
        assert x.dtype == np.float32
        assert np.isfinite(x).all()
        assert np.abs(x).max() > 0.1


def test_layers_and_kinds_differ() -> None:
    arrays = [load(layer) for load in (tensors.load_keys, tensors.load_values) for layer in tensors.LAYERS]
    assert len({array.tobytes() for array in arrays}) == 2 * len(tensors.LAYERS)


def test_keys_have_outlier_channels() -> None:
    ratios = []
    for layer in tensors.LAYERS:
        largest = np.abs(tensors.load_keys(layer)[1:]).max(axis=0).ravel()  # token 0 is a sink of its own kind
        ratios.append(largest.max() / np.median(largest))
    assert np.median(ratios) > MIN_KEY_OUTLIER_RATIO


def test_another_layer_is_refused() -> None:
    with pytest.raises(ValueError, match=r"layer: expected one of \(0, 5, 10, 18, 23, 29\), got 1"):
        tensors.load_keys(1)


def test_tokens_are_those_of_the_text() -> None:
    tokens = tensors.load_tokens()
    assert tokens.shape == (512,)
    assert len(np.unique(tokens)) > 100


def test_the_data_is_small_and_says_where_it_is_from(project) -> None:
    data = project / "labs" / "labkit" / "src" / "labkit" / "data"
    assert sum(path.stat().st_size for path in data.iterdir()) <= MAX_BYTES
    note = (data / "README.md").read_text(encoding="utf-8")
    assert all(word in note for word in ("Apache License 2.0", "public domain", "make_tensors.py", "SmolLM2"))
