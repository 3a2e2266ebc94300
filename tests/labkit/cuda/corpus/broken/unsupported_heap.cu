// about: Memory from the device's heap.
// kernel: allocate
// grid: 1
// block: 1
// arg: int32[1] zeros
// expect: unsupported
// says: malloc
extern "C" __global__ void allocate(int* y)
{
    int* values = (int*)malloc(4 * sizeof(int));  // HERE
    values[0] = 1;
    y[0] = values[0];
    free(values);  // HERE
}
