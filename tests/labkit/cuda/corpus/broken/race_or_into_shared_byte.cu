// about: The same merge in shared memory.
// kernel: pack
// grid: 1
// block: 32
// arg: uint8[32] integers(22, 1, 16)
// arg: uint8[16] zeros
// expect: race
// says: bytes
extern "C" __global__ void pack(const unsigned char* codes, unsigned char* packed)
{
    __shared__ unsigned char bytes[16];
    int i = threadIdx.x;
    if (i < 16) bytes[i] = 0;
    __syncthreads();
    bytes[i >> 1] |= codes[i] << ((i & 1) << 2);  // HERE
    __syncthreads();
    if (i < 16) packed[i] = bytes[i];
}
