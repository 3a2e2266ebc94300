// about: A kernel that is declared before it is defined, in a block of extern "C", with parameters written in every way.
// kernel: odd
// grid: 1
// block: 16
// arg: float32[16] normal(72)
// arg: float32[16] zeros
// arg: uint8[16] integers(73, 0, 9)
// arg: int32 16
// equals: out = x + bytes
extern "C" {
__global__ void odd(const float* __restrict__ x, float out[], const unsigned char* bytes, const int n);

__global__ void
__launch_bounds__(64, 1)
odd(float const * __restrict__ const x,   // what is read (all of it)
    float out[],                          /* what is written, n values */
    unsigned char const *bytes, const int n)
{
    auto i = threadIdx.x;
    if (i < n)
        out[i] = x[i] + static_cast<float>(bytes[i]);
}
}
