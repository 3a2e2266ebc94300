// about: Pairs of halves: read as half2, multiplied as such and as floats, written as half2.
// kernel: blend
// grid: 1
// block: 64
// arg: float16[128] normal(9)
// arg: float16[128] normal(10)
// arg: float16[128] zeros
// arg: float32[128] zeros
// equals: c = a * b
// equals: f = a.astype(np.float32) * b.astype(np.float32)
#include <cuda_fp16.h>

extern "C" __global__ void blend(const half* a, const half* b, half* c, float* f)
{
    const int i = threadIdx.x;
    const half2 x = reinterpret_cast<const half2*>(a)[i], y = reinterpret_cast<const half2*>(b)[i];
    reinterpret_cast<half2*>(c)[i] = __hmul2(x, y);
    const float2 u = __half22float2(x), v = __half22float2(y);
    reinterpret_cast<float2*>(f)[i] = make_float2(u.x * v.x, __low2float(__halves2half2(x.y, x.x)) * v.y);
}
