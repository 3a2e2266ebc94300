// about: Bits change their type by memcpy and by a union; a local array is cleared by memset.
// kernel: bits
// grid: 1
// block: 32
// arg: float32[32] normal(74)
// arg: uint32[32,2] zeros
// equals: y = np.stack([x.view(np.uint32), x.view(np.uint32) & np.uint32(0x7fffffff)], axis=1)
union Bits { float real; unsigned int whole; };

extern "C" __global__ void bits(const float* x, unsigned int* y)
{
    unsigned int mine[2];
    memset(mine, 0, sizeof mine);
    memcpy(&mine[0], &x[threadIdx.x], 4);
    Bits bits;
    bits.real = fabsf(x[threadIdx.x]);
    mine[1] += bits.whole;
    memcpy(y + 2 * threadIdx.x, mine, sizeof mine);
}
