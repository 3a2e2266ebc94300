// about: printf from a few threads, with the formats that students use.
// kernel: show
// grid: 2
// block: 4
// arg: float32[8] arange
// equals: x = x + 1
extern "C" __global__ void show(float* x)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] += 1.0f;
    if (threadIdx.x == 0) printf("block %u: x[%d] = %.2f %s\n", blockIdx.x, i, x[i], "{\"status\": \"ok\"}");
    if (i == 7) printf("%5d|%-5u|%08x|%c|%lld|%e|%p%%\n", -7, 7u, 0xabcu, 'c', 1ll << 40, 1.5, (void*)0);
}
