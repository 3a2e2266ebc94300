// about: Every thread takes a lock of its bin in turn; the critical section lies inside the loop, so no lane waits for another that cannot move.
// kernel: guarded_counts
// grid: 2
// block: 32
// arg: int32[64] integers(14, 0, 4)
// arg: int32[4] zeros
// arg: int32[4] zeros
// equals: counts = np.bincount(bins, minlength=4).astype(np.int32)
extern "C" __global__ void guarded_counts(const int* bins, int* counts, int* locks)
{
    int bin = bins[blockIdx.x * blockDim.x + threadIdx.x];
    bool is_done = false;
    while (!is_done) {
        if (atomicCAS(&locks[bin], 0, 1) == 0) {
            __threadfence();
            volatile int* count = &counts[bin];
            *count = *count + 1;
            __threadfence();
            atomicExch(&locks[bin], 0);
            is_done = true;
        }
    }
}
