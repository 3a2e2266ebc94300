// about: One thread has found what it looked for and leaves the loop of barriers.
// kernel: search
// grid: 1
// block: 32
// arg: int32[128] arange
// arg: int32[1] zeros
// expect: barrier
extern "C" __global__ void search(const int* x, int* place)
{
    for (int base = 0; base < 128; base += 32) {
        if (x[base + threadIdx.x] == 40) {
            *place = base + threadIdx.x;
            break;
        }
        __syncthreads();  // HERE
    }
}
