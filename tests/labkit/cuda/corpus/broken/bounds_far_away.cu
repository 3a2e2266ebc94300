// about: An index in bytes is used as one in elements: far outside, and the array is still named.
// kernel: fill
// grid: 4
// block: 32
// arg: float32[128] zeros
// expect: out_of_bounds
// says: y[
extern "C" __global__ void fill(float* y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i * 4096 * sizeof(float)] = 1.0f;  // HERE
}
