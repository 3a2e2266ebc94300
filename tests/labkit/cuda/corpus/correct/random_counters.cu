// about: Counter-based random numbers: unsigned arithmetic that wraps, 64-bit products, and a state per thread.
// kernel: random_bits
// grid: 2
// block: 40
// arg: uint32[80] zeros
// arg: uint32 12345
// let: mix = lambda h: (h ^ (h >> np.uint32(16))) * np.uint32(0x7feb352d)
// let: index = np.arange(80, dtype=np.uint32) * np.uint32(2654435761) + seed
// equals: bits = (mix(index).astype(np.uint64) * np.uint64(0x9e3779b9) >> np.uint64(32)).astype(np.uint32)
extern "C" __global__ void random_bits(unsigned int* bits, unsigned int seed)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int h = i * 2654435761u + seed;
    h ^= h >> 16;
    h *= 0x7feb352du;
    bits[i] = __umulhi(h, 0x9e3779b9u);
}
