// about: Counting and moving bits, shifts by 0 and by 31, bytes picked from two words.
// kernel: bits
// grid: 1
// block: 32
// arg: uint32[32] integers(63, 0, 4294967296)
// arg: uint32[32,6] zeros
// let: bit = (x[:, None] >> np.arange(32, dtype=np.uint32)) & np.uint32(1)
// let: weight = np.uint32(1) << np.arange(32, dtype=np.uint32)
// let: swapped = x.view(np.uint8).reshape(32, 4)[:, ::-1].copy().view(np.uint32)[:, 0]
// equals: y = np.stack([bit.sum(1), bit[:, ::-1].argmax(1), bit.argmax(1) + 1, (bit[:, ::-1] * weight).sum(1), swapped, x << np.arange(32, dtype=np.uint32)], axis=1)
extern "C" __global__ void bits(const unsigned int* x, unsigned int* y)
{
    unsigned int value = x[threadIdx.x], *row = y + 6 * threadIdx.x;
    row[0] = __popc(value);
    row[1] = __clz(value);
    row[2] = __ffs(value);
    row[3] = __brev(value);
    row[4] = __byte_perm(value, 0, 0x0123);
    row[5] = value << threadIdx.x;
}
