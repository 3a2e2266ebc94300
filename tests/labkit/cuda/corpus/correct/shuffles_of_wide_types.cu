// about: Shuffles of double and of 64-bit integers, and one whose source lane wraps at the width.
// kernel: wide
// grid: 1
// block: 32
// arg: float64[32] normal(76)
// arg: int64[32] integers(77, -5000000000, 5000000000)
// arg: float64[32] zeros
// arg: int64[32] zeros
// equals: y = x[::-1]
// equals: m = np.repeat(n.reshape(4, 8)[:, 1], 8)
extern "C" __global__ void wide(const double* x, const long long* n, double* y, long long* m)
{
    int lane = threadIdx.x;
    y[lane] = __shfl_sync(0xffffffffu, x[lane], 31 - lane);
    m[lane] = __shfl_sync(0xffffffffu, n[lane], 9, 8);
}
