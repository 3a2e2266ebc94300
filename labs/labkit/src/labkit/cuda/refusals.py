"""Why a launch was refused before any thread ran, in words: the arguments and shared memory that do not fit."""

from typing import Any, Final

import numpy as np

from labkit.cuda.arguments import Arguments, call_it, passed_as
from labkit.cuda.errors import LaunchError

Said = dict[str, Any]


def refusal(report: Said, arguments: Arguments) -> LaunchError:
    """Put in words why the runner did not begin."""
    said = report["faults"][0]
    if said["reason"] == "shared":
        total = said["static"] + said["dynamic"]
        return LaunchError(
            "launch",
            f"shared memory: expected at most {said['limit']} bytes for a block, got {total}: "
            f"{said['static']} in __shared__ variables and {said['dynamic']} by shared_mem=.\n"
            "  Use smaller tiles, or set kernel.max_dynamic_shared_size_bytes as CuPy has it.",
        )
    if said["reason"] == "count":
        return LaunchError("argument", _wrong_count(said["position"], arguments))
    position = said["position"]
    text = f"{call_it(position, arguments.names)}: expected {_expected(said)}, got {_got(arguments.values[position])}."
    return LaunchError("argument", f"{text}\n  {_remedy(said)}")


def _wrong_count(expected: int, arguments: Arguments) -> str:
    names = f" ({', '.join(arguments.names)})" if arguments.names else ""
    return (
        f"args: expected {expected} arguments{names}, got {len(arguments.values)}.\n"
        "  args is a tuple: one argument is (x,), with the comma."
    )


def _expected(said: Said) -> str:
    number = {"f": "floating point number", "i": "integer", "s": "structure", "v": "byte"}
    if said["parameter_kind"] == "p":
        return f"an array of {said['pointee_size']}-byte {number[said['pointee_kind']]}s"
    article = "an" if said["parameter_size"] == 8 else "a"
    return f"{article} {said['parameter_size']}-byte {number[said['parameter_kind']]}"


def _got(value: Any) -> str:
    return f"an array of {value.dtype}" if isinstance(value, np.ndarray) else passed_as(value)


_NUMPY_NAMES: Final = {
    ("f", 4): "float32",
    ("f", 8): "float64",
    ("i", 1): "int8",
    ("i", 2): "int16",
    ("i", 4): "int32",
    ("i", 8): "int64",
}


def _remedy(said: Said) -> str:
    if said["parameter_kind"] == "p":
        name = _NUMPY_NAMES.get((said["pointee_kind"], said["pointee_size"]), "the kernel's type")
        return f"Convert it with .astype(xp.{name}), or .view(…) if the bytes are meant as they are."
    name = _NUMPY_NAMES.get((said["parameter_kind"], said["parameter_size"]), "")
    return (
        f"Write np.{name}(…): a Python float is 8 bytes." if said["parameter_kind"] == "f" else f"Write np.{name}(…)."
    )
