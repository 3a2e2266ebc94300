"""What a check uses: `cases.native.run(source, launch, orders=4)` runs a student's kernel and returns data.

The source is admitted (`gate`), compiled in one sandbox, the library looked at (`library`), then run in another. The
inputs are the judge's, the outputs come back as values and are compared by the check. What the runner says of races
and traffic counts only from checked runs, and even there it is a claim: native code shares its memory. A forged report
can hide a race and make traffic small; it cannot make a value right. So let a check run under several orders, of which
all but the first two are secret, and compare the values of each.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from autograder.errors import CourseError
from autograder.limits import Limits
from autograder.native import faults
from autograder.native.booth import Ended, ask
from autograder.native.faults import NativeFault
from autograder.native.gate import admit
from autograder.native.library import admit_calls, admit_library
from autograder.native.tokens import Refused
from autograder.native.warm import warm_files

COMPILE_SECONDS, START_SECONDS = 40.0, 20.0
SLEEP_FACTOR = 4.0  # a kernel's limit is processor time; one that waits is ended after so much more of the clock's
OPEN_ORDERS = (0, 1)  # natural and reversed
SECTOR_BYTES = 32  # as labkit.cuda.traffic counts them
SPACES, VERBS = ("global", "shared"), ("reads", "writes", "updates")
COUNTS = ("thread_accesses", "warp_accesses", "bytes", "sectors", "bank_conflicts", "partial")
MOST_COUNTED = 1 << 53  # decades of accesses

Launch = tuple[Any, ...]  # (kernel, grid, block, arguments, shared_mem), as `labkit.launches` plans it


@dataclass(frozen=True)
class Traffic:
    """What one launch moved, as a checked run counted it: `traffic["global", "reads"]["bytes"]`."""

    sums: Mapping[tuple[str, str], Mapping[str, int]]

    def __getitem__(self, key: tuple[str, str]) -> Mapping[str, int]:
        return self.sums[key]

    @property
    def global_bytes(self) -> int:
        """The bytes that the threads asked of global memory."""
        return sum(self.sums["global", verb]["bytes"] for verb in VERBS)

    @property
    def moved_bytes(self) -> int:
        """The bytes that transactions with global memory moved, wanted or not: whole sectors."""
        return SECTOR_BYTES * sum(self.sums["global", verb]["sectors"] for verb in VERBS)

    @property
    def bank_conflicts(self) -> int:
        """The rounds of shared memory beyond those that its bytes need."""
        return sum(self.sums["shared", verb]["bank_conflicts"] for verb in VERBS)


@dataclass(frozen=True)
class NativeRun:
    """The launches of one order: `run[array]` is what an array that was given holds afterwards."""

    order: int
    traffic: tuple[Traffic, ...]
    _given: tuple[np.ndarray, ...] = field(repr=False)
    _after: tuple[np.ndarray, ...] = field(repr=False)

    def __getitem__(self, array: np.ndarray) -> np.ndarray:
        for given, after in zip(self._given, self._after, strict=True):
            if given is array:
                return after
        raise CourseError("native run: expected one of the arrays that were given to the kernel")


@dataclass
class Native:
    """Runs kernels for the checks of one submission; each source is compiled once.

    `seconds_left` is what the submission has left; `call_seconds` what one launch may take of a processor.
    """

    prefix: Path
    limits: Limits
    sandbox: str
    seconds_left: Callable[[], float]
    call_seconds: float = 10.0
    rng: np.random.Generator = field(default_factory=np.random.default_rng)
    compiled: dict[tuple[str, tuple[str, ...], bool], dict[str, bytes] | NativeFault] = field(default_factory=dict)

    def run(
        self, source: str, launches: Launch | Sequence[Launch], *, orders: int = 1, checked: bool = True
    ) -> list[NativeRun]:
        """Run a student's kernels under several orders of their threads, on the same inputs each time.

        Parameters
        ----------
        source: the text that `student.text` returned.
        launches: one launch, or several that share arrays: each sees what those before it wrote.
        orders: how many orders: the natural one, the reversed one, then secret ones.
        checked: whether every access is checked and counted. A run that is not proves values only.

        Raises
        ------
        NativeFault
            If the source is refused or does not compile, or the kernel does what it must not. No check catches it.
        SandboxError
            If this machine cannot compile or run it: nothing is known about the submission.
        """
        several: list[Launch] = [tuple(launches)] if isinstance(launches[0], str) else [*launches]
        arrays = _arrays_of(several)
        seeds = [*OPEN_ORDERS, *(int(seed) for seed in self.rng.integers(2, 2**31, max(0, orders)))][:orders]
        kernels = tuple(str(launch[0]) for launch in several)
        files = self._compiled(source.replace("\r\n", "\n"), kernels, checked)
        request = {
            "op": "launch",
            "code": source.replace("\r\n", "\n"),
            "files": files,
            "arrays": arrays,
            "launches": [_described(launch, arrays) for launch in several],
            "orders": seeds,
            "checked": checked,
            "limit_s": self.call_seconds,
        }
        longest = START_SECONDS + SLEEP_FACTOR * self.call_seconds * len(seeds) * len(several)
        answer = self._ask(request, longest)
        if "error" in answer:
            raise faults.of_launch(answer["error"], source)
        return _runs(answer, seeds, arrays, len(several))

    def for_check(self, rng: np.random.Generator, call_seconds: float) -> "Native":
        """Return the same for one check: its orders and its limit are its own, what is compiled is shared."""
        return replace(self, rng=rng, call_seconds=call_seconds)

    def _compiled(self, source: str, kernels: tuple[str, ...], checked: bool) -> dict[str, bytes]:
        """Return the files with which a sandbox has a source compiled."""
        key = (source, kernels, checked)
        if key not in self.compiled:
            try:
                self.compiled[key] = self._compile(source, kernels, checked)
            except NativeFault as fault:
                if fault.status != "failed":
                    raise  # not a verdict on the source: asked again, it may end otherwise
                self.compiled[key] = fault
        found = self.compiled[key]
        if isinstance(found, NativeFault):
            raise found
        return found

    def _compile(self, source: str, kernels: tuple[str, ...], checked: bool) -> dict[str, bytes]:
        try:
            admit(source)
        except Refused as refused:
            raise faults.of_refusal(refused, source) from None
        kinds = [True] if checked else [True, False]  # a kernel's parameters are read off the checked one
        warm = warm_files(self.prefix, self.limits, self.sandbox)
        request = {"op": "compile", "code": source, "files": warm, "kernels": list(kernels), "checked": kinds}
        answer = self._ask(request, COMPILE_SECONDS)
        if "error" in answer:
            raise faults.of_compilation(answer["error"], source)
        try:
            admit_calls(answer["apart"])
            for name, kind in zip(answer["libraries"], kinds, strict=True):
                admit_library(answer["files"][name], kind)
        except Refused as refused:
            raise faults.of_refusal(refused, source) from None
        return {**warm, **answer["files"]}

    def _ask(self, request: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        left = self.seconds_left()
        if left <= 0:
            raise NativeFault("not_run", ["not run: the time of the notebook was used up"])
        answer = ask(request, self.limits, self.prefix, self.sandbox, min(seconds, max(left, 1.0)))
        if isinstance(answer, Ended):
            raise faults.of_end(
                answer.status, answer.why, "the compiler" if request["op"] == "compile" else "the kernel"
            )
        return answer


def _arrays_of(launches: Sequence[Launch]) -> list[np.ndarray]:
    """Return the arrays of all launches, each once; two that are the same object are one in the kernel too."""
    found: list[np.ndarray] = []
    for launch in launches:
        for argument in launch[3]:
            if isinstance(argument, np.ndarray) and not any(argument is other for other in found):
                found.append(argument)
    for array in found:
        others = [other for other in found if other is not array and np.may_share_memory(array, other)]
        if others or not array.flags.c_contiguous:
            raise CourseError(f"native run: expected whole arrays of their own, got a view of shape {array.shape}")
    return found


def _described(launch: Launch, arrays: Sequence[np.ndarray]) -> dict[str, Any]:
    """Return a launch as plain data: an array is named by its number."""
    kernel, grid, block, arguments, *shared = launch
    described = []
    for argument in arguments:
        number = next((n for n, array in enumerate(arrays) if array is argument), None)
        described.append(("value", argument) if number is None else ("array", number))
    plain = {"grid": [int(n) for n in grid], "block": [int(n) for n in block]}
    return {"kernel": kernel, **plain, "args": described, "shared_mem": int(shared[0]) if shared else 0}


def _runs(answer: Mapping[str, Any], seeds: Sequence[int], arrays: Sequence[np.ndarray], n: int) -> list[NativeRun]:
    """Return the runs, if the answer has the form of one; its content is the student's."""
    try:
        runs = [
            NativeRun(seed, tuple(_traffic(item) for item in run["traffic"]), tuple(arrays), tuple(run["arrays"]))
            for seed, run in zip(seeds, answer["runs"], strict=True)
        ]
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        raise faults.of_end("crashed", "the answer cannot be read", "the kernel") from None
    for run in runs:
        forms = [(getattr(array, "dtype", None), getattr(array, "shape", None)) for array in run._after]
        if len(run.traffic) != n or forms != [(array.dtype, array.shape) for array in arrays]:
            raise faults.of_end("crashed", "the answer cannot be read", "the kernel")
    return runs


def _traffic(lines: Sequence[Mapping[str, Any]]) -> Traffic:
    sums = {(space, verb): dict.fromkeys(COUNTS, 0) for space in SPACES for verb in VERBS}
    for line in lines:
        for name in COUNTS:
            sums[line["space"], line["verb"]][name] += _count(line["counts"][name])
    return Traffic(sums)


def _count(said: Any) -> int:
    """A count that a run of any length can reach; whatever a check bounds from above is no negative number."""
    if type(said) is not int or not 0 <= said < MOST_COUNTED:
        raise ValueError
    return said
