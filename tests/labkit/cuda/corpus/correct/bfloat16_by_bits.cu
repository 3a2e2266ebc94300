// about: bfloat16 without a header: round to nearest even by integer arithmetic on the bits.
// kernel: to_bfloat16
// grid: 2
// block: 32
// arg: float32[60] normal(64)
// arg: uint16[60] zeros
// arg: float32[60] zeros
// arg: int32 60
// let: u = x.view(np.uint32)
// let: high = ((u + np.uint32(0x7fff) + ((u >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)
// equals: codes = high
// equals: back = (high.astype(np.uint32) << np.uint32(16)).view(np.float32)
extern "C" __global__ void to_bfloat16(const float* x, unsigned short* codes, float* back, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned int u = __float_as_uint(x[i]);
    u += 0x7fffu + ((u >> 16) & 1u);
    codes[i] = (unsigned short)(u >> 16);
    back[i] = __uint_as_float((unsigned int)codes[i] << 16);
}
