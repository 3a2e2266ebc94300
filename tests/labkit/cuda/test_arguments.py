"""CuPy's rules for arguments: what is passed, what is refused, and with which words."""

from typing import Any

import numpy as np
import pytest
from labkit import cuda
from labkit.cuda.arguments import pack

TAKES = """extern "C" __global__ void takes(float* x, float a, int n, unsigned char b, double d, long long big)
{ if (threadIdx.x == 0) { x[0] = a; x[1] = n; x[2] = b; x[3] = (float)d; x[4] = (float)(big >> 32); } }"""


def take(*values: Any) -> np.ndarray:
    x = np.zeros(5, np.float32)
    cuda.RawKernel(TAKES, "takes")((1,), (1,), (x, *values))
    return x


def test_numbers_arrive_as_they_were_sent() -> None:
    got = take(np.float32(0.5), np.int32(-7), np.uint8(200), np.float64(0.25), np.int64(3 << 32))
    assert got.tolist() == [0.5, -7.0, 200.0, 0.25, 3.0]


def test_python_integers_fit_where_their_value_does() -> None:
    assert take(np.float32(1), -7, 200, 0.25, 3 << 32).tolist() == [1.0, -7.0, 200.0, 0.25, 3.0]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            (0.5, 1, 1, 1.0, 1),
            r"args\[1\] \(a\): expected a 4-byte floating point number, got 0.5, which is passed as 8-byte float64",
        ),
        ((np.float64(0.5), 1, 1, 1.0, 1), r"args\[1\] \(a\): expected a 4-byte"),
        ((np.float32(1), 1.0, 1, 1.0, 1), r"args\[2\] \(n\): expected a 4-byte integer, got 1.0"),
        ((np.float32(1), 2**32, 1, 1.0, 1), r"args\[2\] \(n\): expected a 4-byte integer, got 4294967296"),
        ((np.float32(1), 1, 256, 1.0, 1), r"args\[3\] \(b\): expected a 1-byte integer, got 256"),
        ((np.float32(1), 1, 1, np.float32(1), 1), r"args\[4\] \(d\): expected an 8-byte floating point number"),
        ((1, 1, 1, 1.0, 1), r"args\[1\] \(a\): expected a 4-byte floating point number, got 1"),
        ((np.float32(1), 1, 1, 1.0), r"args: expected 6 arguments \(x, a, n, b, d, big\), got 5"),
        (("text", 1, 1, 1.0, 1), r"args\[1\] \(a\): expected an array or a number, got str"),
        (([1.0], 1, 1, 1.0, 1), r"args\[1\] \(a\): expected an array or a number, got list"),
        ((np.float32(1), 2**80, 1, 1.0, 1), r"args\[2\] \(n\): expected an integer of 8 bytes"),
        (
            (np.ones(1, np.float32), 1, 1, 1.0, 1),
            r"args\[1\] \(a\): expected a 4-byte floating point number, got an array of float32",
        ),
    ],
)
def test_what_cupy_would_pass_as_garbage_is_refused(values: tuple[Any, ...], words: str) -> None:
    with pytest.raises(cuda.LaunchError, match=words) as caught:
        take(*values)
    assert caught.value.kind == "argument"


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros(4), "expected an array of 4-byte floating point numbers, got an array of float64"),
        (np.zeros(4, np.int32), "got an array of int32"),
        (np.zeros((2, 3), np.float32).T, "expected a C-contiguous array"),
        (np.zeros(8, np.float32)[::2], "expected a C-contiguous array"),
        (np.array([None]), "expected an array of numbers"),
        (1.0, "expected an array of 4-byte floating point numbers, got 1.0"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(array: Any, words: str) -> None:
    code = """extern "C" __global__ void fill(float* x) { x[threadIdx.x] = 1.0f; }"""
    with pytest.raises(cuda.LaunchError, match=words):
        cuda.RawKernel(code, "fill")((1,), (1,), (array,))


def test_half_pointers_do_not_take_floats() -> None:
    code = """
    #include <cuda_fp16.h>
    extern "C" __global__ void fill(half* x) { x[threadIdx.x] = __float2half(1.0f); }
    """
    x = np.zeros(4, np.float16)
    cuda.RawKernel(code, "fill")((1,), (4,), (x,))
    assert x.tolist() == [1.0] * 4
    with pytest.raises(cuda.LaunchError, match="expected an array of 2-byte structures, got an array of float32"):
        cuda.RawKernel(code, "fill")((1,), (4,), (np.zeros(4, np.float32),))


def test_vectors_and_bytes_may_view_any_array() -> None:
    code = """extern "C" __global__ void view(float4* x, unsigned char* y, const void* z)
    { x[0].w = 2.0f; y[3] = 1; }"""
    x, y = np.zeros(4, np.float32), np.zeros(1, np.uint32)
    cuda.RawKernel(code, "view")((1,), (1,), (x, y, np.zeros(3)))
    assert x.tolist() == [0, 0, 0, 2] and y[0] == 1 << 24


def test_none_is_a_null_pointer() -> None:
    code = """extern "C" __global__ void maybe(int* x, int* y) { y[0] = x == 0; if (threadIdx.x) x[0] = 1; }"""
    y = np.zeros(1, np.int32)
    cuda.RawKernel(code, "maybe")((1,), (1,), (None, y))
    assert y[0] == 1
    with pytest.raises(cuda.KernelError, match="null pointer"):
        cuda.RawKernel(code, "maybe")((1,), (2,), (None, y))


def test_a_read_only_array_may_be_passed_as_const() -> None:
    code = """extern "C" __global__ void read(const int* x, int* y) { y[0] = x[0]; }"""
    x, y = np.full(1, 5, np.int32), np.zeros(1, np.int32)
    x.flags.writeable = False
    cuda.RawKernel(code, "read")((1,), (1,), (x, y))
    assert y[0] == 5


def test_overlapping_arrays_become_one_stretch() -> None:
    base = np.zeros(100, np.float32)
    packed = pack((base[:50], base[40:], base[:50].view(np.uint8), np.zeros(3)), ("a", "b", "c", "d"))
    assert [stretch.n_bytes for stretch in packed.stretches if stretch.element_bytes == 1] == [400]
    assert len(packed.stretches) == 2
