// about: The last tile of tokens is loaded in full although the context ends inside it.
// kernel: logits
// grid: 3
// block: 16
// arg: float32[40,8] normal(3)
// arg: float32[40] zeros
// arg: int32 40
// expect: out_of_bounds
// says: keys[
extern "C" __global__ void logits(const float* keys, float* out, int T)
{
    __shared__ float tile[16 * 8];
    for (int i = threadIdx.x; i < 16 * 8; i += 16)
        tile[i] = keys[blockIdx.x * 16 * 8 + i];  // HERE
    __syncthreads();
    float sum = 0.0f;
    for (int d = 0; d < 8; ++d) sum += tile[threadIdx.x * 8 + d];
    if (blockIdx.x * 16 + threadIdx.x < T) out[blockIdx.x * 16 + threadIdx.x] = sum;
}
