// about: The launch forgot `shared_mem` altogether.
// kernel: reverse
// grid: 1
// block: 32
// arg: float32[32] normal(10)
// expect: out_of_bounds
// says: shared
extern "C" __global__ void reverse(float* x)
{
    extern __shared__ float values[];
    values[threadIdx.x] = x[threadIdx.x];  // HERE
    __syncthreads();
    x[threadIdx.x] = values[31 - threadIdx.x];
}
