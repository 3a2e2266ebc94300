// about: Shared memory does not live from one block to the next: only block 0 fills the table.
// kernel: lookup
// grid: 2
// block: 32
// arg: int32[64] zeros
// expect: uninitialised
// says: table
extern "C" __global__ void lookup(int* y)
{
    __shared__ int table[32];
    if (blockIdx.x == 0) table[threadIdx.x] = 7;
    __syncthreads();
    y[blockIdx.x * 32 + threadIdx.x] = table[threadIdx.x];  // HERE
}
