// about: The largest magnitude is found by compare and store, of all threads at once.
// kernel: amax
// grid: 1
// block: 16
// arg: float32[16] normal(26)
// arg: float32[1] zeros
// expect: race
// says: largest
extern "C" __global__ void amax(const float* x, float* y)
{
    __shared__ float largest;
    if (threadIdx.x == 0) largest = 0.0f;
    __syncthreads();
    float value = fabsf(x[threadIdx.x]);
    if (value > largest)  // HERE
        largest = value;  // HERE
    __syncthreads();
    if (threadIdx.x == 0) *y = largest;
}
