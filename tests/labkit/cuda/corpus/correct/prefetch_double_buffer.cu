// about: While a block adds up one tile, it loads the next into the other half of dynamic shared memory; one barrier a round.
// kernel: column_sums
// grid: 2
// block: 64
// shared: 512
// arg: float32[37,128] integers(3, 0, 9)
// arg: float32[128] zeros
// arg: int32 37
// equals: y = x.sum(0)
extern "C" __global__ void column_sums(const float* x, float* y, int rows)
{
    extern __shared__ float buffers[];
    float* filling = buffers;
    float* reading = buffers + blockDim.x;
    const int column = blockIdx.x * blockDim.x + threadIdx.x, width = gridDim.x * blockDim.x;
    float sum = 0.0f;
    filling[threadIdx.x] = x[column];
    for (int row = 0; row < rows; ++row) {
        float* swapped = filling;
        filling = reading;
        reading = swapped;
        __syncthreads();
        if (row + 1 < rows) filling[threadIdx.x ^ 1] = x[(row + 1) * width + (column ^ 1)];
        sum += reading[threadIdx.x];
    }
    y[column] = sum;
}
