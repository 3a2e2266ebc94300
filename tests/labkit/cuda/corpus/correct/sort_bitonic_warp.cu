// about: Bitonic sort of 32 values in registers, by shuffles.
// kernel: sort
// grid: 3
// block: 32
// arg: int32[3,32] integers(41, -500, 500)
// equals: x = np.sort(x, axis=1)
extern "C" __global__ void sort(int* x)
{
    int lane = threadIdx.x, value = x[blockIdx.x * 32 + lane];
    for (int size = 2; size <= 32; size <<= 1) {
        for (int distance = size >> 1; distance > 0; distance >>= 1) {
            int other = __shfl_xor_sync(0xffffffffu, value, distance);
            bool wants_smaller = ((lane & size) == 0) == ((lane & distance) == 0);
            value = wants_smaller ? min(value, other) : max(value, other);
        }
    }
    x[blockIdx.x * 32 + lane] = value;
}
