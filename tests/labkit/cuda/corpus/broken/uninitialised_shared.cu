// about: A shared counter is added to, and nobody set it to zero.
// kernel: count
// grid: 1
// block: 1
// arg: int32[1] zeros
// expect: uninitialised
// says: counter
extern "C" __global__ void count(int* y)
{
    __shared__ int counter;
    counter += 1;  // HERE
    y[0] = counter;
}
