# Planted answers of lab 5, one cell each: the text that replaces the answer cell of the task that it names.
# A wrong one is a mistake that a person makes, said in its first line; `loses` lists the checks that it loses while
# all other tasks are solved. A right one is written differently from the reference and loses none.

# %% wrong="quantise_pack" name="structure_by_value" loses="quantise_pack-traffic quantise_pack-sectors"
# Passes a whole group by value for each of its numbers.
QUANTISE_PACK = (
    r"""
__device__ unsigned char encode_e4m3(float x);
__device__ float decode_e4m3(unsigned char byte);
__device__ unsigned int encode_e2m1(float x);

#define FULL_WARP 0xffffffffu

struct Numbers { float all[16]; };
__device__ __noinline__ float one_of(Numbers numbers, int which) { return numbers.all[which]; }

extern "C" __global__ void quantise_pack(const float* x, unsigned char* packed, unsigned char* scales, int n_groups)
{
    const int lane = threadIdx.x % 32;
    const long long n_elements = 16LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x - lane;

    for (long long start = first; start < n_elements; start += n_threads) {
        const long long i = start + lane;
        const float value = i < n_elements ? one_of(*((const Numbers*)x + i / 16), i % 16) : 0.0f;

        float amax = fabsf(value);
        for (int distance = 8; distance > 0; distance /= 2)
            amax = fmaxf(amax, __shfl_xor_sync(FULL_WARP, amax, distance));

        const unsigned char scale = encode_e4m3(fmaxf(__fdiv_rn(amax, 6.0f), 0.001953125f));
        const unsigned int code = encode_e2m1(__fdiv_rn(value, decode_e4m3(scale)));
        const unsigned int next = __shfl_down_sync(FULL_WARP, code, 1);

        if (i < n_elements && lane % 2 == 0) packed[i / 2] = code | next << 4;
        if (i < n_elements && lane % 16 == 0) scales[i / 16] = scale;
    }
}
"""
    + DEVICE_CODE
)

# %% wrong="quantise_pack" name="half_a_warp_in_the_mask" loses="quantise_pack-runs quantise_pack-nibbles quantise_pack-ties quantise_pack-scales quantise_pack-extremes quantise_pack-ragged quantise_pack-traffic quantise_pack-sectors quantise_pack-large"
# Names only the first 16 lanes in the mask, and all 32 shuffle.
QUANTISE_PACK = (
    r"""
__device__ unsigned char encode_e4m3(float x);
__device__ float decode_e4m3(unsigned char byte);
__device__ unsigned int encode_e2m1(float x);

#define FULL_WARP 0xffffffffu

extern "C" __global__ void quantise_pack(const float* x, unsigned char* packed, unsigned char* scales, int n_groups)
{
    const int lane = threadIdx.x % 32;
    const long long n_elements = 16LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x - lane;

    for (long long start = first; start < n_elements; start += n_threads) {
        const long long i = start + lane;
        const float value = i < n_elements ? x[i] : 0.0f;

        float amax = fabsf(value);
        for (int distance = 8; distance > 0; distance /= 2)
            amax = fmaxf(amax, __shfl_xor_sync(0xffffu, amax, distance));

        const unsigned char scale = encode_e4m3(fmaxf(__fdiv_rn(amax, 6.0f), 0.001953125f));
        const unsigned int code = encode_e2m1(__fdiv_rn(value, decode_e4m3(scale)));
        const unsigned int next = __shfl_down_sync(FULL_WARP, code, 1);

        if (i < n_elements && lane % 2 == 0) packed[i / 2] = code | next << 4;
        if (i < n_elements && lane % 16 == 0) scales[i / 16] = scale;
    }
}
"""
    + DEVICE_CODE
)

# %% wrong="quantise_pack" name="scale_before_the_maximum" loses="quantise_pack-runs quantise_pack-ties quantise_pack-scales quantise_pack-extremes quantise_pack-ragged quantise_pack-traffic quantise_pack-sectors quantise_pack-large"
# Stops shuffling one step early: lanes of even and odd number have different maxima.
QUANTISE_PACK = (
    r"""
__device__ unsigned char encode_e4m3(float x);
__device__ float decode_e4m3(unsigned char byte);
__device__ unsigned int encode_e2m1(float x);

#define FULL_WARP 0xffffffffu

extern "C" __global__ void quantise_pack(const float* x, unsigned char* packed, unsigned char* scales, int n_groups)
{
    const int lane = threadIdx.x % 32;
    const long long n_elements = 16LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x - lane;

    for (long long start = first; start < n_elements; start += n_threads) {
        const long long i = start + lane;
        const float value = i < n_elements ? x[i] : 0.0f;

        float amax = fabsf(value);
        for (int distance = 8; distance > 1; distance /= 2)
            amax = fmaxf(amax, __shfl_xor_sync(FULL_WARP, amax, distance));

        const unsigned char scale = encode_e4m3(fmaxf(__fdiv_rn(amax, 6.0f), 0.001953125f));
        const unsigned int code = encode_e2m1(__fdiv_rn(value, decode_e4m3(scale)));
        const unsigned int next = __shfl_down_sync(FULL_WARP, code, 1);

        if (i < n_elements && lane % 2 == 0) packed[i / 2] = code | next << 4;
        if (i < n_elements && lane % 16 == 0) scales[i / 16] = scale;
    }
}
"""
    + DEVICE_CODE
)

# %% wrong="quantise_pack" name="maximum_of_the_warp" loses="quantise_pack-runs quantise_pack-ties quantise_pack-scales quantise_pack-extremes quantise_pack-ragged quantise_pack-traffic quantise_pack-sectors quantise_pack-large"
# Takes one maximum for the 32 lanes, which are two groups.
QUANTISE_PACK = (
    r"""
__device__ unsigned char encode_e4m3(float x);
__device__ float decode_e4m3(unsigned char byte);
__device__ unsigned int encode_e2m1(float x);

#define FULL_WARP 0xffffffffu

extern "C" __global__ void quantise_pack(const float* x, unsigned char* packed, unsigned char* scales, int n_groups)
{
    const int lane = threadIdx.x % 32;
    const long long n_elements = 16LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x - lane;

    for (long long start = first; start < n_elements; start += n_threads) {
        const long long i = start + lane;
        const float value = i < n_elements ? x[i] : 0.0f;

        float amax = fabsf(value);
        for (int distance = 16; distance > 0; distance /= 2)
            amax = fmaxf(amax, __shfl_xor_sync(FULL_WARP, amax, distance));

        const unsigned char scale = encode_e4m3(fmaxf(__fdiv_rn(amax, 6.0f), 0.001953125f));
        const unsigned int code = encode_e2m1(__fdiv_rn(value, decode_e4m3(scale)));
        const unsigned int next = __shfl_down_sync(FULL_WARP, code, 1);

        if (i < n_elements && lane % 2 == 0) packed[i / 2] = code | next << 4;
        if (i < n_elements && lane % 16 == 0) scales[i / 16] = scale;
    }
}
"""
    + DEVICE_CODE
)

# %% wrong="quantise_pack" name="swapped_nibbles" loses="quantise_pack-nibbles"
# Puts the first of two codes into the high half.
QUANTISE_PACK = (
    r"""
__device__ unsigned char encode_e4m3(float x);
__device__ float decode_e4m3(unsigned char byte);
__device__ unsigned int encode_e2m1(float x);

#define FULL_WARP 0xffffffffu

extern "C" __global__ void quantise_pack(const float* x, unsigned char* packed, unsigned char* scales, int n_groups)
{
    const int lane = threadIdx.x % 32;
    const long long n_elements = 16LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x - lane;

    for (long long start = first; start < n_elements; start += n_threads) {
        const long long i = start + lane;
        const float value = i < n_elements ? x[i] : 0.0f;

        float amax = fabsf(value);
        for (int distance = 8; distance > 0; distance /= 2)
            amax = fmaxf(amax, __shfl_xor_sync(FULL_WARP, amax, distance));

        const unsigned char scale = encode_e4m3(fmaxf(__fdiv_rn(amax, 6.0f), 0.001953125f));
        const unsigned int code = encode_e2m1(__fdiv_rn(value, decode_e4m3(scale)));
        const unsigned int next = __shfl_down_sync(FULL_WARP, code, 1);

        if (i < n_elements && lane % 2 == 0) packed[i / 2] = next | code << 4;
        if (i < n_elements && lane % 16 == 0) scales[i / 16] = scale;
    }
}
"""
    + DEVICE_CODE
)

# %% wrong="quantise_pack" name="no_floor" loses="quantise_pack-extremes"
# Lets the scale of a quiet group become 0.
QUANTISE_PACK = (
    r"""
__device__ unsigned char encode_e4m3(float x);
__device__ float decode_e4m3(unsigned char byte);
__device__ unsigned int encode_e2m1(float x);

#define FULL_WARP 0xffffffffu

extern "C" __global__ void quantise_pack(const float* x, unsigned char* packed, unsigned char* scales, int n_groups)
{
    const int lane = threadIdx.x % 32;
    const long long n_elements = 16LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x - lane;

    for (long long start = first; start < n_elements; start += n_threads) {
        const long long i = start + lane;
        const float value = i < n_elements ? x[i] : 0.0f;

        float amax = fabsf(value);
        for (int distance = 8; distance > 0; distance /= 2)
            amax = fmaxf(amax, __shfl_xor_sync(FULL_WARP, amax, distance));

        const unsigned char scale = encode_e4m3(__fdiv_rn(amax, 6.0f));
        const unsigned int code = encode_e2m1(__fdiv_rn(value, decode_e4m3(scale)));
        const unsigned int next = __shfl_down_sync(FULL_WARP, code, 1);

        if (i < n_elements && lane % 2 == 0) packed[i / 2] = code | next << 4;
        if (i < n_elements && lane % 16 == 0) scales[i / 16] = scale;
    }
}
"""
    + DEVICE_CODE
)

# %% wrong="quantise_pack" name="reciprocal_of_the_scale" loses="quantise_pack-ties"
# Multiplies by 1 / scale, which is rounded itself.
QUANTISE_PACK = (
    r"""
__device__ unsigned char encode_e4m3(float x);
__device__ float decode_e4m3(unsigned char byte);
__device__ unsigned int encode_e2m1(float x);

#define FULL_WARP 0xffffffffu

extern "C" __global__ void quantise_pack(const float* x, unsigned char* packed, unsigned char* scales, int n_groups)
{
    const int lane = threadIdx.x % 32;
    const long long n_elements = 16LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x - lane;

    for (long long start = first; start < n_elements; start += n_threads) {
        const long long i = start + lane;
        const float value = i < n_elements ? x[i] : 0.0f;

        float amax = fabsf(value);
        for (int distance = 8; distance > 0; distance /= 2)
            amax = fmaxf(amax, __shfl_xor_sync(FULL_WARP, amax, distance));

        const unsigned char scale = encode_e4m3(fmaxf(__fdiv_rn(amax, 6.0f), 0.001953125f));
        const unsigned int code = encode_e2m1(value * __fdiv_rn(1.0f, decode_e4m3(scale)));
        const unsigned int next = __shfl_down_sync(FULL_WARP, code, 1);

        if (i < n_elements && lane % 2 == 0) packed[i / 2] = code | next << 4;
        if (i < n_elements && lane % 16 == 0) scales[i / 16] = scale;
    }
}
"""
    + DEVICE_CODE
)

# %% wrong="quantise_pack" name="reciprocal_of_six" loses="quantise_pack-scales"
# Multiplies by 1 / 6 where it should divide.
QUANTISE_PACK = (
    r"""
__device__ unsigned char encode_e4m3(float x);
__device__ float decode_e4m3(unsigned char byte);
__device__ unsigned int encode_e2m1(float x);

#define FULL_WARP 0xffffffffu

extern "C" __global__ void quantise_pack(const float* x, unsigned char* packed, unsigned char* scales, int n_groups)
{
    const int lane = threadIdx.x % 32;
    const long long n_elements = 16LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x - lane;

    for (long long start = first; start < n_elements; start += n_threads) {
        const long long i = start + lane;
        const float value = i < n_elements ? x[i] : 0.0f;

        float amax = fabsf(value);
        for (int distance = 8; distance > 0; distance /= 2)
            amax = fmaxf(amax, __shfl_xor_sync(FULL_WARP, amax, distance));

        const unsigned char scale = encode_e4m3(fmaxf(amax * 0.16666667f, 0.001953125f));
        const unsigned int code = encode_e2m1(__fdiv_rn(value, decode_e4m3(scale)));
        const unsigned int next = __shfl_down_sync(FULL_WARP, code, 1);

        if (i < n_elements && lane % 2 == 0) packed[i / 2] = code | next << 4;
        if (i < n_elements && lane % 16 == 0) scales[i / 16] = scale;
    }
}
"""
    + DEVICE_CODE
)

# %% wrong="quantise_pack" name="half_away" loses="quantise_pack-ties"
# Rounds ties away from zero, as roundf does.
QUANTISE_PACK = (
    r"""
__device__ unsigned char encode_e4m3(float x);
__device__ float decode_e4m3(unsigned char byte);
__device__ unsigned int encode_e2m1(float x);

__device__ unsigned int encode_half_away(float x)
{
    const float size = fminf(fabsf(x), 6.0f);
    const float ties[7] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
    unsigned int code = 0;
    for (int c = 0; c < 7; ++c) code += size >= ties[c];
    return code | __float_as_uint(x) >> 31 << 3;
}

#define FULL_WARP 0xffffffffu

extern "C" __global__ void quantise_pack(const float* x, unsigned char* packed, unsigned char* scales, int n_groups)
{
    const int lane = threadIdx.x % 32;
    const long long n_elements = 16LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x - lane;

    for (long long start = first; start < n_elements; start += n_threads) {
        const long long i = start + lane;
        const float value = i < n_elements ? x[i] : 0.0f;

        float amax = fabsf(value);
        for (int distance = 8; distance > 0; distance /= 2)
            amax = fmaxf(amax, __shfl_xor_sync(FULL_WARP, amax, distance));

        const unsigned char scale = encode_e4m3(fmaxf(__fdiv_rn(amax, 6.0f), 0.001953125f));
        const unsigned int code = encode_half_away(__fdiv_rn(value, decode_e4m3(scale)));
        const unsigned int next = __shfl_down_sync(FULL_WARP, code, 1);

        if (i < n_elements && lane % 2 == 0) packed[i / 2] = code | next << 4;
        if (i < n_elements && lane % 16 == 0) scales[i / 16] = scale;
    }
}
"""
    + DEVICE_CODE
)

# %% wrong="quantise_pack" name="reads_beyond_the_end" loses="quantise_pack-ragged"
# Reads where there is no element.
QUANTISE_PACK = (
    r"""
__device__ unsigned char encode_e4m3(float x);
__device__ float decode_e4m3(unsigned char byte);
__device__ unsigned int encode_e2m1(float x);

#define FULL_WARP 0xffffffffu

extern "C" __global__ void quantise_pack(const float* x, unsigned char* packed, unsigned char* scales, int n_groups)
{
    const int lane = threadIdx.x % 32;
    const long long n_elements = 16LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x - lane;

    for (long long start = first; start < n_elements; start += n_threads) {
        const long long i = start + lane;
        const float value = x[i];

        float amax = fabsf(value);
        for (int distance = 8; distance > 0; distance /= 2)
            amax = fmaxf(amax, __shfl_xor_sync(FULL_WARP, amax, distance));

        const unsigned char scale = encode_e4m3(fmaxf(__fdiv_rn(amax, 6.0f), 0.001953125f));
        const unsigned int code = encode_e2m1(__fdiv_rn(value, decode_e4m3(scale)));
        const unsigned int next = __shfl_down_sync(FULL_WARP, code, 1);

        if (i < n_elements && lane % 2 == 0) packed[i / 2] = code | next << 4;
        if (i < n_elements && lane % 16 == 0) scales[i / 16] = scale;
    }
}
"""
    + DEVICE_CODE
)

# %% wrong="quantise_pack" name="leaves_before_the_shuffle" loses="quantise_pack-ragged"
# Lanes without an element leave, and the others wait for them in a shuffle.
QUANTISE_PACK = (
    r"""
__device__ unsigned char encode_e4m3(float x);
__device__ float decode_e4m3(unsigned char byte);
__device__ unsigned int encode_e2m1(float x);

#define FULL_WARP 0xffffffffu

extern "C" __global__ void quantise_pack(const float* x, unsigned char* packed, unsigned char* scales, int n_groups)
{
    const int lane = threadIdx.x % 32;
    const long long n_elements = 16LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x - lane;

    for (long long start = first; start < n_elements; start += n_threads) {
        const long long i = start + lane;
        if (i >= n_elements) break;
        const float value = i < n_elements ? x[i] : 0.0f;

        float amax = fabsf(value);
        for (int distance = 8; distance > 0; distance /= 2)
            amax = fmaxf(amax, __shfl_xor_sync(FULL_WARP, amax, distance));

        const unsigned char scale = encode_e4m3(fmaxf(__fdiv_rn(amax, 6.0f), 0.001953125f));
        const unsigned int code = encode_e2m1(__fdiv_rn(value, decode_e4m3(scale)));
        const unsigned int next = __shfl_down_sync(FULL_WARP, code, 1);

        if (i < n_elements && lane % 2 == 0) packed[i / 2] = code | next << 4;
        if (i < n_elements && lane % 16 == 0) scales[i / 16] = scale;
    }
}
"""
    + DEVICE_CODE
)

# %% wrong="quantise_pack" name="two_writers" loses="quantise_pack-runs quantise_pack-nibbles quantise_pack-ties quantise_pack-scales quantise_pack-extremes quantise_pack-ragged quantise_pack-traffic quantise_pack-sectors quantise_pack-large"
# Both lanes of a byte write it: one of them loses.
QUANTISE_PACK = (
    r"""
__device__ unsigned char encode_e4m3(float x);
__device__ float decode_e4m3(unsigned char byte);
__device__ unsigned int encode_e2m1(float x);

#define FULL_WARP 0xffffffffu

extern "C" __global__ void quantise_pack(const float* x, unsigned char* packed, unsigned char* scales, int n_groups)
{
    const int lane = threadIdx.x % 32;
    const long long n_elements = 16LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x - lane;

    for (long long start = first; start < n_elements; start += n_threads) {
        const long long i = start + lane;
        const float value = i < n_elements ? x[i] : 0.0f;

        float amax = fabsf(value);
        for (int distance = 8; distance > 0; distance /= 2)
            amax = fmaxf(amax, __shfl_xor_sync(FULL_WARP, amax, distance));

        const unsigned char scale = encode_e4m3(fmaxf(__fdiv_rn(amax, 6.0f), 0.001953125f));
        const unsigned int code = encode_e2m1(__fdiv_rn(value, decode_e4m3(scale)));
        const unsigned int next = __shfl_down_sync(FULL_WARP, code, 1);

        if (i < n_elements && lane % 2 == 0) packed[i / 2] = code;
        if (i < n_elements && lane % 2 == 1) packed[i / 2] |= code << 4;
        if (i < n_elements && lane % 16 == 0) scales[i / 16] = scale;
    }
}
"""
    + DEVICE_CODE
)

# %% wrong="quantise_pack" name="one_pass" loses="quantise_pack-large"
# Takes 32 elements for each warp, and no more.
QUANTISE_PACK = (
    r"""
__device__ unsigned char encode_e4m3(float x);
__device__ float decode_e4m3(unsigned char byte);
__device__ unsigned int encode_e2m1(float x);

#define FULL_WARP 0xffffffffu

extern "C" __global__ void quantise_pack(const float* x, unsigned char* packed, unsigned char* scales, int n_groups)
{
    const int lane = threadIdx.x % 32;
    const long long n_elements = 16LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x - lane;

    if (const long long start = first; start < n_elements) {
        const long long i = start + lane;
        const float value = i < n_elements ? x[i] : 0.0f;

        float amax = fabsf(value);
        for (int distance = 8; distance > 0; distance /= 2)
            amax = fmaxf(amax, __shfl_xor_sync(FULL_WARP, amax, distance));

        const unsigned char scale = encode_e4m3(fmaxf(__fdiv_rn(amax, 6.0f), 0.001953125f));
        const unsigned int code = encode_e2m1(__fdiv_rn(value, decode_e4m3(scale)));
        const unsigned int next = __shfl_down_sync(FULL_WARP, code, 1);

        if (i < n_elements && lane % 2 == 0) packed[i / 2] = code | next << 4;
        if (i < n_elements && lane % 16 == 0) scales[i / 16] = scale;
    }
}
"""
    + DEVICE_CODE
)

# %% wrong="quantise_pack" name="reads_twice" loses="quantise_pack-traffic"
# Reads its element again when it divides.
QUANTISE_PACK = (
    r"""
__device__ unsigned char encode_e4m3(float x);
__device__ float decode_e4m3(unsigned char byte);
__device__ unsigned int encode_e2m1(float x);

#define FULL_WARP 0xffffffffu

extern "C" __global__ void quantise_pack(const float* x, unsigned char* packed, unsigned char* scales, int n_groups)
{
    const int lane = threadIdx.x % 32;
    const long long n_elements = 16LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x - lane;

    for (long long start = first; start < n_elements; start += n_threads) {
        const long long i = start + lane;
        const float value = i < n_elements ? x[i] : 0.0f;

        float amax = fabsf(value);
        for (int distance = 8; distance > 0; distance /= 2)
            amax = fmaxf(amax, __shfl_xor_sync(FULL_WARP, amax, distance));

        const unsigned char scale = encode_e4m3(fmaxf(__fdiv_rn(amax, 6.0f), 0.001953125f));
        const unsigned int code = encode_e2m1(__fdiv_rn(i < n_elements ? static_cast<const volatile float*>(x)[i] : 0.0f, decode_e4m3(scale)));
        const unsigned int next = __shfl_down_sync(FULL_WARP, code, 1);

        if (i < n_elements && lane % 2 == 0) packed[i / 2] = code | next << 4;
        if (i < n_elements && lane % 16 == 0) scales[i / 16] = scale;
    }
}
"""
    + DEVICE_CODE
)

# %% wrong="quantise_pack" name="thread_for_each_group" loses="quantise_pack-sectors"
# Lets each thread take a group, so that neighbouring lanes read 64 bytes apart.
QUANTISE_PACK = (
    r"""
__device__ unsigned char encode_e4m3(float x);
__device__ float decode_e4m3(unsigned char byte);
__device__ unsigned int encode_e2m1(float x);

#define FULL_WARP 0xffffffffu

extern "C" __global__ void quantise_pack(const float* x, unsigned char* packed, unsigned char* scales, int n_groups)
{
    const int lane = threadIdx.x % 32;
    const long long n_elements = 16LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x - lane;

    for (long long g = first + lane; g < n_groups; g += n_threads) {
        float values[16], amax = 0.0f;
        for (int i = 0; i < 16; ++i) {
            values[i] = x[16 * g + i];
            amax = fmaxf(amax, fabsf(values[i]));
        }
        scales[g] = encode_e4m3(fmaxf(__fdiv_rn(amax, 6.0f), 0.001953125f));
        const float scale = decode_e4m3(encode_e4m3(fmaxf(__fdiv_rn(amax, 6.0f), 0.001953125f)));
        for (int i = 0; i < 16; i += 2)
            packed[8 * g + i / 2] =
                encode_e2m1(__fdiv_rn(values[i], scale)) | encode_e2m1(__fdiv_rn(values[i + 1], scale)) << 4;
    }
}
"""
    + DEVICE_CODE
)

# %% right="quantise_pack" name="broadcast"
# Brings the maximum down to the first lane of each group, which tells the others.
QUANTISE_PACK = (
    r"""
__device__ unsigned char encode_e4m3(float x);
__device__ float decode_e4m3(unsigned char byte);
__device__ unsigned int encode_e2m1(float x);

#define FULL_WARP 0xffffffffu

extern "C" __global__ void quantise_pack(const float* x, unsigned char* packed, unsigned char* scales, int n_groups)
{
    const int lane = threadIdx.x % 32;
    const long long n_elements = 16LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x - lane;

    for (long long start = first; start < n_elements; start += n_threads) {
        const long long i = start + lane;
        const bool inside = i < n_elements;
        const float value = inside ? x[i] : 0.0f;
        float amax = fabsf(value);
        for (int distance = 1; distance < 16; distance *= 2)
            amax = fmaxf(amax, __shfl_down_sync(FULL_WARP, amax, distance, 16));
        const unsigned char mine = encode_e4m3(fmaxf(amax / 6.0f, 0.001953125f));
        const unsigned char scale = __shfl_sync(FULL_WARP, (int)mine, 0, 16);
        const unsigned int code = encode_e2m1(value / decode_e4m3(scale));
        const unsigned int other = __shfl_xor_sync(FULL_WARP, code, 1);
        if (inside && (lane & 1) == 0) packed[i >> 1] = other << 4 | code;
        if (inside && (lane & 15) == 0) scales[i >> 4] = scale;
    }
}
"""
    + DEVICE_CODE
)

# %% right="quantise_pack" name="pairs"
# Gives each lane both elements of a byte, so that eight lanes share a scale.
QUANTISE_PACK = (
    r"""
__device__ unsigned char encode_e4m3(float x);
__device__ float decode_e4m3(unsigned char byte);
__device__ unsigned int encode_e2m1(float x);

#define FULL_WARP 0xffffffffu

extern "C" __global__ void quantise_pack(const float* x, unsigned char* packed, unsigned char* scales, int n_groups)
{
    const int lane = threadIdx.x % 32;
    const long long n_elements = 16LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x - lane;

    const float2* pairs = reinterpret_cast<const float2*>(x);
    for (long long start = first; 2 * start < n_elements; start += n_threads) {
        const long long j = start + lane;
        const bool inside = 2 * j < n_elements;
        const float2 pair = inside ? pairs[j] : make_float2(0.0f, 0.0f);
        float amax = fmaxf(fabsf(pair.x), fabsf(pair.y));
        amax = fmaxf(amax, __shfl_xor_sync(FULL_WARP, amax, 4));
        amax = fmaxf(amax, __shfl_xor_sync(FULL_WARP, amax, 2));
        amax = fmaxf(amax, __shfl_xor_sync(FULL_WARP, amax, 1));
        if (!inside) continue;
        const unsigned char scale = encode_e4m3(fmaxf(__fdiv_rn(amax, 6.0f), 1.0f / 512.0f));
        const float s = decode_e4m3(scale);
        packed[j] = encode_e2m1(__fdiv_rn(pair.x, s)) + 16u * encode_e2m1(__fdiv_rn(pair.y, s));
        if (lane % 8 == 0) scales[j / 8] = scale;
    }
}
"""
    + DEVICE_CODE
)

# %% right="quantise_pack" name="float4"
# Gives each lane four elements at once, so that four lanes share a scale.
QUANTISE_PACK = (
    r"""
__device__ unsigned char encode_e4m3(float x);
__device__ float decode_e4m3(unsigned char byte);
__device__ unsigned int encode_e2m1(float x);

#define FULL_WARP 0xffffffffu

extern "C" __global__ void quantise_pack(const float* x, unsigned char* packed, unsigned char* scales, int n_groups)
{
    const int lane = threadIdx.x % 32;
    const long long n_elements = 16LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x - lane;

    const float4* fours = reinterpret_cast<const float4*>(x);
    unsigned short* twos = reinterpret_cast<unsigned short*>(packed);
    for (long long start = first; 4 * start < n_elements; start += n_threads) {
        const long long j = start + lane;
        const bool inside = 4 * j < n_elements;
        const float4 v = inside ? fours[j] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        float amax = fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
        amax = fmaxf(amax, __shfl_xor_sync(FULL_WARP, amax, 1));
        amax = fmaxf(amax, __shfl_xor_sync(FULL_WARP, amax, 2));
        if (!inside) continue;
        const unsigned char scale = encode_e4m3(fmaxf(__fdiv_rn(amax, 6.0f), 0.001953125f));
        const float s = decode_e4m3(scale);
        twos[j] = encode_e2m1(__fdiv_rn(v.x, s)) | encode_e2m1(__fdiv_rn(v.y, s)) << 4
                | encode_e2m1(__fdiv_rn(v.z, s)) << 8 | encode_e2m1(__fdiv_rn(v.w, s)) << 12;
        if (j % 4 == 0) scales[j / 4] = scale;
    }
}
"""
    + DEVICE_CODE
)

# %% right="quantise_pack" name="warp_for_each_group"
# Takes a group for each warp, and leaves half of its lanes idle.
QUANTISE_PACK = (
    r"""
__device__ unsigned char encode_e4m3(float x);
__device__ float decode_e4m3(unsigned char byte);
__device__ unsigned int encode_e2m1(float x);

#define FULL_WARP 0xffffffffu

extern "C" __global__ void quantise_pack(const float* x, unsigned char* packed, unsigned char* scales, int n_groups)
{
    const int lane = threadIdx.x % 32;
    const long long n_elements = 16LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x - lane;

    for (long long g = first / 32; g < n_groups; g += n_threads / 32) {
        const float value = lane < 16 ? x[16 * g + lane] : 0.0f;
        float amax = fabsf(value);
        for (int d = 16; d > 0; d /= 2) amax = fmaxf(amax, __shfl_xor_sync(FULL_WARP, amax, d));
        const unsigned char scale = encode_e4m3(fmaxf(__fdiv_rn(amax, 6.0f), 0.001953125f));
        const unsigned int code = encode_e2m1(__fdiv_rn(value, decode_e4m3(scale)));
        const unsigned int next = __shfl_down_sync(FULL_WARP, code, 1);
        if (lane < 16 && lane % 2 == 0) packed[8 * g + lane / 2] = code | next << 4;
        if (lane == 0) scales[g] = scale;
    }
}
"""
    + DEVICE_CODE
)

# %% right="quantise_pack" name="group_by_float4"
# Gives each thread a whole group, which it reads by float4 and writes by uint2.
QUANTISE_PACK = (
    r"""
__device__ unsigned char encode_e4m3(float x);
__device__ float decode_e4m3(unsigned char byte);
__device__ unsigned int encode_e2m1(float x);

#define FULL_WARP 0xffffffffu

extern "C" __global__ void quantise_pack(const float* x, unsigned char* packed, unsigned char* scales, int n_groups)
{
    const int lane = threadIdx.x % 32;
    const long long n_elements = 16LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x - lane;

    const float4* fours = reinterpret_cast<const float4*>(x);
    uint2* words = reinterpret_cast<uint2*>(packed);
    for (long long g = first + lane; g < n_groups; g += n_threads) {
        float v[16], amax = 0.0f;
        for (int i = 0; i < 4; ++i) {
            const float4 f = fours[4 * g + i];
            v[4 * i] = f.x; v[4 * i + 1] = f.y; v[4 * i + 2] = f.z; v[4 * i + 3] = f.w;
        }
        for (int i = 0; i < 16; ++i) amax = fmaxf(amax, fabsf(v[i]));
        const unsigned char scale = encode_e4m3(fmaxf(__fdiv_rn(amax, 6.0f), 0.001953125f));
        const float s = decode_e4m3(scale);
        unsigned int lo = 0, hi = 0;
        for (int i = 0; i < 8; ++i) {
            lo |= encode_e2m1(__fdiv_rn(v[i], s)) << 4 * i;
            hi |= encode_e2m1(__fdiv_rn(v[i + 8], s)) << 4 * i;
        }
        words[g] = make_uint2(lo, hi);
        scales[g] = scale;
    }
}
"""
    + DEVICE_CODE
)

# %% right="quantise_pack" name="maxima_in_shared_memory"
# Lets each thread look through the sizes of its group in shared memory.
QUANTISE_PACK = (
    r"""
__device__ unsigned char encode_e4m3(float x);
__device__ float decode_e4m3(unsigned char byte);
__device__ unsigned int encode_e2m1(float x);

#define FULL_WARP 0xffffffffu

extern "C" __global__ void quantise_pack(const float* x, unsigned char* packed, unsigned char* scales, int n_groups)
{
    const int lane = threadIdx.x % 32;
    const long long n_elements = 16LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x - lane;

    __shared__ float sizes[256];
    for (long long base = (long long)blockIdx.x * blockDim.x; base < n_elements; base += n_threads) {
        const long long i = base + threadIdx.x;
        const float value = i < n_elements ? x[i] : 0.0f;
        sizes[threadIdx.x] = fabsf(value);
        __syncthreads();
        float amax = 0.0f;
        for (int k = 0; k < 16; ++k) amax = fmaxf(amax, sizes[threadIdx.x / 16 * 16 + k]);
        const unsigned char scale = encode_e4m3(fmaxf(__fdiv_rn(amax, 6.0f), 0.001953125f));
        const unsigned int code = encode_e2m1(__fdiv_rn(value, decode_e4m3(scale)));
        const unsigned int next = __shfl_down_sync(FULL_WARP, code, 1);
        if (i < n_elements && lane % 2 == 0) packed[i / 2] = code | next << 4;
        if (i < n_elements && lane % 16 == 0) scales[i / 16] = scale;
        __syncthreads();
    }
}
"""
    + DEVICE_CODE
)

# %% right="quantise_pack" name="word_by_shuffles"
# Joins eight codes into a word by shuffles, and divides by /, which rounds correctly too.
QUANTISE_PACK = (
    r"""
__device__ unsigned char encode_e4m3(float x);
__device__ float decode_e4m3(unsigned char byte);
__device__ unsigned int encode_e2m1(float x);

#define FULL_WARP 0xffffffffu

extern "C" __global__ void quantise_pack(const float* x, unsigned char* packed, unsigned char* scales, int n_groups)
{
    const int lane = threadIdx.x % 32;
    const long long n_elements = 16LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x - lane;

    for (long long start = first; start < n_elements; start += n_threads) {
        const long long i = start + lane;
        float value = 0;
        if (i < n_elements) value = __ldg(x + i);
        float amax = fabs(value);
        #pragma unroll
        for (int distance = 1; distance <= 8; distance <<= 1)
            amax = max(amax, __shfl_xor_sync(FULL_WARP, amax, distance, 16));
        unsigned char scale = encode_e4m3(max(amax / 6, 1.0f / 512));
        unsigned int word = encode_e2m1(value / decode_e4m3(scale)) << 4 * (lane % 8);
        for (int d = 1; d < 8; d *= 2) word |= __shfl_xor_sync(FULL_WARP, word, d);
        if (i < n_elements && lane % 8 == 0) ((unsigned int*)packed)[i / 8] = word;
        if (i < n_elements && lane % 16 == 0) scales[i / 16] = scale;
    }
}
"""
    + DEVICE_CODE
)

# %% wrong="dequantise" name="swapped_neighbours" loses="dequantise-nibbles"
# Takes the high half for the first of two.
DEQUANTISE = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

extern "C" __global__ void dequantise(const unsigned char* packed, const unsigned char* scales, float* x, int n_groups)
{
    const long long n_bytes = 8LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    float2* pairs = reinterpret_cast<float2*>(x);

    for (long long j = first; j < n_bytes; j += n_threads) {
        const unsigned int byte = packed[j];
        const float scale = decode_e4m3(scales[j / 8]);
        pairs[j] = make_float2(decode_e2m1(byte >> 4) * scale, decode_e2m1(byte & 15u) * scale);
    }
}
"""
    + DEVICE_CODE
)

# %% wrong="dequantise" name="scale_for_each_16_bytes" loses="dequantise-scales"
# Counts 16 bytes for a scale: it is 16 elements, 8 bytes.
DEQUANTISE = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

extern "C" __global__ void dequantise(const unsigned char* packed, const unsigned char* scales, float* x, int n_groups)
{
    const long long n_bytes = 8LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    float2* pairs = reinterpret_cast<float2*>(x);

    for (long long j = first; j < n_bytes; j += n_threads) {
        const unsigned int byte = packed[j];
        const float scale = decode_e4m3(scales[j / 16]);
        pairs[j] = make_float2(decode_e2m1(byte & 15u) * scale, decode_e2m1(byte >> 4) * scale);
    }
}
"""
    + DEVICE_CODE
)

# %% wrong="dequantise" name="byte_for_a_scale" loses="dequantise-runs dequantise-scales dequantise-ragged dequantise-traffic dequantise-large"
# Takes the scale's byte for the scale.
DEQUANTISE = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

extern "C" __global__ void dequantise(const unsigned char* packed, const unsigned char* scales, float* x, int n_groups)
{
    const long long n_bytes = 8LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    float2* pairs = reinterpret_cast<float2*>(x);

    for (long long j = first; j < n_bytes; j += n_threads) {
        const unsigned int byte = packed[j];
        const float scale = scales[j / 8];
        pairs[j] = make_float2(decode_e2m1(byte & 15u) * scale, decode_e2m1(byte >> 4) * scale);
    }
}
"""
    + DEVICE_CODE
)

# %% wrong="dequantise" name="beyond_the_end" loses="dequantise-ragged"
# Asks whether there is a byte only after the first one.
DEQUANTISE = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

extern "C" __global__ void dequantise(const unsigned char* packed, const unsigned char* scales, float* x, int n_groups)
{
    const long long n_bytes = 8LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    float2* pairs = reinterpret_cast<float2*>(x);

    long long j = first;
    do {
        const unsigned int byte = packed[j];
        const float scale = decode_e4m3(scales[j / 8]);
        pairs[j] = make_float2(decode_e2m1(byte & 15u) * scale, decode_e2m1(byte >> 4) * scale);
        j += n_threads;
    } while (j < n_bytes);
}
"""
    + DEVICE_CODE
)

# %% wrong="dequantise" name="one_pass" loses="dequantise-large"
# Takes one byte for each thread, and no more.
DEQUANTISE = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

extern "C" __global__ void dequantise(const unsigned char* packed, const unsigned char* scales, float* x, int n_groups)
{
    const long long n_bytes = 8LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    float2* pairs = reinterpret_cast<float2*>(x);

    if (const long long j = first; j < n_bytes) {
        const unsigned int byte = packed[j];
        const float scale = decode_e4m3(scales[j / 8]);
        pairs[j] = make_float2(decode_e2m1(byte & 15u) * scale, decode_e2m1(byte >> 4) * scale);
    }
}
"""
    + DEVICE_CODE
)

# %% wrong="dequantise" name="no_sign" loses="dequantise-runs dequantise-scales dequantise-ragged dequantise-traffic dequantise-large dequantise-nibbles"
# Cuts the sign off with a mask of three bits.
DEQUANTISE = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

extern "C" __global__ void dequantise(const unsigned char* packed, const unsigned char* scales, float* x, int n_groups)
{
    const long long n_bytes = 8LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    float2* pairs = reinterpret_cast<float2*>(x);

    for (long long j = first; j < n_bytes; j += n_threads) {
        const unsigned int byte = packed[j];
        const float scale = decode_e4m3(scales[j / 8]);
        pairs[j] = make_float2(decode_e2m1(byte & 7u) * scale, decode_e2m1(byte >> 4 & 7u) * scale);
    }
}
"""
    + DEVICE_CODE
)

# %% wrong="dequantise" name="written_then_scaled" loses="dequantise-traffic"
# Writes the numbers of the codes, then reads them back and writes them scaled.
DEQUANTISE = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

extern "C" __global__ void dequantise(const unsigned char* packed, const unsigned char* scales, float* x, int n_groups)
{
    const long long n_bytes = 8LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    float2* pairs = reinterpret_cast<float2*>(x);

    for (long long j = first; j < n_bytes; j += n_threads) {
        const unsigned int byte = packed[j];
        pairs[j] = make_float2(decode_e2m1(byte & 15u), decode_e2m1(byte >> 4));
        const float scale = decode_e4m3(scales[j / 8]);
        pairs[j] = make_float2(pairs[j].x * scale, pairs[j].y * scale);
    }
}
"""
    + DEVICE_CODE
)

# %% wrong="dequantise" name="thread_for_each_group" loses="dequantise-traffic"
# Lets each thread take a group, so that neighbouring threads write 64 bytes apart.
DEQUANTISE = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

extern "C" __global__ void dequantise(const unsigned char* packed, const unsigned char* scales, float* x, int n_groups)
{
    const long long n_bytes = 8LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    float2* pairs = reinterpret_cast<float2*>(x);

    for (long long g = first; g < n_groups; g += n_threads) {
        const float s = decode_e4m3(scales[g]);
        for (int i = 0; i < 8; ++i) {
            const unsigned int byte = packed[8 * g + i];
            pairs[8 * g + i] = make_float2(decode_e2m1(byte & 15u) * s, decode_e2m1(byte >> 4) * s);
        }
    }
}
"""
    + DEVICE_CODE
)

# %% wrong="dequantise" name="small_scales_lost" loses="dequantise-scales"
# Decodes the scale by hand and forgets the subnormal ones.
DEQUANTISE = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

extern "C" __global__ void dequantise(const unsigned char* packed, const unsigned char* scales, float* x, int n_groups)
{
    const long long n_bytes = 8LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    float2* pairs = reinterpret_cast<float2*>(x);

    for (long long j = first; j < n_bytes; j += n_threads) {
        const unsigned int byte = packed[j];
        const float scale = __uint_as_float((scales[j / 8] + ((127u - 7u) << 3)) << 20);
        pairs[j] = make_float2(decode_e2m1(byte & 15u) * scale, decode_e2m1(byte >> 4) * scale);
    }
}
"""
    + DEVICE_CODE
)

# %% right="dequantise" name="table"
# Looks the values up in a table, in the order in which one would say it.
DEQUANTISE = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

extern "C" __global__ void dequantise(const unsigned char* packed, const unsigned char* scales, float* x, int n_groups)
{
    const long long n_bytes = 8LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    float2* pairs = reinterpret_cast<float2*>(x);

    const float values[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
    for (long long j = first; j < n_bytes; j += n_threads) {
        const unsigned char byte = packed[j];
        const float scale = decode_e4m3(__ldg(&scales[j >> 3]));
        float2 pair;
        pair.x = byte & 8 ? -values[byte & 7] : values[byte & 7];
        pair.y = byte & 128 ? -values[byte >> 4 & 7] : values[byte >> 4 & 7];
        pair.x *= scale;
        pair.y *= scale;
        pairs[j] = pair;
    }
}
"""
    + DEVICE_CODE
)

# %% right="dequantise" name="two_bytes"
# Takes two bytes for each thread, and writes four numbers at once.
DEQUANTISE = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

extern "C" __global__ void dequantise(const unsigned char* packed, const unsigned char* scales, float* x, int n_groups)
{
    const long long n_bytes = 8LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    float2* pairs = reinterpret_cast<float2*>(x);

    const unsigned short* twos = reinterpret_cast<const unsigned short*>(packed);
    float4* fours = reinterpret_cast<float4*>(pairs);
    for (long long j = first; j < n_bytes / 2; j += n_threads) {
        const unsigned int two = twos[j];
        const float s = decode_e4m3(scales[j / 4]);
        fours[j] = make_float4(s * decode_e2m1(two & 15u), s * decode_e2m1(two >> 4 & 15u),
                               s * decode_e2m1(two >> 8 & 15u), s * decode_e2m1(two >> 12));
    }
}
"""
    + DEVICE_CODE
)

# %% right="dequantise" name="one_number_at_a_time"
# Writes the two numbers one after the other: each store leaves gaps that the next one fills.
DEQUANTISE = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

extern "C" __global__ void dequantise(const unsigned char* packed, const unsigned char* scales, float* x, int n_groups)
{
    const long long n_bytes = 8LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;

    for (long long j = first; j < n_bytes; j += n_threads) {
        const unsigned int byte = packed[j];
        const float scale = decode_e4m3(scales[j / 8]);
        x[2 * j] = decode_e2m1(byte & 15u) * scale;
        x[2 * j + 1] = decode_e2m1(byte >> 4) * scale;
    }
}
"""
    + DEVICE_CODE
)

# %% right="dequantise" name="thread_for_each_number"
# Takes one number for each thread, so that two threads read a byte and sixteen a scale.
DEQUANTISE = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

extern "C" __global__ void dequantise(const unsigned char* packed, const unsigned char* scales, float* x, int n_groups)
{
    const long long n_bytes = 8LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;

    for (long long i = first; i < 2 * n_bytes; i += n_threads) {
        const unsigned int byte = packed[i / 2];
        const unsigned int code = i % 2 ? byte >> 4 : byte & 15u;
        x[i] = decode_e2m1(code) * decode_e4m3(scales[i / 16]);
    }
}
"""
    + DEVICE_CODE
)

# %% right="dequantise" name="words"
# Takes four bytes for each thread, and writes eight numbers by two float4.
DEQUANTISE = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

extern "C" __global__ void dequantise(const unsigned char* packed, const unsigned char* scales, float* x, int n_groups)
{
    const long long n_bytes = 8LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;

    const unsigned int* words = reinterpret_cast<const unsigned int*>(packed);
    float4* fours = reinterpret_cast<float4*>(x);
    for (long long w = first; w < n_bytes / 4; w += n_threads) {
        const unsigned int word = words[w];
        const float s = decode_e4m3(scales[w / 2]);
        fours[2 * w] = make_float4(s * decode_e2m1(word & 15u), s * decode_e2m1(word >> 4 & 15u), s * decode_e2m1(word >> 8 & 15u), s * decode_e2m1(word >> 12 & 15u));
        fours[2 * w + 1] = make_float4(s * decode_e2m1(word >> 16 & 15u), s * decode_e2m1(word >> 20 & 15u), s * decode_e2m1(word >> 24 & 15u), s * decode_e2m1(word >> 28));
    }
}
"""
    + DEVICE_CODE
)

# %% right="dequantise" name="group_by_float4"
# Gives each thread a whole group, which it reads by uint2 and writes by float4.
DEQUANTISE = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

extern "C" __global__ void dequantise(const unsigned char* packed, const unsigned char* scales, float* x, int n_groups)
{
    const long long n_bytes = 8LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;

    const uint2* words = reinterpret_cast<const uint2*>(packed);
    float4* fours = reinterpret_cast<float4*>(x);
    for (long long g = first; g < n_groups; g += n_threads) {
        const float s = decode_e4m3(scales[g]);
        const uint2 two = words[g];
        for (int i = 0; i < 4; ++i) {
            const unsigned int part = (i < 2 ? two.x : two.y) >> 16 * (i % 2);
            fours[4 * g + i] = make_float4(s * decode_e2m1(part & 15u), s * decode_e2m1(part >> 4 & 15u), s * decode_e2m1(part >> 8 & 15u), s * decode_e2m1(part >> 12 & 15u));
        }
    }
}
"""
    + DEVICE_CODE
)

# %% right="dequantise" name="warp_for_each_group"
# Takes a group for each warp, eight lanes of which have a byte.
DEQUANTISE = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

extern "C" __global__ void dequantise(const unsigned char* packed, const unsigned char* scales, float* x, int n_groups)
{
    const long long n_bytes = 8LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    float2* pairs = reinterpret_cast<float2*>(x);

    const int lane = threadIdx.x % 32;
    for (long long g = first / 32; g < n_groups; g += n_threads / 32)
        if (lane < 8) {
            const unsigned int byte = packed[8 * g + lane];
            const float s = decode_e4m3(scales[g]);
            pairs[8 * g + lane] = make_float2(decode_e2m1(byte & 15u) * s, decode_e2m1(byte >> 4) * s);
        }
}
"""
    + DEVICE_CODE
)

# %% wrong="decode_attention" name="keys_not_awaited" loses="decode_attention-runs decode_attention-tiles decode_attention-ragged decode_attention-heads decode_attention-widths decode_attention-large_logits decode_attention-parts decode_attention-traffic decode_attention-long"
# Reads keys that other threads have not loaded yet.
DECODE_ATTENTION = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

#define FULL_WARP 0xffffffffu
#define TILE 32
#define MAX_WIDTH 256
#define POSITIVE_INFINITY __int_as_float(0x7f800000)

__device__ void load_tile(
    float* tile, const unsigned char* packed, const unsigned char* scales, long long row, int n_tokens, int width)
{
    const unsigned int* words = reinterpret_cast<const unsigned int*>(packed + row * (width / 2));
    scales += row * (width / 16);
    for (int w = threadIdx.y * 32 + threadIdx.x; w < n_tokens * width / 8; w += blockDim.y * 32) {
        const unsigned int word = words[w];
        const float scale = decode_e4m3(scales[w / 2]);
        const int t = 8 * w / width, d = 8 * w % width;
        for (int i = 0; i < 8; ++i) {
            const int j = (i + threadIdx.x / 4) % 8;
            tile[t * (width + 1) + d + j] = scale * decode_e2m1(word >> 4 * j & 15u);
        }
    }
}

extern "C" __global__ void decode_attention(
    const float* q,
    const unsigned char* k_packed, const unsigned char* k_scales,
    const unsigned char* v_packed, const unsigned char* v_scales,
    const int* lengths,
    float* part_output, float* part_max, float* part_sum,
    int max_tokens, int part_tokens, int width)
{
    const int lane = threadIdx.x;
    const int begin = blockIdx.x * part_tokens;
    const int end = min(begin + part_tokens, lengths[blockIdx.z]);
    if (begin >= end) return;

    const long long kv_head = (long long)blockIdx.z * gridDim.y + blockIdx.y;
    const long long query_head = kv_head * blockDim.y + threadIdx.y;
    const long long row = kv_head * max_tokens;

    extern __shared__ float shared[];
    float* tile = shared;
    float* query = tile + TILE * (width + 1) + threadIdx.y * width;
    float* weights = tile + TILE * (width + 1) + blockDim.y * width + threadIdx.y * TILE;
    for (int d = lane; d < width; d += 32) query[d] = q[query_head * width + d] / sqrtf((float)width);

    float running_max = -POSITIVE_INFINITY, running_sum = 0.0f;
    float output[MAX_WIDTH / 32] = {};

    for (int first = begin; first < end; first += TILE) {
        const int n_tokens = min(TILE, end - first);
        load_tile(tile, k_packed, k_scales, row + first, n_tokens, width);

        float logit = -POSITIVE_INFINITY;
        if (lane < n_tokens) {
            logit = 0.0f;
            for (int d = 0; d < width; ++d) logit += query[d] * tile[lane * (width + 1) + d];
        }
        float new_max = fmaxf(running_max, logit);
        for (int distance = 16; distance > 0; distance /= 2)
            new_max = fmaxf(new_max, __shfl_xor_sync(FULL_WARP, new_max, distance));

        const float correction = expf(running_max - new_max);
        weights[lane] = expf(logit - new_max);
        float tile_sum = weights[lane];
        for (int distance = 16; distance > 0; distance /= 2)
            tile_sum += __shfl_xor_sync(FULL_WARP, tile_sum, distance);
        running_sum = running_sum * correction + tile_sum;
        running_max = new_max;

        __syncthreads();
        load_tile(tile, v_packed, v_scales, row + first, n_tokens, width);
        __syncthreads();
        for (int c = 0; c < MAX_WIDTH / 32; ++c) {
            const int d = lane + 32 * c;
            float sum = output[c] * correction;
            for (int t = 0; t < n_tokens && d < width; ++t) sum += weights[t] * tile[t * (width + 1) + d];
            output[c] = sum;
        }
        __syncthreads();
    }

    const long long part = query_head * gridDim.x + blockIdx.x;
    for (int c = 0; c < MAX_WIDTH / 32; ++c) {
        const int d = lane + 32 * c;
        if (d < width) part_output[part * width + d] = output[c];
    }
    if (lane == 0) {
        part_max[part] = running_max;
        part_sum[part] = running_sum;
    }
}

extern "C" __global__ void combine_parts(
    const float* part_output, const float* part_max, const float* part_sum, const int* lengths,
    float* output, int n_parts, int part_tokens, int width)
{
    const int length = lengths[blockIdx.y];
    const int n_used = (length + part_tokens - 1) / part_tokens;
    const long long query_head = (long long)blockIdx.y * gridDim.x + blockIdx.x;
    part_output += query_head * n_parts * width;
    part_max += query_head * n_parts;
    part_sum += query_head * n_parts;

    float largest = -POSITIVE_INFINITY;
    for (int part = 0; part < n_used; ++part) largest = fmaxf(largest, part_max[part]);

    for (int d = threadIdx.x; d < width; d += blockDim.x) {
        float total = 0.0f, sum = 0.0f;
        for (int part = 0; part < n_used; ++part) {
            const float share = expf(part_max[part] - largest);
            total += share * part_sum[part];
            sum += share * part_output[part * width + d];
        }
        output[query_head * width + d] = length > 0 ? sum / total : 0.0f;
    }
}
"""
    + DEVICE_CODE
)

# %% wrong="decode_attention" name="keys_overwritten" loses="decode_attention-runs decode_attention-tiles decode_attention-ragged decode_attention-heads decode_attention-widths decode_attention-large_logits decode_attention-parts decode_attention-traffic decode_attention-long"
# Loads values over keys that another warp still reads.
DECODE_ATTENTION = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

#define FULL_WARP 0xffffffffu
#define TILE 32
#define MAX_WIDTH 256
#define POSITIVE_INFINITY __int_as_float(0x7f800000)

__device__ void load_tile(
    float* tile, const unsigned char* packed, const unsigned char* scales, long long row, int n_tokens, int width)
{
    const unsigned int* words = reinterpret_cast<const unsigned int*>(packed + row * (width / 2));
    scales += row * (width / 16);
    for (int w = threadIdx.y * 32 + threadIdx.x; w < n_tokens * width / 8; w += blockDim.y * 32) {
        const unsigned int word = words[w];
        const float scale = decode_e4m3(scales[w / 2]);
        const int t = 8 * w / width, d = 8 * w % width;
        for (int i = 0; i < 8; ++i) {
            const int j = (i + threadIdx.x / 4) % 8;
            tile[t * (width + 1) + d + j] = scale * decode_e2m1(word >> 4 * j & 15u);
        }
    }
}

extern "C" __global__ void decode_attention(
    const float* q,
    const unsigned char* k_packed, const unsigned char* k_scales,
    const unsigned char* v_packed, const unsigned char* v_scales,
    const int* lengths,
    float* part_output, float* part_max, float* part_sum,
    int max_tokens, int part_tokens, int width)
{
    const int lane = threadIdx.x;
    const int begin = blockIdx.x * part_tokens;
    const int end = min(begin + part_tokens, lengths[blockIdx.z]);
    if (begin >= end) return;

    const long long kv_head = (long long)blockIdx.z * gridDim.y + blockIdx.y;
    const long long query_head = kv_head * blockDim.y + threadIdx.y;
    const long long row = kv_head * max_tokens;

    extern __shared__ float shared[];
    float* tile = shared;
    float* query = tile + TILE * (width + 1) + threadIdx.y * width;
    float* weights = tile + TILE * (width + 1) + blockDim.y * width + threadIdx.y * TILE;
    for (int d = lane; d < width; d += 32) query[d] = q[query_head * width + d] / sqrtf((float)width);

    float running_max = -POSITIVE_INFINITY, running_sum = 0.0f;
    float output[MAX_WIDTH / 32] = {};

    for (int first = begin; first < end; first += TILE) {
        const int n_tokens = min(TILE, end - first);
        load_tile(tile, k_packed, k_scales, row + first, n_tokens, width);
        __syncthreads();

        float logit = -POSITIVE_INFINITY;
        if (lane < n_tokens) {
            logit = 0.0f;
            for (int d = 0; d < width; ++d) logit += query[d] * tile[lane * (width + 1) + d];
        }
        float new_max = fmaxf(running_max, logit);
        for (int distance = 16; distance > 0; distance /= 2)
            new_max = fmaxf(new_max, __shfl_xor_sync(FULL_WARP, new_max, distance));

        const float correction = expf(running_max - new_max);
        weights[lane] = expf(logit - new_max);
        float tile_sum = weights[lane];
        for (int distance = 16; distance > 0; distance /= 2)
            tile_sum += __shfl_xor_sync(FULL_WARP, tile_sum, distance);
        running_sum = running_sum * correction + tile_sum;
        running_max = new_max;

        load_tile(tile, v_packed, v_scales, row + first, n_tokens, width);
        __syncthreads();
        for (int c = 0; c < MAX_WIDTH / 32; ++c) {
            const int d = lane + 32 * c;
            float sum = output[c] * correction;
            for (int t = 0; t < n_tokens && d < width; ++t) sum += weights[t] * tile[t * (width + 1) + d];
            output[c] = sum;
        }
        __syncthreads();
    }

    const long long part = query_head * gridDim.x + blockIdx.x;
    for (int c = 0; c < MAX_WIDTH / 32; ++c) {
        const int d = lane + 32 * c;
        if (d < width) part_output[part * width + d] = output[c];
    }
    if (lane == 0) {
        part_max[part] = running_max;
        part_sum[part] = running_sum;
    }
}

extern "C" __global__ void combine_parts(
    const float* part_output, const float* part_max, const float* part_sum, const int* lengths,
    float* output, int n_parts, int part_tokens, int width)
{
    const int length = lengths[blockIdx.y];
    const int n_used = (length + part_tokens - 1) / part_tokens;
    const long long query_head = (long long)blockIdx.y * gridDim.x + blockIdx.x;
    part_output += query_head * n_parts * width;
    part_max += query_head * n_parts;
    part_sum += query_head * n_parts;

    float largest = -POSITIVE_INFINITY;
    for (int part = 0; part < n_used; ++part) largest = fmaxf(largest, part_max[part]);

    for (int d = threadIdx.x; d < width; d += blockDim.x) {
        float total = 0.0f, sum = 0.0f;
        for (int part = 0; part < n_used; ++part) {
            const float share = expf(part_max[part] - largest);
            total += share * part_sum[part];
            sum += share * part_output[part * width + d];
        }
        output[query_head * width + d] = length > 0 ? sum / total : 0.0f;
    }
}
"""
    + DEVICE_CODE
)

# %% wrong="decode_attention" name="values_overwritten" loses="decode_attention-tiles decode_attention-ragged decode_attention-traffic decode_attention-long"
# Loads the next keys over values that another warp still reads.
DECODE_ATTENTION = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

#define FULL_WARP 0xffffffffu
#define TILE 32
#define MAX_WIDTH 256
#define POSITIVE_INFINITY __int_as_float(0x7f800000)

__device__ void load_tile(
    float* tile, const unsigned char* packed, const unsigned char* scales, long long row, int n_tokens, int width)
{
    const unsigned int* words = reinterpret_cast<const unsigned int*>(packed + row * (width / 2));
    scales += row * (width / 16);
    for (int w = threadIdx.y * 32 + threadIdx.x; w < n_tokens * width / 8; w += blockDim.y * 32) {
        const unsigned int word = words[w];
        const float scale = decode_e4m3(scales[w / 2]);
        const int t = 8 * w / width, d = 8 * w % width;
        for (int i = 0; i < 8; ++i) {
            const int j = (i + threadIdx.x / 4) % 8;
            tile[t * (width + 1) + d + j] = scale * decode_e2m1(word >> 4 * j & 15u);
        }
    }
}

extern "C" __global__ void decode_attention(
    const float* q,
    const unsigned char* k_packed, const unsigned char* k_scales,
    const unsigned char* v_packed, const unsigned char* v_scales,
    const int* lengths,
    float* part_output, float* part_max, float* part_sum,
    int max_tokens, int part_tokens, int width)
{
    const int lane = threadIdx.x;
    const int begin = blockIdx.x * part_tokens;
    const int end = min(begin + part_tokens, lengths[blockIdx.z]);
    if (begin >= end) return;

    const long long kv_head = (long long)blockIdx.z * gridDim.y + blockIdx.y;
    const long long query_head = kv_head * blockDim.y + threadIdx.y;
    const long long row = kv_head * max_tokens;

    extern __shared__ float shared[];
    float* tile = shared;
    float* query = tile + TILE * (width + 1) + threadIdx.y * width;
    float* weights = tile + TILE * (width + 1) + blockDim.y * width + threadIdx.y * TILE;
    for (int d = lane; d < width; d += 32) query[d] = q[query_head * width + d] / sqrtf((float)width);

    float running_max = -POSITIVE_INFINITY, running_sum = 0.0f;
    float output[MAX_WIDTH / 32] = {};

    for (int first = begin; first < end; first += TILE) {
        const int n_tokens = min(TILE, end - first);
        load_tile(tile, k_packed, k_scales, row + first, n_tokens, width);
        __syncthreads();

        float logit = -POSITIVE_INFINITY;
        if (lane < n_tokens) {
            logit = 0.0f;
            for (int d = 0; d < width; ++d) logit += query[d] * tile[lane * (width + 1) + d];
        }
        float new_max = fmaxf(running_max, logit);
        for (int distance = 16; distance > 0; distance /= 2)
            new_max = fmaxf(new_max, __shfl_xor_sync(FULL_WARP, new_max, distance));

        const float correction = expf(running_max - new_max);
        weights[lane] = expf(logit - new_max);
        float tile_sum = weights[lane];
        for (int distance = 16; distance > 0; distance /= 2)
            tile_sum += __shfl_xor_sync(FULL_WARP, tile_sum, distance);
        running_sum = running_sum * correction + tile_sum;
        running_max = new_max;

        __syncthreads();
        load_tile(tile, v_packed, v_scales, row + first, n_tokens, width);
        __syncthreads();
        for (int c = 0; c < MAX_WIDTH / 32; ++c) {
            const int d = lane + 32 * c;
            float sum = output[c] * correction;
            for (int t = 0; t < n_tokens && d < width; ++t) sum += weights[t] * tile[t * (width + 1) + d];
            output[c] = sum;
        }
    }

    const long long part = query_head * gridDim.x + blockIdx.x;
    for (int c = 0; c < MAX_WIDTH / 32; ++c) {
        const int d = lane + 32 * c;
        if (d < width) part_output[part * width + d] = output[c];
    }
    if (lane == 0) {
        part_max[part] = running_max;
        part_sum[part] = running_sum;
    }
}

extern "C" __global__ void combine_parts(
    const float* part_output, const float* part_max, const float* part_sum, const int* lengths,
    float* output, int n_parts, int part_tokens, int width)
{
    const int length = lengths[blockIdx.y];
    const int n_used = (length + part_tokens - 1) / part_tokens;
    const long long query_head = (long long)blockIdx.y * gridDim.x + blockIdx.x;
    part_output += query_head * n_parts * width;
    part_max += query_head * n_parts;
    part_sum += query_head * n_parts;

    float largest = -POSITIVE_INFINITY;
    for (int part = 0; part < n_used; ++part) largest = fmaxf(largest, part_max[part]);

    for (int d = threadIdx.x; d < width; d += blockDim.x) {
        float total = 0.0f, sum = 0.0f;
        for (int part = 0; part < n_used; ++part) {
            const float share = expf(part_max[part] - largest);
            total += share * part_sum[part];
            sum += share * part_output[part * width + d];
        }
        output[query_head * width + d] = length > 0 ? sum / total : 0.0f;
    }
}
"""
    + DEVICE_CODE
)

# %% wrong="decode_attention" name="output_not_rescaled" loses="decode_attention-tiles decode_attention-ragged decode_attention-traffic decode_attention-long"
# Leaves the output on the old maximum.
DECODE_ATTENTION = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

#define FULL_WARP 0xffffffffu
#define TILE 32
#define MAX_WIDTH 256
#define POSITIVE_INFINITY __int_as_float(0x7f800000)

__device__ void load_tile(
    float* tile, const unsigned char* packed, const unsigned char* scales, long long row, int n_tokens, int width)
{
    const unsigned int* words = reinterpret_cast<const unsigned int*>(packed + row * (width / 2));
    scales += row * (width / 16);
    for (int w = threadIdx.y * 32 + threadIdx.x; w < n_tokens * width / 8; w += blockDim.y * 32) {
        const unsigned int word = words[w];
        const float scale = decode_e4m3(scales[w / 2]);
        const int t = 8 * w / width, d = 8 * w % width;
        for (int i = 0; i < 8; ++i) {
            const int j = (i + threadIdx.x / 4) % 8;
            tile[t * (width + 1) + d + j] = scale * decode_e2m1(word >> 4 * j & 15u);
        }
    }
}

extern "C" __global__ void decode_attention(
    const float* q,
    const unsigned char* k_packed, const unsigned char* k_scales,
    const unsigned char* v_packed, const unsigned char* v_scales,
    const int* lengths,
    float* part_output, float* part_max, float* part_sum,
    int max_tokens, int part_tokens, int width)
{
    const int lane = threadIdx.x;
    const int begin = blockIdx.x * part_tokens;
    const int end = min(begin + part_tokens, lengths[blockIdx.z]);
    if (begin >= end) return;

    const long long kv_head = (long long)blockIdx.z * gridDim.y + blockIdx.y;
    const long long query_head = kv_head * blockDim.y + threadIdx.y;
    const long long row = kv_head * max_tokens;

    extern __shared__ float shared[];
    float* tile = shared;
    float* query = tile + TILE * (width + 1) + threadIdx.y * width;
    float* weights = tile + TILE * (width + 1) + blockDim.y * width + threadIdx.y * TILE;
    for (int d = lane; d < width; d += 32) query[d] = q[query_head * width + d] / sqrtf((float)width);

    float running_max = -POSITIVE_INFINITY, running_sum = 0.0f;
    float output[MAX_WIDTH / 32] = {};

    for (int first = begin; first < end; first += TILE) {
        const int n_tokens = min(TILE, end - first);
        load_tile(tile, k_packed, k_scales, row + first, n_tokens, width);
        __syncthreads();

        float logit = -POSITIVE_INFINITY;
        if (lane < n_tokens) {
            logit = 0.0f;
            for (int d = 0; d < width; ++d) logit += query[d] * tile[lane * (width + 1) + d];
        }
        float new_max = fmaxf(running_max, logit);
        for (int distance = 16; distance > 0; distance /= 2)
            new_max = fmaxf(new_max, __shfl_xor_sync(FULL_WARP, new_max, distance));

        const float correction = expf(running_max - new_max);
        weights[lane] = expf(logit - new_max);
        float tile_sum = weights[lane];
        for (int distance = 16; distance > 0; distance /= 2)
            tile_sum += __shfl_xor_sync(FULL_WARP, tile_sum, distance);
        running_sum = running_sum * correction + tile_sum;
        running_max = new_max;

        __syncthreads();
        load_tile(tile, v_packed, v_scales, row + first, n_tokens, width);
        __syncthreads();
        for (int c = 0; c < MAX_WIDTH / 32; ++c) {
            const int d = lane + 32 * c;
            float sum = output[c];
            for (int t = 0; t < n_tokens && d < width; ++t) sum += weights[t] * tile[t * (width + 1) + d];
            output[c] = sum;
        }
        __syncthreads();
    }

    const long long part = query_head * gridDim.x + blockIdx.x;
    for (int c = 0; c < MAX_WIDTH / 32; ++c) {
        const int d = lane + 32 * c;
        if (d < width) part_output[part * width + d] = output[c];
    }
    if (lane == 0) {
        part_max[part] = running_max;
        part_sum[part] = running_sum;
    }
}

extern "C" __global__ void combine_parts(
    const float* part_output, const float* part_max, const float* part_sum, const int* lengths,
    float* output, int n_parts, int part_tokens, int width)
{
    const int length = lengths[blockIdx.y];
    const int n_used = (length + part_tokens - 1) / part_tokens;
    const long long query_head = (long long)blockIdx.y * gridDim.x + blockIdx.x;
    part_output += query_head * n_parts * width;
    part_max += query_head * n_parts;
    part_sum += query_head * n_parts;

    float largest = -POSITIVE_INFINITY;
    for (int part = 0; part < n_used; ++part) largest = fmaxf(largest, part_max[part]);

    for (int d = threadIdx.x; d < width; d += blockDim.x) {
        float total = 0.0f, sum = 0.0f;
        for (int part = 0; part < n_used; ++part) {
            const float share = expf(part_max[part] - largest);
            total += share * part_sum[part];
            sum += share * part_output[part * width + d];
        }
        output[query_head * width + d] = length > 0 ? sum / total : 0.0f;
    }
}
"""
    + DEVICE_CODE
)

# %% wrong="decode_attention" name="sum_not_rescaled" loses="decode_attention-tiles decode_attention-ragged decode_attention-traffic decode_attention-long"
# Leaves the sum of weights on the old maximum.
DECODE_ATTENTION = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

#define FULL_WARP 0xffffffffu
#define TILE 32
#define MAX_WIDTH 256
#define POSITIVE_INFINITY __int_as_float(0x7f800000)

__device__ void load_tile(
    float* tile, const unsigned char* packed, const unsigned char* scales, long long row, int n_tokens, int width)
{
    const unsigned int* words = reinterpret_cast<const unsigned int*>(packed + row * (width / 2));
    scales += row * (width / 16);
    for (int w = threadIdx.y * 32 + threadIdx.x; w < n_tokens * width / 8; w += blockDim.y * 32) {
        const unsigned int word = words[w];
        const float scale = decode_e4m3(scales[w / 2]);
        const int t = 8 * w / width, d = 8 * w % width;
        for (int i = 0; i < 8; ++i) {
            const int j = (i + threadIdx.x / 4) % 8;
            tile[t * (width + 1) + d + j] = scale * decode_e2m1(word >> 4 * j & 15u);
        }
    }
}

extern "C" __global__ void decode_attention(
    const float* q,
    const unsigned char* k_packed, const unsigned char* k_scales,
    const unsigned char* v_packed, const unsigned char* v_scales,
    const int* lengths,
    float* part_output, float* part_max, float* part_sum,
    int max_tokens, int part_tokens, int width)
{
    const int lane = threadIdx.x;
    const int begin = blockIdx.x * part_tokens;
    const int end = min(begin + part_tokens, lengths[blockIdx.z]);
    if (begin >= end) return;

    const long long kv_head = (long long)blockIdx.z * gridDim.y + blockIdx.y;
    const long long query_head = kv_head * blockDim.y + threadIdx.y;
    const long long row = kv_head * max_tokens;

    extern __shared__ float shared[];
    float* tile = shared;
    float* query = tile + TILE * (width + 1) + threadIdx.y * width;
    float* weights = tile + TILE * (width + 1) + blockDim.y * width + threadIdx.y * TILE;
    for (int d = lane; d < width; d += 32) query[d] = q[query_head * width + d] / sqrtf((float)width);

    float running_max = -POSITIVE_INFINITY, running_sum = 0.0f;
    float output[MAX_WIDTH / 32] = {};

    for (int first = begin; first < end; first += TILE) {
        const int n_tokens = min(TILE, end - first);
        load_tile(tile, k_packed, k_scales, row + first, n_tokens, width);
        __syncthreads();

        float logit = -POSITIVE_INFINITY;
        if (lane < n_tokens) {
            logit = 0.0f;
            for (int d = 0; d < width; ++d) logit += query[d] * tile[lane * (width + 1) + d];
        }
        float new_max = fmaxf(running_max, logit);
        for (int distance = 16; distance > 0; distance /= 2)
            new_max = fmaxf(new_max, __shfl_xor_sync(FULL_WARP, new_max, distance));

        const float correction = expf(running_max - new_max);
        weights[lane] = expf(logit - new_max);
        float tile_sum = weights[lane];
        for (int distance = 16; distance > 0; distance /= 2)
            tile_sum += __shfl_xor_sync(FULL_WARP, tile_sum, distance);
        running_sum = running_sum + tile_sum;
        running_max = new_max;

        __syncthreads();
        load_tile(tile, v_packed, v_scales, row + first, n_tokens, width);
        __syncthreads();
        for (int c = 0; c < MAX_WIDTH / 32; ++c) {
            const int d = lane + 32 * c;
            float sum = output[c] * correction;
            for (int t = 0; t < n_tokens && d < width; ++t) sum += weights[t] * tile[t * (width + 1) + d];
            output[c] = sum;
        }
        __syncthreads();
    }

    const long long part = query_head * gridDim.x + blockIdx.x;
    for (int c = 0; c < MAX_WIDTH / 32; ++c) {
        const int d = lane + 32 * c;
        if (d < width) part_output[part * width + d] = output[c];
    }
    if (lane == 0) {
        part_max[part] = running_max;
        part_sum[part] = running_sum;
    }
}

extern "C" __global__ void combine_parts(
    const float* part_output, const float* part_max, const float* part_sum, const int* lengths,
    float* output, int n_parts, int part_tokens, int width)
{
    const int length = lengths[blockIdx.y];
    const int n_used = (length + part_tokens - 1) / part_tokens;
    const long long query_head = (long long)blockIdx.y * gridDim.x + blockIdx.x;
    part_output += query_head * n_parts * width;
    part_max += query_head * n_parts;
    part_sum += query_head * n_parts;

    float largest = -POSITIVE_INFINITY;
    for (int part = 0; part < n_used; ++part) largest = fmaxf(largest, part_max[part]);

    for (int d = threadIdx.x; d < width; d += blockDim.x) {
        float total = 0.0f, sum = 0.0f;
        for (int part = 0; part < n_used; ++part) {
            const float share = expf(part_max[part] - largest);
            total += share * part_sum[part];
            sum += share * part_output[part * width + d];
        }
        output[query_head * width + d] = length > 0 ? sum / total : 0.0f;
    }
}
"""
    + DEVICE_CODE
)

# %% wrong="decode_attention" name="no_maximum" loses="decode_attention-large_logits"
# Takes exponentials of the logits themselves.
DECODE_ATTENTION = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

#define FULL_WARP 0xffffffffu
#define TILE 32
#define MAX_WIDTH 256
#define POSITIVE_INFINITY __int_as_float(0x7f800000)

__device__ void load_tile(
    float* tile, const unsigned char* packed, const unsigned char* scales, long long row, int n_tokens, int width)
{
    const unsigned int* words = reinterpret_cast<const unsigned int*>(packed + row * (width / 2));
    scales += row * (width / 16);
    for (int w = threadIdx.y * 32 + threadIdx.x; w < n_tokens * width / 8; w += blockDim.y * 32) {
        const unsigned int word = words[w];
        const float scale = decode_e4m3(scales[w / 2]);
        const int t = 8 * w / width, d = 8 * w % width;
        for (int i = 0; i < 8; ++i) {
            const int j = (i + threadIdx.x / 4) % 8;
            tile[t * (width + 1) + d + j] = scale * decode_e2m1(word >> 4 * j & 15u);
        }
    }
}

extern "C" __global__ void decode_attention(
    const float* q,
    const unsigned char* k_packed, const unsigned char* k_scales,
    const unsigned char* v_packed, const unsigned char* v_scales,
    const int* lengths,
    float* part_output, float* part_max, float* part_sum,
    int max_tokens, int part_tokens, int width)
{
    const int lane = threadIdx.x;
    const int begin = blockIdx.x * part_tokens;
    const int end = min(begin + part_tokens, lengths[blockIdx.z]);
    if (begin >= end) return;

    const long long kv_head = (long long)blockIdx.z * gridDim.y + blockIdx.y;
    const long long query_head = kv_head * blockDim.y + threadIdx.y;
    const long long row = kv_head * max_tokens;

    extern __shared__ float shared[];
    float* tile = shared;
    float* query = tile + TILE * (width + 1) + threadIdx.y * width;
    float* weights = tile + TILE * (width + 1) + blockDim.y * width + threadIdx.y * TILE;
    for (int d = lane; d < width; d += 32) query[d] = q[query_head * width + d] / sqrtf((float)width);

    float running_max = -POSITIVE_INFINITY, running_sum = 0.0f;
    float output[MAX_WIDTH / 32] = {};

    for (int first = begin; first < end; first += TILE) {
        const int n_tokens = min(TILE, end - first);
        load_tile(tile, k_packed, k_scales, row + first, n_tokens, width);
        __syncthreads();

        float logit = -POSITIVE_INFINITY;
        if (lane < n_tokens) {
            logit = 0.0f;
            for (int d = 0; d < width; ++d) logit += query[d] * tile[lane * (width + 1) + d];
        }
        const float new_max = 0.0f;

        const float correction = expf(running_max - new_max);
        weights[lane] = expf(logit - new_max);
        float tile_sum = weights[lane];
        for (int distance = 16; distance > 0; distance /= 2)
            tile_sum += __shfl_xor_sync(FULL_WARP, tile_sum, distance);
        running_sum = running_sum * correction + tile_sum;
        running_max = new_max;

        __syncthreads();
        load_tile(tile, v_packed, v_scales, row + first, n_tokens, width);
        __syncthreads();
        for (int c = 0; c < MAX_WIDTH / 32; ++c) {
            const int d = lane + 32 * c;
            float sum = output[c] * correction;
            for (int t = 0; t < n_tokens && d < width; ++t) sum += weights[t] * tile[t * (width + 1) + d];
            output[c] = sum;
        }
        __syncthreads();
    }

    const long long part = query_head * gridDim.x + blockIdx.x;
    for (int c = 0; c < MAX_WIDTH / 32; ++c) {
        const int d = lane + 32 * c;
        if (d < width) part_output[part * width + d] = output[c];
    }
    if (lane == 0) {
        part_max[part] = running_max;
        part_sum[part] = running_sum;
    }
}

extern "C" __global__ void combine_parts(
    const float* part_output, const float* part_max, const float* part_sum, const int* lengths,
    float* output, int n_parts, int part_tokens, int width)
{
    const int length = lengths[blockIdx.y];
    const int n_used = (length + part_tokens - 1) / part_tokens;
    const long long query_head = (long long)blockIdx.y * gridDim.x + blockIdx.x;
    part_output += query_head * n_parts * width;
    part_max += query_head * n_parts;
    part_sum += query_head * n_parts;

    float largest = -POSITIVE_INFINITY;
    for (int part = 0; part < n_used; ++part) largest = fmaxf(largest, part_max[part]);

    for (int d = threadIdx.x; d < width; d += blockDim.x) {
        float total = 0.0f, sum = 0.0f;
        for (int part = 0; part < n_used; ++part) {
            const float share = expf(part_max[part] - largest);
            total += share * part_sum[part];
            sum += share * part_output[part * width + d];
        }
        output[query_head * width + d] = length > 0 ? sum / total : 0.0f;
    }
}
"""
    + DEVICE_CODE
)

# %% wrong="decode_attention" name="maximum_of_a_lane" loses="decode_attention-runs decode_attention-tiles decode_attention-ragged decode_attention-heads decode_attention-widths decode_attention-large_logits decode_attention-parts decode_attention-traffic decode_attention-long"
# Each lane subtracts its own maximum, and the weights no longer belong together.
DECODE_ATTENTION = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

#define FULL_WARP 0xffffffffu
#define TILE 32
#define MAX_WIDTH 256
#define POSITIVE_INFINITY __int_as_float(0x7f800000)

__device__ void load_tile(
    float* tile, const unsigned char* packed, const unsigned char* scales, long long row, int n_tokens, int width)
{
    const unsigned int* words = reinterpret_cast<const unsigned int*>(packed + row * (width / 2));
    scales += row * (width / 16);
    for (int w = threadIdx.y * 32 + threadIdx.x; w < n_tokens * width / 8; w += blockDim.y * 32) {
        const unsigned int word = words[w];
        const float scale = decode_e4m3(scales[w / 2]);
        const int t = 8 * w / width, d = 8 * w % width;
        for (int i = 0; i < 8; ++i) {
            const int j = (i + threadIdx.x / 4) % 8;
            tile[t * (width + 1) + d + j] = scale * decode_e2m1(word >> 4 * j & 15u);
        }
    }
}

extern "C" __global__ void decode_attention(
    const float* q,
    const unsigned char* k_packed, const unsigned char* k_scales,
    const unsigned char* v_packed, const unsigned char* v_scales,
    const int* lengths,
    float* part_output, float* part_max, float* part_sum,
    int max_tokens, int part_tokens, int width)
{
    const int lane = threadIdx.x;
    const int begin = blockIdx.x * part_tokens;
    const int end = min(begin + part_tokens, lengths[blockIdx.z]);
    if (begin >= end) return;

    const long long kv_head = (long long)blockIdx.z * gridDim.y + blockIdx.y;
    const long long query_head = kv_head * blockDim.y + threadIdx.y;
    const long long row = kv_head * max_tokens;

    extern __shared__ float shared[];
    float* tile = shared;
    float* query = tile + TILE * (width + 1) + threadIdx.y * width;
    float* weights = tile + TILE * (width + 1) + blockDim.y * width + threadIdx.y * TILE;
    for (int d = lane; d < width; d += 32) query[d] = q[query_head * width + d] / sqrtf((float)width);

    float running_max = -POSITIVE_INFINITY, running_sum = 0.0f;
    float output[MAX_WIDTH / 32] = {};

    for (int first = begin; first < end; first += TILE) {
        const int n_tokens = min(TILE, end - first);
        load_tile(tile, k_packed, k_scales, row + first, n_tokens, width);
        __syncthreads();

        float logit = -POSITIVE_INFINITY;
        if (lane < n_tokens) {
            logit = 0.0f;
            for (int d = 0; d < width; ++d) logit += query[d] * tile[lane * (width + 1) + d];
        }
        float new_max = fmaxf(running_max, logit);

        const float correction = expf(running_max - new_max);
        weights[lane] = expf(logit - new_max);
        float tile_sum = weights[lane];
        for (int distance = 16; distance > 0; distance /= 2)
            tile_sum += __shfl_xor_sync(FULL_WARP, tile_sum, distance);
        running_sum = running_sum * correction + tile_sum;
        running_max = new_max;

        __syncthreads();
        load_tile(tile, v_packed, v_scales, row + first, n_tokens, width);
        __syncthreads();
        for (int c = 0; c < MAX_WIDTH / 32; ++c) {
            const int d = lane + 32 * c;
            float sum = output[c] * correction;
            for (int t = 0; t < n_tokens && d < width; ++t) sum += weights[t] * tile[t * (width + 1) + d];
            output[c] = sum;
        }
        __syncthreads();
    }

    const long long part = query_head * gridDim.x + blockIdx.x;
    for (int c = 0; c < MAX_WIDTH / 32; ++c) {
        const int d = lane + 32 * c;
        if (d < width) part_output[part * width + d] = output[c];
    }
    if (lane == 0) {
        part_max[part] = running_max;
        part_sum[part] = running_sum;
    }
}

extern "C" __global__ void combine_parts(
    const float* part_output, const float* part_max, const float* part_sum, const int* lengths,
    float* output, int n_parts, int part_tokens, int width)
{
    const int length = lengths[blockIdx.y];
    const int n_used = (length + part_tokens - 1) / part_tokens;
    const long long query_head = (long long)blockIdx.y * gridDim.x + blockIdx.x;
    part_output += query_head * n_parts * width;
    part_max += query_head * n_parts;
    part_sum += query_head * n_parts;

    float largest = -POSITIVE_INFINITY;
    for (int part = 0; part < n_used; ++part) largest = fmaxf(largest, part_max[part]);

    for (int d = threadIdx.x; d < width; d += blockDim.x) {
        float total = 0.0f, sum = 0.0f;
        for (int part = 0; part < n_used; ++part) {
            const float share = expf(part_max[part] - largest);
            total += share * part_sum[part];
            sum += share * part_output[part * width + d];
        }
        output[query_head * width + d] = length > 0 ? sum / total : 0.0f;
    }
}
"""
    + DEVICE_CODE
)

# %% wrong="decode_attention" name="tokens_of_the_whole_tile" loses="decode_attention-ragged decode_attention-long"
# Takes 32 tokens also where the length ends before.
DECODE_ATTENTION = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

#define FULL_WARP 0xffffffffu
#define TILE 32
#define MAX_WIDTH 256
#define POSITIVE_INFINITY __int_as_float(0x7f800000)

__device__ void load_tile(
    float* tile, const unsigned char* packed, const unsigned char* scales, long long row, int n_tokens, int width)
{
    const unsigned int* words = reinterpret_cast<const unsigned int*>(packed + row * (width / 2));
    scales += row * (width / 16);
    for (int w = threadIdx.y * 32 + threadIdx.x; w < n_tokens * width / 8; w += blockDim.y * 32) {
        const unsigned int word = words[w];
        const float scale = decode_e4m3(scales[w / 2]);
        const int t = 8 * w / width, d = 8 * w % width;
        for (int i = 0; i < 8; ++i) {
            const int j = (i + threadIdx.x / 4) % 8;
            tile[t * (width + 1) + d + j] = scale * decode_e2m1(word >> 4 * j & 15u);
        }
    }
}

extern "C" __global__ void decode_attention(
    const float* q,
    const unsigned char* k_packed, const unsigned char* k_scales,
    const unsigned char* v_packed, const unsigned char* v_scales,
    const int* lengths,
    float* part_output, float* part_max, float* part_sum,
    int max_tokens, int part_tokens, int width)
{
    const int lane = threadIdx.x;
    const int begin = blockIdx.x * part_tokens;
    const int end = min(begin + part_tokens, lengths[blockIdx.z]);
    if (begin >= end) return;

    const long long kv_head = (long long)blockIdx.z * gridDim.y + blockIdx.y;
    const long long query_head = kv_head * blockDim.y + threadIdx.y;
    const long long row = kv_head * max_tokens;

    extern __shared__ float shared[];
    float* tile = shared;
    float* query = tile + TILE * (width + 1) + threadIdx.y * width;
    float* weights = tile + TILE * (width + 1) + blockDim.y * width + threadIdx.y * TILE;
    for (int d = lane; d < width; d += 32) query[d] = q[query_head * width + d] / sqrtf((float)width);

    float running_max = -POSITIVE_INFINITY, running_sum = 0.0f;
    float output[MAX_WIDTH / 32] = {};

    for (int first = begin; first < end; first += TILE) {
        const int n_tokens = min(TILE, end - first);
        load_tile(tile, k_packed, k_scales, row + first, n_tokens, width);
        __syncthreads();

        float logit = -POSITIVE_INFINITY;
        if (lane < TILE) {
            logit = 0.0f;
            for (int d = 0; d < width; ++d) logit += query[d] * tile[lane * (width + 1) + d];
        }
        float new_max = fmaxf(running_max, logit);
        for (int distance = 16; distance > 0; distance /= 2)
            new_max = fmaxf(new_max, __shfl_xor_sync(FULL_WARP, new_max, distance));

        const float correction = expf(running_max - new_max);
        weights[lane] = expf(logit - new_max);
        float tile_sum = weights[lane];
        for (int distance = 16; distance > 0; distance /= 2)
            tile_sum += __shfl_xor_sync(FULL_WARP, tile_sum, distance);
        running_sum = running_sum * correction + tile_sum;
        running_max = new_max;

        __syncthreads();
        load_tile(tile, v_packed, v_scales, row + first, n_tokens, width);
        __syncthreads();
        for (int c = 0; c < MAX_WIDTH / 32; ++c) {
            const int d = lane + 32 * c;
            float sum = output[c] * correction;
            for (int t = 0; t < n_tokens && d < width; ++t) sum += weights[t] * tile[t * (width + 1) + d];
            output[c] = sum;
        }
        __syncthreads();
    }

    const long long part = query_head * gridDim.x + blockIdx.x;
    for (int c = 0; c < MAX_WIDTH / 32; ++c) {
        const int d = lane + 32 * c;
        if (d < width) part_output[part * width + d] = output[c];
    }
    if (lane == 0) {
        part_max[part] = running_max;
        part_sum[part] = running_sum;
    }
}

extern "C" __global__ void combine_parts(
    const float* part_output, const float* part_max, const float* part_sum, const int* lengths,
    float* output, int n_parts, int part_tokens, int width)
{
    const int length = lengths[blockIdx.y];
    const int n_used = (length + part_tokens - 1) / part_tokens;
    const long long query_head = (long long)blockIdx.y * gridDim.x + blockIdx.x;
    part_output += query_head * n_parts * width;
    part_max += query_head * n_parts;
    part_sum += query_head * n_parts;

    float largest = -POSITIVE_INFINITY;
    for (int part = 0; part < n_used; ++part) largest = fmaxf(largest, part_max[part]);

    for (int d = threadIdx.x; d < width; d += blockDim.x) {
        float total = 0.0f, sum = 0.0f;
        for (int part = 0; part < n_used; ++part) {
            const float share = expf(part_max[part] - largest);
            total += share * part_sum[part];
            sum += share * part_output[part * width + d];
        }
        output[query_head * width + d] = length > 0 ? sum / total : 0.0f;
    }
}
"""
    + DEVICE_CODE
)

# %% wrong="decode_attention" name="values_of_the_whole_tile" loses="decode_attention-ragged"
# Adds values of 32 tokens also where the length ends before.
DECODE_ATTENTION = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

#define FULL_WARP 0xffffffffu
#define TILE 32
#define MAX_WIDTH 256
#define POSITIVE_INFINITY __int_as_float(0x7f800000)

__device__ void load_tile(
    float* tile, const unsigned char* packed, const unsigned char* scales, long long row, int n_tokens, int width)
{
    const unsigned int* words = reinterpret_cast<const unsigned int*>(packed + row * (width / 2));
    scales += row * (width / 16);
    for (int w = threadIdx.y * 32 + threadIdx.x; w < n_tokens * width / 8; w += blockDim.y * 32) {
        const unsigned int word = words[w];
        const float scale = decode_e4m3(scales[w / 2]);
        const int t = 8 * w / width, d = 8 * w % width;
        for (int i = 0; i < 8; ++i) {
            const int j = (i + threadIdx.x / 4) % 8;
            tile[t * (width + 1) + d + j] = scale * decode_e2m1(word >> 4 * j & 15u);
        }
    }
}

extern "C" __global__ void decode_attention(
    const float* q,
    const unsigned char* k_packed, const unsigned char* k_scales,
    const unsigned char* v_packed, const unsigned char* v_scales,
    const int* lengths,
    float* part_output, float* part_max, float* part_sum,
    int max_tokens, int part_tokens, int width)
{
    const int lane = threadIdx.x;
    const int begin = blockIdx.x * part_tokens;
    const int end = min(begin + part_tokens, lengths[blockIdx.z]);
    if (begin >= end) return;

    const long long kv_head = (long long)blockIdx.z * gridDim.y + blockIdx.y;
    const long long query_head = kv_head * blockDim.y + threadIdx.y;
    const long long row = kv_head * max_tokens;

    extern __shared__ float shared[];
    float* tile = shared;
    float* query = tile + TILE * (width + 1) + threadIdx.y * width;
    float* weights = tile + TILE * (width + 1) + blockDim.y * width + threadIdx.y * TILE;
    for (int d = lane; d < width; d += 32) query[d] = q[query_head * width + d] / sqrtf((float)width);

    float running_max = -POSITIVE_INFINITY, running_sum = 0.0f;
    float output[MAX_WIDTH / 32] = {};

    for (int first = begin; first < end; first += TILE) {
        const int n_tokens = min(TILE, end - first);
        load_tile(tile, k_packed, k_scales, row + first, n_tokens, width);
        __syncthreads();

        float logit = -POSITIVE_INFINITY;
        if (lane < n_tokens) {
            logit = 0.0f;
            for (int d = 0; d < width; ++d) logit += query[d] * tile[lane * (width + 1) + d];
        }
        float new_max = fmaxf(running_max, logit);
        for (int distance = 16; distance > 0; distance /= 2)
            new_max = fmaxf(new_max, __shfl_xor_sync(FULL_WARP, new_max, distance));

        const float correction = expf(running_max - new_max);
        weights[lane] = expf(logit - new_max);
        float tile_sum = weights[lane];
        for (int distance = 16; distance > 0; distance /= 2)
            tile_sum += __shfl_xor_sync(FULL_WARP, tile_sum, distance);
        running_sum = running_sum * correction + tile_sum;
        running_max = new_max;

        __syncthreads();
        load_tile(tile, v_packed, v_scales, row + first, n_tokens, width);
        __syncthreads();
        for (int c = 0; c < MAX_WIDTH / 32; ++c) {
            const int d = lane + 32 * c;
            float sum = output[c] * correction;
            for (int t = 0; t < TILE && d < width; ++t) sum += weights[t] * tile[t * (width + 1) + d];
            output[c] = sum;
        }
        __syncthreads();
    }

    const long long part = query_head * gridDim.x + blockIdx.x;
    for (int c = 0; c < MAX_WIDTH / 32; ++c) {
        const int d = lane + 32 * c;
        if (d < width) part_output[part * width + d] = output[c];
    }
    if (lane == 0) {
        part_max[part] = running_max;
        part_sum[part] = running_sum;
    }
}

extern "C" __global__ void combine_parts(
    const float* part_output, const float* part_max, const float* part_sum, const int* lengths,
    float* output, int n_parts, int part_tokens, int width)
{
    const int length = lengths[blockIdx.y];
    const int n_used = (length + part_tokens - 1) / part_tokens;
    const long long query_head = (long long)blockIdx.y * gridDim.x + blockIdx.x;
    part_output += query_head * n_parts * width;
    part_max += query_head * n_parts;
    part_sum += query_head * n_parts;

    float largest = -POSITIVE_INFINITY;
    for (int part = 0; part < n_used; ++part) largest = fmaxf(largest, part_max[part]);

    for (int d = threadIdx.x; d < width; d += blockDim.x) {
        float total = 0.0f, sum = 0.0f;
        for (int part = 0; part < n_used; ++part) {
            const float share = expf(part_max[part] - largest);
            total += share * part_sum[part];
            sum += share * part_output[part * width + d];
        }
        output[query_head * width + d] = length > 0 ? sum / total : 0.0f;
    }
}
"""
    + DEVICE_CODE
)

# %% wrong="decode_attention" name="parts_not_rescaled" loses="decode_attention-parts decode_attention-traffic decode_attention-long"
# Adds parts that were left with different maxima as they are.
DECODE_ATTENTION = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

#define FULL_WARP 0xffffffffu
#define TILE 32
#define MAX_WIDTH 256
#define POSITIVE_INFINITY __int_as_float(0x7f800000)

__device__ void load_tile(
    float* tile, const unsigned char* packed, const unsigned char* scales, long long row, int n_tokens, int width)
{
    const unsigned int* words = reinterpret_cast<const unsigned int*>(packed + row * (width / 2));
    scales += row * (width / 16);
    for (int w = threadIdx.y * 32 + threadIdx.x; w < n_tokens * width / 8; w += blockDim.y * 32) {
        const unsigned int word = words[w];
        const float scale = decode_e4m3(scales[w / 2]);
        const int t = 8 * w / width, d = 8 * w % width;
        for (int i = 0; i < 8; ++i) {
            const int j = (i + threadIdx.x / 4) % 8;
            tile[t * (width + 1) + d + j] = scale * decode_e2m1(word >> 4 * j & 15u);
        }
    }
}

extern "C" __global__ void decode_attention(
    const float* q,
    const unsigned char* k_packed, const unsigned char* k_scales,
    const unsigned char* v_packed, const unsigned char* v_scales,
    const int* lengths,
    float* part_output, float* part_max, float* part_sum,
    int max_tokens, int part_tokens, int width)
{
    const int lane = threadIdx.x;
    const int begin = blockIdx.x * part_tokens;
    const int end = min(begin + part_tokens, lengths[blockIdx.z]);
    if (begin >= end) return;

    const long long kv_head = (long long)blockIdx.z * gridDim.y + blockIdx.y;
    const long long query_head = kv_head * blockDim.y + threadIdx.y;
    const long long row = kv_head * max_tokens;

    extern __shared__ float shared[];
    float* tile = shared;
    float* query = tile + TILE * (width + 1) + threadIdx.y * width;
    float* weights = tile + TILE * (width + 1) + blockDim.y * width + threadIdx.y * TILE;
    for (int d = lane; d < width; d += 32) query[d] = q[query_head * width + d] / sqrtf((float)width);

    float running_max = -POSITIVE_INFINITY, running_sum = 0.0f;
    float output[MAX_WIDTH / 32] = {};

    for (int first = begin; first < end; first += TILE) {
        const int n_tokens = min(TILE, end - first);
        load_tile(tile, k_packed, k_scales, row + first, n_tokens, width);
        __syncthreads();
        float logit = -POSITIVE_INFINITY;
        if (lane < n_tokens) {
            logit = 0.0f;
            for (int d = 0; d < width; ++d) logit += query[d] * tile[lane * (width + 1) + d];
        }
        float new_max = fmaxf(running_max, logit);
        for (int distance = 16; distance > 0; distance /= 2)
            new_max = fmaxf(new_max, __shfl_xor_sync(FULL_WARP, new_max, distance));
        const float correction = expf(running_max - new_max);
        weights[lane] = expf(logit - new_max);
        float tile_sum = weights[lane];
        for (int distance = 16; distance > 0; distance /= 2)
            tile_sum += __shfl_xor_sync(FULL_WARP, tile_sum, distance);
        running_sum = running_sum * correction + tile_sum;
        running_max = new_max;
        __syncthreads();
        load_tile(tile, v_packed, v_scales, row + first, n_tokens, width);
        __syncthreads();
        for (int c = 0; c < MAX_WIDTH / 32; ++c) {
            const int d = lane + 32 * c;
            float sum = output[c] * correction;
            for (int t = 0; t < n_tokens && d < width; ++t) sum += weights[t] * tile[t * (width + 1) + d];
            output[c] = sum;
        }
        __syncthreads();
    }

    const long long part = query_head * gridDim.x + blockIdx.x;
    for (int c = 0; c < MAX_WIDTH / 32; ++c) {
        const int d = lane + 32 * c;
        if (d < width) part_output[part * width + d] = output[c];
    }
    if (lane == 0) {
        part_max[part] = running_max;
        part_sum[part] = running_sum;
    }
}

extern "C" __global__ void combine_parts(
    const float* part_output, const float* part_max, const float* part_sum, const int* lengths,
    float* output, int n_parts, int part_tokens, int width)
{
    const int length = lengths[blockIdx.y];
    const int n_used = (length + part_tokens - 1) / part_tokens;
    const long long query_head = (long long)blockIdx.y * gridDim.x + blockIdx.x;
    part_output += query_head * n_parts * width;
    part_max += query_head * n_parts;
    part_sum += query_head * n_parts;

    float largest = -POSITIVE_INFINITY;
    for (int part = 0; part < n_used; ++part) largest = fmaxf(largest, part_max[part]);

    for (int d = threadIdx.x; d < width; d += blockDim.x) {
        float total = 0.0f, sum = 0.0f;
        for (int part = 0; part < n_used; ++part) {
            const float share = 1.0f;
            total += share * part_sum[part];
            sum += share * part_output[part * width + d];
        }
        output[query_head * width + d] = length > 0 ? sum / total : 0.0f;
    }
}
"""
    + DEVICE_CODE
)

# %% wrong="decode_attention" name="from_the_beginning" loses="decode_attention-parts decode_attention-traffic decode_attention-long"
# Begins each part at token 0.
DECODE_ATTENTION = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

#define FULL_WARP 0xffffffffu
#define TILE 32
#define MAX_WIDTH 256
#define POSITIVE_INFINITY __int_as_float(0x7f800000)

__device__ void load_tile(
    float* tile, const unsigned char* packed, const unsigned char* scales, long long row, int n_tokens, int width)
{
    const unsigned int* words = reinterpret_cast<const unsigned int*>(packed + row * (width / 2));
    scales += row * (width / 16);
    for (int w = threadIdx.y * 32 + threadIdx.x; w < n_tokens * width / 8; w += blockDim.y * 32) {
        const unsigned int word = words[w];
        const float scale = decode_e4m3(scales[w / 2]);
        const int t = 8 * w / width, d = 8 * w % width;
        for (int i = 0; i < 8; ++i) {
            const int j = (i + threadIdx.x / 4) % 8;
            tile[t * (width + 1) + d + j] = scale * decode_e2m1(word >> 4 * j & 15u);
        }
    }
}

extern "C" __global__ void decode_attention(
    const float* q,
    const unsigned char* k_packed, const unsigned char* k_scales,
    const unsigned char* v_packed, const unsigned char* v_scales,
    const int* lengths,
    float* part_output, float* part_max, float* part_sum,
    int max_tokens, int part_tokens, int width)
{
    const int lane = threadIdx.x;
    const int begin = blockIdx.x * part_tokens;
    const int end = min(begin + part_tokens, lengths[blockIdx.z]);
    if (begin >= end) return;

    const long long kv_head = (long long)blockIdx.z * gridDim.y + blockIdx.y;
    const long long query_head = kv_head * blockDim.y + threadIdx.y;
    const long long row = kv_head * max_tokens;

    extern __shared__ float shared[];
    float* tile = shared;
    float* query = tile + TILE * (width + 1) + threadIdx.y * width;
    float* weights = tile + TILE * (width + 1) + blockDim.y * width + threadIdx.y * TILE;
    for (int d = lane; d < width; d += 32) query[d] = q[query_head * width + d] / sqrtf((float)width);

    float running_max = -POSITIVE_INFINITY, running_sum = 0.0f;
    float output[MAX_WIDTH / 32] = {};

    for (int first = 0; first < end; first += TILE) {
        const int n_tokens = min(TILE, end - first);
        load_tile(tile, k_packed, k_scales, row + first, n_tokens, width);
        __syncthreads();

        float logit = -POSITIVE_INFINITY;
        if (lane < n_tokens) {
            logit = 0.0f;
            for (int d = 0; d < width; ++d) logit += query[d] * tile[lane * (width + 1) + d];
        }
        float new_max = fmaxf(running_max, logit);
        for (int distance = 16; distance > 0; distance /= 2)
            new_max = fmaxf(new_max, __shfl_xor_sync(FULL_WARP, new_max, distance));

        const float correction = expf(running_max - new_max);
        weights[lane] = expf(logit - new_max);
        float tile_sum = weights[lane];
        for (int distance = 16; distance > 0; distance /= 2)
            tile_sum += __shfl_xor_sync(FULL_WARP, tile_sum, distance);
        running_sum = running_sum * correction + tile_sum;
        running_max = new_max;

        __syncthreads();
        load_tile(tile, v_packed, v_scales, row + first, n_tokens, width);
        __syncthreads();
        for (int c = 0; c < MAX_WIDTH / 32; ++c) {
            const int d = lane + 32 * c;
            float sum = output[c] * correction;
            for (int t = 0; t < n_tokens && d < width; ++t) sum += weights[t] * tile[t * (width + 1) + d];
            output[c] = sum;
        }
        __syncthreads();
    }

    const long long part = query_head * gridDim.x + blockIdx.x;
    for (int c = 0; c < MAX_WIDTH / 32; ++c) {
        const int d = lane + 32 * c;
        if (d < width) part_output[part * width + d] = output[c];
    }
    if (lane == 0) {
        part_max[part] = running_max;
        part_sum[part] = running_sum;
    }
}

extern "C" __global__ void combine_parts(
    const float* part_output, const float* part_max, const float* part_sum, const int* lengths,
    float* output, int n_parts, int part_tokens, int width)
{
    const int length = lengths[blockIdx.y];
    const int n_used = (length + part_tokens - 1) / part_tokens;
    const long long query_head = (long long)blockIdx.y * gridDim.x + blockIdx.x;
    part_output += query_head * n_parts * width;
    part_max += query_head * n_parts;
    part_sum += query_head * n_parts;

    float largest = -POSITIVE_INFINITY;
    for (int part = 0; part < n_used; ++part) largest = fmaxf(largest, part_max[part]);

    for (int d = threadIdx.x; d < width; d += blockDim.x) {
        float total = 0.0f, sum = 0.0f;
        for (int part = 0; part < n_used; ++part) {
            const float share = expf(part_max[part] - largest);
            total += share * part_sum[part];
            sum += share * part_output[part * width + d];
        }
        output[query_head * width + d] = length > 0 ? sum / total : 0.0f;
    }
}
"""
    + DEVICE_CODE
)

# %% wrong="decode_attention" name="shuffle_under_a_condition" loses="decode_attention-ragged decode_attention-long"
# Lanes without a token leave a shuffle out that the others wait for.
DECODE_ATTENTION = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

#define FULL_WARP 0xffffffffu
#define TILE 32
#define MAX_WIDTH 256
#define POSITIVE_INFINITY __int_as_float(0x7f800000)

__device__ void load_tile(
    float* tile, const unsigned char* packed, const unsigned char* scales, long long row, int n_tokens, int width)
{
    const unsigned int* words = reinterpret_cast<const unsigned int*>(packed + row * (width / 2));
    scales += row * (width / 16);
    for (int w = threadIdx.y * 32 + threadIdx.x; w < n_tokens * width / 8; w += blockDim.y * 32) {
        const unsigned int word = words[w];
        const float scale = decode_e4m3(scales[w / 2]);
        const int t = 8 * w / width, d = 8 * w % width;
        for (int i = 0; i < 8; ++i) {
            const int j = (i + threadIdx.x / 4) % 8;
            tile[t * (width + 1) + d + j] = scale * decode_e2m1(word >> 4 * j & 15u);
        }
    }
}

extern "C" __global__ void decode_attention(
    const float* q,
    const unsigned char* k_packed, const unsigned char* k_scales,
    const unsigned char* v_packed, const unsigned char* v_scales,
    const int* lengths,
    float* part_output, float* part_max, float* part_sum,
    int max_tokens, int part_tokens, int width)
{
    const int lane = threadIdx.x;
    const int begin = blockIdx.x * part_tokens;
    const int end = min(begin + part_tokens, lengths[blockIdx.z]);
    if (begin >= end) return;

    const long long kv_head = (long long)blockIdx.z * gridDim.y + blockIdx.y;
    const long long query_head = kv_head * blockDim.y + threadIdx.y;
    const long long row = kv_head * max_tokens;

    extern __shared__ float shared[];
    float* tile = shared;
    float* query = tile + TILE * (width + 1) + threadIdx.y * width;
    float* weights = tile + TILE * (width + 1) + blockDim.y * width + threadIdx.y * TILE;
    for (int d = lane; d < width; d += 32) query[d] = q[query_head * width + d] / sqrtf((float)width);

    float running_max = -POSITIVE_INFINITY, running_sum = 0.0f;
    float output[MAX_WIDTH / 32] = {};

    for (int first = begin; first < end; first += TILE) {
        const int n_tokens = min(TILE, end - first);
        load_tile(tile, k_packed, k_scales, row + first, n_tokens, width);
        __syncthreads();

        float logit = -POSITIVE_INFINITY;
        if (lane < n_tokens) {
            logit = 0.0f;
            for (int d = 0; d < width; ++d) logit += query[d] * tile[lane * (width + 1) + d];
        }
        float new_max = fmaxf(running_max, logit);
        for (int distance = 16; distance > 0; distance /= 2)
            new_max = fmaxf(new_max, __shfl_xor_sync(FULL_WARP, new_max, distance));

        const float correction = expf(running_max - new_max);
        weights[lane] = expf(logit - new_max);
        float tile_sum = weights[lane];
        for (int distance = 16; distance > 0 && lane < n_tokens; distance /= 2)
            tile_sum += __shfl_xor_sync(FULL_WARP, tile_sum, distance);
        running_sum = running_sum * correction + tile_sum;
        running_max = new_max;

        __syncthreads();
        load_tile(tile, v_packed, v_scales, row + first, n_tokens, width);
        __syncthreads();
        for (int c = 0; c < MAX_WIDTH / 32; ++c) {
            const int d = lane + 32 * c;
            float sum = output[c] * correction;
            for (int t = 0; t < n_tokens && d < width; ++t) sum += weights[t] * tile[t * (width + 1) + d];
            output[c] = sum;
        }
        __syncthreads();
    }

    const long long part = query_head * gridDim.x + blockIdx.x;
    for (int c = 0; c < MAX_WIDTH / 32; ++c) {
        const int d = lane + 32 * c;
        if (d < width) part_output[part * width + d] = output[c];
    }
    if (lane == 0) {
        part_max[part] = running_max;
        part_sum[part] = running_sum;
    }
}

extern "C" __global__ void combine_parts(
    const float* part_output, const float* part_max, const float* part_sum, const int* lengths,
    float* output, int n_parts, int part_tokens, int width)
{
    const int length = lengths[blockIdx.y];
    const int n_used = (length + part_tokens - 1) / part_tokens;
    const long long query_head = (long long)blockIdx.y * gridDim.x + blockIdx.x;
    part_output += query_head * n_parts * width;
    part_max += query_head * n_parts;
    part_sum += query_head * n_parts;

    float largest = -POSITIVE_INFINITY;
    for (int part = 0; part < n_used; ++part) largest = fmaxf(largest, part_max[part]);

    for (int d = threadIdx.x; d < width; d += blockDim.x) {
        float total = 0.0f, sum = 0.0f;
        for (int part = 0; part < n_used; ++part) {
            const float share = expf(part_max[part] - largest);
            total += share * part_sum[part];
            sum += share * part_output[part * width + d];
        }
        output[query_head * width + d] = length > 0 ? sum / total : 0.0f;
    }
}
"""
    + DEVICE_CODE
)

# %% wrong="decode_attention" name="whole_warps_of_channels" loses="decode_attention-ragged decode_attention-heads decode_attention-widths decode_attention-parts"
# Counts channels in whole warps, and leaves out what is over.
DECODE_ATTENTION = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

#define FULL_WARP 0xffffffffu
#define TILE 32
#define MAX_WIDTH 256
#define POSITIVE_INFINITY __int_as_float(0x7f800000)

__device__ void load_tile(
    float* tile, const unsigned char* packed, const unsigned char* scales, long long row, int n_tokens, int width)
{
    const unsigned int* words = reinterpret_cast<const unsigned int*>(packed + row * (width / 2));
    scales += row * (width / 16);
    for (int w = threadIdx.y * 32 + threadIdx.x; w < n_tokens * width / 8; w += blockDim.y * 32) {
        const unsigned int word = words[w];
        const float scale = decode_e4m3(scales[w / 2]);
        const int t = 8 * w / width, d = 8 * w % width;
        for (int i = 0; i < 8; ++i) {
            const int j = (i + threadIdx.x / 4) % 8;
            tile[t * (width + 1) + d + j] = scale * decode_e2m1(word >> 4 * j & 15u);
        }
    }
}

extern "C" __global__ void decode_attention(
    const float* q,
    const unsigned char* k_packed, const unsigned char* k_scales,
    const unsigned char* v_packed, const unsigned char* v_scales,
    const int* lengths,
    float* part_output, float* part_max, float* part_sum,
    int max_tokens, int part_tokens, int width)
{
    const int lane = threadIdx.x;
    const int begin = blockIdx.x * part_tokens;
    const int end = min(begin + part_tokens, lengths[blockIdx.z]);
    if (begin >= end) return;

    const long long kv_head = (long long)blockIdx.z * gridDim.y + blockIdx.y;
    const long long query_head = kv_head * blockDim.y + threadIdx.y;
    const long long row = kv_head * max_tokens;

    extern __shared__ float shared[];
    float* tile = shared;
    float* query = tile + TILE * (width + 1) + threadIdx.y * width;
    float* weights = tile + TILE * (width + 1) + blockDim.y * width + threadIdx.y * TILE;
    for (int d = lane; d < width; d += 32) query[d] = q[query_head * width + d] / sqrtf((float)width);

    float running_max = -POSITIVE_INFINITY, running_sum = 0.0f;
    float output[MAX_WIDTH / 32] = {};

    for (int first = begin; first < end; first += TILE) {
        const int n_tokens = min(TILE, end - first);
        load_tile(tile, k_packed, k_scales, row + first, n_tokens, width);
        __syncthreads();

        float logit = -POSITIVE_INFINITY;
        if (lane < n_tokens) {
            logit = 0.0f;
            for (int d = 0; d < width; ++d) logit += query[d] * tile[lane * (width + 1) + d];
        }
        float new_max = fmaxf(running_max, logit);
        for (int distance = 16; distance > 0; distance /= 2)
            new_max = fmaxf(new_max, __shfl_xor_sync(FULL_WARP, new_max, distance));

        const float correction = expf(running_max - new_max);
        weights[lane] = expf(logit - new_max);
        float tile_sum = weights[lane];
        for (int distance = 16; distance > 0; distance /= 2)
            tile_sum += __shfl_xor_sync(FULL_WARP, tile_sum, distance);
        running_sum = running_sum * correction + tile_sum;
        running_max = new_max;

        __syncthreads();
        load_tile(tile, v_packed, v_scales, row + first, n_tokens, width);
        __syncthreads();
        for (int c = 0; c < MAX_WIDTH / 32; ++c) {
            const int d = lane + 32 * c;
            float sum = output[c] * correction;
            for (int t = 0; t < n_tokens && c < width / 32; ++t) sum += weights[t] * tile[t * (width + 1) + d];
            output[c] = sum;
        }
        __syncthreads();
    }

    const long long part = query_head * gridDim.x + blockIdx.x;
    for (int c = 0; c < MAX_WIDTH / 32; ++c) {
        const int d = lane + 32 * c;
        if (d < width) part_output[part * width + d] = output[c];
    }
    if (lane == 0) {
        part_max[part] = running_max;
        part_sum[part] = running_sum;
    }
}

extern "C" __global__ void combine_parts(
    const float* part_output, const float* part_max, const float* part_sum, const int* lengths,
    float* output, int n_parts, int part_tokens, int width)
{
    const int length = lengths[blockIdx.y];
    const int n_used = (length + part_tokens - 1) / part_tokens;
    const long long query_head = (long long)blockIdx.y * gridDim.x + blockIdx.x;
    part_output += query_head * n_parts * width;
    part_max += query_head * n_parts;
    part_sum += query_head * n_parts;

    float largest = -POSITIVE_INFINITY;
    for (int part = 0; part < n_used; ++part) largest = fmaxf(largest, part_max[part]);

    for (int d = threadIdx.x; d < width; d += blockDim.x) {
        float total = 0.0f, sum = 0.0f;
        for (int part = 0; part < n_used; ++part) {
            const float share = expf(part_max[part] - largest);
            total += share * part_sum[part];
            sum += share * part_output[part * width + d];
        }
        output[query_head * width + d] = length > 0 ? sum / total : 0.0f;
    }
}
"""
    + DEVICE_CODE
)

# %% wrong="decode_attention" name="keys_twice" loses="decode_attention-traffic"
# Loads the keys of each tile twice.
DECODE_ATTENTION = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

#define FULL_WARP 0xffffffffu
#define TILE 32
#define MAX_WIDTH 256
#define POSITIVE_INFINITY __int_as_float(0x7f800000)

__device__ void load_tile(
    float* tile, const unsigned char* packed, const unsigned char* scales, long long row, int n_tokens, int width)
{
    const unsigned int* words = reinterpret_cast<const unsigned int*>(packed + row * (width / 2));
    scales += row * (width / 16);
    for (int w = threadIdx.y * 32 + threadIdx.x; w < n_tokens * width / 8; w += blockDim.y * 32) {
        const unsigned int word = words[w];
        const float scale = decode_e4m3(scales[w / 2]);
        const int t = 8 * w / width, d = 8 * w % width;
        for (int i = 0; i < 8; ++i) {
            const int j = (i + threadIdx.x / 4) % 8;
            tile[t * (width + 1) + d + j] = scale * decode_e2m1(word >> 4 * j & 15u);
        }
    }
}

extern "C" __global__ void decode_attention(
    const float* q,
    const unsigned char* k_packed, const unsigned char* k_scales,
    const unsigned char* v_packed, const unsigned char* v_scales,
    const int* lengths,
    float* part_output, float* part_max, float* part_sum,
    int max_tokens, int part_tokens, int width)
{
    const int lane = threadIdx.x;
    const int begin = blockIdx.x * part_tokens;
    const int end = min(begin + part_tokens, lengths[blockIdx.z]);
    if (begin >= end) return;

    const long long kv_head = (long long)blockIdx.z * gridDim.y + blockIdx.y;
    const long long query_head = kv_head * blockDim.y + threadIdx.y;
    const long long row = kv_head * max_tokens;

    extern __shared__ float shared[];
    float* tile = shared;
    float* query = tile + TILE * (width + 1) + threadIdx.y * width;
    float* weights = tile + TILE * (width + 1) + blockDim.y * width + threadIdx.y * TILE;
    for (int d = lane; d < width; d += 32) query[d] = q[query_head * width + d] / sqrtf((float)width);

    float running_max = -POSITIVE_INFINITY, running_sum = 0.0f;
    float output[MAX_WIDTH / 32] = {};

    for (int first = begin; first < end; first += TILE) {
        const int n_tokens = min(TILE, end - first);
        load_tile(tile, k_packed, k_scales, row + first, n_tokens, width);
        __syncthreads();
        load_tile(tile, k_packed, k_scales, row + first, n_tokens, width);
        __syncthreads();

        float logit = -POSITIVE_INFINITY;
        if (lane < n_tokens) {
            logit = 0.0f;
            for (int d = 0; d < width; ++d) logit += query[d] * tile[lane * (width + 1) + d];
        }
        float new_max = fmaxf(running_max, logit);
        for (int distance = 16; distance > 0; distance /= 2)
            new_max = fmaxf(new_max, __shfl_xor_sync(FULL_WARP, new_max, distance));

        const float correction = expf(running_max - new_max);
        weights[lane] = expf(logit - new_max);
        float tile_sum = weights[lane];
        for (int distance = 16; distance > 0; distance /= 2)
            tile_sum += __shfl_xor_sync(FULL_WARP, tile_sum, distance);
        running_sum = running_sum * correction + tile_sum;
        running_max = new_max;

        __syncthreads();
        load_tile(tile, v_packed, v_scales, row + first, n_tokens, width);
        __syncthreads();
        for (int c = 0; c < MAX_WIDTH / 32; ++c) {
            const int d = lane + 32 * c;
            float sum = output[c] * correction;
            for (int t = 0; t < n_tokens && d < width; ++t) sum += weights[t] * tile[t * (width + 1) + d];
            output[c] = sum;
        }
        __syncthreads();
    }

    const long long part = query_head * gridDim.x + blockIdx.x;
    for (int c = 0; c < MAX_WIDTH / 32; ++c) {
        const int d = lane + 32 * c;
        if (d < width) part_output[part * width + d] = output[c];
    }
    if (lane == 0) {
        part_max[part] = running_max;
        part_sum[part] = running_sum;
    }
}

extern "C" __global__ void combine_parts(
    const float* part_output, const float* part_max, const float* part_sum, const int* lengths,
    float* output, int n_parts, int part_tokens, int width)
{
    const int length = lengths[blockIdx.y];
    const int n_used = (length + part_tokens - 1) / part_tokens;
    const long long query_head = (long long)blockIdx.y * gridDim.x + blockIdx.x;
    part_output += query_head * n_parts * width;
    part_max += query_head * n_parts;
    part_sum += query_head * n_parts;

    float largest = -POSITIVE_INFINITY;
    for (int part = 0; part < n_used; ++part) largest = fmaxf(largest, part_max[part]);

    for (int d = threadIdx.x; d < width; d += blockDim.x) {
        float total = 0.0f, sum = 0.0f;
        for (int part = 0; part < n_used; ++part) {
            const float share = expf(part_max[part] - largest);
            total += share * part_sum[part];
            sum += share * part_output[part * width + d];
        }
        output[query_head * width + d] = length > 0 ? sum / total : 0.0f;
    }
}
"""
    + DEVICE_CODE
)

# %% wrong="decode_attention" name="keys_for_each_query_head" loses="decode_attention-traffic"
# Reads the keys past the tile, once for each query head.
DECODE_ATTENTION = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

#define FULL_WARP 0xffffffffu
#define TILE 32
#define MAX_WIDTH 256
#define POSITIVE_INFINITY __int_as_float(0x7f800000)

__device__ void load_tile(
    float* tile, const unsigned char* packed, const unsigned char* scales, long long row, int n_tokens, int width)
{
    const unsigned int* words = reinterpret_cast<const unsigned int*>(packed + row * (width / 2));
    scales += row * (width / 16);
    for (int w = threadIdx.y * 32 + threadIdx.x; w < n_tokens * width / 8; w += blockDim.y * 32) {
        const unsigned int word = words[w];
        const float scale = decode_e4m3(scales[w / 2]);
        const int t = 8 * w / width, d = 8 * w % width;
        for (int i = 0; i < 8; ++i) {
            const int j = (i + threadIdx.x / 4) % 8;
            tile[t * (width + 1) + d + j] = scale * decode_e2m1(word >> 4 * j & 15u);
        }
    }
}

extern "C" __global__ void decode_attention(
    const float* q,
    const unsigned char* k_packed, const unsigned char* k_scales,
    const unsigned char* v_packed, const unsigned char* v_scales,
    const int* lengths,
    float* part_output, float* part_max, float* part_sum,
    int max_tokens, int part_tokens, int width)
{
    const int lane = threadIdx.x;
    const int begin = blockIdx.x * part_tokens;
    const int end = min(begin + part_tokens, lengths[blockIdx.z]);
    if (begin >= end) return;

    const long long kv_head = (long long)blockIdx.z * gridDim.y + blockIdx.y;
    const long long query_head = kv_head * blockDim.y + threadIdx.y;
    const long long row = kv_head * max_tokens;

    extern __shared__ float shared[];
    float* tile = shared;
    float* query = tile + TILE * (width + 1) + threadIdx.y * width;
    float* weights = tile + TILE * (width + 1) + blockDim.y * width + threadIdx.y * TILE;
    for (int d = lane; d < width; d += 32) query[d] = q[query_head * width + d] / sqrtf((float)width);

    float running_max = -POSITIVE_INFINITY, running_sum = 0.0f;
    float output[MAX_WIDTH / 32] = {};

    for (int first = begin; first < end; first += TILE) {
        const int n_tokens = min(TILE, end - first);
        load_tile(tile, k_packed, k_scales, row + first, n_tokens, width);
        __syncthreads();

        float logit = -POSITIVE_INFINITY;
        if (lane < n_tokens) {
            logit = 0.0f;
            for (int d = 0; d < width; ++d) {
                const long long element = (row + first + lane) * width + d;
                const unsigned int byte = k_packed[element / 2];
                const float key = decode_e2m1(d % 2 ? byte >> 4 : byte & 15u) * decode_e4m3(k_scales[element / 16]);
                logit += query[d] * key;
            }
        }
        float new_max = fmaxf(running_max, logit);
        for (int distance = 16; distance > 0; distance /= 2)
            new_max = fmaxf(new_max, __shfl_xor_sync(FULL_WARP, new_max, distance));

        const float correction = expf(running_max - new_max);
        weights[lane] = expf(logit - new_max);
        float tile_sum = weights[lane];
        for (int distance = 16; distance > 0; distance /= 2)
            tile_sum += __shfl_xor_sync(FULL_WARP, tile_sum, distance);
        running_sum = running_sum * correction + tile_sum;
        running_max = new_max;

        __syncthreads();
        load_tile(tile, v_packed, v_scales, row + first, n_tokens, width);
        __syncthreads();
        for (int c = 0; c < MAX_WIDTH / 32; ++c) {
            const int d = lane + 32 * c;
            float sum = output[c] * correction;
            for (int t = 0; t < n_tokens && d < width; ++t) sum += weights[t] * tile[t * (width + 1) + d];
            output[c] = sum;
        }
        __syncthreads();
    }

    const long long part = query_head * gridDim.x + blockIdx.x;
    for (int c = 0; c < MAX_WIDTH / 32; ++c) {
        const int d = lane + 32 * c;
        if (d < width) part_output[part * width + d] = output[c];
    }
    if (lane == 0) {
        part_max[part] = running_max;
        part_sum[part] = running_sum;
    }
}

extern "C" __global__ void combine_parts(
    const float* part_output, const float* part_max, const float* part_sum, const int* lengths,
    float* output, int n_parts, int part_tokens, int width)
{
    const int length = lengths[blockIdx.y];
    const int n_used = (length + part_tokens - 1) / part_tokens;
    const long long query_head = (long long)blockIdx.y * gridDim.x + blockIdx.x;
    part_output += query_head * n_parts * width;
    part_max += query_head * n_parts;
    part_sum += query_head * n_parts;

    float largest = -POSITIVE_INFINITY;
    for (int part = 0; part < n_used; ++part) largest = fmaxf(largest, part_max[part]);

    for (int d = threadIdx.x; d < width; d += blockDim.x) {
        float total = 0.0f, sum = 0.0f;
        for (int part = 0; part < n_used; ++part) {
            const float share = expf(part_max[part] - largest);
            total += share * part_sum[part];
            sum += share * part_output[part * width + d];
        }
        output[query_head * width + d] = length > 0 ? sum / total : 0.0f;
    }
}
"""
    + DEVICE_CODE
)

# %% wrong="decode_attention" name="decoded_to_memory" loses="decode_attention-traffic"
# Writes decoded values to global memory, and reads them from there.
DECODE_ATTENTION = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

__device__ float decoded[1 << 18];

#define FULL_WARP 0xffffffffu
#define TILE 32
#define MAX_WIDTH 256
#define POSITIVE_INFINITY __int_as_float(0x7f800000)

__device__ void load_tile(
    float* tile, const unsigned char* packed, const unsigned char* scales, long long row, int n_tokens, int width)
{
    const unsigned int* words = reinterpret_cast<const unsigned int*>(packed + row * (width / 2));
    scales += row * (width / 16);
    for (int w = threadIdx.y * 32 + threadIdx.x; w < n_tokens * width / 8; w += blockDim.y * 32) {
        const unsigned int word = words[w];
        const float scale = decode_e4m3(scales[w / 2]);
        const int t = 8 * w / width, d = 8 * w % width;
        for (int i = 0; i < 8; ++i) {
            const int j = (i + threadIdx.x / 4) % 8;
            tile[t * (width + 1) + d + j] = scale * decode_e2m1(word >> 4 * j & 15u);
        }
    }
}

extern "C" __global__ void decode_attention(
    const float* q,
    const unsigned char* k_packed, const unsigned char* k_scales,
    const unsigned char* v_packed, const unsigned char* v_scales,
    const int* lengths,
    float* part_output, float* part_max, float* part_sum,
    int max_tokens, int part_tokens, int width)
{
    const int lane = threadIdx.x;
    const int begin = blockIdx.x * part_tokens;
    const int end = min(begin + part_tokens, lengths[blockIdx.z]);
    if (begin >= end) return;

    const long long kv_head = (long long)blockIdx.z * gridDim.y + blockIdx.y;
    const long long query_head = kv_head * blockDim.y + threadIdx.y;
    const long long row = kv_head * max_tokens;

    extern __shared__ float shared[];
    float* tile = shared;
    float* query = tile + TILE * (width + 1) + threadIdx.y * width;
    float* weights = tile + TILE * (width + 1) + blockDim.y * width + threadIdx.y * TILE;
    for (int d = lane; d < width; d += 32) query[d] = q[query_head * width + d] / sqrtf((float)width);

    float running_max = -POSITIVE_INFINITY, running_sum = 0.0f;
    float output[MAX_WIDTH / 32] = {};

    for (int first = begin; first < end; first += TILE) {
        const int n_tokens = min(TILE, end - first);
        load_tile(tile, k_packed, k_scales, row + first, n_tokens, width);
        __syncthreads();

        float logit = -POSITIVE_INFINITY;
        if (lane < n_tokens) {
            logit = 0.0f;
            for (int d = 0; d < width; ++d) logit += query[d] * tile[lane * (width + 1) + d];
        }
        float new_max = fmaxf(running_max, logit);
        for (int distance = 16; distance > 0; distance /= 2)
            new_max = fmaxf(new_max, __shfl_xor_sync(FULL_WARP, new_max, distance));

        const float correction = expf(running_max - new_max);
        weights[lane] = expf(logit - new_max);
        float tile_sum = weights[lane];
        for (int distance = 16; distance > 0; distance /= 2)
            tile_sum += __shfl_xor_sync(FULL_WARP, tile_sum, distance);
        running_sum = running_sum * correction + tile_sum;
        running_max = new_max;

        __syncthreads();
        load_tile(tile, v_packed, v_scales, row + first, n_tokens, width);
        __syncthreads();
        const long long room = ((kv_head * gridDim.x + blockIdx.x) * blockDim.y + threadIdx.y) * TILE * width;
        for (int c = 0; c < MAX_WIDTH / 32; ++c) {
            const int d = lane + 32 * c;
            for (int t = 0; t < n_tokens && d < width; ++t) decoded[room + t * width + d] = tile[t * (width + 1) + d];
            float sum = output[c] * correction;
            for (int t = 0; t < n_tokens && d < width; ++t) sum += weights[t] * decoded[room + t * width + d];
            output[c] = sum;
        }
        __syncthreads();
    }

    const long long part = query_head * gridDim.x + blockIdx.x;
    for (int c = 0; c < MAX_WIDTH / 32; ++c) {
        const int d = lane + 32 * c;
        if (d < width) part_output[part * width + d] = output[c];
    }
    if (lane == 0) {
        part_max[part] = running_max;
        part_sum[part] = running_sum;
    }
}

extern "C" __global__ void combine_parts(
    const float* part_output, const float* part_max, const float* part_sum, const int* lengths,
    float* output, int n_parts, int part_tokens, int width)
{
    const int length = lengths[blockIdx.y];
    const int n_used = (length + part_tokens - 1) / part_tokens;
    const long long query_head = (long long)blockIdx.y * gridDim.x + blockIdx.x;
    part_output += query_head * n_parts * width;
    part_max += query_head * n_parts;
    part_sum += query_head * n_parts;

    float largest = -POSITIVE_INFINITY;
    for (int part = 0; part < n_used; ++part) largest = fmaxf(largest, part_max[part]);

    for (int d = threadIdx.x; d < width; d += blockDim.x) {
        float total = 0.0f, sum = 0.0f;
        for (int part = 0; part < n_used; ++part) {
            const float share = expf(part_max[part] - largest);
            total += share * part_sum[part];
            sum += share * part_output[part * width + d];
        }
        output[query_head * width + d] = length > 0 ? sum / total : 0.0f;
    }
}
"""
    + DEVICE_CODE
)

# %% right="decode_attention" name="lanes_along_the_channels"
# Lets all lanes work on one logit, and moves the maximum token by token.
DECODE_ATTENTION = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

#define FULL_WARP 0xffffffffu
#define TILE 32
#define MAX_WIDTH 256
#define POSITIVE_INFINITY __int_as_float(0x7f800000)

__device__ void load_tile(
    float* tile, const unsigned char* packed, const unsigned char* scales, long long row, int n_tokens, int width)
{
    const unsigned int* words = reinterpret_cast<const unsigned int*>(packed + row * (width / 2));
    scales += row * (width / 16);
    for (int w = threadIdx.y * 32 + threadIdx.x; w < n_tokens * width / 8; w += blockDim.y * 32) {
        const unsigned int word = words[w];
        const float scale = decode_e4m3(scales[w / 2]);
        const int t = 8 * w / width, d = 8 * w % width;
        for (int i = 0; i < 8; ++i) {
            const int j = (i + threadIdx.x / 4) % 8;
            tile[t * (width + 1) + d + j] = scale * decode_e2m1(word >> 4 * j & 15u);
        }
    }
}

extern "C" __global__ void decode_attention(
    const float* q,
    const unsigned char* k_packed, const unsigned char* k_scales,
    const unsigned char* v_packed, const unsigned char* v_scales,
    const int* lengths,
    float* part_output, float* part_max, float* part_sum,
    int max_tokens, int part_tokens, int width)
{
    const int lane = threadIdx.x;
    const int begin = blockIdx.x * part_tokens;
    const int end = min(begin + part_tokens, lengths[blockIdx.z]);
    if (begin >= end) return;

    const long long kv_head = (long long)blockIdx.z * gridDim.y + blockIdx.y;
    const long long query_head = kv_head * blockDim.y + threadIdx.y;
    const long long row = kv_head * max_tokens;

    extern __shared__ float shared[];
    float* tile = shared;
    float* query = tile + TILE * (width + 1) + threadIdx.y * width;
    float* weights = tile + TILE * (width + 1) + blockDim.y * width + threadIdx.y * TILE;
    for (int d = lane; d < width; d += 32) query[d] = q[query_head * width + d] / sqrtf((float)width);

    float running_max = -POSITIVE_INFINITY, running_sum = 0.0f;
    float output[MAX_WIDTH / 32] = {};

    for (int first = begin; first < end; first += TILE) {
        const int n_tokens = min(TILE, end - first);
        load_tile(tile, k_packed, k_scales, row + first, n_tokens, width);
        __syncthreads();
        for (int t = 0; t < n_tokens; ++t) {
            float logit = 0.0f;
            for (int d = lane; d < width; d += 32) logit += query[d] * tile[t * (width + 1) + d];
            for (int distance = 1; distance < 32; distance *= 2) logit += __shfl_xor_sync(FULL_WARP, logit, distance);
            if (lane == 0) weights[t] = logit;
        }
        __syncthreads();
        load_tile(tile, v_packed, v_scales, row + first, n_tokens, width);
        __syncthreads();
        for (int t = 0; t < n_tokens; ++t) {
            const float larger = fmaxf(running_max, weights[t]);
            const float correction = expf(running_max - larger), weight = expf(weights[t] - larger);
            running_max = larger;
            running_sum = running_sum * correction + weight;
            for (int c = 0; lane + 32 * c < width; ++c)
                output[c] = output[c] * correction + weight * tile[t * (width + 1) + lane + 32 * c];
        }
        __syncthreads();
    }

    const long long part = query_head * gridDim.x + blockIdx.x;
    for (int c = 0; c < MAX_WIDTH / 32; ++c) {
        const int d = lane + 32 * c;
        if (d < width) part_output[part * width + d] = output[c];
    }
    if (lane == 0) {
        part_max[part] = running_max;
        part_sum[part] = running_sum;
    }
}

extern "C" __global__ void combine_parts(
    const float* part_output, const float* part_max, const float* part_sum, const int* lengths,
    float* output, int n_parts, int part_tokens, int width)
{
    const int length = lengths[blockIdx.y];
    const int n_used = (length + part_tokens - 1) / part_tokens;
    const long long query_head = (long long)blockIdx.y * gridDim.x + blockIdx.x;
    part_output += query_head * n_parts * width;
    part_max += query_head * n_parts;
    part_sum += query_head * n_parts;

    float largest = -POSITIVE_INFINITY;
    for (int part = 0; part < n_used; ++part) largest = fmaxf(largest, part_max[part]);

    for (int d = threadIdx.x; d < width; d += blockDim.x) {
        float total = 0.0f, sum = 0.0f;
        for (int part = 0; part < n_used; ++part) {
            const float share = expf(part_max[part] - largest);
            total += share * part_sum[part];
            sum += share * part_output[part * width + d];
        }
        output[query_head * width + d] = length > 0 ? sum / total : 0.0f;
    }
}
"""
    + DEVICE_CODE
)

# %% right="decode_attention" name="weights_in_registers"
# Keeps each weight in its lane and hands it round by shuffles; rescales only when the maximum has grown.
DECODE_ATTENTION = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

#define FULL_WARP 0xffffffffu
#define TILE 32
#define MAX_WIDTH 256
#define POSITIVE_INFINITY __int_as_float(0x7f800000)

__device__ void load_tile(
    float* tile, const unsigned char* packed, const unsigned char* scales, long long row, int n_tokens, int width)
{
    const unsigned int* words = reinterpret_cast<const unsigned int*>(packed + row * (width / 2));
    scales += row * (width / 16);
    for (int w = threadIdx.y * 32 + threadIdx.x; w < n_tokens * width / 8; w += blockDim.y * 32) {
        const unsigned int word = words[w];
        const float scale = decode_e4m3(scales[w / 2]);
        const int t = 8 * w / width, d = 8 * w % width;
        for (int i = 0; i < 8; ++i) {
            const int j = (i + threadIdx.x / 4) % 8;
            tile[t * (width + 1) + d + j] = scale * decode_e2m1(word >> 4 * j & 15u);
        }
    }
}

extern "C" __global__ void decode_attention(
    const float* q,
    const unsigned char* k_packed, const unsigned char* k_scales,
    const unsigned char* v_packed, const unsigned char* v_scales,
    const int* lengths,
    float* part_output, float* part_max, float* part_sum,
    int max_tokens, int part_tokens, int width)
{
    const int lane = threadIdx.x;
    const int begin = blockIdx.x * part_tokens;
    const int end = min(begin + part_tokens, lengths[blockIdx.z]);
    if (begin >= end) return;

    const long long kv_head = (long long)blockIdx.z * gridDim.y + blockIdx.y;
    const long long query_head = kv_head * blockDim.y + threadIdx.y;
    const long long row = kv_head * max_tokens;

    extern __shared__ float shared[];
    float* tile = shared;
    float* query = tile + TILE * (width + 1) + threadIdx.y * width;
    float* weights = tile + TILE * (width + 1) + blockDim.y * width + threadIdx.y * TILE;
    for (int d = lane; d < width; d += 32) query[d] = q[query_head * width + d] / sqrtf((float)width);

    float running_max = -POSITIVE_INFINITY, running_sum = 0.0f;
    float output[MAX_WIDTH / 32] = {};

    for (int first = begin; first < end; first += TILE) {
        const int n_tokens = min(TILE, end - first);
        __syncthreads();
        load_tile(tile, k_packed, k_scales, row + first, n_tokens, width);
        __syncthreads();
        float logit = lane < n_tokens ? 0.0f : -POSITIVE_INFINITY;
        if (lane < n_tokens)
            for (int d = 0; d < width; ++d) logit += tile[lane * (width + 1) + d] * query[d];
        float largest = logit;
        for (int step = 1; step < 32; step *= 2) largest = fmaxf(largest, __shfl_xor_sync(FULL_WARP, largest, step));
        if (largest > running_max) {
            const float shrink = expf(running_max - largest);
            running_sum *= shrink;
            for (int c = 0; c < MAX_WIDTH / 32; ++c) output[c] *= shrink;
            running_max = largest;
        }
        const float weight = expf(logit - running_max);
        __syncthreads();
        load_tile(tile, v_packed, v_scales, row + first, n_tokens, width);
        __syncthreads();
        for (int t = 0; t < n_tokens; ++t) {
            const float w = __shfl_sync(FULL_WARP, weight, t);
            running_sum += w;
            for (int c = 0; c < MAX_WIDTH / 32; ++c)
                if (lane + 32 * c < width) output[c] += w * tile[t * (width + 1) + lane + 32 * c];
        }
    }

    const long long part = query_head * gridDim.x + blockIdx.x;
    for (int c = 0; c < MAX_WIDTH / 32; ++c) {
        const int d = lane + 32 * c;
        if (d < width) part_output[part * width + d] = output[c];
    }
    if (lane == 0) {
        part_max[part] = running_max;
        part_sum[part] = running_sum;
    }
}

extern "C" __global__ void combine_parts(
    const float* part_output, const float* part_max, const float* part_sum, const int* lengths,
    float* output, int n_parts, int part_tokens, int width)
{
    const int length = lengths[blockIdx.y];
    const int n_used = (length + part_tokens - 1) / part_tokens;
    const long long query_head = (long long)blockIdx.y * gridDim.x + blockIdx.x;
    part_output += query_head * n_parts * width;
    part_max += query_head * n_parts;
    part_sum += query_head * n_parts;

    float largest = -POSITIVE_INFINITY;
    for (int part = 0; part < n_used; ++part) largest = fmaxf(largest, part_max[part]);

    for (int d = threadIdx.x; d < width; d += blockDim.x) {
        float total = 0.0f, sum = 0.0f;
        for (int part = 0; part < n_used; ++part) {
            const float share = expf(part_max[part] - largest);
            total += share * part_sum[part];
            sum += share * part_output[part * width + d];
        }
        output[query_head * width + d] = length > 0 ? sum / total : 0.0f;
    }
}
"""
    + DEVICE_CODE
)


# %% right="decode_attention" name="rescales_when_the_maximum_grows"
# Rescales only where a tile brings a larger logit, and adds by fmaf.
DECODE_ATTENTION = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

#define FULL_WARP 0xffffffffu
#define TILE 32
#define MAX_WIDTH 256
#define POSITIVE_INFINITY __int_as_float(0x7f800000)

__device__ void load_tile(
    float* tile, const unsigned char* packed, const unsigned char* scales, long long row, int n_tokens, int width)
{
    const unsigned int* words = reinterpret_cast<const unsigned int*>(packed + row * (width / 2));
    scales += row * (width / 16);
    for (int w = threadIdx.y * 32 + threadIdx.x; w < n_tokens * width / 8; w += blockDim.y * 32) {
        const unsigned int word = words[w];
        const float scale = decode_e4m3(scales[w / 2]);
        const int t = 8 * w / width, d = 8 * w % width;
        for (int i = 0; i < 8; ++i) {
            const int j = (i + threadIdx.x / 4) % 8;
            tile[t * (width + 1) + d + j] = scale * decode_e2m1(word >> 4 * j & 15u);
        }
    }
}

extern "C" __global__ void decode_attention(
    const float* q,
    const unsigned char* k_packed, const unsigned char* k_scales,
    const unsigned char* v_packed, const unsigned char* v_scales,
    const int* lengths,
    float* part_output, float* part_max, float* part_sum,
    int max_tokens, int part_tokens, int width)
{
    const int lane = threadIdx.x;
    const int begin = blockIdx.x * part_tokens;
    const int end = min(begin + part_tokens, lengths[blockIdx.z]);
    if (begin >= end) return;

    const long long kv_head = (long long)blockIdx.z * gridDim.y + blockIdx.y;
    const long long query_head = kv_head * blockDim.y + threadIdx.y;
    const long long row = kv_head * max_tokens;

    extern __shared__ float shared[];
    float* tile = shared;
    float* query = tile + TILE * (width + 1) + threadIdx.y * width;
    float* weights = tile + TILE * (width + 1) + blockDim.y * width + threadIdx.y * TILE;
    for (int d = lane; d < width; d += 32) query[d] = q[query_head * width + d] / sqrtf((float)width);

    float running_max = -POSITIVE_INFINITY, running_sum = 0.0f;
    float output[MAX_WIDTH / 32] = {};

    for (int first = begin; first < end; first += TILE) {
        const int n_tokens = min(TILE, end - first);
        load_tile(tile, k_packed, k_scales, row + first, n_tokens, width);
        __syncthreads();
        float logit = -POSITIVE_INFINITY;
        if (lane < n_tokens) {
            logit = 0.0f;
            for (int d = 0; d < width; ++d) logit = fmaf(query[d], tile[lane * (width + 1) + d], logit);
        }
        float tile_max = logit;
        for (int distance = 1; distance < 32; distance *= 2)
            tile_max = fmaxf(tile_max, __shfl_xor_sync(FULL_WARP, tile_max, distance));
        if (tile_max > running_max) {
            const float shrink = expf(running_max - tile_max);
            running_sum *= shrink;
            for (int c = 0; c < MAX_WIDTH / 32; ++c) output[c] *= shrink;
            running_max = tile_max;
        }
        float weight = expf(logit - running_max);
        weights[lane] = weight;
        for (int distance = 1; distance < 32; distance *= 2) weight += __shfl_xor_sync(FULL_WARP, weight, distance);
        running_sum += weight;
        __syncthreads();
        load_tile(tile, v_packed, v_scales, row + first, n_tokens, width);
        __syncthreads();
        for (int t = 0; t < n_tokens; ++t)
            for (int d = lane; d < width; d += 32) output[d / 32] += weights[t] * tile[t * (width + 1) + d];
        __syncthreads();
    }

    const long long part = query_head * gridDim.x + blockIdx.x;
    for (int c = 0; c < MAX_WIDTH / 32; ++c) {
        const int d = lane + 32 * c;
        if (d < width) part_output[part * width + d] = output[c];
    }
    if (lane == 0) {
        part_max[part] = running_max;
        part_sum[part] = running_sum;
    }
}

extern "C" __global__ void combine_parts(
    const float* part_output, const float* part_max, const float* part_sum, const int* lengths,
    float* output, int n_parts, int part_tokens, int width)
{
    const int length = lengths[blockIdx.y];
    const int n_used = (length + part_tokens - 1) / part_tokens;
    const long long query_head = (long long)blockIdx.y * gridDim.x + blockIdx.x;
    part_output += query_head * n_parts * width;
    part_max += query_head * n_parts;
    part_sum += query_head * n_parts;

    float largest = -POSITIVE_INFINITY;
    for (int part = 0; part < n_used; ++part) largest = fmaxf(largest, part_max[part]);

    for (int d = threadIdx.x; d < width; d += blockDim.x) {
        float total = 0.0f, sum = 0.0f;
        for (int part = 0; part < n_used; ++part) {
            const float share = expf(part_max[part] - largest);
            total += share * part_sum[part];
            sum += share * part_output[part * width + d];
        }
        output[query_head * width + d] = length > 0 ? sum / total : 0.0f;
    }
}
"""
    + DEVICE_CODE
)

# %% right="decode_attention" name="own_loader"
# Loads tiles by whole groups instead of by words, each thread one after the other.
DECODE_ATTENTION = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

#define FULL_WARP 0xffffffffu
#define TILE 32
#define MAX_WIDTH 256
#define POSITIVE_INFINITY __int_as_float(0x7f800000)

__device__ void load_tile(
    float* tile, const unsigned char* packed, const unsigned char* scales, long long row, int n_tokens, int width)
{
    const unsigned int* words = reinterpret_cast<const unsigned int*>(packed + row * (width / 2));
    scales += row * (width / 16);
    for (int w = threadIdx.y * 32 + threadIdx.x; w < n_tokens * width / 8; w += blockDim.y * 32) {
        const unsigned int word = words[w];
        const float scale = decode_e4m3(scales[w / 2]);
        const int t = 8 * w / width, d = 8 * w % width;
        for (int i = 0; i < 8; ++i) {
            const int j = (i + threadIdx.x / 4) % 8;
            tile[t * (width + 1) + d + j] = scale * decode_e2m1(word >> 4 * j & 15u);
        }
    }
}

extern "C" __global__ void decode_attention(
    const float* q,
    const unsigned char* k_packed, const unsigned char* k_scales,
    const unsigned char* v_packed, const unsigned char* v_scales,
    const int* lengths,
    float* part_output, float* part_max, float* part_sum,
    int max_tokens, int part_tokens, int width)
{
    const int lane = threadIdx.x;
    const int begin = blockIdx.x * part_tokens;
    const int end = min(begin + part_tokens, lengths[blockIdx.z]);
    if (begin >= end) return;

    const long long kv_head = (long long)blockIdx.z * gridDim.y + blockIdx.y;
    const long long query_head = kv_head * blockDim.y + threadIdx.y;
    const long long row = kv_head * max_tokens;

    extern __shared__ float shared[];
    float* tile = shared;
    float* query = tile + TILE * (width + 1) + threadIdx.y * width;
    float* weights = tile + TILE * (width + 1) + blockDim.y * width + threadIdx.y * TILE;
    for (int d = lane; d < width; d += 32) query[d] = q[query_head * width + d] / sqrtf((float)width);

    float running_max = -POSITIVE_INFINITY, running_sum = 0.0f;
    float output[MAX_WIDTH / 32] = {};

    for (int first = begin; first < end; first += TILE) {
        const int n_tokens = min(TILE, end - first);
        
        for (int g = threadIdx.y * 32 + lane; g < n_tokens * width / 16; g += blockDim.y * 32) {
            const int t = 16 * g / width, d = 16 * g % width;
            const float s = decode_e4m3(k_scales[(row + first) * (width / 16) + g]);
            const uint2 two = reinterpret_cast<const uint2*>(k_packed + (row + first) * (width / 2))[g];
            for (int i = 0; i < 8; ++i) {
                tile[t * (width + 1) + d + i] = s * decode_e2m1(two.x >> 4 * i & 15u);
                tile[t * (width + 1) + d + 8 + i] = s * decode_e2m1(two.y >> 4 * i & 15u);
            }
        }
        __syncthreads();
        float logit = -POSITIVE_INFINITY;
        if (lane < n_tokens) {
            logit = 0.0f;
            for (int d = 0; d < width; ++d) logit += query[d] * tile[lane * (width + 1) + d];
        }
        float new_max = fmaxf(running_max, logit);
        for (int distance = 16; distance > 0; distance /= 2)
            new_max = fmaxf(new_max, __shfl_xor_sync(FULL_WARP, new_max, distance));
        const float correction = expf(running_max - new_max);
        weights[lane] = expf(logit - new_max);
        float tile_sum = weights[lane];
        for (int distance = 16; distance > 0; distance /= 2)
            tile_sum += __shfl_xor_sync(FULL_WARP, tile_sum, distance);
        running_sum = running_sum * correction + tile_sum;
        running_max = new_max;
        __syncthreads();
        
        for (int g = threadIdx.y * 32 + lane; g < n_tokens * width / 16; g += blockDim.y * 32) {
            const int t = 16 * g / width, d = 16 * g % width;
            const float s = decode_e4m3(v_scales[(row + first) * (width / 16) + g]);
            const uint2 two = reinterpret_cast<const uint2*>(v_packed + (row + first) * (width / 2))[g];
            for (int i = 0; i < 8; ++i) {
                tile[t * (width + 1) + d + i] = s * decode_e2m1(two.x >> 4 * i & 15u);
                tile[t * (width + 1) + d + 8 + i] = s * decode_e2m1(two.y >> 4 * i & 15u);
            }
        }
        __syncthreads();
        for (int c = 0; c < MAX_WIDTH / 32; ++c) {
            const int d = lane + 32 * c;
            float sum = output[c] * correction;
            for (int t = 0; t < n_tokens && d < width; ++t) sum += weights[t] * tile[t * (width + 1) + d];
            output[c] = sum;
        }
        __syncthreads();
    }

    const long long part = query_head * gridDim.x + blockIdx.x;
    for (int c = 0; c < MAX_WIDTH / 32; ++c) {
        const int d = lane + 32 * c;
        if (d < width) part_output[part * width + d] = output[c];
    }
    if (lane == 0) {
        part_max[part] = running_max;
        part_sum[part] = running_sum;
    }
}

extern "C" __global__ void combine_parts(
    const float* part_output, const float* part_max, const float* part_sum, const int* lengths,
    float* output, int n_parts, int part_tokens, int width)
{
    const int length = lengths[blockIdx.y];
    const int n_used = (length + part_tokens - 1) / part_tokens;
    const long long query_head = (long long)blockIdx.y * gridDim.x + blockIdx.x;
    part_output += query_head * n_parts * width;
    part_max += query_head * n_parts;
    part_sum += query_head * n_parts;

    float largest = -POSITIVE_INFINITY;
    for (int part = 0; part < n_used; ++part) largest = fmaxf(largest, part_max[part]);

    for (int d = threadIdx.x; d < width; d += blockDim.x) {
        float total = 0.0f, sum = 0.0f;
        for (int part = 0; part < n_used; ++part) {
            const float share = expf(part_max[part] - largest);
            total += share * part_sum[part];
            sum += share * part_output[part * width + d];
        }
        output[query_head * width + d] = length > 0 ? sum / total : 0.0f;
    }
}
"""
    + DEVICE_CODE
)

# %% right="decode_attention" name="two_lanes_for_a_token"
# Takes 16 tokens at a time, two lanes for the logit of each.
DECODE_ATTENTION = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

#define FULL_WARP 0xffffffffu
#define TILE 32
#define MAX_WIDTH 256
#define POSITIVE_INFINITY __int_as_float(0x7f800000)

__device__ void load_tile(
    float* tile, const unsigned char* packed, const unsigned char* scales, long long row, int n_tokens, int width)
{
    const unsigned int* words = reinterpret_cast<const unsigned int*>(packed + row * (width / 2));
    scales += row * (width / 16);
    for (int w = threadIdx.y * 32 + threadIdx.x; w < n_tokens * width / 8; w += blockDim.y * 32) {
        const unsigned int word = words[w];
        const float scale = decode_e4m3(scales[w / 2]);
        const int t = 8 * w / width, d = 8 * w % width;
        for (int i = 0; i < 8; ++i) {
            const int j = (i + threadIdx.x / 4) % 8;
            tile[t * (width + 1) + d + j] = scale * decode_e2m1(word >> 4 * j & 15u);
        }
    }
}

extern "C" __global__ void decode_attention(
    const float* q,
    const unsigned char* k_packed, const unsigned char* k_scales,
    const unsigned char* v_packed, const unsigned char* v_scales,
    const int* lengths,
    float* part_output, float* part_max, float* part_sum,
    int max_tokens, int part_tokens, int width)
{
    const int lane = threadIdx.x;
    const int begin = blockIdx.x * part_tokens;
    const int end = min(begin + part_tokens, lengths[blockIdx.z]);
    if (begin >= end) return;

    const long long kv_head = (long long)blockIdx.z * gridDim.y + blockIdx.y;
    const long long query_head = kv_head * blockDim.y + threadIdx.y;
    const long long row = kv_head * max_tokens;

    extern __shared__ float shared[];
    float* tile = shared;
    float* query = tile + TILE * (width + 1) + threadIdx.y * width;
    float* weights = tile + TILE * (width + 1) + blockDim.y * width + threadIdx.y * TILE;
    for (int d = lane; d < width; d += 32) query[d] = q[query_head * width + d] / sqrtf((float)width);

    float running_max = -POSITIVE_INFINITY, running_sum = 0.0f;
    float output[MAX_WIDTH / 32] = {};

    for (int first = begin; first < end; first += 16) {
        const int n_tokens = min(16, end - first);
        load_tile(tile, k_packed, k_scales, row + first, n_tokens, width);
        __syncthreads();
        const int t = lane / 2, half = lane % 2;
        float logit = 0.0f;
        for (int d = half * (width / 2); t < n_tokens && d < (half + 1) * (width / 2); ++d)
            logit += query[d] * tile[t * (width + 1) + d];
        logit += __shfl_xor_sync(FULL_WARP, logit, 1);
        if (t >= n_tokens) logit = -POSITIVE_INFINITY;
        float new_max = fmaxf(running_max, logit);
        for (int distance = 16; distance > 1; distance /= 2)
            new_max = fmaxf(new_max, __shfl_xor_sync(FULL_WARP, new_max, distance));
        const float correction = expf(running_max - new_max);
        float weight = expf(logit - new_max), tile_sum = weight;
        if (half == 0) weights[t] = weight;
        for (int distance = 16; distance > 1; distance /= 2) tile_sum += __shfl_xor_sync(FULL_WARP, tile_sum, distance);
        running_sum = running_sum * correction + tile_sum;
        running_max = new_max;
        __syncthreads();
        load_tile(tile, v_packed, v_scales, row + first, n_tokens, width);
        __syncthreads();
        for (int c = 0; lane + 32 * c < width; ++c) {
            float sum = 0.0f;
            for (int u = 0; u < n_tokens; ++u) sum += weights[u] * tile[u * (width + 1) + lane + 32 * c];
            output[c] = output[c] * correction + sum;
        }
        __syncthreads();
    }

    const long long part = query_head * gridDim.x + blockIdx.x;
    for (int c = 0; c < MAX_WIDTH / 32; ++c) {
        const int d = lane + 32 * c;
        if (d < width) part_output[part * width + d] = output[c];
    }
    if (lane == 0) {
        part_max[part] = running_max;
        part_sum[part] = running_sum;
    }
}

extern "C" __global__ void combine_parts(
    const float* part_output, const float* part_max, const float* part_sum, const int* lengths,
    float* output, int n_parts, int part_tokens, int width)
{
    const int length = lengths[blockIdx.y];
    const int n_used = (length + part_tokens - 1) / part_tokens;
    const long long query_head = (long long)blockIdx.y * gridDim.x + blockIdx.x;
    part_output += query_head * n_parts * width;
    part_max += query_head * n_parts;
    part_sum += query_head * n_parts;

    float largest = -POSITIVE_INFINITY;
    for (int part = 0; part < n_used; ++part) largest = fmaxf(largest, part_max[part]);

    for (int d = threadIdx.x; d < width; d += blockDim.x) {
        float total = 0.0f, sum = 0.0f;
        for (int part = 0; part < n_used; ++part) {
            const float share = expf(part_max[part] - largest);
            total += share * part_sum[part];
            sum += share * part_output[part * width + d];
        }
        output[query_head * width + d] = length > 0 ? sum / total : 0.0f;
    }
}
"""
    + DEVICE_CODE
)

# %% right="decode_attention" name="logits_in_shared_memory"
# Puts the logits into shared memory, where every lane looks for the maximum and adds the weights.
DECODE_ATTENTION = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

#define FULL_WARP 0xffffffffu
#define TILE 32
#define MAX_WIDTH 256
#define POSITIVE_INFINITY __int_as_float(0x7f800000)

__device__ void load_tile(
    float* tile, const unsigned char* packed, const unsigned char* scales, long long row, int n_tokens, int width)
{
    const unsigned int* words = reinterpret_cast<const unsigned int*>(packed + row * (width / 2));
    scales += row * (width / 16);
    for (int w = threadIdx.y * 32 + threadIdx.x; w < n_tokens * width / 8; w += blockDim.y * 32) {
        const unsigned int word = words[w];
        const float scale = decode_e4m3(scales[w / 2]);
        const int t = 8 * w / width, d = 8 * w % width;
        for (int i = 0; i < 8; ++i) {
            const int j = (i + threadIdx.x / 4) % 8;
            tile[t * (width + 1) + d + j] = scale * decode_e2m1(word >> 4 * j & 15u);
        }
    }
}

extern "C" __global__ void decode_attention(
    const float* q,
    const unsigned char* k_packed, const unsigned char* k_scales,
    const unsigned char* v_packed, const unsigned char* v_scales,
    const int* lengths,
    float* part_output, float* part_max, float* part_sum,
    int max_tokens, int part_tokens, int width)
{
    const int lane = threadIdx.x;
    const int begin = blockIdx.x * part_tokens;
    const int end = min(begin + part_tokens, lengths[blockIdx.z]);
    if (begin >= end) return;

    const long long kv_head = (long long)blockIdx.z * gridDim.y + blockIdx.y;
    const long long query_head = kv_head * blockDim.y + threadIdx.y;
    const long long row = kv_head * max_tokens;

    extern __shared__ float shared[];
    float* tile = shared;
    float* query = tile + TILE * (width + 1) + threadIdx.y * width;
    float* weights = tile + TILE * (width + 1) + blockDim.y * width + threadIdx.y * TILE;
    for (int d = lane; d < width; d += 32) query[d] = q[query_head * width + d] / sqrtf((float)width);

    float running_max = -POSITIVE_INFINITY, running_sum = 0.0f;
    float output[MAX_WIDTH / 32] = {};

    for (int first = begin; first < end; first += TILE) {
        const int n_tokens = min(TILE, end - first);
        load_tile(tile, k_packed, k_scales, row + first, n_tokens, width);
        __syncthreads();
        if (lane < n_tokens) {
            float dot = 0.0f;
            for (int d = 0; d < width; ++d) dot += query[d] * tile[lane * (width + 1) + d];
            weights[lane] = dot;
        }
        __syncwarp();
        float new_max = running_max;
        for (int t = 0; t < n_tokens; ++t) new_max = fmaxf(new_max, weights[t]);
        __syncwarp();
        if (lane < n_tokens) weights[lane] = expf(weights[lane] - new_max);
        __syncwarp();
        const float correction = running_max == -POSITIVE_INFINITY ? 0.0f : expf(running_max - new_max);
        running_sum *= correction;
        for (int t = 0; t < n_tokens; ++t) running_sum += weights[t];
        running_max = new_max;
        __syncthreads();
        load_tile(tile, v_packed, v_scales, row + first, n_tokens, width);
        __syncthreads();
        for (int c = 0; lane + 32 * c < width; ++c) {
            output[c] *= correction;
            for (int t = 0; t < n_tokens; ++t) output[c] += weights[t] * tile[t * (width + 1) + lane + 32 * c];
        }
        __syncthreads();
    }

    const long long part = query_head * gridDim.x + blockIdx.x;
    for (int c = 0; c < MAX_WIDTH / 32; ++c) {
        const int d = lane + 32 * c;
        if (d < width) part_output[part * width + d] = output[c];
    }
    if (lane == 0) {
        part_max[part] = running_max;
        part_sum[part] = running_sum;
    }
}

extern "C" __global__ void combine_parts(
    const float* part_output, const float* part_max, const float* part_sum, const int* lengths,
    float* output, int n_parts, int part_tokens, int width)
{
    const int length = lengths[blockIdx.y];
    const int n_used = (length + part_tokens - 1) / part_tokens;
    const long long query_head = (long long)blockIdx.y * gridDim.x + blockIdx.x;
    part_output += query_head * n_parts * width;
    part_max += query_head * n_parts;
    part_sum += query_head * n_parts;

    float largest = -POSITIVE_INFINITY;
    for (int part = 0; part < n_used; ++part) largest = fmaxf(largest, part_max[part]);

    for (int d = threadIdx.x; d < width; d += blockDim.x) {
        float total = 0.0f, sum = 0.0f;
        for (int part = 0; part < n_used; ++part) {
            const float share = expf(part_max[part] - largest);
            total += share * part_sum[part];
            sum += share * part_output[part * width + d];
        }
        output[query_head * width + d] = length > 0 ? sum / total : 0.0f;
    }
}
"""
    + DEVICE_CODE
)


# %% wrong="quantise_bytes" name="read_only" loses="quantise_bytes-both_ways"
# Counts what is read and forgets what is written.
def quantise_bytes(n_elements):
    return 4 * n_elements


# %% wrong="quantise_bytes" name="byte_for_a_code" loses="quantise_bytes-both_ways"
# Stores each code in a byte of its own.
def quantise_bytes(n_elements):
    return 4 * n_elements + n_elements + n_elements // 16


# %% wrong="quantise_bytes" name="no_scales" loses="quantise_bytes-both_ways"
# Forgets the scales.
def quantise_bytes(n_elements):
    return 4 * n_elements + n_elements // 2


# %% wrong="quantise_bytes" name="float_scales" loses="quantise_bytes-both_ways"
# Stores scales in float32.
def quantise_bytes(n_elements):
    return 4 * n_elements + n_elements // 2 + 4 * n_elements // 16


# %% wrong="quantise_bytes" name="bits" loses="quantise_bytes-both_ways"
# Counts bits.
def quantise_bytes(n_elements):
    return 32 * n_elements + 4 * n_elements + 8 * n_elements // 16


# %% right="quantise_bytes" name="bits_per_element"
# Adds up bits per element, as a float.
def quantise_bytes(n_elements):
    return n_elements * (32 + 4.5) / 8


# %% right="quantise_bytes" name="groups"
# Counts groups of 16.
def quantise_bytes(n_elements):
    return n_elements // 16 * (64 + 8 + 1)


# %% wrong="fused_bytes" name="keys_alone" loses="fused_bytes-cache"
# Reads keys and forgets the values.
def fused_bytes(n_tokens, heads, kv_heads, width):
    elements = n_tokens * kv_heads * width
    return elements // 2 + elements // 16 + 8 * heads * width


# %% wrong="fused_bytes" name="no_scales" loses="fused_bytes-cache"
# Forgets the scales.
def fused_bytes(n_tokens, heads, kv_heads, width):
    return n_tokens * kv_heads * width + 8 * heads * width


# %% wrong="fused_bytes" name="once_for_each_query_head" loses="fused_bytes-group"
# Reads the cache once for each query head.
def fused_bytes(n_tokens, heads, kv_heads, width):
    elements = 2 * n_tokens * heads * width
    return elements // 2 + elements // 16 + 8 * heads * width


# %% wrong="fused_bytes" name="no_output" loses="fused_bytes-queries"
# Forgets that the output is written.
def fused_bytes(n_tokens, heads, kv_heads, width):
    elements = 2 * n_tokens * kv_heads * width
    return elements // 2 + elements // 16 + 4 * heads * width


# %% wrong="fused_bytes" name="queries_of_kv_heads" loses="fused_bytes-queries"
# Counts as many queries as there are KV heads.
def fused_bytes(n_tokens, heads, kv_heads, width):
    elements = 2 * n_tokens * kv_heads * width
    return elements // 2 + elements // 16 + 8 * kv_heads * width


# %% wrong="fused_bytes" name="cache_alone" loses="fused_bytes-queries"
# Counts the cache and nothing else.
def fused_bytes(n_tokens, heads, kv_heads, width):
    elements = 2 * n_tokens * kv_heads * width
    return elements // 2 + elements // 16


# %% right="fused_bytes" name="per_token"
# Counts the bytes of a token first.
def fused_bytes(n_tokens, heads, kv_heads, width):
    token = kv_heads * (width + width // 8)
    return n_tokens * token + heads * width * (4 + 4)


# %% right="fused_bytes" name="floats"
# Adds up bits per element, as floats.
def fused_bytes(n_tokens, heads, kv_heads, width):
    return 2 * n_tokens * kv_heads * width * 4.5 / 8 + 2.0 * heads * width * 4


# %% wrong="unfused_bytes" name="written_once" loses="unfused_bytes-three_times unfused_bytes-size"
# Forgets that what was written is read again.
def unfused_bytes(n_tokens, heads, kv_heads, width, float_bytes):
    elements = 2 * n_tokens * kv_heads * width
    return elements * 9 // 16 + float_bytes * elements + 8 * heads * width


# %% wrong="unfused_bytes" name="packed_cache_forgotten" loses="unfused_bytes-three_times"
# Forgets that the packed cache is read first.
def unfused_bytes(n_tokens, heads, kv_heads, width, float_bytes):
    return 2 * float_bytes * 2 * n_tokens * kv_heads * width + 8 * heads * width


# %% wrong="unfused_bytes" name="always_float32" loses="unfused_bytes-size"
# Takes 4 bytes for each decoded number, whatever the size.
def unfused_bytes(n_tokens, heads, kv_heads, width, float_bytes):
    elements = 2 * n_tokens * kv_heads * width
    return elements * 9 // 16 + 8 * elements + 8 * heads * width


# %% wrong="unfused_bytes" name="keys_alone" loses="unfused_bytes-three_times unfused_bytes-size"
# Decodes keys and forgets the values.
def unfused_bytes(n_tokens, heads, kv_heads, width, float_bytes):
    elements = n_tokens * kv_heads * width
    return elements * 9 // 16 + 2 * float_bytes * elements + 8 * heads * width


# %% wrong="unfused_bytes" name="bits_for_bytes" loses="unfused_bytes-three_times unfused_bytes-size"
# Takes the size of a number for bits.
def unfused_bytes(n_tokens, heads, kv_heads, width, float_bytes):
    elements = 2 * n_tokens * kv_heads * width
    return elements * 9 // 16 + 2 * float_bytes * elements // 8 + 8 * heads * width


# %% right="unfused_bytes" name="on_top_of_fused"
# Adds to the fused bytes what goes out and comes in again.
def unfused_bytes(n_tokens, heads, kv_heads, width, float_bytes):
    return fused_bytes(n_tokens, heads, kv_heads, width) + 4 * float_bytes * n_tokens * kv_heads * width


# %% right="unfused_bytes" name="per_element"
# Adds up bytes per element, as floats.
def unfused_bytes(n_tokens, heads, kv_heads, width, float_bytes):
    return 2 * n_tokens * kv_heads * width * (9 / 16 + 2 * float_bytes) + 8 * heads * width


# %% wrong="roofline_seconds" name="sum" loses="roofline_seconds-memory roofline_seconds-arithmetic"
# Adds the two times, as if nothing overlapped.
def roofline_seconds(n_bytes, n_operations, bandwidth, peak):
    return n_bytes / bandwidth + n_operations / peak


# %% wrong="roofline_seconds" name="shorter" loses="roofline_seconds-memory roofline_seconds-arithmetic"
# Takes the shorter of the two.
def roofline_seconds(n_bytes, n_operations, bandwidth, peak):
    return min(n_bytes / bandwidth, n_operations / peak)


# %% wrong="roofline_seconds" name="bytes_alone" loses="roofline_seconds-arithmetic"
# Forgets that arithmetic takes time too.
def roofline_seconds(n_bytes, n_operations, bandwidth, peak):
    return n_bytes / bandwidth


# %% wrong="roofline_seconds" name="operations_alone" loses="roofline_seconds-memory"
# Forgets that memory takes time, and most of it.
def roofline_seconds(n_bytes, n_operations, bandwidth, peak):
    return n_operations / peak


# %% wrong="roofline_seconds" name="rate" loses="roofline_seconds-memory roofline_seconds-arithmetic"
# Returns operations per second, the height of the roof, and not the time.
def roofline_seconds(n_bytes, n_operations, bandwidth, peak):
    return min(peak, bandwidth * n_operations / n_bytes)


# %% right="roofline_seconds" name="intensity"
# Compares operations per byte with the ridge of the roof.
def roofline_seconds(n_bytes, n_operations, bandwidth, peak):
    if n_operations / n_bytes < peak / bandwidth:
        return n_bytes / bandwidth
    return n_operations / peak


# %% right="roofline_seconds" name="rate_of_the_roof"
# Finds the height of the roof first.
def roofline_seconds(n_bytes, n_operations, bandwidth, peak):
    return n_operations / min(peak, bandwidth * n_operations / n_bytes)


# %% wrong="merge_parts" name="sums_added" loses="merge_parts-maxima merge_parts-large"
# Adds sums that belong to different maxima.
def merge_parts(first, second):
    largest = max(first.largest, second.largest)
    return Part(largest, first.total + second.total, first.output + second.output)


# %% wrong="merge_parts" name="total_not_rescaled" loses="merge_parts-maxima merge_parts-large"
# Brings the outputs to one maximum, and forgets the totals.
def merge_parts(first, second):
    largest = max(first.largest, second.largest)
    a, b = np.exp(first.largest - largest), np.exp(second.largest - largest)
    return Part(largest, first.total + second.total, a * first.output + b * second.output)


# %% wrong="merge_parts" name="overflow" loses="merge_parts-large"
# Takes the exponential of each maximum itself.
def merge_parts(first, second):
    largest = max(first.largest, second.largest)
    a, b = (np.exp(np.float64(part.largest)) / np.exp(np.float64(largest)) for part in (first, second))
    return Part(largest, a * first.total + b * second.total, a * first.output + b * second.output)


# %% wrong="merge_parts" name="first_stays" loses="merge_parts-maxima merge_parts-large"
# Keeps the first maximum, also where the second is larger.
def merge_parts(first, second):
    b = np.exp(second.largest - first.largest)
    return Part(first.largest, first.total + b * second.total, first.output + b * second.output)


# %% wrong="merge_parts" name="divided" loses="merge_parts-maxima merge_parts-large"
# Divides the output, which a third part could then not be merged with.
def merge_parts(first, second):
    largest = max(first.largest, second.largest)
    a, b = np.exp(first.largest - largest), np.exp(second.largest - largest)
    total = a * first.total + b * second.total
    return Part(largest, total, (a * first.output + b * second.output) / total)


# %% right="merge_parts" name="one_branch"
# Puts the larger first, so that only the smaller shrinks.
def merge_parts(first, second):
    if first[0] < second[0]:
        return merge_parts(second, first)
    shrink = math.exp(second[0] - first[0])
    return first[0], first[1] + shrink * second[1], first[2] + shrink * second[2]


# %% right="merge_parts" name="logarithms"
# Adds the totals as logarithms.
def merge_parts(first, second):
    largest = np.maximum(first.largest, second.largest)
    logs = [part.largest + np.log(part.total) for part in (first, second)]
    total = np.exp(np.logaddexp(*logs) - largest)
    output = sum(np.exp(part.largest - largest) * part.output for part in (first, second))
    return [largest, total, output]


# %% wrong="decode_speedup" name="no_scales" loses="decode_speedup-long decode_speedup-between"
# Counts 4 bits and forgets the scales.
def decode_speedup(n_tokens, kv_heads, width, bandwidth, fixed):
    elements = 2 * n_tokens * kv_heads * width
    return (fixed + 2 * elements / bandwidth) / (fixed + elements / 2 / bandwidth)


# %% wrong="decode_speedup" name="no_fixed_time" loses="decode_speedup-none decode_speedup-between"
# Compares the bytes alone.
def decode_speedup(n_tokens, kv_heads, width, bandwidth, fixed):
    return 16 / 4.5


# %% wrong="decode_speedup" name="keys_alone" loses="decode_speedup-between"
# Reads keys and forgets the values.
def decode_speedup(n_tokens, kv_heads, width, bandwidth, fixed):
    elements = n_tokens * kv_heads * width
    return (fixed + 2 * elements / bandwidth) / (fixed + elements * 9 / 16 / bandwidth)


# %% wrong="decode_speedup" name="against_float32" loses="decode_speedup-long decode_speedup-between"
# Compares with a cache of float32.
def decode_speedup(n_tokens, kv_heads, width, bandwidth, fixed):
    elements = 2 * n_tokens * kv_heads * width
    return (fixed + 4 * elements / bandwidth) / (fixed + elements * 9 / 16 / bandwidth)


# %% wrong="decode_speedup" name="turned_round" loses="decode_speedup-long decode_speedup-between"
# Returns the packed time over that of FP16.
def decode_speedup(n_tokens, kv_heads, width, bandwidth, fixed):
    elements = 2 * n_tokens * kv_heads * width
    return (fixed + elements * 9 / 16 / bandwidth) / (fixed + 2 * elements / bandwidth)


# %% wrong="decode_speedup" name="fixed_for_one" loses="decode_speedup-none decode_speedup-between"
# Lets the packed decode alone pay the fixed time.
def decode_speedup(n_tokens, kv_heads, width, bandwidth, fixed):
    elements = 2 * n_tokens * kv_heads * width
    return 2 * elements / bandwidth / (fixed + elements * 9 / 16 / bandwidth)


# %% right="decode_speedup" name="in_bits"
# Measures everything in bits.
def decode_speedup(n_tokens, kv_heads, width, bandwidth, fixed):
    elements, waited = 2 * n_tokens * kv_heads * width, 8 * bandwidth * fixed
    return (waited + 16 * elements) / (waited + 4.5 * elements)


# %% right="decode_speedup" name="two_times"
# Finds the two times first, in float64 of NumPy.
def decode_speedup(n_tokens, kv_heads, width, bandwidth, fixed):
    bytes_per_token = np.array([2.0, 0.5625]) * 2 * kv_heads * width
    half, packed = fixed + n_tokens * bytes_per_token / bandwidth
    return half / packed


# %% wrong="repair" name="barrier_under_the_condition" loses="repair-missing_barrier"
# Puts the barrier where only some of the threads come by.
def repair(name):
    changes = {
        "missing_barrier": (
            "if (threadIdx.x < half) found[threadIdx.x] = fmaxf(found[threadIdx.x], found[threadIdx.x + half]);",
            "if (threadIdx.x < half) { found[threadIdx.x] = fmaxf(found[threadIdx.x], found[threadIdx.x + half]);"
            " __syncthreads(); }",
        ),
        "partial_block": ("threadIdx.x < 4)", "threadIdx.x < 4 && 4 * blockIdx.x + threadIdx.x < n / 16)"),
        "lane_mix_up": ("distance = 16", "distance = 8"),
        "swapped_nibbles": ("first << 4 | second", "second << 4 | first"),
    }
    return SUSPECTS[name].replace(*changes[name])


# %% wrong="repair" name="barrier_after_the_loop" loses="repair-missing_barrier"
# Waits once, after the loop, where the threads have long disagreed.
def repair(name):
    changes = {
        "missing_barrier": (
            "    if (threadIdx.x == 0) largest",
            "    __syncthreads();\n    if (threadIdx.x == 0) largest",
        ),
        "partial_block": ("threadIdx.x < 4)", "threadIdx.x < 4 && 4 * blockIdx.x + threadIdx.x < n / 16)"),
        "lane_mix_up": ("distance = 16", "distance = 8"),
        "swapped_nibbles": ("first << 4 | second", "second << 4 | first"),
    }
    return SUSPECTS[name].replace(*changes[name])


# %% wrong="repair" name="thread_for_a_group" loses="repair-partial_block"
# Asks whether the thread has a number, not whether there is a group: three threads of the last block still read beyond.
def repair(name):
    changes = {
        "missing_barrier": ("+ half]);\n", "+ half]);\n        __syncthreads();\n"),
        "partial_block": ("if (threadIdx.x < 4)", "if (threadIdx.x < 4 && i < n)"),
        "lane_mix_up": ("distance = 16", "distance = 8"),
        "swapped_nibbles": ("first << 4 | second", "second << 4 | first"),
    }
    return SUSPECTS[name].replace(*changes[name])


# %% wrong="repair" name="whole_warp" loses="repair-lane_mix_up"
# Lets all lanes take part, so that nothing is complained of, and two groups share a maximum.
def repair(name):
    changes = {
        "missing_barrier": ("+ half]);\n", "+ half]);\n        __syncthreads();\n"),
        "partial_block": ("threadIdx.x < 4)", "threadIdx.x < 4 && 4 * blockIdx.x + threadIdx.x < n / 16)"),
        "lane_mix_up": ("lane < 16 ? 0x0000ffffu : 0xffff0000u", "0xffffffffu"),
        "swapped_nibbles": ("first << 4 | second", "second << 4 | first"),
    }
    return SUSPECTS[name].replace(*changes[name])


# %% wrong="repair" name="assertion_removed" loses="repair-swapped_nibbles"
# Takes the assertion away, and with it the message.
def repair(name):
    changes = {
        "missing_barrier": ("+ half]);\n", "+ half]);\n        __syncthreads();\n"),
        "partial_block": ("threadIdx.x < 4)", "threadIdx.x < 4 && 4 * blockIdx.x + threadIdx.x < n / 16)"),
        "lane_mix_up": ("distance = 16", "distance = 8"),
        "swapped_nibbles": ("    assert((packed[j] & 15u) == first);\n", ""),
    }
    return SUSPECTS[name].replace(*changes[name])


# %% wrong="repair" name="assertion_turned_round" loses="repair-swapped_nibbles"
# Makes the assertion say what the kernel does.
def repair(name):
    changes = {
        "missing_barrier": ("+ half]);\n", "+ half]);\n        __syncthreads();\n"),
        "partial_block": ("threadIdx.x < 4)", "threadIdx.x < 4 && 4 * blockIdx.x + threadIdx.x < n / 16)"),
        "lane_mix_up": ("distance = 16", "distance = 8"),
        "swapped_nibbles": ("(packed[j] & 15u) == first", "packed[j] >> 4 == first"),
    }
    return SUSPECTS[name].replace(*changes[name])


# %% right="repair" name="barrier_before"
# Waits before each step; clamps the group in place of a condition; names lanes by the width of the shuffle.
def repair(name):
    changes = {
        "missing_barrier": (
            "        if (threadIdx.x < half)",
            "        __syncthreads();\n        if (threadIdx.x < half)",
        ),
        "partial_block": (
            "scales[4 * blockIdx.x + threadIdx.x]",
            "scales[min(4 * blockIdx.x + threadIdx.x, n / 16 - 1)]",
        ),
        "lane_mix_up": ("int distance = 16", "int distance = 16 / 2"),
        "swapped_nibbles": ("first << 4 | second", "first + 16 * second"),
    }
    return SUSPECTS[name].replace(*changes[name])


# %% right="repair" name="line_by_line"
# Replaces whole lines, found by their beginning.
def repair(name):
    lines = SUSPECTS[name].splitlines()
    for number, line in enumerate(lines):
        if name == "missing_barrier" and line.strip().startswith("if (threadIdx.x < half)"):
            lines[number] = line + "\n        __syncthreads();"
        if name == "partial_block" and line.strip().startswith("if (threadIdx.x < 4)"):
            lines[number] = "    if (threadIdx.x % 16 == 0 && i < n) scale[threadIdx.x / 16] = scales[i / 16];"
        if name == "lane_mix_up" and "distance = 16" in line:
            lines[number] = line.replace("distance = 16", "distance = 8")
        if name == "swapped_nibbles" and "first << 4" in line:
            lines[number] = "    const unsigned int byte = second << 4 | first;"
    return "\n".join(lines)
