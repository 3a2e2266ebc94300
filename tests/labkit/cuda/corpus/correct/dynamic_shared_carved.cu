// about: One dynamic allocation holds floats, ints and bytes, one after the other.
// kernel: carve
// grid: 2
// block: 32
// shared: 288
// arg: float32[2,32] normal(47)
// arg: float32[2,32] zeros
// equals: y = (x + np.arange(32, dtype=np.float32) + np.float32(7))[:, ::-1]
extern "C" __global__ void carve(const float* x, float* y)
{
    extern __shared__ __align__(16) unsigned char memory[];
    float* values = reinterpret_cast<float*>(memory);
    int* numbers = (int*)(memory + 32 * sizeof(float));
    unsigned char* bytes = (unsigned char*)&numbers[32];
    int t = threadIdx.x, other = 31 - t;
    values[t] = x[blockIdx.x * 32 + t];
    numbers[t] = t;
    bytes[t] = 7;
    __syncthreads();
    y[blockIdx.x * 32 + t] = values[other] + (float)numbers[other] + (float)bytes[other];
}
