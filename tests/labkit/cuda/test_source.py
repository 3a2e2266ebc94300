"""What is read off a kernel's source: kernels, parameters, shared arrays, and what is outside."""

import time

import pytest
from labkit.cuda.errors import CompileError
from labkit.cuda.source import for_the_cpu, kernels_of, quote, refuse_what_is_outside, shared_arrays_of

MOMENT_S = 0.25  # a few ms are needed; patterns that try every division of a name need hours


def test_kernels_are_found_with_their_parameters() -> None:
    code = """
    // extern "C" __global__ void in_a_comment(int x) {}
    extern "C" __global__ void __launch_bounds__(256) first(const float* __restrict__ x, int n[4]) { }
    extern "C" {
    __global__ void second(void) { }
    }
    __global__ void third(unsigned char *bytes) { const char* text = "__global__ void no(int x) {"; }
    template <class T> __global__ void fourth(T* x) { }
    """
    found = {kernel.name: (kernel.parameters, kernel.is_extern_c) for kernel in kernels_of(code)}
    assert found == {"first": (("x", "n"), True), "second": ((), True), "third": (("bytes",), False)}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('asm volatile("mov.u32 %0, %%laneid;" : "=r"(x));', "inline PTX"),
        ("#include <mma.h>", "tensor cores"),
        ("nvcuda::wmma::fill_fragment(c, 0.0f);", "tensor cores"),
        ("#include <cooperative_groups.h>", "cooperative groups"),
        ("cudaTextureObject_t image;", "textures"),
        ("float v = tex2D<float>(image, 0, 0);", "textures"),
        ("kernel<<<1, 32>>>(x);", "launching kernels"),
        ("#include <cuda/atomic>", "#include <cuda/atomic>"),
        ('#include "/etc/passwd"', "#include </etc/passwd>"),
        ("cuda::atomic<int> a;", "libcu++"),
        ("int y = __shfl_down(x, 1);", "without _sync"),
        ("int* y = (int*)malloc(4);", "heap"),
        ("struct Shape { virtual float area() const; };", "virtual functions"),
    ],
)
def test_what_is_outside_is_refused_by_name_and_line(line: str, words: str) -> None:
    with pytest.raises(CompileError) as caught:
        refuse_what_is_outside(f"// one\n{line}\n")
    assert caught.value.kind == "unsupported"
    assert caught.value.line == 2
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "line", ["// asm is not used", 'printf("asm <<< new");', "int basm = wmma_count;", "#include <cuda_fp16.h>"]
)
def test_words_that_only_look_like_it_are_let_through(line: str) -> None:
    refuse_what_is_outside(line)


def test_dynamic_shared_memory_becomes_a_pointer_on_the_same_line() -> None:
    code = "a\nextern __shared__ __align__(16) unsigned char raw[];\nb"
    rewritten = for_the_cpu(code)
    assert rewritten.count("\n") == code.count("\n")
    assert "unsigned char* const raw = (unsigned char*)" in rewritten


def test_rewriting_ends_no_comment_and_moves_no_line() -> None:
    in_a_comment = "extern __align__(16 /* ) __shared__ float a[]; hidden // */ ) __shared__ float b[];"
    assert for_the_cpu(in_a_comment) == in_a_comment
    lines = for_the_cpu("#define X extern\n__shared__ float a[]; int b;").split("\n")
    assert lines[1] == " int b;"


@pytest.mark.parametrize(
    "declaration",
    [
        f"__shared__ unsigned long {'n' * 60}<f> x;",
        f"__shared__ float {'n' * 60} = 0;",
        f"__shared__ float {'n' * 60}{{}};",
        f"__shared__ {'long ' * 2000}= 0;",
        f"extern __shared__ float{' ' * 20_000}= 0;",
        f"extern __shared__ {'long ' * 2000}= 0;",
    ],
    ids=lambda text: f"{text[:22]}{text[-5:]}",
)
def test_a_long_declaration_is_read_at_once(declaration: str) -> None:
    start = time.process_time()
    assert not shared_arrays_of(declaration)
    assert for_the_cpu(declaration) == declaration
    assert time.process_time() - start < MOMENT_S


def test_shared_arrays_are_read_with_type_and_extents() -> None:
    arrays = shared_arrays_of("__shared__ float tile[32][33], row[N];\n__shared__ int n;")
    assert arrays["tile"].extents == ("32", "33") and arrays["tile"].type == "float"
    assert arrays["row"].extents == ("N",)
    assert arrays["n"].extents == ()


def test_a_line_is_quoted_with_its_number() -> None:
    assert quote("a\n  b;\n", 2) == "  line 2: b;"
    assert "does not name" in quote("a", None)
    assert "does not name" in quote("a", 7)
