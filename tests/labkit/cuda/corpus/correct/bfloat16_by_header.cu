// about: bfloat16 by CUDA's own header; the array that holds it is one of 16-bit numbers.
// kernel: to_bfloat16
// grid: 1
// block: 32
// arg: float32[32] normal(66)
// arg: uint16[32] zeros
// arg: float32[32] zeros
// let: u = x.view(np.uint32)
// let: high = ((u + np.uint32(0x7fff) + ((u >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)
// equals: codes = high
// equals: back = (high.astype(np.uint32) << np.uint32(16)).view(np.float32)
#include <cuda_bf16.h>
extern "C" __global__ void to_bfloat16(const float* x, __nv_bfloat16* codes, float* back)
{
    int i = threadIdx.x;
    codes[i] = __float2bfloat16(x[i]);
    back[i] = __bfloat162float(codes[i]);
}
