// about: A scan over blocks in one pass: each block takes its turn from an atomic counter, then waits for the sum of the turn before.
// kernel: inclusive_scan
// grid: 5
// block: 32
// arg: int32[160] integers(31, -100, 100)
// arg: int32[1] zeros
// arg: int32[6] zeros
// arg: int32[6] zeros
// equals: x = np.cumsum(x, dtype=np.int32)
extern "C" __global__ void inclusive_scan(int* x, int* turns, volatile int* prefix, int* is_ready)
{
    int lane = threadIdx.x, turn = 0;
    if (lane == 0) turn = atomicAdd(turns, 1);
    turn = __shfl_sync(0xffffffffu, turn, 0);
    int value = x[turn * 32 + lane];
    for (int distance = 1; distance < 32; distance *= 2) {
        int left = __shfl_up_sync(0xffffffffu, value, distance);
        if (lane >= distance) value += left;
    }
    int before = 0;
    if (lane == 31) {
        if (turn > 0) {
            while (atomicAdd(&is_ready[turn], 0) == 0) { }
            __threadfence();
            before = prefix[turn];
        }
        prefix[turn + 1] = before + value;
        __threadfence();
        atomicExch(&is_ready[turn + 1], 1);
    }
    before = __shfl_sync(0xffffffffu, before, 31);
    x[turn * 32 + lane] = before + value;
}
