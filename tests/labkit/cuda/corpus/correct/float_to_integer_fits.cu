// about: Conversions just inside what the integer holds, and the intrinsics that saturate on purpose.
// kernel: convert
// grid: 1
// block: 4
// arg: float32[4] arange
// arg: int32[4] zeros
// equals: y = np.array([-2147483648, 255, 2147483647, 4])
extern "C" __global__ void convert(const float* x, int* y)
{
    float v = x[threadIdx.x];
    int result;
    if (threadIdx.x == 0) result = (int)(v - 2147483648.0f);
    else if (threadIdx.x == 1) result = (unsigned char)(v + 254.9f - 0.5f);
    else if (threadIdx.x == 2) result = __float2int_rn(v * 1e30f);
    else result = __float2int_rn(v + 0.5f);
    y[threadIdx.x] = result;
}
