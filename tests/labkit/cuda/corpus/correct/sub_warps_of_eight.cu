// about: Eight lanes work on one row: shuffles of width 8, a leader for each, rows that do not fill the last warp.
// kernel: row_norms
// grid: 1
// block: 96
// arg: float32[11,40] integers(15, -4, 5)
// arg: float32[11] zeros
// arg: int32 11
// arg: int32 40
// equals: y = (x * x).sum(1)
extern "C" __global__ void row_norms(const float* x, float* y, int rows, int width)
{
    const int row = threadIdx.x / 8, lane = threadIdx.x % 8;
    float sum = 0.0f;
    if (row < rows)
        for (int i = lane; i < width; i += 8) sum += x[row * width + i] * x[row * width + i];
    for (int distance = 4; distance > 0; distance /= 2) sum += __shfl_down_sync(0xffffffffu, sum, distance, 8);
    if (lane == 0 && row < rows) y[row] = sum;
}
