"""The runner's report in words: what went wrong, in which thread, at which element and line, and what to do next."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from labkit.cuda.arguments import Arguments
from labkit.cuda.errors import Fault
from labkit.cuda.places import element, lines_of, name_of_shared, name_of_variable, plain_variable, shared_variable
from labkit.cuda.source import device_arrays_of, quote, shared_arrays_of

Said = dict[str, Any]
"""One fault as the runner reports it."""


@dataclass(frozen=True)
class Scene:
    """What a message needs beside the report: the source, the library, the arguments and the block's shape."""

    code: str
    library: Path
    arguments: Arguments
    block: tuple[int, int, int]
    lines: dict[int, int | None]

    def line(self, said: Said, code: str = "code") -> int | None:
        """Return the line of a fault, which is reported as such or as an instruction."""
        return said["line"] if "line" in said else self.lines.get(said.get(code, 0))

    def at(self, line: int | None) -> str:
        """Quote a line of the source."""
        return quote(self.code, line)


def faults_of(
    report: Said, code: str, library: Path, arguments: Arguments, block: tuple[int, int, int]
) -> tuple[Fault, ...]:
    """Put every fault of a report in words; races that only write an equal value are none."""
    found = [said for said in report["faults"] if said["kind"] != "same_value_race"]
    racing = {said[key] for said in found if said["kind"] == "race" for key in ("code", "other_code")}
    found = [
        said for said in found if said["kind"] != "uninitialised" or said["code"] not in racing
    ]  # read before the racing write
    codes = [said[key] for said in found for key in ("code", "other_code") if key in said]
    codes += [one for said in found for one in said.get("codes", [])]
    scene = Scene(code, library, arguments, block, lines_of(library, codes))
    return tuple(_fault(scene, said) for said in found)


def _who(said: Said, prefix: str = "") -> str:
    thread = ", ".join(map(str, said[prefix + "thread"]))
    return f"thread ({thread}) of block ({', '.join(map(str, said[prefix + 'block']))})"


def _place(scene: Scene, said: Said) -> str:
    """Name the element of an array that a fault is at."""
    if said["space"] == "shared":
        return name_of_shared(scene.library, shared_arrays_of(scene.code), said["offset"])
    if said["space"] == "variable":
        return name_of_variable(scene.library, device_arrays_of(scene.code), said["offset"])
    if said["space"] == "dynamic":
        dynamic = next((array for array in shared_arrays_of(scene.code).values() if array.extents == ("",)), None)
        return element(dynamic.name if dynamic else "dynamic shared memory", dynamic, said["bytes"], said["offset"])
    position, offset = scene.arguments.array_at(said["region"], said["offset"])
    return f"{scene.arguments.name(position)}[{offset // scene.arguments.values[position].itemsize}]"


def _extent(scene: Scene, said: Said) -> str:
    """Say how long the array is that an access missed."""
    if said["space"] == "global":
        position, _ = scene.arguments.array_at(said["region"], said["offset"])
        array = scene.arguments.values[position]
        return f"{scene.arguments.name(position)} has {array.size} elements of {array.dtype}"
    if said["space"] == "dynamic":
        return f"the launch gives shared_mem={said['bytes']} bytes"
    find = plain_variable if said["space"] == "variable" else shared_variable
    variable, _ = find(scene.library, said["offset"])
    return f"{variable.name} has {variable.n_bytes} bytes" if variable else f"shared memory has {said['bytes']} bytes"


def _out_of_bounds(scene: Scene, said: Said) -> str:
    if said["space"] == "declared":
        return f"{_who(said)} uses index {said['index']} of an array declared as {_type_name(said)}"
    if "type" in said:
        place = "a local variable" if said["space"] == "local" else _place(scene, said)
        return f"{_who(said)} reaches {place}, beyond the array that its pointer points into"
    return f"{_who(said)} {said.get('verb', 'touches')} {_place(scene, said)}, but {_extent(scene, said)}"


def _race(scene: Scene, said: Said) -> str:
    sides = [
        (said["verb"], _who(said), scene.line(said)),
        (said["other_verb"], _who(said, "other_"), scene.line(said, "other_code")),
    ]
    sides.sort(key=lambda side: side[2] or 0)
    text = "\n".join(f"  {who} {verb} it at\n  {scene.at(line)}" for verb, who, line in sides)
    across = said["block"] != said["other_block"]
    remedy = (
        "Blocks run in any order: __threadfence() and then an atomic order one block's writes before another's reads."
        if across
        else "Nothing orders the two. A __syncthreads() between them would, within a warp a __syncwarp();\n"
        "  a lock or a flag does so only with __threadfence() before the atomic that passes it on."
    )
    return f"{_place(scene, said)} is used by two threads at once\n{text}\n  {remedy}"


def _uninitialised(scene: Scene, said: Said) -> str:
    return f"{_who(said)} reads {_place(scene, said)} before any thread of the block has written it"


def _type_name(said: Said) -> str:
    """Return the compiler's name of a type without its quotes: `'const struct float4'` is a `const float4`."""
    return str(said["type"]).strip("'").replace("struct ", "")


def _misaligned(scene: Scene, said: Said) -> str:
    place = f"{_place(scene, said)}, " if "space" in said else "an address "
    if "alignment" in said:
        return f"{_who(said)} uses a {_type_name(said)} at {place}which is no multiple of {said['alignment']} bytes"
    return f"{_who(said)} {said['verb']} {said['size']} bytes at {place}which is no multiple of {said['size']} bytes"


def _bad_pointer(scene: Scene, said: Said) -> str:
    verb = said.get("verb", "touches")
    if said.get("target") == "null":
        return f"{_who(said)} {verb} address {said['address']}, which is a null pointer or an offset from one"
    if said.get("target") == "local":
        return f"{_who(said)} {verb} a local variable of another thread, or one that is gone"
    return f"{_who(said)} {verb} an address that no array is near"


def _read_only(scene: Scene, said: Said) -> str:
    return f"{_who(said)} {said['verb']} {_place(scene, said)}, but the kernel takes that array as a pointer to const"


def _barrier(scene: Scene, said: Said) -> str:
    block = ", ".join(map(str, said["block"]))
    groups = "".join(f"\n  {_group(scene, group)}" for group in said["groups"])
    what = (
        "a warp call waits for lanes that never make it"
        if said["kind"] == "deadlock"
        else "not all threads reach the same barrier"
    )
    return f"in block ({block}) {what}{groups}"


def _group(scene: Scene, group: Said) -> str:
    n = group["threads"]
    first, last = (_index_in_block(scene.block, group[key]) for key in ("first", "last"))
    who = f"thread {first}" if n == 1 else f"{n} threads, {first} to {last},"
    if group["state"] == "finished":
        return f"{who} {'has' if n == 1 else 'have'} finished"
    mask = f" with mask 0x{group['mask']:08x}" if "mask" in group else ""
    return f"{who} {'waits' if n == 1 else 'wait'} in {group['state']}{mask} at\n  {scene.at(group['line'])}"


def _index_in_block(block: tuple[int, int, int], number: int) -> str:
    return f"({number % block[0]}, {number // block[0] % block[1]}, {number // (block[0] * block[1])})"


def _warp_call(scene: Scene, said: Said) -> str:
    if "own_lane" in said:
        mask = f"0x{said['mask']:08x}"
        return f"{_who(said)} calls {said['operation']} with mask {mask}, which lacks its own lane {said['own_lane']}"
    return f"{_who(said)} gets its value in {said['operation']} from lane {said['lane']}, which does not take part"


def _shift(scene: Scene, said: Said) -> str:
    return f"{_who(said)} shifts a {_type_name(said)} by {said['by']}: the result is undefined from its width on"


def _float_to_integer(scene: Scene, said: Said) -> str:
    return f"{_who(said)} converts a number that the integer type cannot hold: clamp it first, or use __float2int_rn"


def _stack_overflow(scene: Scene, said: Said) -> str:
    return f"{_who(said)} uses more than {said['limit']} bytes of local memory: recursion, or a large local array"


def _assertion(scene: Scene, said: Said) -> str:
    return f"{_who(said)} finds assert({said['condition']}) false"


def _time_limit(scene: Scene, said: Said) -> str:
    who = _who(said) if "thread" in said else "the launch"
    return f"{who} still ran when the time limit was over: an endless loop, or a launch too large for limit_s="


def _says(text: str) -> Callable[[Scene, Said], str]:
    return lambda scene, said: f"{_who(said)} {text}"


_WORDS: Final[dict[str, tuple[str, Callable[[Scene, Said], str]]]] = {
    "out_of_bounds": ("Out of bounds", _out_of_bounds),
    "race": ("Race", _race),
    "uninitialised": ("Uninitialised", _uninitialised),
    "misaligned": ("Misaligned", _misaligned),
    "bad_pointer": ("Bad pointer", _bad_pointer),
    "read_only": ("Read only", _read_only),
    "barrier": ("Barrier", _barrier),
    "deadlock": ("Deadlock", _barrier),
    "warp_call": ("Warp call", _warp_call),
    "shift": ("Undefined shift", _shift),
    "float_to_integer": ("Float to integer", _float_to_integer),
    "division_by_zero": ("Division by zero", _says("divides an integer by zero")),
    "stack_overflow": ("Stack overflow", _stack_overflow),
    "assertion": ("Assertion", _assertion),
    "trap": ("Trap", _says("stops the kernel")),
    "missing_return": ("Missing return", _says("reaches the end of a function that must return a value")),
    "time_limit": ("Time limit", _time_limit),
}
_QUOTES_LINES_ITSELF: Final = {"race", "barrier", "deadlock"}


def _fault(scene: Scene, said: Said) -> Fault:
    kind = said["kind"]
    title, words = _WORDS[kind]
    line, other = _lines(scene, said)
    text = f"{title}: {words(scene, said)}"
    if kind not in _QUOTES_LINES_ITSELF:
        text += f"\n{scene.at(line)}"
    if said["count"] > 1:
        text += f"\n  Found {said['count']} times in all."
    return Fault(kind, line, text, other)


def _lines(scene: Scene, said: Said) -> tuple[int | None, int | None]:
    """Return the line that a fault is named by, and the second one of a race."""
    if said["kind"] == "race":
        first, second = sorted((scene.line(said), scene.line(said, "other_code")), key=lambda line: line or 0)
        return first, second
    if "groups" in said:
        return next((group["line"] for group in said["groups"] if group["line"]), None), None
    if "codes" in said:
        return _first_of_loop(
            scene, said["lines"] + [line for code in said["codes"] if (line := scene.lines.get(code))]
        ), None
    return scene.line(said), None


def _first_of_loop(scene: Scene, lines: list[int]) -> int | None:
    """Return the first line seen; a loop without a body has none of its own, and is seen at the brace before it."""
    texts = scene.code.split("\n")
    line = min(lines, default=None)
    while line is not None and line < len(texts) and texts[line - 1].strip() in ("", "{"):
        line += 1
    return line
