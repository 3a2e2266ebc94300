// about: A texture fetch.
// kernel: fetch
// grid: 1
// block: 32
// arg: float32[32] zeros
// arg: uint64 1
// expect: unsupported
// says: texture
extern "C" __global__ void fetch(float* y, cudaTextureObject_t texture)  // HERE
{
    y[threadIdx.x] = tex1Dfetch<float>(texture, threadIdx.x);  // HERE
}
