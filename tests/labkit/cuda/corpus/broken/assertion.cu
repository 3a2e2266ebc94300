// about: A device assertion that does not hold.
// kernel: check
// grid: 1
// block: 8
// arg: int32[8] arange
// expect: assertion
// says: x[threadIdx.x] < 7
extern "C" __global__ void check(const int* x)
{
    assert(x[threadIdx.x] < 7);  // HERE
}
