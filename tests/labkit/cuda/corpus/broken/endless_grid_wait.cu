// about: A barrier across the grid made of a counter: it would need all blocks to run at once, which nothing promises.
// kernel: meet
// grid: 4
// block: 1
// limit_s: 0.1
// orders: 0
// arg: int32[1] zeros
// arg: int32[4] zeros
// expect: time_limit
extern "C" __global__ void meet(int* arrived, int* y)
{
    atomicAdd(arrived, 1);
    while (atomicAdd(arrived, 0) < gridDim.x) { }  // HERE
    y[blockIdx.x] = 1;
}
