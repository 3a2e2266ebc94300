"""The cases of the corpus, read from the headers of its files; the form is stated in corpus/README.md."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

CORPUS = Path(__file__).parent / "corpus"
HERE = re.compile(r"//\s*HERE\s*$")
NATURAL_TO_SHUFFLED = (0, 1, 2, 3)


@dataclass
class Case:
    """One kernel, how it is launched, and what is expected of it."""

    path: Path
    code: str
    about: str = ""
    kernel: str = ""
    grid: tuple[int, ...] = (1,)
    block: tuple[int, ...] = (1,)
    shared: int = 0
    options: tuple[str, ...] = ()
    arguments: list[str] = field(default_factory=list)
    let: list[tuple[str, str]] = field(default_factory=list)
    equals: list[tuple[str, str]] = field(default_factory=list)
    close: list[tuple[str, str]] = field(default_factory=list)
    expect: tuple[str, ...] = ()
    says: list[str] = field(default_factory=list)
    limit_s: float = 10.0
    orders: tuple[int, ...] = NATURAL_TO_SHUFFLED

    @property
    def lines(self) -> set[int]:
        """The lines that the fault may be named at."""
        return {number for number, text in enumerate(self.code.split("\n"), 1) if HERE.search(text)}

    def make_arguments(self) -> list[Any]:
        made: list[Any] = []
        for text in self.arguments:
            same = re.fullmatch(r"same\((\d+)\)", text)
            made.append(made[int(same[1])] if same else make_argument(text))
        return made


def read(path: Path) -> Case:
    """Read one file; an unknown key or a missing one is an error."""
    case = Case(path, path.read_text())
    for line in case.code.split("\n"):
        found = re.fullmatch(r"//\s*(\w+):\s*(.*?)\s*", line)
        if not found:
            if line.startswith("//") or not line.strip():
                continue
            break
        take(case, found[1], found[2])
    if not (case.kernel and case.about):
        raise ValueError(f"{path.name}: expected the lines `// about: …` and `// kernel: …`, got one or none of them")
    return case


def take(case: Case, key: str, value: str) -> None:
    """Take one line of the header."""
    match key:
        case "kernel" | "about":
            setattr(case, key, value)
        case "expect":
            case.expect = tuple(value.split(" or "))
        case "grid" | "block" | "orders":
            setattr(case, key, tuple(int(word) for word in value.split()))
        case "options":
            case.options = tuple(value.split())
        case "shared":
            case.shared = int(value)
        case "limit_s":
            case.limit_s = float(value)
        case "arg":
            case.arguments.append(value)
        case "says":
            case.says.append(value)
        case "let" | "equals" | "close":
            name, _, expression = value.partition("=")
            getattr(case, key).append((name.strip(), expression.strip()))
        case _:
            raise ValueError(f"{case.path.name}: expected a key of corpus/README.md, got {key!r}")


def make_argument(text: str) -> Any:
    """Make an array or a number from its words."""
    array = re.fullmatch(r"(\w+)\[([\d,\s]*)\]\s+(\w+)(?:\(([^)]*)\))?(?:\s+(transposed|strided))?", text)
    if array:
        dtype, shape = np.dtype(array[1]), tuple(int(n) for n in array[2].split(",") if n.strip())
        return arranged(
            contents(array[3], [float(word) for word in (array[4] or "").split(",") if word.strip()], shape, dtype),
            array[5],
        )
    kind, value = text.split()
    python = {"int": int, "float": float, "bool": lambda word: bool(int(word))}
    return python[kind](value) if kind in python else np.dtype(kind).type(value)


def contents(name: str, numbers: list[float], shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Fill an array as its word says; seeds make it the same in every run."""
    if name in ("zeros", "ones"):
        return np.full(shape, int(name == "ones"), dtype)
    if name == "constant":
        return np.full(shape, numbers[0], dtype)
    if name == "linspace":
        return np.linspace(*numbers, int(np.prod(shape))).astype(dtype).reshape(shape)
    if name == "arange":
        return np.arange(int(np.prod(shape))).astype(dtype).reshape(shape)
    rng = np.random.default_rng(int(numbers[0]))
    if name == "integers":
        return rng.integers(int(numbers[1]), int(numbers[2]), shape).astype(dtype)
    draw = {"normal": rng.standard_normal, "uniform": rng.random}[name]
    return draw(shape).astype(dtype)


def arranged(array: np.ndarray[Any, Any], how: str | None) -> np.ndarray[Any, Any]:
    """Make the array one that is not contiguous, if asked to."""
    if how == "transposed":
        return array.T
    return np.repeat(array, 2, axis=-1)[..., ::2] if how == "strided" else array


def all_cases(folder: str) -> list[Case]:
    return [read(path) for path in sorted((CORPUS / folder).glob("*.cu"))]
