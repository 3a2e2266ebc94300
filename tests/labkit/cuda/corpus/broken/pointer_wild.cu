// about: A number is taken for an address.
// kernel: follow
// grid: 1
// block: 1
// arg: int32[1] zeros
// expect: bad_pointer
extern "C" __global__ void follow(int* y)
{
    const int* where = (const int*)0x123456789000ull;
    y[0] = *where;  // HERE
}
