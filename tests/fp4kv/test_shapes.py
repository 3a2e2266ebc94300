"""Shapes stand in the signatures, and a checker that reads them refuses what does not fit."""

import inspect
import subprocess
import sys
from collections.abc import Callable
from typing import Any, get_type_hints

import fp4kv
import numpy as np
import pytest
from beartype import beartype
from jaxtyping import TypeCheckError, jaxtyped
from labkit.formats import Granularity, QuantisedE2M1, QuantisedInt
from labkit.replay import LayerStatistics, ReplayStatistics, ToyNetwork
from labkit.replay.costs import V41_FLASH, Machine, Policy, Request, Storage

TASKS = {name: inspect.unwrap(getattr(fp4kv, name)) for name in fp4kv.__all__}
RECORDS = (QuantisedE2M1, QuantisedInt)
X, CODES = np.ones((2, 32), np.float32), np.ones((2, 32), np.uint8)
CACHED = QuantisedE2M1(CODES, X[:, :2], 1.0)
HEADS = np.ones((3, 2, 32), np.float32)
SEEN = np.ones((2, 2), bool)
NETWORK, TOKENS = ToyNetwork(layers=2, window=3), np.arange(9)
ONES, GAINS = np.ones((1, 3)), np.ones(1)
STATISTICS = ReplayStatistics(3, (LayerStatistics(*[ONES] * 6, *[GAINS] * 4, head_width=16),))
COSTS = (V41_FLASH, [Request(512, 256)], Storage(), Machine(1.0, 1.0, 1.0), False)
FITTING = {
    "encode_e2m1": (X,),
    "decode_e2m1": (CODES,),
    "pack_nibbles": (CODES,),
    "unpack_nibbles": (CODES,),
    "round_to_e4m3": (X,),
    "ue8m0_exponent": (X,),
    "quantise_e2m1": (X,),
    "quantise_int": (X, 4, 16),
    "dequantise": (CACHED,),
    "attention_weights": (HEADS, HEADS, SEEN),
    "attend": (HEADS, HEADS, HEADS, SEEN),
    "attention_error_sweep": (HEADS, HEADS, HEADS, SEEN),
    "span_rank": (X, 4, 0),
    "needle_tolerance": (2, 1.0, 0.5),
    "error_radius": (CACHED,),
    "logit_error_bound": (X, CACHED),
    "weight_error_bound": (X,),
    "output_error_bound": (X, CACHED, CACHED),
    "predict_output_error": (X, CACHED, CACHED),
    "outlier_channels": (X, 3.0),
    "quantise_with_granularity": (X, 4, Granularity.TOKEN),
    "split_outliers": (X, 4, 3.0),
    "rotate_hadamard": (HEADS,),
    "attend_rotated": (X, X, X),
    "centre_keys": (X, 1),
    "scale_four_over_six": (X,),
    "channel_error": (X, X),
    "choose_scheme": (X, 16.5),
    "window_mask": (TOKENS[:2], TOKENS, 3),
    "ring_length": (8, 2, True),
    "window_slots": (5, 0, 3, 4),
    "exact_rows": (2, 3, 9, 4),
    "bounded_replay": (NETWORK, TOKENS, 9, 3, {}),
    "exact_replay": (NETWORK, TOKENS, 9, {}),
    "replay_error_bound": (STATISTICS,),
    "predict_replay_error": (STATISTICS,),
    "replay_cost": (V41_FLASH, Policy.CHECKPOINTS, Request(512, 256), Storage()),
    "choose_policy": COSTS,
    "index_topk": (X, X, 2, 1),
}
OTHERS = {
    "encode_e2m1": (CODES,),
    "decode_e2m1": (X,),
    "pack_nibbles": (np.uint8(3),),
    "unpack_nibbles": (np.array(3, np.uint8),),
    "round_to_e4m3": (CODES,),
    "ue8m0_exponent": (CODES,),
    "quantise_e2m1": (np.array(1.0),),
    "quantise_int": (CODES, 4, 16),
    "dequantise": (CODES,),
    "attention_weights": (X, HEADS),
    "attend": (X, X, X[:1]),
    "attention_error_sweep": (HEADS, HEADS[:2], HEADS),
    "span_rank": (HEADS, 4, 0),
    "needle_tolerance": (X, 1.0, 0.5),
    "error_radius": (X,),
    "logit_error_bound": (HEADS, CACHED),
    "weight_error_bound": (HEADS,),
    "output_error_bound": (X[0], CACHED, CACHED),
    "predict_output_error": (X, X, CACHED),
    "outlier_channels": (HEADS, 3.0),
    "quantise_with_granularity": (HEADS, 4, Granularity.TOKEN),
    "split_outliers": (HEADS, 4, 3.0),
    "rotate_hadamard": (np.array(1.0),),
    "attend_rotated": (X, X[:, :16], X),
    "centre_keys": (HEADS, 1),
    "scale_four_over_six": (np.float32(1.0),),
    "channel_error": (X, X[:, :16]),
    "choose_scheme": (HEADS, 16.5),
    "window_mask": (X, TOKENS, 3),
    "ring_length": (8.0, 2, True),
    "window_slots": (5.0, 0, 3, 4),
    "exact_rows": (2, 3, 9.0, 4),
    "bounded_replay": (NETWORK, X, 9, 3, {}),
    "exact_replay": (NETWORK, TOKENS, 9.0, {}),
    "replay_error_bound": (X,),
    "predict_replay_error": (X,),
    "replay_cost": (V41_FLASH, Policy.CHECKPOINTS, (512, 256), Storage()),
    "choose_policy": (*COSTS[:-1], 1.0),
    "index_topk": (X, X[:, :16], 2, 1),
}


def checked(function: Callable[..., Any], **annotations: Any) -> Callable[..., Any]:
    """The function under a checker of its annotations; some may be replaced."""
    copy = type(function)(function.__code__, function.__globals__, function.__name__, function.__defaults__)
    copy.__annotations__ = {**function.__annotations__, **annotations}
    return jaxtyped(typechecker=beartype)(copy)


def test_every_task_is_public_and_documented() -> None:
    public = {name for name, item in vars(fp4kv).items() if inspect.isfunction(item) and not name.startswith("_")}
    assert public == set(fp4kv.__all__) == set(FITTING) == set(OTHERS)
    for name, task in TASKS.items():
        first, *rest = (task.__doc__ or "").splitlines()
        assert len(first) <= 80 and first.endswith("."), name
        refuses = any(
            word in inspect.getsource(task) for word in ("raise ", "_refuse", "_finite_float32", "error_radius(")
        )
        assert "Raises" in "\n".join(rest) or not refuses, name


@pytest.mark.parametrize("name", FITTING)
def test_every_array_has_its_shape_in_the_signature(name: str) -> None:
    for part, hint in get_type_hints(TASKS[name]).items():
        assert hint is not np.ndarray, f"{name}: {part} has no shape"
    assert "return" in get_type_hints(TASKS[name])


@pytest.mark.parametrize("name", FITTING)
def test_arrays_that_fit_pass(name: str) -> None:
    checked(TASKS[name])(*FITTING[name])


@pytest.mark.parametrize("name", OTHERS)
def test_arrays_that_do_not_fit_are_refused(name: str) -> None:
    with pytest.raises(TypeCheckError):
        checked(TASKS[name])(*OTHERS[name])


def test_a_wrong_shape_of_a_result_is_found() -> None:
    from jaxtyping import UInt8

    with pytest.raises(TypeCheckError):
        checked(TASKS["pack_nibbles"], **{"return": UInt8[np.ndarray, "... n"]})(CODES)


def test_whole_arrays_keep_their_shapes_under_the_checker(project) -> None:
    """Tables, decibels, attention, bounds and labkit's frames again, every call of both packages checked."""
    files = [f"fp4kv/test_{name}.py" for name in ("codes", "arrays", "integers", "snr", "attention", "bounds_formula")]
    files += [f"labkit/test_{name}.py" for name in ("block_formats", "suspects", "tensors", "draw", "schemes")]
    run_checked(project, files)


def test_replays_keep_their_shapes_under_the_checker(project) -> None:
    """Windows, rings, replays, traces and what is recorded of a run, every call checked."""
    files = [f"fp4kv/test_{name}.py" for name in ("replay", "replay_window", "index")]
    run_checked(project, files + [f"labkit/replay/test_{name}.py" for name in ("ring", "statistics", "trace")])


def run_checked(project, files: list[str]) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly"]
    command += ["--jaxtyping-packages=fp4kv,labkit,beartype.beartype", *(f"tests/{file}" for file in files)]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
