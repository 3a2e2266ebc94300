// about: Two bytes are meant, four are stored: each store covers the next thread's bytes.
// kernel: store
// grid: 1
// block: 32
// arg: uint8[128] zeros
// expect: race
// says: y[
extern "C" __global__ void store(unsigned char* y)
{
    int i = threadIdx.x;
    *(unsigned int*)(y + 4 * (i / 2)) = i;  // HERE
}
