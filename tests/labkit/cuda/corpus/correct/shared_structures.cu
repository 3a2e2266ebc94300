// about: Shared memory holds structures, vectors and a row that a function gets as a pointer to an array.
// kernel: swap
// grid: 2
// block: 16
// arg: float32[2,16,4] normal(75)
// equals: x = x[:, ::-1, ::-1]
struct Pair { float2 low, high; };

__device__ void put(float (*rows)[5], int row, const Pair& pair)
{
    rows[row][0] = pair.high.y;
    rows[row][1] = pair.high.x;
    rows[row][2] = pair.low.y;
    rows[row][3] = pair.low.x;
}

extern "C" __global__ void swap(float4* x)
{
    __shared__ Pair pairs[16];
    __shared__ float rows[16][5];
    int t = threadIdx.x;
    float4 v = x[blockIdx.x * 16 + t];
    pairs[t] = Pair{make_float2(v.x, v.y), make_float2(v.z, v.w)};
    __syncthreads();
    put(rows, t, pairs[15 - t]);
    __syncthreads();
    const float* row = rows[t];
    x[blockIdx.x * 16 + t] = make_float4(row[0], row[1], row[2], row[3]);
}
