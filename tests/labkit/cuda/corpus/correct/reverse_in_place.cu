// about: Each thread swaps one pair, so no two threads touch the same element although both arguments are one array.
// kernel: reverse
// grid: 2
// block: 32
// arg: int32[99] arange
// arg: same(0)
// arg: int32 99
// equals: front = front[::-1]
// equals: back = front[::-1]
extern "C" __global__ void reverse(int* front, int* back, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n / 2) return;
    int kept = front[i];
    front[i] = back[n - 1 - i];
    back[n - 1 - i] = kept;
}
