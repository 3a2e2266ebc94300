// about: A grid and a block of three dimensions, each thread with its own place in a volume with ragged edges.
// kernel: fill
// grid: 2 2 3
// block: 4 2 3
// arg: int32[7,3,5] zeros
// equals: volume = np.arange(7)[:, None, None] * 10000 + np.arange(3)[None, :, None] * 100 + np.arange(5)
extern "C" __global__ void fill(int* volume)
{
    dim3 place(blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y * blockDim.y + threadIdx.y,
               blockIdx.z * blockDim.z + threadIdx.z);
    if (place.x >= 5 || place.y >= 3 || place.z >= 7) return;
    volume[(place.z * 3 + place.y) * 5 + place.x] = place.z * 10000 + place.y * 100 + place.x;
}
