// about: Bitonic sort of one block's elements in shared memory.
// kernel: sort
// grid: 2
// block: 64
// arg: float32[2,64] normal(40)
// equals: x = np.sort(x, axis=1)
extern "C" __global__ void sort(float* x)
{
    __shared__ float values[64];
    int t = threadIdx.x;
    values[t] = x[blockIdx.x * 64 + t];
    __syncthreads();
    for (int size = 2; size <= 64; size *= 2) {
        for (int distance = size / 2; distance > 0; distance /= 2) {
            int other = t ^ distance;
            if (other > t) {
                bool is_ascending = (t & size) == 0;
                float a = values[t], b = values[other];
                if ((a > b) == is_ascending) {
                    values[t] = b;
                    values[other] = a;
                }
            }
            __syncthreads();
        }
    }
    x[blockIdx.x * 64 + t] = values[t];
}
