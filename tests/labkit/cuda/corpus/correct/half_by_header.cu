// about: Half precision by CUDA's own header, both ways.
// kernel: to_half
// grid: 1
// block: 32
// arg: float32[32] normal(65)
// arg: float16[32] zeros
// arg: float32[32] zeros
// equals: halves = x.astype(np.float16)
// equals: back = x.astype(np.float16).astype(np.float32)
#include <cuda_fp16.h>
extern "C" __global__ void to_half(const float* x, __half* halves, float* back)
{
    int i = threadIdx.x;
    halves[i] = __float2half_rn(x[i]);
    back[i] = __half2float(halves[i]);
}
