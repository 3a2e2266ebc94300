// about: The flag is looked at once, by an atomic, and what it says is not waited for.
// kernel: hand_over
// grid: 1
// block: 64
// arg: int32[32] arange
// arg: int32[32] zeros
// expect: race
// says: box
extern "C" __global__ void hand_over(const int* x, int* y)
{
    __shared__ int box[32], flag;
    int lane = threadIdx.x % 32;
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    if (threadIdx.x < 32) {
        box[lane] = x[lane];  // HERE
        __threadfence_block();
        atomicExch(&flag, 1);
    } else {
        y[lane] = box[lane];  // HERE
        atomicAdd(&flag, 0);
    }
}
