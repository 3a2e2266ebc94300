// about: Bitonic sort without the barrier between steps.
// kernel: sort
// grid: 1
// block: 64
// arg: int32[64] integers(28, 0, 1000)
// expect: race
// says: values
extern "C" __global__ void sort(int* x)
{
    __shared__ int values[64];
    int t = threadIdx.x;
    values[t] = x[t];
    __syncthreads();
    for (int size = 2; size <= 64; size *= 2)
        for (int distance = size / 2; distance > 0; distance /= 2) {
            int other = t ^ distance;
            if (other > t) {
                int a = values[t], b = values[other];  // HERE
                if ((a > b) == ((t & size) == 0)) {
                    values[t] = b;  // HERE
                    values[other] = a;  // HERE
                }
            }
        }
    __syncthreads();
    x[t] = values[t];
}
