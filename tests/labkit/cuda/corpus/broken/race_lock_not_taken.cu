// about: All blocks but the last take the lock.
// kernel: guarded
// grid: 5
// block: 1
// arg: int32[1] zeros
// arg: int32[1] zeros
// expect: race
// says: sum[0]
extern "C" __global__ void guarded(int* sum, int* lock)
{
    bool locks = blockIdx.x + 1 < gridDim.x;
    if (locks) {
        while (atomicCAS(lock, 0, 1) != 0) { }
        __threadfence();
    }
    *sum += 1;  // HERE
    if (locks) {
        __threadfence();
        atomicExch(lock, 0);
    }
}
