// about: More threads than work, blocks with none, and an array of no elements.
// kernel: none
// grid: 3
// block: 32
// arg: float32[0] zeros
// arg: int32[1] zeros
// arg: int32 0
// equals: y = np.zeros(1, np.int32)
extern "C" __global__ void none(const float* x, int* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[0] = (int)x[i];
}
