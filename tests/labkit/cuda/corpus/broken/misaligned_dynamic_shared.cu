// about: Doubles carved from dynamic shared memory behind an odd number of floats.
// kernel: carve
// grid: 1
// block: 8
// shared: 100
// arg: float64[8] normal(36)
// expect: misaligned
extern "C" __global__ void carve(double* x)
{
    extern __shared__ __align__(16) char raw[];
    double* values = (double*)(raw + 9 * sizeof(float));
    values[threadIdx.x] = x[threadIdx.x];  // HERE
    __syncthreads();
    x[threadIdx.x] = values[7 - threadIdx.x];
}
