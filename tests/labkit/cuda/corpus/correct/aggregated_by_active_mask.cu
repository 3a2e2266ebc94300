// about: The lanes that are here together, whichever they are, take their places by one atomic.
// kernel: collect
// grid: 2
// block: 32
// arg: int32[64] integers(56, 0, 100)
// arg: int32[1] zeros
// equals: count = (x % 3 == 0).sum(keepdims=True)
extern "C" __global__ void collect(const int* x, int* count)
{
    if (x[blockIdx.x * 32 + threadIdx.x] % 3 == 0) {
        unsigned int here = __activemask();
        int leader = __ffs(here) - 1;
        if ((int)threadIdx.x == leader) atomicAdd(count, __popc(here));
    }
}
