// about: A table in constant memory and a counter in device memory that the kernel sets back.
// kernel: lookup
// grid: 2
// block: 32
// arg: uint8[64] integers(51, 0, 8)
// arg: float32[64] zeros
// equals: y = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)[codes]
__constant__ float TABLE[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
__device__ int n_lookups = 0;

extern "C" __global__ void lookup(const unsigned char* __restrict__ codes, float* __restrict__ y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = TABLE[codes[i]];
    atomicAdd(&n_lookups, 1);
}
