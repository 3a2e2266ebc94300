// about: The components of a vector by a pointer to the first one, in a register, in shared and in global memory.
// kernel: mix
// grid: 2
// block: 32
// arg: float32[256] arange
// arg: float32[256] zeros
// arg: int32 4
// equals: y = (x.reshape(64, 4)[:, ::-1] * 2).ravel()
struct Slot {
    int owner;
    float4 value;
};

__device__ float component(const float4& v, int k) { return (&v.x)[k]; }

extern "C" __global__ void mix(const float4* x, float4* y, int n)
{
    __shared__ float4 staged[32];
    __shared__ Slot slots[32];
    const int t = threadIdx.x, i = blockIdx.x * 32 + t;
    float4 turned;
    float* parts = &turned.x;
    for (int k = 0; k < n; ++k) parts[k] = component(x[i], n - 1 - k);
    staged[t] = turned;
    slots[t].owner = t;
    for (int k = 0; k < n; ++k) (&slots[t].value.x)[k] = reinterpret_cast<float*>(staged)[4 * t + k];
    for (int k = 0; k < n; ++k) (&y[i].x)[k] = component(slots[t].value, k) + component(staged[t], k);
}
