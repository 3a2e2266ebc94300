"""Reference library of the course: each public function is a task of a lab, its stub and its expected values."""

from fp4kv.arrays import dequantise, quantise_e2m1, quantise_int
from fp4kv.attention import attend, attention_error_sweep, attention_weights, span_rank
from fp4kv.codes import decode_e2m1, encode_e2m1, pack_nibbles, round_to_e4m3, ue8m0_exponent, unpack_nibbles
from fp4kv.errors import (
    error_radius,
    logit_error_bound,
    needle_tolerance,
    output_error_bound,
    predict_output_error,
    weight_error_bound,
)
from fp4kv.index import index_topk
from fp4kv.outliers import (
    attend_rotated,
    centre_keys,
    channel_error,
    choose_scheme,
    outlier_channels,
    quantise_with_granularity,
    rotate_hadamard,
    scale_four_over_six,
    split_outliers,
)
from fp4kv.replay import bounded_replay, exact_replay, exact_rows, ring_length, window_mask, window_slots
from fp4kv.replay_costs import choose_policy, replay_cost
from fp4kv.replay_errors import predict_replay_error, replay_error_bound

__all__ = [
    "attend",
    "attend_rotated",
    "attention_error_sweep",
    "attention_weights",
    "bounded_replay",
    "centre_keys",
    "channel_error",
    "choose_policy",
    "choose_scheme",
    "decode_e2m1",
    "dequantise",
    "encode_e2m1",
    "error_radius",
    "exact_replay",
    "exact_rows",
    "index_topk",
    "logit_error_bound",
    "needle_tolerance",
    "outlier_channels",
    "output_error_bound",
    "pack_nibbles",
    "predict_output_error",
    "predict_replay_error",
    "quantise_e2m1",
    "quantise_int",
    "quantise_with_granularity",
    "replay_cost",
    "replay_error_bound",
    "ring_length",
    "rotate_hadamard",
    "round_to_e4m3",
    "scale_four_over_six",
    "span_rank",
    "split_outliers",
    "ue8m0_exponent",
    "unpack_nibbles",
    "weight_error_bound",
    "window_mask",
    "window_slots",
]
