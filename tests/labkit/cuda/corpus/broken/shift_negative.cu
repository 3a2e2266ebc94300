// about: An exponent below zero as a distance of a shift.
// kernel: power
// grid: 1
// block: 8
// arg: int32[8] zeros
// expect: shift
extern "C" __global__ void power(int* y)
{
    int exponent = (int)threadIdx.x - 3;
    y[threadIdx.x] = 1 << exponent;  // HERE
}
