// about: A pointer into one shared array is used beyond its end, where the next shared array begins.
// kernel: shift
// grid: 1
// block: 64
// arg: float32[64] ones
// arg: float32[64] zeros
// expect: out_of_bounds
// says: beyond the array that its pointer points into
extern "C" __global__ void shift(const float* x, float* y)
{
    __shared__ float left[64];
    __shared__ float right[64];
    left[threadIdx.x] = x[threadIdx.x];
    right[threadIdx.x] = -x[threadIdx.x];
    __syncthreads();
    const float* low = left < right ? left : right;
    const float* from = left + (low == left ? 1 : -1);
    y[threadIdx.x] = from[threadIdx.x] + right[threadIdx.x];  // HERE
}
