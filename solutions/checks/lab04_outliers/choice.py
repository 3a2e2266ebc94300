"""Checks of `choose_scheme`, against exhaustive search over the candidates, made of the reference's parts.

A candidate is also accepted if it is the best of those that are made of the student's own parts, whose slips have
cost their points already. What is asked has a clear answer, and the same one by whatever norm a channel is measured.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import fp4kv
import numpy as np
from labkit.candidates import Parts, candidates
from labkit.expect import Mismatch, expect_raises, plain_array

from autograder.checks import Registry
from autograder.errors import CourseError

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

USES = Parts._fields

TIED = 1e-6
"""Candidates within this of the smallest error are as good: some are the same where a remedy finds nothing to do, and
sums over 64 channels in float32 are off by 64 · 2^-24."""

CLEAR = 1.03
"""Anything else in the budget, or what a mistake would choose, is worse by 3 % or more: no rounding changes that."""

N_QUESTIONS, N_DRAWN = 4, 200
"""Questions asked, with different answers, and tensors drawn to find them; about one in five has one."""


class Table(NamedTuple):
    """What each candidate stores, and its error by several measures; that by channels is the one that counts."""

    names: list[str]
    bits: np.ndarray
    errors: dict[str, np.ndarray]

    def best(self, budget: float, measure: str = "channels") -> list[str]:
        """Return the candidates within the budget whose error is the smallest, to within what is a tie."""
        errors = np.where(self.bits <= budget, self.errors[measure], np.inf)
        return [self.names[i] for i in np.flatnonzero(errors <= errors.min() * (1 + TIED))]

    def error(self, name: str) -> float:
        """Return the error of a candidate that counts."""
        return float(self.errors["channels"][self.names.index(name)])


Rule = Callable[[Table], Iterator[float]]


@check(
    "choose_scheme-best",
    points=2,
    catches="ignores the budget, or takes the candidate with the most bits, or the first",
    hint="drop what stores more than the budget, then take the smallest mean of channel_error",
    uses=USES,
)
def the_smallest_error_in_the_budget_wins(student: Any, cases: Any) -> None:
    """Of the candidates within the budget, the one with the smallest mean channel error is chosen."""
    _expect_choices(student, cases, _between_the_bits)


@check(
    "choose_scheme-error",
    points=1,
    catches="measures one error over the whole tensor, in which loud channels drown the others",
    hint="channel_error(x, decoded).mean(): every channel counts the same",
    uses=USES,
)
def every_channel_counts_the_same(student: Any, cases: Any) -> None:
    """The error is the mean over channels, each relative to its own size, not one error of the whole tensor."""
    _expect_choices(student, cases, _where_the_tensor_misleads)


@check(
    "choose_scheme-budget",
    points=1,
    catches="leaves out what stores exactly the budget",
    hint="at most: <=",
    uses=USES,
)
def exactly_the_budget_fits(student: Any, cases: Any) -> None:
    """A candidate that stores exactly the budget fits."""
    _expect_choices(student, cases, _at_the_bits)


@check(
    "choose_scheme-refuses",
    points=1,
    catches="returns something where nothing fits",
    hint="ask whether anything fits before you take the best of it",
    uses=USES,
)
def a_budget_below_all_is_refused(student: Any, cases: Any) -> None:
    """A budget that no candidate fits is refused with a ValueError."""
    x = _draw(cases)
    student.choose_scheme(x, 16.0)  # this one is not
    for budget in (0.5, float(cases.rng.uniform(1, 2))):
        expect_raises(ValueError, lambda b=budget: student.choose_scheme(x, b), given={"budget_bits": budget, "x": x})


def _expect_choices(student: Any, cases: Any, budgets: Rule) -> None:
    asked: list[str] = []
    for _ in range(N_DRAWN):
        x = _draw(cases)
        table = _table(x, REFERENCE)
        new = [budget for budget in budgets(table) if table.best(budget)[0] not in asked]
        if new:
            budget = float(cases.rng.choice(new))
            _expect_choice(student, x, budget, table)
            asked.append(table.best(budget)[0])
        if len(asked) == N_QUESTIONS:
            return
    if not asked:
        raise CourseError(f"choose_scheme: expected a question among {N_DRAWN} tensors, found none")


def _expect_choice(student: Any, x: np.ndarray, budget: float, table: Table) -> None:
    got = student.choose_scheme(x, budget)
    if not isinstance(got, str):
        raise Mismatch("the name of a candidate", f"a {type(got).__name__}")
    best = table.best(budget)
    if got in best or got in _own_best(student, x, budget):
        return
    expected = f"{best[0]}, a mean channel error of {table.error(best[0]):.4f}"
    found = f"{got}, {table.error(got):.4f}" if got in table.names else "no candidate's name"
    raise Mismatch(expected, found, f"budget_bits = {budget:g}, x of shape {x.shape}")


def _between_the_bits(table: Table) -> Iterator[float]:
    """Yield budgets between the bits of two candidates, where the best one is clear and not the one with most bits."""
    bits = np.unique(table.bits)
    for budget in (bits[1:] + bits[:-1]) / 2:
        (best, *_) = table.best(budget)
        if _is_clear(table, budget) and table.bits[table.names.index(best)] < table.bits[table.bits <= budget].max():
            yield float(budget)


def _at_the_bits(table: Table) -> Iterator[float]:
    """Yield budgets that the best candidate meets exactly."""
    for budget in np.unique(table.bits)[1:]:
        (best, *_) = table.best(budget)
        if _is_clear(table, budget) and table.bits[table.names.index(best)] == budget:
            yield float(budget)


def _where_the_tensor_misleads(table: Table) -> Iterator[float]:
    """Yield budgets where the smallest error of the whole tensor is another candidate's, and a clear mistake."""
    bits = np.unique(table.bits)
    for budget in (bits[1:] + bits[:-1]) / 2:
        misled = table.error(table.best(budget, "tensor")[0])
        if misled > CLEAR * table.error(table.best(budget)[0]) and _is_clear(table, budget, measures=("squares",)):
            yield float(budget)


def _is_clear(table: Table, budget: float, measures: tuple[str, ...] = ("squares", "magnitudes", "tensor")) -> bool:
    """Return whether the best is better than all others by a margin, and the best by the other measures too."""
    best = table.best(budget)
    others = (table.bits <= budget) & ~np.isin(table.names, best)
    is_ahead = not others.any() or table.errors["channels"][others].min() > CLEAR * table.error(best[0])
    return bool(is_ahead) and all(set(table.best(budget, measure)) & set(best) for measure in measures)


def _draw(cases: Any) -> np.ndarray:
    """Return keys of one head with some of: loud channels, channels with a mean, loud tokens, groups of their own size.

    Lengths are powers of two, so that bits per element are exact however they are added up.
    """
    shape = (int(2 ** cases.rng.integers(5, 8)), int(2 ** cases.rng.integers(5, 7)))
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


def _table(x: np.ndarray, parts: Parts) -> Table:
    """Return the table of all candidates."""
    found = candidates(x, parts)
    exact = x.astype(np.float64)
    size, reach = np.linalg.norm(exact, axis=0), np.abs(exact).sum(axis=0)
    errors = [cached.decoded.astype(np.float64) - exact for cached in found.values()]
    return Table(
        list(found),
        np.array([cached.bits_per_element for cached in found.values()]),
        {
            "channels": np.array([(np.linalg.norm(error, axis=0) / size).mean() for error in errors]),
            "squares": np.array([((error**2).sum(axis=0) / size**2).mean() for error in errors]),
            "magnitudes": np.array([(np.abs(error).sum(axis=0) / reach).mean() for error in errors]),
            "tensor": np.array([np.linalg.norm(error) for error in errors]),
        },
    )


def _own_best(student: Any, x: np.ndarray, budget: float) -> list[str]:
    """Return the best candidates made of the student's own parts, none where those are not fit for it."""

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
            return _table(x, parts).best(budget)
    except (Mismatch, ArithmeticError, LookupError, TypeError, ValueError):
        return []
