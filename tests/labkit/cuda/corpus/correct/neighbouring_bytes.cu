// about: Threads write bytes next to each other in one word, and 16-bit numbers beside them: no two touch the same byte.
// kernel: bytes
// grid: 2
// block: 32
// arg: uint8[64] integers(60, 0, 256)
// arg: uint8[128] zeros
// equals: y = np.stack([x, 255 - x], axis=1).ravel()
extern "C" __global__ void bytes(const unsigned char* x, unsigned char* y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i % 2) {
        y[2 * i] = x[i];
        y[2 * i + 1] = ~x[i];
    } else {
        ((unsigned short*)y)[i] = (unsigned short)(x[i] | (255 - x[i]) << 8);
    }
}
