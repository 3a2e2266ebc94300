// about: Value and index in one 64-bit number for atomicMax.
// kernel: argmax
// grid: 4
// block: 32
// arg: uint32[128] integers(39, 0, 1000)
// arg: uint64[1] zeros
// equals: best = ((x.astype(np.uint64) << np.uint64(32)) | np.arange(128, dtype=np.uint64)).max(keepdims=True)
extern "C" __global__ void argmax(const unsigned int* x, unsigned long long* best)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicMax(best, ((unsigned long long)x[i] << 32) | i);
}
