// about: The next element is fetched ahead, in the last turn too.
// kernel: sums
// grid: 1
// block: 16
// arg: float32[64] normal(7)
// arg: float32[16] zeros
// expect: out_of_bounds
extern "C" __global__ void sums(const float* x, float* y)
{
    float sum = 0.0f, next = x[threadIdx.x];
    for (int i = threadIdx.x; i < 64; i += 16) {
        sum += next;
        next = x[i + 16];  // HERE
    }
    y[threadIdx.x] = sum + 0.0f * next;
}
