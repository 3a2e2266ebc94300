// about: A lock is taken twice by the thread that holds it.
// kernel: guarded
// grid: 1
// block: 1
// limit_s: 0.1
// orders: 0
// arg: int32[1] zeros
// arg: int32[1] zeros
// expect: time_limit
extern "C" __global__ void guarded(int* sum, int* lock)
{
    while (atomicCAS(lock, 0, 1) != 0) { }
    while (atomicCAS(lock, 0, 1) != 0) { }  // HERE
    *sum += 1;
    atomicExch(lock, 0);
}
