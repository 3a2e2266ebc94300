// about: One thread per element; threads beyond the ragged end leave at once and there is no barrier to miss.
// kernel: vector_add
// grid: 4
// block: 64
// arg: float32[201] normal(1)
// arg: float32[201] normal(2)
// arg: float32[201] zeros
// arg: int32 201
// equals: total = left + right
extern "C" __global__ void vector_add(const float* left, const float* right, float* total, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    total[i] = left[i] + right[i];
}
