// about: Local tables of two dimensions, indexed by numbers of the launch, and a matrix that is a row of rows.
// kernel: apply
// grid: 1
// block: 32
// arg: float32[32,3] integers(16, -5, 6)
// arg: float32[32,3] zeros
// arg: int32 3
// let: m = np.array([[1, 2, 3], [2, 4, 6], [3, 6, 9]], np.float32)
// equals: y = x @ m.T
struct Matrix {
    float rows[3][3];
    __device__ const float* row(int i) const { return rows[i]; }
};

__device__ float dot(const float* a, const float* b, int n)
{
    float sum = 0.0f;
    while (n-- > 0) sum += *a++ * *b++;
    return sum;
}

extern "C" __global__ void apply(const float* x, float* y, int n)
{
    Matrix matrix;
    for (int i = 0; i < n * n; ++i) matrix.rows[0][0 * i] = 0.0f;
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j) matrix.rows[i][j] = (i + 1) * (j + 1);
    const float* const flat = &matrix.rows[0][0];
    float row[3];
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) row[j] = flat[n * i + j];
        y[n * threadIdx.x + i] = dot(i == 1 ? row : matrix.row(i), x + n * threadIdx.x, n);
    }
}
