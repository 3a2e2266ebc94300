// about: A structure is stored as a whole, the value of a function, where another thread of the block reads it.
// kernel: exchange
// grid: 1
// block: 64
// arg: float32[64] ones
// arg: float32[64] zeros
// expect: race
struct State {
    float maximum, sum;
    int count;
};

__device__ State start(float x)
{
    State state;
    state.maximum = x;
    state.sum = 1.0f;
    state.count = 1;
    return state;
}

__device__ float merge(State a, State b) { return a.sum * b.sum + a.maximum; }

extern "C" __global__ void exchange(const float* x, float* y)
{
    __shared__ State states[64];
    states[threadIdx.x] = start(x[threadIdx.x]);  // HERE
    y[threadIdx.x] = merge(states[threadIdx.x], states[threadIdx.x ^ 32]);  // HERE
}
