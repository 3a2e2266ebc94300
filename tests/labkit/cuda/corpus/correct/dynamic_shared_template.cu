// about: A template over type and length uses dynamic shared memory; two kernels instantiate it.
// kernel: reverse_doubles
// grid: 2
// block: 16
// shared: 128
// arg: float64[2,16] normal(48)
// equals: x = x[:, ::-1]
template <typename T, int N>
__device__ void reverse(T* x)
{
    extern __shared__ char raw[];
    T* values = (T*)raw;
    values[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = values[N - 1 - threadIdx.x];
}

extern "C" __global__ void reverse_doubles(double* x) { reverse<double, 16>(x + blockIdx.x * 16); }
extern "C" __global__ void reverse_bytes(unsigned char* x) { reverse<unsigned char, 8>(x + blockIdx.x * 8); }
