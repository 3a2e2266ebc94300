// about: The size comes from an option that was not given.
// kernel: fill
// grid: 1
// block: 32
// arg: int32[32] zeros
// expect: compile
// says: WIDTH
extern "C" __global__ void fill(int* y)
{
    __shared__ int row[WIDTH];  // HERE
    row[threadIdx.x] = 1;
    y[threadIdx.x] = row[threadIdx.x];
}
