// about: A ballot of all lanes, taken by those for whom the answer is yes.
// kernel: count
// grid: 1
// block: 32
// arg: int32[32] arange
// arg: int32[1] zeros
// expect: deadlock
// says: __ballot_sync
extern "C" __global__ void count(const int* x, int* y)
{
    unsigned int odd = 0;
    if (x[threadIdx.x] % 2) odd = __ballot_sync(0xffffffffu, 1);  // HERE
    int most = __reduce_max_sync(0xffffffffu, __popc(odd));  // HERE
    if (threadIdx.x == 0) *y = most;
}
