// about: `continue` jumps over the barrier in the last turn.
// kernel: sums
// grid: 1
// block: 32
// arg: int32[50] arange
// arg: int32 50
// expect: barrier
extern "C" __global__ void sums(int* x, int n)
{
    for (int base = 0; base < n; base += 32) {
        int i = base + threadIdx.x;
        if (i >= n) continue;
        x[i] *= 2;
        __syncthreads();  // HERE
    }
}
