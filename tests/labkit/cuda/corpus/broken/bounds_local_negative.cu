// about: The insertion into a sorted list of the thread's own runs off its front.
// kernel: insert
// grid: 1
// block: 4
// arg: int32[4] arange
// arg: int32[4] zeros
// expect: out_of_bounds
// says: -1
extern "C" __global__ void insert(const int* x, int* y)
{
    int best[4] = {-1, -1, -1, -1}, place = 3;
    while (best[place] < x[threadIdx.x])  // HERE
        --place;
    y[threadIdx.x] = place;
}
