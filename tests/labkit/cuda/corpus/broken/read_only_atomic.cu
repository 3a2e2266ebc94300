// about: An atomic writes through a pointer to const.
// kernel: count
// grid: 1
// block: 8
// arg: int32[1] zeros
// expect: read_only
extern "C" __global__ void count(const int* counter)
{
    atomicAdd((int*)counter, 1);  // HERE
}
