"""Reference library of the course: each public function is a task of a lab, its stub and its expected values."""

from fp4kv.arrays import dequantise, quantise_e2m1, quantise_int
from fp4kv.codes import decode_e2m1, encode_e2m1, pack_nibbles, round_to_e4m3, ue8m0_exponent, unpack_nibbles

__all__ = [
    "decode_e2m1",
    "dequantise",
    "encode_e2m1",
    "pack_nibbles",
    "quantise_e2m1",
    "quantise_int",
    "round_to_e4m3",
    "ue8m0_exponent",
    "unpack_nibbles",
]
