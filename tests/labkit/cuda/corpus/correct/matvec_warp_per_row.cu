// about: A warp multiplies one row, with float4 loads of row and vector.
// kernel: matvec
// grid: 3
// block: 64
// arg: float32[5,128] integers(24, -5, 5)
// arg: float32[128] integers(25, -5, 5)
// arg: float32[5] zeros
// arg: int32 5
// equals: product = matrix @ vector
extern "C" __global__ void matvec(const float4* matrix, const float4* vector, float* product, int rows)
{
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row < rows) {
        float4 m = matrix[row * 32 + lane], v = vector[lane];
        float sum = m.x * v.x + m.y * v.y + m.z * v.z + m.w * v.w;
        for (int distance = 16; distance > 0; distance >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, distance);
        if (lane == 0) product[row] = sum;
    }
}
