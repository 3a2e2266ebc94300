// about: A template over an operation, a struct with a call operator and a lambda.
// kernel: transform
// grid: 1
// block: 32
// arg: int32[32] integers(49, -100, 100)
// arg: int32[3] zeros
// equals: result = np.array([x.sum(), x.max(), (x * x).sum()])
struct Sum { __device__ int operator()(int a, int b) const { return a + b; } };
struct Largest { __device__ int operator()(int a, int b) const { return a > b ? a : b; } };

template <int Width, typename Operation>
__device__ int reduce(int value, Operation operation)
{
#pragma unroll
    for (int distance = Width / 2; distance > 0; distance /= 2)
        value = operation(value, __shfl_xor_sync(0xffffffffu, value, distance));
    return value;
}

extern "C" __global__ void transform(const int* x, int* result)
{
    int value = x[threadIdx.x];
    int sum = reduce<32>(value, Sum());
    int largest = reduce<32>(value, Largest{});
    auto square = [](int v) { return v * v; };
    int squares = reduce<32>(square(value), [](int a, int b) { return a + b; });
    if (threadIdx.x == 0) {
        result[0] = sum;
        result[1] = largest;
        result[2] = squares;
    }
}
