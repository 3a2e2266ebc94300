// about: A pointer of another type.
// kernel: fill
// grid: 1
// block: 32
// arg: float32[32] zeros
// expect: compile
extern "C" __global__ void fill(float* y)
{
    int* numbers = y;  // HERE
    numbers[threadIdx.x] = 1;
}
