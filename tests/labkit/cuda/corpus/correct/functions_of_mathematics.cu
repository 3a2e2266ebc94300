// about: The functions that activations and norms are made of, each close to NumPy's.
// kernel: functions
// grid: 1
// block: 32
// arg: float32[32] linspace(0.1,3)
// arg: float32[8,32] zeros
// let: d = x.astype(float)
// close: y = np.stack([np.exp(d), np.log(d), 1 / np.sqrt(d), np.tanh(d), d ** 1.5, np.sin(d), 2 ** d, d / (1 + np.exp(-d))])
extern "C" __global__ void functions(const float* x, float* y)
{
    float v = x[threadIdx.x];
    y += threadIdx.x;
    y[0 * 32] = expf(v);
    y[1 * 32] = logf(v);
    y[2 * 32] = rsqrtf(v);
    y[3 * 32] = tanhf(v);
    y[4 * 32] = powf(v, 1.5f);
    y[5 * 32] = sinf(v);
    y[6 * 32] = exp2f(v);
    y[7 * 32] = v / (1.0f + __expf(-v));
}
