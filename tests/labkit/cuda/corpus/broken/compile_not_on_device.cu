// about: A function without __device__ belongs to the host.
// kernel: fill
// grid: 1
// block: 32
// arg: int32[32] zeros
// expect: compile
// says: twice
int twice(int value) { return 2 * value; }  // HERE

extern "C" __global__ void fill(int* y)
{
    y[threadIdx.x] = twice(threadIdx.x);  // HERE
}
