// about: Many threads write the same number to one place: whichever comes last, it is that number.
// kernel: any_negative
// grid: 2
// block: 32
// arg: int32[64] integers(59, -5, 5)
// arg: int32[1] zeros
// equals: found = np.array([1], np.int32)
extern "C" __global__ void any_negative(const int* x, int* found)
{
    if (x[blockIdx.x * 32 + threadIdx.x] < 0) *found = 1;
}
