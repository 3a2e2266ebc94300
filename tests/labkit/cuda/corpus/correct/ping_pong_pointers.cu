// about: Two shared arrays change their roles each round, by pointers that are swapped.
// kernel: diffuse
// grid: 2
// block: 64
// arg: int32[128] integers(11, 0, 40)
// arg: int32[128] zeros
// let: r = x.reshape(2, 64)
// let: s = r + np.roll(r, 1, 1)
// let: t = s + np.roll(s, 1, 1)
// equals: y = (t + np.roll(t, 1, 1)).ravel()
extern "C" __global__ void diffuse(const int* x, int* y)
{
    __shared__ int first[64], second[64];
    int *now = first, *next = second;
    const int t = threadIdx.x, i = blockIdx.x * 64 + t;
    now[t] = x[i];
    for (int round = 0; round < 3; ++round) {
        __syncthreads();
        next[t] = now[t] + now[(t + 63) % 64];
        int* swapped = now;
        now = next;
        next = swapped;
    }
    y[i] = now[t];
}
