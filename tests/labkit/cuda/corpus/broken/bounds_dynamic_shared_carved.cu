// about: The second array carved from dynamic shared memory does not fit.
// kernel: carve
// grid: 1
// block: 32
// shared: 192
// arg: int32[32] arange
// expect: out_of_bounds
extern "C" __global__ void carve(int* x)
{
    extern __shared__ int first[];
    int* second = first + blockDim.x;
    first[threadIdx.x] = x[threadIdx.x];
    second[threadIdx.x] = 2 * x[threadIdx.x];  // HERE
    __syncthreads();
    x[threadIdx.x] = first[31 - threadIdx.x] + second[31 - threadIdx.x];
}
