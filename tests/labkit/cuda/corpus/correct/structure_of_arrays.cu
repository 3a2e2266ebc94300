// about: Particles as a structure of pointers into one buffer, handed to device functions by reference and by value.
// kernel: step
// grid: 3
// block: 32
// arg: float32[320] uniform(4)
// arg: int32 80
// close: buffer = np.stack([p[0] + np.float32(0.5) * p[2], p[1] + np.float32(0.5) * (p[3] - np.float32(0.1) * p[0]), p[2], p[3] - np.float32(0.1) * p[0]]).ravel()
// let: p = buffer.reshape(4, 80)
struct Particles {
    float *x, *y, *u, *v;
    int count;
};

__device__ Particles particles_in(float* buffer, int n)
{
    Particles all = {buffer, buffer + n, buffer + 2 * n, buffer + 3 * n, n};
    return all;
}

__device__ void accelerate(const Particles& all, int i) { all.v[i] -= 0.1f * all.x[i]; }

__device__ void move(Particles all, int i)
{
    all.x[i] += 0.5f * all.u[i];
    all.y[i] += 0.5f * all.v[i];
}

extern "C" __global__ void step(float* buffer, int n)
{
    const Particles all = particles_in(buffer, n);
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= all.count) return;
    accelerate(all, i);
    move(all, i);
}
