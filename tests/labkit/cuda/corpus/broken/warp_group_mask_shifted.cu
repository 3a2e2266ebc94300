// about: Half-warp masks with the halves exchanged.
// kernel: halves
// grid: 1
// block: 32
// arg: float32[32] normal(33)
// expect: warp_call
extern "C" __global__ void halves(float* x)
{
    unsigned int mask = threadIdx.x < 16 ? 0xffff0000u : 0x0000ffffu;
    float amax = fabsf(x[threadIdx.x]);
    for (int d = 8; d > 0; d /= 2)
        amax = fmaxf(amax, __shfl_xor_sync(mask, amax, d));  // HERE
    x[threadIdx.x] = amax;
}
