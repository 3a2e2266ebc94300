// about: Scalars of each size, a bool, and Python numbers that fit their parameters.
// kernel: numbers
// grid: 1
// block: 1
// arg: float64[8] zeros
// arg: int8 -3
// arg: uint16 60000
// arg: int64 -5000000000
// arg: float64 0.1
// arg: bool 1
// arg: int 7
// arg: float 0.25
// arg: int 12
// equals: out = np.array([-3, 60000, -5000000000, 0.1, 1, 7, 0.25, 12])
extern "C" __global__ void numbers(double* out, signed char a, unsigned short b, long long c, double d, bool e,
                                   long long f, double g, size_t h)
{
    out[0] = a;
    out[1] = b;
    out[2] = (double)c;
    out[3] = d;
    out[4] = e;
    out[5] = (double)f;
    out[6] = g;
    out[7] = (double)h;
}
