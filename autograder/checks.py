"""How an author writes a check, and what a check may use.

A check is a function `(student, cases)` in `solutions/checks/labNN_topic.py`. It runs outside
the kernel. `student.encode_e2m1(x)` is a call into the kernel; the value that comes back is
plain data. `student.text("TWICE")` is the text of a constant, which the checks of the task `twice`
may read. A check that returns has passed; `labkit.expect` raises `Mismatch` where it has not.

A check may lend an object of its own, such as a network that counts the tokens fed to it:

    network = CountingNetwork(cases.rng)
    rows = student.bounded_replay(cases.lend(network, methods=("embed", "attend"), attributes=("window",)), tokens)
    expect_values(network.n_embedded, 8, given=tokens)

The student's function gets a stand-in. Attributes are copies; a method runs here, on decoded copies of the arguments,
and its value goes back as data, so that nothing but a declared call changes what the object records. Named tuples and
enumerations of labkit keep their type both ways; functions do not cross. The loan is open during the call that it is
given to, and during calls of an object that this call left inside.
- Make the object inside the check: a check may be asked twice.
- Lend only what the student may know: the function keeps whatever a method returns.
- Arguments are hostile: check dtype, shape and range of each, for nothing stops a method that is running. A
  ValueError, TypeError or LookupError is raised in the student's function with its text; any other exception arrives
  as a TypeError that names the arguments' kinds, and a person is told.
"""

import enum
import hashlib
import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from labkit.expect import Mismatch

from autograder.errors import CourseError

Member = TypeVar("Member", bound=enum.Enum)
CHECK_ID = re.compile(r"(?P<task>[a-z][a-z0-9_]*)-(?P<property>[a-z0-9_]+)")
CheckFunction = Callable[[Any, "Cases"], None]
_loan_numbers = itertools.count()


@dataclass(frozen=True)
class Check:
    """One property of one task: where its points, its wording and its options stand."""

    id: str
    points: float
    catches: str
    run: CheckFunction
    hint: str = ""
    reveal: bool = False
    per_student: bool = True
    uses: tuple[str, ...] = ()
    seconds: float | None = None

    @property
    def task(self) -> str:
        """The function that the student writes: the part of the id before the hyphen."""
        return self.id.split("-", 1)[0]

    @property
    def names(self) -> tuple[str, ...]:
        """Every function of the student that the check calls, the task first."""
        return (self.task, *(name for name in self.uses if name != self.task))

    @property
    def constants(self) -> tuple[str, ...]:
        """Every constant of the student that the check may read: each name in capitals."""
        return tuple(name.upper() for name in self.names)

    @property
    def title(self) -> str:
        """The sentence that the student reads: the first line of the docstring."""
        return (self.run.__doc__ or self.id).strip().splitlines()[0]


class Registry:
    """The checks of one lab, in the order in which they were written; one registry may be made of others."""

    def __init__(self, *parts: "Registry") -> None:
        self._checks: dict[str, Check] = {}
        for entry in (entry for part in parts for entry in part):
            self.add(entry)

    def add(self, entry: Check) -> None:
        """Add a check that was made elsewhere.

        Raises
        ------
        CourseError
            If there is one with the same id.
        """
        if entry.id in self._checks:
            raise CourseError(f"check id: expected each id once, got {entry.id!r} twice")
        self._checks[entry.id] = entry

    def check(
        self,
        id: str,
        *,
        points: float,
        catches: str,
        hint: str = "",
        reveal: bool = False,
        per_student: bool = True,
        uses: tuple[str, ...] = (),
        seconds: float | None = None,
    ) -> Callable[[CheckFunction], CheckFunction]:
        """Register a function `(student, cases)` under `<task>-<property>`.

        Parameters
        ----------
        points: what the check is worth; the only place where it is written.
        catches: the misconception, in words that complete "the answer …".
        hint: what a student may read whether the check is hidden or revealed.
        reveal: whether inputs and values of this check may be quoted to the student.
        per_student: whether the inputs differ from student to student.
        uses: other functions of the student that the check calls.
        seconds: limit of one call, where the lab's own does not fit.
        """
        if not CHECK_ID.fullmatch(id):
            raise CourseError(f"check id: expected <task>-<property> in lower case, got {id!r}")

        def register(run: CheckFunction) -> CheckFunction:
            if not run.__doc__:
                raise CourseError(f"{id}: expected a docstring that says what is checked, got none")
            self.add(Check(id, points, catches, run, hint, reveal, per_student, uses, seconds))
            return run

        return register

    def __iter__(self) -> Iterator[Check]:
        return iter(self._checks.values())

    def __len__(self) -> int:
        return len(self._checks)

    def __contains__(self, id: object) -> bool:
        return id in self._checks

    def __getitem__(self, id: str) -> Check:
        return self._checks[id]


@dataclass(frozen=True, eq=False)
class Loan:
    """An object of the judge's as a student's function may be given it: made by `Cases.lend`.

    Raises
    ------
    CourseError
        If a name is private or not there, or a method is data, or an attribute none.
    """

    thing: Any
    methods: tuple[str, ...]
    attributes: tuple[str, ...]
    max_calls: int
    max_bytes: int
    number: int = field(default_factory=lambda: next(_loan_numbers))
    suspicions: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for name in (*self.methods, *self.attributes):
            if name.startswith("_") or not hasattr(self.thing, name):
                raise CourseError(f"lend: expected public names of {self}, got {name!r}")
            if callable(getattr(self.thing, name)) != (name in self.methods):
                raise CourseError(f"lend: expected functions in methods and data in attributes, got {self}.{name}")

    def __str__(self) -> str:
        return type(self.thing).__name__


@dataclass
class Cases:
    """The inputs of one check for one submission: the same at every run, unknown outside.

    `rng` is seeded from the course's secret, the check, the student and the bytes submitted. `native` runs the text of
    a kernel (`autograder.native.runs.Native`): `cases.native.run(student.text("TWICE"), launch, orders=4)`.
    """

    seed: bytes
    native: Any = None
    rng: np.random.Generator = field(init=False)
    loans: list[Loan] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(int.from_bytes(self.seed, "big"))

    def lend(
        self,
        thing: Any,
        *,
        methods: tuple[str, ...] = (),
        attributes: tuple[str, ...] = (),
        max_calls: int = 10_000,
        max_bytes: int = 256 * 1024,
    ) -> Loan:
        """Return an object as an argument for the student's functions, who can use what is named here and no more.

        Parameters
        ----------
        methods: what may be called; it runs here, on copies of the arguments.
        attributes: what may be read: the value at the time of the student's call, as data.
        max_calls: how many calls one call of the student's function may make.
        max_bytes: how long the arguments of one call may be, and its result.
        """
        loan = Loan(thing, tuple(methods), tuple(attributes), max_calls, max_bytes)
        self.loans.append(loan)
        return loan

    @staticmethod
    def near(points: Any, ulps: int = 1) -> np.ndarray:
        """Return the points as float32 with the `ulps` neighbours on each side, sorted."""
        centre = np.asarray(points, np.float32).ravel()
        found, low, high = [centre], centre, centre
        for _ in range(ulps):
            low = np.nextafter(low, np.float32(-np.inf))
            high = np.nextafter(high, np.float32(np.inf))
            found += [low, high]
        return np.unique(np.concatenate(found))


def derive_seed(secret: bytes, lab: str, check: Check, student: str, submission_digest: str) -> bytes:
    """Return the seed of one check; without `per_student` everyone in the course shares it."""
    who = f"{student}\0{submission_digest}" if check.per_student else ""
    return hashlib.blake2b(f"{lab}\0{check.id}\0{who}".encode(), key=secret[:64], digest_size=32).digest()


def as_member(kind: type[Member], got: Any, what: str = "") -> Member:
    """Return a member of an enumeration by its name: it stays in the kernel, and what comes back is a handle to it.

    Raises
    ------
    Mismatch
        If it is none; `what` says which part of the answer should have been one.
    """
    name = got.name if isinstance(got, kind) else got.get("name") if hasattr(got, "get") else None
    if not isinstance(name, str) or name not in kind.__members__:
        raise Mismatch(f"a {kind.__name__}{what}", f"a {type(got).__name__}")
    return kind[name]
