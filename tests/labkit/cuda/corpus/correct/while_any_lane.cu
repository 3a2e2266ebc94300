// about: A warp goes on as long as any of its lanes has work; lanes without work still take part in the vote.
// kernel: collatz
// grid: 1
// block: 64
// arg: int32[64] integers(79, 1, 60)
// arg: int32[64] zeros
// let: length = lambda n: 0 if n == 1 else 1 + length(n // 2 if n % 2 == 0 else 3 * n + 1)
// equals: steps = np.array([length(int(n)) for n in x])
extern "C" __global__ void collatz(const int* x, int* steps)
{
    int n = x[threadIdx.x], count = 0;
    while (__any_sync(0xffffffffu, n != 1)) {
        if (n == 1) continue;
        n = n % 2 == 0 ? n / 2 : 3 * n + 1;
        ++count;
    }
    steps[threadIdx.x] = count;
}
