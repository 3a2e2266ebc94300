// about: Ten splits of 3 tokens over 25: the last begins at 27, and its first key is read before anyone asks.
// kernel: first_logit
// grid: 10
// block: 8
// arg: float32[25,8] normal(11)
// arg: float32[10] zeros
// arg: int32 25
// expect: out_of_bounds
// says: keys[
extern "C" __global__ void first_logit(const float* keys, float* largest, int T)
{
    int length = 3, t = blockIdx.x * length;
    float most = keys[t * 8 + threadIdx.x];  // HERE
    for (; t < min(T, (int)(blockIdx.x + 1) * length); ++t) most = fmaxf(most, keys[t * 8 + threadIdx.x]);
    if (threadIdx.x == 0) largest[blockIdx.x] = most;
}
