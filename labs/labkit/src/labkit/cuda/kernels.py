"""Kernels with CuPy's own call signature: run by CuPy where a GPU works, else checked and run on the CPU."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from labkit.cuda import build, runner
from labkit.cuda.arguments import Arguments, pack
from labkit.cuda.branches import BranchLine, branch_lines
from labkit.cuda.errors import CompileError, KernelError, LaunchError
from labkit.cuda.gpu import cupy_module
from labkit.cuda.messages import faults_of
from labkit.cuda.places import lines_of
from labkit.cuda.refusals import refusal
from labkit.cuda.source import Kernel, quote
from labkit.cuda.traffic import TrafficReport, make_report

MAX_GRID: Final = (2**31 - 1, 65535, 65535)
"""Blocks of a grid along x, y and z."""

MAX_THREADS: Final = 1024
"""Of a block, on every GPU since 2010."""

MAX_OPT_IN_SHARED_BYTES: Final = 99 * 1024
"""That a block may ask for on every GPU since 2018 but one; 48 KiB without asking."""

NATURAL_ORDER: Final = 0


@dataclass(frozen=True)
class _Launched:
    """The last checked launch that ended well: what it was given, and the accesses that it made."""

    task: runner.Task
    arguments: Arguments
    inputs: bytes | None
    traffic: list[dict[str, Any]]


class RawModule:
    """A CUDA source with one or more kernels, as `cupy.RawModule(code=…)`."""

    def __init__(self, *, code: str, options: Sequence[str] = (), name_expressions: Sequence[str] = ()) -> None:
        self.code = code
        self.options = tuple(options)
        self.name_expressions = tuple(name_expressions)
        cupy = cupy_module()
        if cupy is not None:
            self._gpu = cupy.RawModule(code=code, options=self.options, name_expressions=self.name_expressions or None)

    def compile(self) -> None:
        """Compile now what the first launch would compile."""
        if cupy_module() is not None:
            self._gpu.compile()
        else:
            self.compiled(True)
            build.warm_up()

    def get_function(self, name: str) -> "RawKernel":
        """Return a kernel of the source by its name, or by one of `name_expressions`."""
        kernel = RawKernel.__new__(RawKernel)
        kernel._set_up(self, name)
        return kernel

    @functools.cache  # noqa: B019  (a module holds what it compiled for as long as it lives)
    def compiled(self, checked: bool) -> build.Compiled:
        """Return the source compiled for the CPU; the second time nothing is done."""
        return build.compile_kernels(self.code, self.options, self.name_expressions, checked)


class RawKernel:
    """One kernel, as `cupy.RawKernel(code, name)`; called with `kernel(grid, block, args, shared_mem=0)`.

    After a launch on the CPU `report` holds its traffic. `max_dynamic_shared_size_bytes` may be set, as in CuPy.
    """

    def __init__(self, code: str, name: str, options: Sequence[str] = ()) -> None:
        self._set_up(RawModule(code=code, options=options), name)

    def _set_up(self, module: RawModule, name: str) -> None:
        self.module = module
        self.name = name
        self.max_dynamic_shared_size_bytes: int | None = None
        self._launched: _Launched | None = None
        self._report: TrafficReport | None = None
        self._gpu = module._gpu.get_function(name) if cupy_module() is not None else None
        if self._gpu is None:
            self._kernel, self._entry = _find(module, name)

    def __call__(
        self,
        grid: Sequence[int],
        block: Sequence[int],
        args: Sequence[Any],
        *,
        shared_mem: int = 0,
        order: int = NATURAL_ORDER,
        limit_s: float = 10.0,
        checked: bool = True,
    ) -> None:
        """Launch the kernel; the arrays among `args` hold the result.

        The last three mean something on the CPU alone: `order` seeds the order of threads and blocks (0 natural, 1
        reversed), `limit_s` is a limit of processor time, and without `checked` nothing is checked or counted.
        """
        if self._gpu is not None:
            if self.max_dynamic_shared_size_bytes is not None:
                self._gpu.max_dynamic_shared_size_bytes = self.max_dynamic_shared_size_bytes
            self._gpu(tuple(grid), tuple(block), tuple(args), shared_mem=shared_mem)
            return
        task = runner.Task(
            library=self.module.compiled(checked).library,
            entry=self._entry,
            grid=_extents("grid", grid),
            block=_block(block),
            shared_mem=_bytes("shared_mem", shared_mem),
            max_shared=runner.SHARED_MEMORY_BYTES
            if self.max_dynamic_shared_size_bytes is None
            else MAX_OPT_IN_SHARED_BYTES,
            order=order,
            limit_s=limit_s,
            checked=checked,
        )
        self._launch(task, pack(args, self._kernel.parameters))

    def compile(self) -> None:
        """Compile now what the first launch would compile."""
        self.module.compile()

    @property
    def report(self) -> TrafficReport:
        """Return the traffic of the last checked launch on the CPU."""
        if self._launched is None:
            raise LaunchError("launch", "report: expected a checked launch on the CPU before it, got none")
        if self._report is None:
            launched = self._launched
            lines = lines_of(launched.task.library, [item["code"] for item in launched.traffic])
            n_threads = int(np.prod(launched.task.grid)) * int(np.prod(launched.task.block))
            count = functools.partial(_branches, self.module, launched)
            self._report = make_report(self.name, n_threads, launched.traffic, lines, self.module.code, count)
        return self._report

    def _launch(self, task: runner.Task, arguments: Arguments) -> None:
        said, inputs = runner.run(task, arguments)
        if said["status"] == "refused":
            raise refusal(said, arguments)
        if faults := self._faults(said, task, arguments):
            raise KernelError(faults)
        if task.checked:
            self._launched = _Launched(task, arguments, inputs, said["traffic"])
            self._report = None

    def _faults(self, said: dict[str, Any], task: runner.Task, arguments: Arguments) -> tuple[Any, ...]:
        """Return what is wrong, as the natural order shows it where it does: the same words in every order."""
        faults = faults_of(said, self.module.code, task.library, arguments, task.block)
        if not faults or task.order == NATURAL_ORDER:
            return faults
        natural, _ = runner.run(replace(task, order=NATURAL_ORDER), arguments)
        found = faults_of(natural, self.module.code, task.library, arguments, task.block)
        return found or tuple(
            replace(fault, text=f"{fault.text}\n  This shows in thread order {task.order}.") for fault in faults
        )


def _branches(module: RawModule, launched: _Launched) -> tuple[BranchLine, ...] | None:
    """Run the launch again, compiled to count branches; None if its inputs were too large to keep."""
    if launched.inputs is None:
        return None
    library = build.compile_for_branches(module.code, module.options, module.name_expressions).library
    task = replace(launched.task, library=library, checked=False, counts_branches=True)
    return branch_lines(library, runner.count_branches(task, launched.arguments, launched.inputs), module.code)


def _find(module: RawModule, name: str) -> tuple[Kernel, int]:
    """Return the kernel of that name and its place among the library's entries."""
    compiled = module.compiled(True)
    if name in module.name_expressions:
        return Kernel(name, (), True), compiled.entries.index(name)
    kernel = next((kernel for kernel in compiled.kernels if kernel.name == name), None)
    if kernel is None:
        there = ", ".join(compiled.entries) or "none"
        raise CompileError(
            "compile", f"name: expected a __global__ function of the source, which has {there}; got {name!r}"
        )
    if not kernel.is_extern_c:
        line = next(
            (i for i, text in enumerate(module.code.split("\n"), 1) if "__global__" in text and name in text), None
        )
        raise CompileError(
            "compile",
            f'kernel {name}: expected extern "C" in front, without which C++ changes the name; got none.\n'
            f'{quote(module.code, line)}\n  Write extern "C" __global__ void {name}(…).',
            line,
        )
    return kernel, compiled.entries.index(name)


def _extents(argument: str, extents: Sequence[int]) -> tuple[int, int, int]:
    """Fill up to three axes, none of them empty."""
    values = tuple(int(extent) for extent in extents)
    if not 1 <= len(values) <= 3 or min(values) < 1:
        raise LaunchError("launch", f"{argument}: expected a tuple of one to three positive integers, got {extents!r}")
    if any(extent > limit for extent, limit in zip(values, MAX_GRID, strict=False)):
        raise LaunchError("launch", f"{argument}: expected at most {MAX_GRID} along x, y and z, got {extents!r}")
    x, y, z = (*values, 1, 1)[:3]
    return x, y, z


def _block(extents: Sequence[int]) -> tuple[int, int, int]:
    block = _extents("block", extents)
    n_threads = block[0] * block[1] * block[2]
    if n_threads > MAX_THREADS or block[2] > 64:
        raise LaunchError(
            "launch",
            f"block: expected at most {MAX_THREADS} threads, and 64 along z, got {n_threads}: {tuple(extents)!r}",
        )
    return block


def _bytes(argument: str, value: int) -> int:
    if value < 0:
        raise LaunchError("launch", f"{argument}: expected a number of bytes, got {value}")
    return int(value)
