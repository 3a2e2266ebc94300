// about: A stencil on a 3-D grid of 3-D blocks whose edges do not divide the volume.
// kernel: laplacian
// grid: 3 2 3
// block: 4 4 2
// arg: int32[5,7,10] integers(8, 0, 100)
// arg: int32[5,7,10] zeros
// arg: int32 10
// arg: int32 7
// arg: int32 5
// let: z = np.pad(x, 1)
// equals: y = z[:-2,1:-1,1:-1] + z[2:,1:-1,1:-1] + z[1:-1,:-2,1:-1] + z[1:-1,2:,1:-1] + z[1:-1,1:-1,:-2] + z[1:-1,1:-1,2:] - 6 * x
__device__ int at(const int* x, int i, int j, int k, int3 size)
{
    const bool inside = i >= 0 && j >= 0 && k >= 0 && i < size.x && j < size.y && k < size.z;
    return inside ? x[(k * size.y + j) * size.x + i] : 0;
}

extern "C" __global__ void laplacian(const int* x, int* y, int width, int height, int depth)
{
    const int3 size = make_int3(width, height, depth);
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int j = blockIdx.y * blockDim.y + threadIdx.y;
    const int k = blockIdx.z * blockDim.z + threadIdx.z;
    if (i >= width || j >= height || k >= depth) return;
    int sum = -6 * at(x, i, j, k, size);
    for (int side = -1; side <= 1; side += 2)
        sum += at(x, i + side, j, k, size) + at(x, i, j + side, k, size) + at(x, i, j, k + side, size);
    y[(k * height + j) * width + i] = sum;
}
