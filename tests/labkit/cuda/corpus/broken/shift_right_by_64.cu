// about: A 64-bit number shifted to the right by all of its bits.
// kernel: top
// grid: 1
// block: 1
// arg: uint64[1] ones
// arg: int32 64
// expect: shift
// says: 64
extern "C" __global__ void top(unsigned long long* x, int n)
{
    *x = *x >> n;  // HERE
}
