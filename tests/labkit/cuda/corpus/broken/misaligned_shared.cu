// about: A float behind three bytes in one piece of shared memory.
// kernel: carve
// grid: 1
// block: 1
// arg: float32[1] zeros
// expect: misaligned
extern "C" __global__ void carve(float* y)
{
    __shared__ __align__(16) unsigned char memory[64];
    float* value = (float*)(memory + 3);
    *value = 1.0f;  // HERE
    *y = *value;  // HERE
}
