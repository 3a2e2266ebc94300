// about: The distance is halved by 1.
// kernel: reduce
// grid: 1
// block: 32
// limit_s: 0.1
// orders: 0
// arg: float32[32] normal(41)
// expect: time_limit
extern "C" __global__ void reduce(float* x)
{
    float value = x[threadIdx.x];
    for (int distance = 16; distance > 0; distance /= 1)  // HERE
        value += __shfl_xor_sync(0xffffffffu, value, distance);  // HERE
    x[threadIdx.x] = value;
}
