// about: A linked list whose last link is not 0.
// kernel: walk
// grid: 1
// block: 1
// arg: int64[4] constant(8)
// arg: int64[1] zeros
// expect: bad_pointer
extern "C" __global__ void walk(const long long* links, long long* y)
{
    const long long* link = (const long long*)links[0];
    y[0] = *link;  // HERE
}
