// about: Device functions that take references to registers and to a local array: a sorting network, then a median.
// kernel: median
// grid: 2
// block: 32
// arg: float32[64,5] normal(6)
// arg: float32[64] zeros
// equals: y = np.median(x, axis=1)
__device__ void order(float& low, float& high)
{
    if (high < low) {
        const float swapped = low;
        low = high;
        high = swapped;
    }
}

template <int n>
__device__ void sort(float (&values)[n])
{
    for (int round = 0; round < n; ++round)
        for (int i = round % 2; i + 1 < n; i += 2) order(values[i], values[i + 1]);
}

__device__ void load(const float* from, float* to, int n)
{
    for (const float* end = from + n; from != end; ++from, ++to) *to = *from;
}

extern "C" __global__ void median(const float* x, float* y)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    float values[5];
    load(x + 5 * row, values, 5);
    sort(values);
    y[row] = values[2];
}
