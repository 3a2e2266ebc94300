// about: Loops that end after a different number of steps in each thread; products and sums are rounded apart, as NumPy does.
// kernel: mandelbrot
// grid: 2 3
// block: 16 8
// arg: int32[20,30] zeros
// let: cr = np.linspace(-2, 1, 30, dtype=np.float32)[None, :] + np.zeros((20, 1), np.float32)
// let: ci = np.linspace(-1, 1, 20, dtype=np.float32)[:, None] + np.zeros((1, 30), np.float32)
// let: start = (np.zeros_like(cr), np.zeros_like(cr), np.zeros(cr.shape, np.int32), np.ones(cr.shape, bool))
// let: move = lambda s: (s[0] * s[0] - s[1] * s[1] + cr, np.float32(2) * s[0] * s[1] + ci)
// let: stays = lambda s: s[3] & (s[0] * s[0] + s[1] * s[1] <= np.float32(4))
// let: turn = lambda s: tuple(np.where(stays(s), new, old) for new, old in zip(move(s) + (s[2] + 1, stays(s)), s[:3] + (np.zeros(cr.shape, bool),)))
// let: run = lambda s, n: s if n == 0 else run(turn(s), n - 1)
// arg: float32[30] linspace(-2,1)
// arg: float32[20] linspace(-1,1)
// equals: steps = run(start, 50)[2]
extern "C" __global__ void mandelbrot(int* steps, const float* real, const float* imaginary)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= 30 || row >= 20) return;
    float cr = real[column], ci = imaginary[row], zr = 0.0f, zi = 0.0f;
    int n = 0;
    while (n < 50) {
        float rr = __fmul_rn(zr, zr), ii = __fmul_rn(zi, zi);
        if (__fadd_rn(rr, ii) > 4.0f) break;
        zi = __fadd_rn(__fmul_rn(2.0f * zr, zi), ci);
        zr = __fadd_rn(__fsub_rn(rr, ii), cr);
        ++n;
    }
    steps[row * 30 + column] = n;
}
