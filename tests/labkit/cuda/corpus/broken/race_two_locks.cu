// about: Even and odd blocks take different locks for the same sum.
// kernel: guarded
// grid: 4
// block: 1
// arg: int32[1] zeros
// arg: int32[2] zeros
// expect: race
// says: sum[0]
extern "C" __global__ void guarded(int* sum, int* locks)
{
    int* lock = locks + blockIdx.x % 2;
    while (atomicCAS(lock, 0, 1) != 0) { }
    __threadfence();
    *sum += 1;  // HERE
    __threadfence();
    atomicExch(lock, 0);
}
