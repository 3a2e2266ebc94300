// about: Online softmax whose running maximum has no first value.
// kernel: online
// grid: 1
// block: 32
// arg: float32[64] normal(32)
// arg: float32[1] zeros
// expect: uninitialised
// says: largest
extern "C" __global__ void online(const float* x, float* y)
{
    __shared__ float largest;
    for (int base = 0; base < 64; base += 32) {
        float most = x[base + threadIdx.x];
        for (int d = 16; d > 0; d /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, d));
        if (threadIdx.x == 0)
            largest = fmaxf(largest, most);  // HERE
        __syncthreads();
    }
    if (threadIdx.x == 0) *y = largest;
}
