// about: Each atomic once, all of them with results that no order can change.
// kernel: atomics
// grid: 2
// block: 32
// arg: int32[64] arange
// arg: int32[9] zeros
// arg: uint64[2] zeros
// arg: float32[1] zeros
// let: n = np.arange(64)
// equals: numbers = np.array([2016, -2016, 63, 0, 64, 0, 63, 0, 0])
// equals: wide = np.array([2016 << 32, 63], np.uint64)
// equals: real = np.array([1008], np.float32)
extern "C" __global__ void atomics(const int* x, int* numbers, unsigned long long* wide, float* real)
{
    int value = x[blockIdx.x * blockDim.x + threadIdx.x];
    atomicAdd(&numbers[0], value);
    atomicSub(&numbers[1], value);
    atomicMax(&numbers[2], value);
    atomicMin(&numbers[3], -value + 63);
    atomicInc((unsigned int*)&numbers[4], 1000u);
    atomicDec((unsigned int*)&numbers[5], 63u);
    atomicOr(&numbers[6], value);
    atomicAnd(&numbers[7], value);
    atomicXor(&numbers[8], value);
    atomicAdd(&wide[0], (unsigned long long)value << 32);
    atomicMax(&wide[1], (unsigned long long)value);
    atomicAdd(real, 0.5f * value);
}
