// about: A pointer that was set to nothing is followed.
// kernel: follow
// grid: 1
// block: 8
// arg: int32[8] arange
// expect: bad_pointer
extern "C" __global__ void follow(int* x)
{
    int* where = nullptr;
    if (x[threadIdx.x] < 4) where = x;
    where[threadIdx.x] = 1;  // HERE
}
