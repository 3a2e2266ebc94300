// about: Sizes given by compiler options and macros with arguments.
// kernel: scale
// grid: 1
// block: 8
// options: -DN=8 -DFACTOR=3
// arg: int32[8] arange
// equals: x = 3 * x + 1
#ifndef N
#error "give N"
#endif
#define AT(array, i) (array)[(i) < N ? (i) : N - 1]
extern "C" __global__ void scale(int* x)
{
    static_assert(N == 8, "the option sets N");
    AT(x, threadIdx.x) = FACTOR * AT(x, threadIdx.x) + 1;
}
