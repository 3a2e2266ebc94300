// about: One step of Conway's game on a torus: indices wrap by remainder, neighbours come from global memory.
// kernel: life
// grid: 2 2
// block: 8 8
// arg: uint8[13,16] integers(45, 0, 2)
// arg: uint8[13,16] zeros
// let: around = sum(np.roll(now, (dy, dx), (0, 1)) for dy in (-1, 0, 1) for dx in (-1, 0, 1)) - now
// equals: next = ((around == 3) | ((around == 2) & (now == 1))).astype(np.uint8)
extern "C" __global__ void life(const unsigned char* now, unsigned char* next)
{
    const int rows = 13, columns = 16;
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
    if (c >= columns || r >= rows) return;
    int around = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx)
            if (dx || dy) around += now[(r + dy + rows) % rows * columns + (c + dx + columns) % columns];
    next[r * columns + c] = around == 3 || (around == 2 && now[r * columns + c]);
}
