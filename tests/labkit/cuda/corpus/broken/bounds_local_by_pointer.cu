// about: A pointer to a local array runs one element into the next local array.
// kernel: pairs
// grid: 1
// block: 32
// arg: float32[32] zeros
// arg: int32 8
// expect: out_of_bounds
// says: a local variable, beyond the array that its pointer points into
extern "C" __global__ void pairs(float* y, int n)
{
    float first[8], second[8];
    for (int i = 0; i < 8; ++i) {
        first[i] = i;
        second[i] = 10 * i;
    }
    const float* place = first;
    y[threadIdx.x] = place[n] + second[threadIdx.x % 8];  // HERE
}
