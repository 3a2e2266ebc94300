// about: Exclusive scan of 2 × 32 elements up and down a tree in dynamic shared memory.
// kernel: exclusive_scan
// grid: 1
// block: 32
// shared: 256
// arg: int32[64] integers(29, -100, 100)
// arg: int32[64] zeros
// arg: int32 64
// equals: y = np.cumsum(x, dtype=np.int32) - x
extern "C" __global__ void exclusive_scan(const int* x, int* y, int n)
{
    extern __shared__ int tree[];
    int t = threadIdx.x, offset = 1;
    tree[2 * t] = x[2 * t];
    tree[2 * t + 1] = x[2 * t + 1];
    for (int pairs = n >> 1; pairs > 0; pairs >>= 1) {
        __syncthreads();
        if (t < pairs) tree[offset * (2 * t + 2) - 1] += tree[offset * (2 * t + 1) - 1];
        offset *= 2;
    }
    if (t == 0) tree[n - 1] = 0;
    for (int pairs = 1; pairs < n; pairs *= 2) {
        offset >>= 1;
        __syncthreads();
        if (t < pairs) {
            int left = offset * (2 * t + 1) - 1, right = offset * (2 * t + 2) - 1;
            int kept = tree[left];
            tree[left] = tree[right];
            tree[right] += kept;
        }
    }
    __syncthreads();
    y[2 * t] = tree[2 * t];
    y[2 * t + 1] = tree[2 * t + 1];
}
