"""Launching a kernel: CuPy's call, what an array holds afterwards, what is refused."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from labkit import cuda

SCALE = """
extern "C" __global__ void scale(float* x, float factor, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor;
}
"""


def scale(x: np.ndarray, **options: object) -> cuda.RawKernel:
    kernel = cuda.RawKernel(SCALE, "scale")
    kernel(((x.size + 31) // 32,), (32,), (x, np.float32(3), x.size), **options)  # type: ignore[arg-type]
    return kernel


def test_a_kernel_changes_its_array() -> None:
    x = np.arange(100, dtype=np.float32)
    scale(x)
    assert np.array_equal(x, 3 * np.arange(100, dtype=np.float32))


def test_an_unchecked_launch_gives_the_same_and_no_report() -> None:
    x, y = np.ones(100, np.float32), np.ones(100, np.float32)
    scale(x)
    kernel = scale(y, checked=False)
    assert np.array_equal(x, y)
    with pytest.raises(cuda.LaunchError, match="report: expected a checked launch"):
        _ = kernel.report


def test_a_fault_leaves_every_array_as_it_was() -> None:
    x = np.ones(40, np.float32)
    with pytest.raises(cuda.KernelError):
        cuda.RawKernel(SCALE, "scale")((2,), (32,), (x, np.float32(3), 64))
    assert np.array_equal(x, np.ones(40, np.float32))


def test_one_array_passed_twice_is_one_memory() -> None:
    code = """extern "C" __global__ void add(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x] + 1.0f; }"""
    x = np.arange(8, dtype=np.float32)
    cuda.RawKernel(code, "add")((1,), (8,), (x, x))
    assert np.array_equal(x, np.arange(1, 9))


def test_overlapping_views_share_their_bytes() -> None:
    code = """extern "C" __global__ void shift(const int* x, int* y) { if (threadIdx.x == 0) y[0] = x[1] + 10; }"""
    base = np.arange(6, dtype=np.int32)
    cuda.RawKernel(code, "shift")((1,), (4,), (base[:4], base[2:]))
    assert base.tolist() == [0, 1, 11, 3, 4, 5]


def test_neighbouring_views_are_told_apart() -> None:
    code = """extern "C" __global__ void over(int* x, int* y) { x[threadIdx.x] = y[threadIdx.x]; }"""
    base = np.arange(8, dtype=np.int32)
    with pytest.raises(cuda.KernelError, match=r"reads y\[4\], but y has 4 elements"):
        cuda.RawKernel(code, "over")((1,), (5,), (base[:4], base[4:]))


def test_empty_arrays_are_launched_over() -> None:
    x = np.zeros(0, np.float32)
    cuda.RawKernel(SCALE, "scale")((1,), (32,), (x, np.float32(3), 0))


def test_instances_of_a_template_are_found_by_their_names() -> None:
    code = """
    template <class T, int by> __global__ void add(T* x) { x[threadIdx.x] += by; }
    """
    module = cuda.RawModule(code=code, name_expressions=("add<float, 2>", "add<int, 3>"))
    x, y = np.zeros(4, np.float32), np.zeros(4, np.int32)
    module.get_function("add<float, 2>")((1,), (4,), (x,))
    module.get_function("add<int, 3>")((1,), (4,), (y,))
    assert x.tolist() == [2.0] * 4 and y.tolist() == [3] * 4


def test_three_dimensions_are_counted_as_cuda_does() -> None:
    code = """
    extern "C" __global__ void where(int* x)
    {
        int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
        int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
        x[block * blockDim.x * blockDim.y * blockDim.z + thread] = 100 * block + thread;
    }
    """
    x = np.zeros(24 * 12, np.int32)
    cuda.RawKernel(code, "where")((2, 3, 4), (3, 2, 2), (x,), order=2)
    assert np.array_equal(x, (100 * np.arange(24)[:, None] + np.arange(12)).ravel())


def test_what_a_kernel_prints_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    code = r"""extern "C" __global__ void say(int n)
    { printf("{\"status\":\"ok\"} %d of %d, %.1f\n", threadIdx.x, n, 0.5f); }"""
    cuda.RawKernel(code, "say")((1,), (2,), (2,))
    assert capsys.readouterr().out == '{"status":"ok"} 0 of 2, 0.5\n{"status":"ok"} 1 of 2, 0.5\n'


def test_a_flood_of_prints_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    code = r"""extern "C" __global__ void flood() { for (int i = 0; i < 400000; ++i) printf("0123456789\n"); }"""
    cuda.RawKernel(code, "flood")((1,), (1,), ())
    assert 2**20 <= len(capsys.readouterr().out) < 2**20 + 100


def test_the_same_words_in_every_order() -> None:
    code = """
    extern "C" __global__ void turn(int* x)
    {
        __shared__ int values[64];
        values[threadIdx.x] = x[threadIdx.x];
        x[threadIdx.x] = values[63 - threadIdx.x];
    }
    """
    said = set()
    for order in (0, 1, 2, 3, 17):
        with pytest.raises(cuda.KernelError) as caught:
            cuda.RawKernel(code, "turn")((1,), (64,), (np.arange(64, dtype=np.int32),), order=order)
        said.add(str(caught.value))
    assert len(said) == 1


def test_all_halves_survive_float_and_back() -> None:
    code = """
    #include <cuda_fp16.h>
    extern "C" __global__ void there(const half* x, float* y, half* z)
    {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        y[i] = __half2float(x[i]);
        z[i] = __float2half(y[i]);
    }
    """
    bits = np.arange(2**16, dtype=np.uint16)
    x, y, z = bits.view(np.float16), np.zeros(2**16, np.float32), np.zeros(2**16, np.float16)
    cuda.RawKernel(code, "there")((256,), (256,), (x, y, z), checked=False)
    np.testing.assert_array_equal(y, x.astype(np.float32))
    real = ~np.isnan(x)
    assert np.array_equal(z.view(np.uint16)[real], bits[real]) and np.isnan(z[~real]).all()


@pytest.mark.parametrize(
    ("header", "type_name", "convert", "dtype"),
    [
        ("cuda_fp16.h", "half", "__float2half", np.dtype(np.float16)),
        ("cuda_bf16.h", "__nv_bfloat16", "__float2bfloat16", np.dtype(ml_dtypes.bfloat16)),
    ],
)
def test_floats_round_to_16_bits_as_an_independent_library_does(
    header: str, type_name: str, convert: str, dtype: np.dtype
) -> None:
    code = f"""
    #include <{header}>
    extern "C" __global__ void narrow(const float* x, {type_name}* y)
    {{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        y[i] = {convert}(x[i]);
    }}
    """
    rng = np.random.default_rng(5)
    every_exponent = rng.integers(0, 2**32, 2**16, dtype=np.uint32).view(np.float32)
    near_ties = (rng.integers(0, 2**31, 2**16, dtype=np.uint32) & np.uint32(0xFFFFF000)).view(np.float32)
    x = np.concatenate([every_exponent, near_ties])
    y = np.zeros(x.size, dtype)
    cuda.RawKernel(code, "narrow")((512,), (256,), (x, y), checked=False)
    with np.errstate(over="ignore", invalid="ignore"):
        expected = x.astype(dtype)
    real = ~np.isnan(x)
    assert np.array_equal(y.view(np.uint16)[real], expected.view(np.uint16)[real])
    assert np.isnan(y.astype(np.float32)[~real]).all()


def test_shared_memory_beyond_48_kib_must_be_asked_for() -> None:
    code = """
    extern "C" __global__ void fill(int* x)
    {
        extern __shared__ int values[];
        values[threadIdx.x + 15000] = threadIdx.x;
        x[threadIdx.x] = values[threadIdx.x + 15000];
    }
    """
    x = np.zeros(32, np.int32)
    kernel = cuda.RawKernel(code, "fill")
    with pytest.raises(cuda.LaunchError, match="max_dynamic_shared_size_bytes"):
        kernel((1,), (32,), (x,), shared_mem=61440)
    kernel.max_dynamic_shared_size_bytes = 61440
    kernel((1,), (32,), (x,), shared_mem=61440)
    assert np.array_equal(x, np.arange(32))


@pytest.mark.parametrize(
    ("grid", "block", "words"),
    [
        ((0,), (32,), "grid: expected a tuple of one to three positive integers"),
        ((1, 1, 1, 1), (32,), "grid: expected a tuple"),
        ((1,), (2048,), "block: expected at most 1024 threads"),
        ((1,), (1, 1, 128), "64 along z"),
        ((1, 70000), (1,), "grid: expected at most"),
    ],
)
def test_impossible_launches_are_refused(grid: tuple[int, ...], block: tuple[int, ...], words: str) -> None:
    x = np.zeros(4, np.float32)
    with pytest.raises(cuda.LaunchError, match=words) as caught:
        cuda.RawKernel(SCALE, "scale")(grid, block, (x, np.float32(1), 4))
    assert caught.value.kind == "launch"


def test_a_shell_script_may_use_it(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np\nfrom labkit import cuda\n"
        f"kernel = cuda.RawKernel({SCALE!r}, 'scale')\nx = cuda.xp.ones(5, dtype=np.float32)\n"
        "kernel((1,), (32,), (x, np.float32(2), 5))\nprint(cuda.asnumpy(x))\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[2. 2. 2. 2. 2.]\n", "")


def test_a_launch_does_not_load_matplotlib() -> None:
    script = "import sys\nfrom labkit import cuda\nprint('matplotlib' in sys.modules, cuda.draw_traffic.__name__)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False draw_traffic\n"


TWO_RESULTS = {
    "frexpf": ("float", "int", "y[i] = frexpf(x[i], second + i);", np.frexp),
    "frexp": ("double", "int", "y[i] = frexp(x[i], second + i);", np.frexp),
    "modff": ("float", "float", "y[i] = modff(x[i], second + i);", np.modf),
    "modf": ("double", "double", "y[i] = modf(x[i], second + i);", np.modf),
    "sincosf": ("float", "float", "sincosf(x[i], y + i, second + i);", lambda x: (np.sin(x), np.cos(x))),
    "sincos": ("double", "double", "sincos(x[i], y + i, second + i);", lambda x: (np.sin(x), np.cos(x))),
}
TYPES = {"float": np.float32, "double": np.float64, "int": np.int32}


@pytest.mark.parametrize(("first", "second", "line", "expected"), TWO_RESULTS.values(), ids=TWO_RESULTS)
def test_mathematics_with_two_results_writes_where_it_is_seen(
    first: str, second: str, line: str, expected: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
) -> None:
    parameters = f"const {first}* x, {first}* y, {second}* second"
    code = f'extern "C" __global__ void two({parameters}) {{ int i = threadIdx.x; {line} }}'
    x = np.linspace(-9, 9, 32).astype(TYPES[first])
    y, z = np.zeros_like(x), np.zeros(x.shape, TYPES[second])
    kernel = cuda.RawKernel(code, "two")
    kernel((1,), (32,), (x, y, z))
    np.testing.assert_allclose(np.stack([y, z]), np.stack(expected(x)), rtol=1e-6, atol=1e-7)
    assert kernel.report.total("global", "writes").bytes == y.nbytes + z.nbytes
    with pytest.raises(cuda.KernelError, match=r"writes second\[31\], but second has 31 elements"):
        kernel((1,), (32,), (x, y, z[:31].copy()))
