// about: A pointer walks to the end mark and is followed there.
// kernel: find
// grid: 1
// block: 1
// arg: int32[20] ones
// arg: int32[1] zeros
// expect: out_of_bounds
// says: x[20]
extern "C" __global__ void find(const int* x, int* place)
{
    const int* at = x;
    while (*at != 0)  // HERE
        ++at;
    *place = (int)(at - x);
}
