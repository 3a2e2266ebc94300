// about: A structure is passed by value to a function; the last one read lies past the array.
// kernel: spheres
// grid: 1
// block: 32
// arg: float32[120] ones
// arg: float32[32] zeros
// expect: out_of_bounds
// says: x has 120 elements
struct Sphere {
    float centre[3], radius;
};

__noinline__ __device__ float size_of_sphere(Sphere sphere)
{
    return sphere.centre[0] * sphere.radius;
}

extern "C" __global__ void spheres(const Sphere* x, float* y)
{
    y[threadIdx.x] = size_of_sphere(x[threadIdx.x]);  // HERE
}
