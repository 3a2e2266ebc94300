"""The names that a graded kernel may use where C++ reserves them, and those that it may not take for its own.

Everything that C++ reserves (two underscores, or one and a capital letter) is refused unless it stands here: that is
where attributes, built-in functions, assembler and the checker's own functions live.
"""

import re

_CUDA_NAMES = """
    __activemask __align__ __all_sync __any_sync __ballot_sync __brev __brevll __byte_perm __clz __clzll __constant__
    __cosf __device__ __double2float_rn __double2int_rn __double_as_longlong __exp10f __expf __fadd_rn __fdiv_rn
    __fdividef __ffs __ffsll __float2int_rd __float2int_rn __float2int_ru __float2int_rz __float2uint_rd
    __float2uint_rn __float2uint_ru __float2uint_rz __float_as_int __float_as_uint __fmaf_rn __fmul_rn
    __forceinline__ __frcp_rn __frsqrt_rn __fsqrt_rn __fsub_rn __funnelshift_l __funnelshift_r __global__
    __grid_constant__ __host__ __int2float_rn __int_as_float __launch_bounds__ __ldca __ldcg __ldcs __ldg __log10f
    __log2f __logf __longlong_as_double __managed__ __match_all_sync __match_any_sync __mul24 __mulhi __nanosleep
    __noinline__
    __popc __popcll __powf __reduce_add_sync __reduce_and_sync __reduce_max_sync __reduce_min_sync __reduce_or_sync
    __reduce_xor_sync __restrict __restrict__ __saturatef __shared__ __shfl_down_sync __shfl_sync __shfl_up_sync
    __shfl_xor_sync __sincosf __sinf __stcg __stcs __syncthreads __syncthreads_and __syncthreads_count
    __syncthreads_or __syncwarp __tanf __threadfence __threadfence_block __threadfence_system __trap __uint2float_rn
    __uint_as_float __umul24 __umulhi __vabsdiffu4 __CUDA_ARCH__ __CUDACC__ __LINE__
"""
_HALF_NAMES = re.compile(
    r"""__(?:
        half2? | half_raw | nv_bfloat16 | nv_bfloat162
      | (?:float|float2|float22|double|int|uint|short|ushort|ll|ull)2?(?:half|bfloat16)2?(?:_r[nzud])?
      | (?:half|half2|half22|bfloat16|bfloat162|bfloat1622)2?(?:float|float2|int|uint|short|ushort)(?:_r[nzud])?
      | halves2half2 | halves2bfloat162 | (?:low|high)s?2(?:half|half2|float|bfloat16|bfloat162)
      | half_as_u?short | u?short_as_half | bfloat16_as_u?short | u?short_as_bfloat16
      | h(?:add|sub|mul|div|fma|neg|abs|max|min|eq|ne|lt|le|gt|ge|isnan)2?(?:_rn|_sat|_relu|_nan)?
    )""",
    re.VERBOSE,
)
CONDITIONS = frozenset({"defined", "__CUDA_ARCH__", "__CUDACC__", "__LINE__"})
RESERVED_ALLOWED = frozenset(_CUDA_NAMES.split())

REFUSED = {
    "asm": "assembler is not graded",
    "gnu": "vendor attributes are not graded",
    "clang": "vendor attributes are not graded",
    "main": "a kernel's source has no program of its own",
}
RUNNER_NAME = re.compile(r"labkit.*|.*_unchecked", re.IGNORECASE)

_KEYWORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t class compl const
    const_cast constexpr continue decltype default delete do double dynamic_cast else enum explicit export extern
    false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or
    or_eq private protected public register reinterpret_cast return short signed sizeof static static_assert
    static_cast struct switch template this thread_local throw true try typedef typeid typename union unsigned using
    virtual void volatile wchar_t while xor xor_eq
"""
KEYWORDS = frozenset(_KEYWORDS.split())
# What the text that follows a kernel, and CUDA itself, mean by these must not change.
_MEANT = """
    threadIdx blockIdx blockDim gridDim warpSize printf assert memcpy memset clock clock64
    arguments enter signature_of Signature visibility defined final override
"""
MEANT = frozenset(_MEANT.split())
NO_MACRO = KEYWORDS | MEANT

_UNARY = """exp exp2 expm1 exp10 log log2 log10 log1p sqrt cbrt sin cos tan asin acos atan sinh cosh tanh erf erfc floor
    ceil trunc round rint nearbyint fabs"""
_BINARY = "pow fmod fmax fmin atan2 copysign hypot nextafter remainder fma ldexp scalbn frexp modf ilogb lrint lround"
MATHEMATICS = frozenset(name + end for name in f"{_UNARY} {_BINARY} sincos llrint llround".split() for end in ("", "f"))
_RUNNER = """barrier warp_call atomic fence yield trap assertion clock dynamic_shared copy fill print where_thread
    where_block block_shape grid_shape"""
RUNNER_FUNCTIONS = frozenset(f"labkit_{name}" for name in _RUNNER.split())
CHECKER_FUNCTIONS = re.compile(
    r"__tsan_(?:init|func_entry|func_exit|(?:unaligned_|volatile_|unaligned_volatile_)?(?:read|write)(?:1|2|4|8|16|_range)"
    r"|mem(?:cpy|move|set))"
    r"|__ubsan_handle_(?:out_of_bounds|type_mismatch_v1|shift_out_of_bounds|divrem_overflow|float_cast_overflow"
    r"|missing_return|builtin_unreachable)(?:_abort)?"
)
_LIBGCC = (
    "popcountsi2 popcountdi2 ffsdi2 clzdi2 ctzdi2 bswapsi2 udivti3 umodti3 divti3 modti3 multi3 extendhfsf2 truncsfhf2"
)
COMPILER_FUNCTIONS = {"memcpy", "memset", "memmove", "abs", "labs"} | {f"__{name}" for name in _LIBGCC.split()}


def is_reserved(name: str) -> bool:
    """Return whether C++ keeps a name for itself and its compiler."""
    return "__" in name or (name[:1] == "_" and name[1:2].isupper())


def is_allowed(name: str) -> bool:
    """Return whether a reserved name is one of CUDA's that a kernel may use."""
    return name in RESERVED_ALLOWED or bool(_HALF_NAMES.fullmatch(name))


def is_of_the_runtime(symbol: str) -> bool:
    """Return whether a compiled kernel may ask for this symbol, and so may not define it."""
    known = symbol in MATHEMATICS or symbol in RUNNER_FUNCTIONS or symbol in COMPILER_FUNCTIONS
    return known or bool(CHECKER_FUNCTIONS.fullmatch(symbol))
