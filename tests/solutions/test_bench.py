"""Answers that are called in this process meet the same walls as those in the sandbox."""

import numpy as np
import pytest
from labkit.expect import Raised
from labkit.replay import ToyNetwork, swa_forward

from autograder.checks import Cases

TOKENS = np.arange(12)


class Counting(ToyNetwork):
    """A network that counts the tokens fed to it."""

    def __init__(self):
        super().__init__(layers=3, window=4)
        self.n_embedded = 0

    def embed(self, tokens):
        """Feed tokens."""
        self.n_embedded += len(tokens)
        return super().embed(tokens)


@pytest.fixture
def network():
    """A network of the check's own."""
    return Counting()


@pytest.fixture
def lent(network):
    """What the student's function is given of it."""
    return Cases(b"").lend(network, methods=("embed", "rows", "attend", "logits"), attributes=("window", "kinds"))


def test_lent_network_runs_as_it_is(called_here, network, lent):
    for args, kwargs in (((lent,), {}), (([lent],), {}), ((), {"given": {"network": (lent,)}})):
        network.n_embedded = 0

        def task(given):
            given = given["network"] if isinstance(given, dict) else given
            (found,) = given if isinstance(given, list | tuple) else (given,)
            return swa_forward(found, TOKENS).logits

        expected = swa_forward(ToyNetwork(layers=3, window=4), TOKENS).logits
        np.testing.assert_array_equal(called_here(task)(*args, **kwargs), expected)
        assert network.n_embedded == len(TOKENS)


@pytest.mark.parametrize("name", ["n_embedded", "embedding", "reads", "__wrapped__", "thing"])
def test_nothing_else_of_it_is_reachable(called_here, lent, name):
    with pytest.raises(Raised, match=f"AttributeError: Counting: expected one of attend, .* got {name}"):
        called_here(lambda network: getattr(network, name))(lent)


def test_what_is_given_and_what_comes_back_are_copies(called_here, network, lent):
    def task(given):
        given.window = 99
        given.embed(TOKENS)[:] = 0

    called_here(task)(lent)
    assert network.window == 4
    assert np.abs(network.embedding).min() > 0


def test_loan_ends_with_the_call(called_here, network, lent):
    kept = []
    called_here(kept.append)(lent)
    with pytest.raises(Raised, match="RuntimeError: the loan is over"):
        called_here(lambda _: kept[0].embed(TOKENS))(None)
    assert network.n_embedded == 0


def test_stand_in_and_function_are_no_arguments(called_here, network, lent):
    for wrong in (lambda network: network, lambda network: len):
        with pytest.raises(Raised, match=r"TypeError: Counting.embed: expected numbers, .* is not data"):
            called_here(lambda network, wrong=wrong: network.embed(wrong(network)))(lent)
    assert network.n_embedded == 0
