// about: Infinities and NaN, fmaxf with NaN, rounding halves to even, division by zero of floats: all defined, none a fault.
// kernel: corners
// grid: 1
// block: 8
// arg: float32[8] arange
// arg: float32[8] zeros
// equals: y = np.array([np.inf, 1, 2, 0, 2, 2.5, 6, -0.0], np.float32)
extern "C" __global__ void corners(const float* x, float* y)
{
    float v = x[threadIdx.x], nan = __int_as_float(0x7fffffff), result;
    switch (threadIdx.x) {
    case 0: result = 1.0f / v; break;
    case 1: result = fmaxf(nan, v); break;
    case 2: result = isnan(nan * v) ? v : 0.0f; break;
    case 3: result = expf(-1.0f / (v - 3.0f)); break;
    case 4: result = rintf(v - 1.5f); break;
    case 5: result = fmaf(v, 0.5f, 0.0f); break;
    case 6: result = fminf(v, 1e38f * 10.0f * 10.0f); break;
    default: result = -0.0f;
    }
    y[threadIdx.x] = result;
}
