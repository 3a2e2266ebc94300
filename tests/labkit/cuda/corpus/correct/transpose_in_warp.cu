// about: Each warp turns its own 8 by 4 tile in shared memory, ordered by __syncwarp alone.
// kernel: turn
// grid: 2
// block: 128
// arg: float32[256] arange
// arg: float32[256] zeros
// equals: y = x.reshape(8, 8, 4).transpose(0, 2, 1).ravel()
extern "C" __global__ void turn(const float* x, float* y)
{
    __shared__ float tiles[4][32];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int base = (blockIdx.x * 4 + warp) * 32;
    for (int round = 0; round < 3; ++round) {
        tiles[warp][lane] = x[base + lane];
        __syncwarp();
        y[base + lane] = tiles[warp][lane % 8 * 4 + lane / 8];
        __syncwarp();
    }
}
