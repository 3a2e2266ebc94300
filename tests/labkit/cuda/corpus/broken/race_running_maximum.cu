// about: Online softmax: thread 0 sets the new maximum while others still read the old one.
// kernel: online
// grid: 1
// block: 32
// arg: float32[4,32] normal(27)
// arg: float32[32] zeros
// expect: race
// says: largest
extern "C" __global__ void online(const float* logits, float* out)
{
    __shared__ float largest, tile[32];
    float sum = 0.0f;
    if (threadIdx.x == 0) largest = -1e30f;
    for (int step = 0; step < 4; ++step) {
        __syncthreads();
        tile[threadIdx.x] = logits[step * 32 + threadIdx.x];
        __syncthreads();
        float before = largest;  // HERE
        if (threadIdx.x == 0)
            for (int i = 0; i < 32; ++i) largest = fmaxf(largest, tile[i]);  // HERE
        __syncthreads();
        sum = sum * expf(before - largest) + expf(tile[threadIdx.x] - largest);
    }
    out[threadIdx.x] = sum;
}
