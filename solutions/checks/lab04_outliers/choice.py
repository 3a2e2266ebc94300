"""Checks of `choose_scheme`, against exhaustive search over the candidates, made of the reference's parts.

A candidate is also accepted if it is the best by the student's own parts and channel_error, whose slips have cost
their points already. What is asked has a clear answer; each check names the mistakes that must show in it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import fp4kv
import numpy as np
from labkit.candidates import Parts, candidates
from labkit.expect import Mismatch, Raised, expect_raises, plain_array

from autograder.checks import Registry

from .inputs import as_cached, as_e2m1

checks = Registry()
check = checks.check

REFERENCE = Parts(
    fp4kv.quantise_with_granularity,
    fp4kv.split_outliers,
    fp4kv.rotate_hadamard,
    fp4kv.centre_keys,
    fp4kv.scale_four_over_six,
)

USES = (*Parts._fields, "channel_error")

TIED = 1e-6
"""Candidates within this of the smallest error are as good: some are the same where a remedy finds nothing to do, and
sums over 64 channels in float32 are off by 64 · 2^-24."""

CLEAR = 1.03
"""Anything else in the budget, or what a mistake would choose, is worse by 3 % or more: no rounding changes that."""

FEWEST, N_DRAWN = 3, 400
"""Different answers asked for at least, and tensors drawn at most to find the questions; one in ten needs over 30."""

LITTLE = 1 / 256
"""How far below the bits of a candidate a budget may be that still leaves it out."""

LARGEST_TIE = 4
"""Candidates that may be equally good by the student's own parts: an error that is always 0 tells none of them."""


class Table(NamedTuple):
    """What each candidate stores, and its error by several measures; "channels" is the one that counts."""

    names: list[str]
    bits: np.ndarray
    errors: dict[str, np.ndarray]

    def best(self, is_in: np.ndarray, measure: str = "channels") -> list[str]:
        """Return the candidates among those marked whose error is the smallest, to within what is a tie."""
        errors = np.where(is_in, self.errors[measure], np.inf)
        return [self.names[i] for i in np.flatnonzero(errors <= errors.min() * (1 + TIED))]

    def with_bits(self, bits: float) -> list[str]:
        """Return the candidates that store exactly so many bits."""
        return [self.names[i] for i in np.flatnonzero(self.bits == bits)]

    def answers(self, budget: float) -> list[str]:
        """Return the right answers."""
        return self.best(self.bits <= budget)

    def error(self, name: str) -> float:
        """Return the error of a candidate that counts."""
        return float(self.errors["channels"][self.names.index(name)])


Budgets = Callable[[Table], Any]

MISTAKES: dict[str, Callable[[Table, float], list[str]]] = {
    "tensor": lambda table, budget: table.best(table.bits <= budget, "tensor"),
    "worst": lambda table, budget: table.best(table.bits <= budget, "worst"),
    "median": lambda table, budget: table.best(table.bits <= budget, "median"),
    "product": lambda table, budget: table.best(table.bits <= budget, "product"),
    "squares": lambda table, budget: table.best(table.bits <= budget, "squares"),
    "magnitudes": lambda table, budget: table.best(table.bits <= budget, "magnitudes"),
    "most bits": lambda table, budget: table.with_bits(table.bits[table.bits <= budget].max()),
    "no budget": lambda table, budget: table.best(table.bits > 0),
    "below": lambda table, budget: table.best(table.bits < budget),
    "slack": lambda table, budget: table.best(table.bits <= budget + 2 * LITTLE),
    "whole bits": lambda table, budget: table.best(np.floor(table.bits) <= budget),
}
"""What is chosen by mistake: by another measure, or among other candidates."""


@check(
    "choose_scheme-best",
    points=2,
    catches="ignores the budget, or takes the candidate with the most bits, or the first",
    hint="drop what stores more than the budget, then take the smallest mean of channel_error",
    uses=USES,
)
def the_smallest_error_in_the_budget_wins(student: Any, cases: Any) -> None:
    """Of the candidates within the budget, the one with the smallest mean channel error is chosen."""
    wrong = {"product", "most bits", "no budget", "whole bits", "slack"}
    _expect_choices(student, cases, _between_the_bits, wrong, set(MISTAKES) - wrong)


@check(
    "choose_scheme-error",
    points=1,
    catches="takes one error of the whole tensor, in which loud channels drown the others, or one channel for all",
    hint="channel_error(x, decoded).mean(): every channel counts the same",
    uses=USES,
)
def every_channel_counts_the_same(student: Any, cases: Any) -> None:
    """The error is the mean over channels, each relative to its own size, not one error of the whole tensor."""
    wrong = {"tensor", "worst", "median"}
    _expect_choices(
        student, cases, _between_the_bits, wrong, {"product", "squares", "magnitudes", "below", "whole bits"}
    )


@check(
    "choose_scheme-budget",
    points=1,
    catches="leaves out what stores exactly the budget",
    hint="at most: <=",
    uses=USES,
)
def exactly_the_budget_fits(student: Any, cases: Any) -> None:
    """A candidate that stores exactly the budget fits."""
    wrong = {"below", "no budget"}
    _expect_choices(student, cases, _at_the_bits, wrong, set(MISTAKES) - wrong)


@check(
    "choose_scheme-refuses",
    points=1,
    catches="returns something where nothing fits",
    hint="ask whether anything fits before you take the best of it",
    uses=USES,
)
def a_budget_below_all_is_refused(student: Any, cases: Any) -> None:
    """A budget that no candidate fits is refused with a ValueError."""
    x = np.float32(cases.rng.normal(size=(128, 64)))
    student.choose_scheme(x, 16.0)  # this one is not
    for budget in (0.5, float(cases.rng.uniform(1, 2))):
        expect_raises(ValueError, lambda b=budget: student.choose_scheme(x, b), given={"budget_bits": budget, "x": x})


class Question(NamedTuple):
    """A tensor and a budget, with what the candidates are worth."""

    x: np.ndarray
    budget: float
    table: Table


def _expect_choices(student: Any, cases: Any, budgets: Budgets, wrong: set[str], harmless: set[str]) -> None:
    for question in _questions(cases, budgets, wrong, harmless):  # all are found before the first is asked
        _expect_choice(student, *question)


def _questions(cases: Any, budgets: Budgets, wrong: set[str], harmless: set[str]) -> list[Question]:
    """Return questions in which each of the wrong mistakes shows somewhere, and none of the harmless ones does.

    Raises
    ------
    LookupError
        If there are none among the tensors drawn.
    """
    missing, answered, found = set(wrong), set[str](), list[Question]()
    for _ in range(N_DRAWN):
        x = _draw(cases)
        table = _table(x, REFERENCE)
        telling = {}
        for budget in budgets(table):
            misled = _misled(table, budget)
            if misled & (missing or wrong) and not misled & harmless and not answered & set(table.answers(budget)):
                telling[budget] = misled
        if telling:
            budget = max(telling, key=lambda b: len(telling[b] & missing))
            found.append(Question(x, budget, table))
            missing -= telling[budget]
            answered |= set(table.answers(budget))
        if not missing and len(found) >= FEWEST:
            return found
    raise LookupError(f"expected questions for {sorted(wrong)} among {N_DRAWN} tensors, got {len(found)}")


def _expect_choice(student: Any, x: np.ndarray, budget: float, table: Table) -> None:
    try:
        got = student.choose_scheme(x, budget)
    except (Raised, ValueError):
        own = _own_table(student, x)
        if own is None or np.any(own.bits <= budget):
            raise
        return  # nothing fits by the student's own count of bits, and that is refused
    if not isinstance(got, str):
        raise Mismatch("the name of a candidate", f"a {type(got).__name__}")
    best = table.answers(budget)
    if got in best or got in _own_answers(student, x, budget):
        return
    expected = f"{best[0]}, a mean channel error of {table.error(best[0]):.4f}"
    found = f"{got}, {table.error(got):.4f}" if got in table.names else "no candidate's name"
    raise Mismatch(expected, found, f"budget_bits = {budget:g}, x of shape {x.shape}")


def _between_the_bits(table: Table) -> list[float]:
    """Return budgets between the bits of two candidates, and a little below the larger, where the best one is clear."""
    bits = np.unique(table.bits)
    budgets = np.concatenate([(bits[1:] + bits[:-1]) / 2, bits[1:][np.diff(bits) > LITTLE] - LITTLE])
    return [float(budget) for budget in budgets if _is_clear(table, budget)]


def _at_the_bits(table: Table) -> list[float]:
    """Return budgets that one candidate meets exactly, where the best one is clear."""
    bits, counts = np.unique(table.bits, return_counts=True)
    return [float(budget) for budget in bits[1:][counts[1:] == 1] if _is_clear(table, budget)]


def _is_clear(table: Table, budget: float) -> bool:
    """Return whether the best within the budget is better than all others by a margin."""
    errors = table.errors["channels"][table.bits <= budget]
    others = errors[errors > errors.min() * (1 + TIED)]
    return bool(np.all(others > CLEAR * errors.min()))


def _misled(table: Table, budget: float) -> set[str]:
    """Return the mistakes that lead to a wrong answer."""
    answers = set(table.answers(budget))
    return {name for name, choose in MISTAKES.items() if not answers & set(choose(table, budget))}


def _draw(cases: Any) -> np.ndarray:
    """Return keys of one head with some of: loud channels, channels with a mean, loud tokens, groups of their own size.

    Lengths are powers of two, so that bits per element are exact however they are added up. There are more tokens
    than channels, and than calibrate a centre.
    """
    shape = (int(cases.rng.choice([128, 256])), 64)
    x = cases.rng.normal(size=shape)
    has_loud, has_means, has_tokens, has_groups = cases.rng.random(4) < 0.5
    if has_means:
        x += cases.rng.normal(0, 3, shape[1])
    if has_loud:
        x[:, cases.rng.choice(shape[1], 1 + shape[1] // 32, replace=False)] *= cases.rng.uniform(6, 40)
    if has_tokens:
        x *= np.exp(cases.rng.normal(0, 1, (shape[0], 1)))
    if has_groups:
        x *= np.repeat(np.exp(cases.rng.normal(0, 1.5, shape[1] // 16)), 16)
    return np.float32(x)


def _table(x: np.ndarray, parts: Parts, channel_error: Any = None) -> Table:
    """Return the table of all candidates; with the student's channel_error it has no other error than that."""
    found = candidates(x, parts)
    names, bits = list(found), np.array([cached.bits_per_element for cached in found.values()])
    if channel_error is not None:
        means = [plain_array(channel_error(x, cached.decoded)).mean() for cached in found.values()]
        return Table(names, bits, {"channels": np.array(means)})
    exact = x.astype(np.float64)
    size, reach = np.linalg.norm(exact, axis=0), np.abs(exact).sum(axis=0)
    errors = np.array([cached.decoded.astype(np.float64) - exact for cached in found.values()])
    by_channel = np.linalg.norm(errors, axis=1) / size
    measures = {
        "channels": by_channel.mean(axis=1),
        "worst": by_channel.max(axis=1),
        "median": np.median(by_channel, axis=1),
        "squares": (by_channel**2).mean(axis=1),
        "magnitudes": (np.abs(errors).sum(axis=1) / reach).mean(axis=1),
        "tensor": np.linalg.norm(errors, axis=(1, 2)),
        "product": by_channel.mean(axis=1) * bits,
    }
    return Table(names, bits, measures)


def _own_answers(student: Any, x: np.ndarray, budget: float) -> list[str]:
    """Return the best candidates by the student's own parts, none where these tell nothing."""
    own = _own_table(student, x)
    best = own.answers(budget) if own and np.any(own.bits <= budget) else []
    return best if len(best) <= LARGEST_TIE else []


def _own_table(student: Any, x: np.ndarray) -> Table | None:
    """Return the table of the candidates by the student's own parts, if these are fit for it."""

    def centre(keys: np.ndarray, n_calibration: int) -> tuple[np.ndarray, np.ndarray]:
        centred, mean = student.centre_keys(keys, n_calibration)
        return plain_array(centred), plain_array(mean)

    parts = Parts(
        lambda *given: as_cached(student.quantise_with_granularity(*given)),
        lambda *given: as_cached(student.split_outliers(*given)),
        lambda given: plain_array(student.rotate_hadamard(given)),
        centre,
        lambda given: as_e2m1(student.scale_four_over_six(given)),
    )
    try:
        with np.errstate(all="ignore"):
            return _table(x, parts, student.channel_error)
    except (Mismatch, ArithmeticError, LookupError, TypeError, ValueError):
        return None
