// about: An xorshift generator per thread, counted by a vote of each warp.
// kernel: count_inside
// grid: 2
// block: 64
// arg: uint32[128] integers(46, 1, 4000000000)
// arg: int32[1] zeros
// let: left = lambda s, n: s ^ (s << np.uint32(n))
// let: right = lambda s, n: s ^ (s >> np.uint32(n))
// let: step = lambda s: left(right(left(s, 13), 17), 5)
// let: square = lambda s: (s >> np.uint32(16)).astype(np.int64) ** 2
// equals: inside = (square(step(state)) + square(step(step(state))) < 2 ** 32).sum(keepdims=True)
// equals: state = step(step(state))
__device__ unsigned int draw(unsigned int& state)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state >> 16;
}

extern "C" __global__ void count_inside(unsigned int* state, int* inside)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int mine = state[i];
    unsigned long long x = draw(mine), y = draw(mine);
    unsigned int hits = __ballot_sync(0xffffffffu, x * x + y * y < (1ull << 32));
    if ((i & 31) == 0) atomicAdd(inside, __popc(hits));
    state[i] = mine;
}
