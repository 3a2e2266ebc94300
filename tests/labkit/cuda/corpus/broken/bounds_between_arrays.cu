// about: Two arrays lie in memory one after the other; the end of the first is not the beginning of the second.
// kernel: join
// grid: 1
// block: 32
// arg: float32[32] zeros
// arg: float32[32] zeros
// expect: out_of_bounds
// says: first[
extern "C" __global__ void join(float* first, float* second)
{
    int i = threadIdx.x;
    second[i] = 1.0f;
    first[i + 32] = 2.0f;  // HERE
}
