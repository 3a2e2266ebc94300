// about: Tables of structures in __constant__ memory and in a static const array of a function.
// kernel: apply
// grid: 1
// block: 32
// arg: float32[32] arange
// arg: float32[32] zeros
// equals: y = np.array([(1, 2, 4)[i % 3] * x[i] + (0, 5, 7)[i % 3] for i in range(32)], np.float32)
struct Line {
    float slope, offset;
};
__constant__ Line lines[3] = {{1.0f, 0.0f}, {2.0f, 5.0f}, {4.0f, 7.0f}};

__device__ Line line_of(int i)
{
    static const int order[6] = {0, 1, 2, 0, 1, 2};
    return lines[order[i % 6]];
}

extern "C" __global__ void apply(const float* x, float* y)
{
    const Line line = line_of(threadIdx.x);
    y[threadIdx.x] = line.slope * x[threadIdx.x] + line.offset;
}
