// about: __syncwarp where the values come from another warp.
// kernel: reverse
// grid: 1
// block: 64
// arg: int32[64] arange
// expect: race
// says: values
extern "C" __global__ void reverse(int* x)
{
    __shared__ int values[64];
    values[threadIdx.x] = x[threadIdx.x];  // HERE
    __syncwarp();
    x[threadIdx.x] = values[63 - threadIdx.x];  // HERE
}
