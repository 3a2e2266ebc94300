// about: A kernel and functions with names of the C library, and macros whose names others may use too.
// kernel: write
// grid: 1
// block: 32
// arg: int32[32] arange
// arg: int32[32] zeros
// equals: y = np.minimum(3 * x + 1, 40)
#define min(a, b) ((a) < (b) ? (a) : (b))
#define line 1
#define value x[index]
#define T 3
#define N 40
#define kernel
#define number 7
#define arguments 8
__device__ int read(const int* x, int index) { return value; }
__device__ int gamma(int time) { return T * time + line; }
extern "C" kernel __global__ void write(const int* x, int* y)
{
    int y1 = gamma(read(x, threadIdx.x)), exit = N;
    y[threadIdx.x] = min(y1, exit);
}
