// about: Matrix fragments for tensor cores.
// kernel: product
// grid: 1
// block: 32
// arg: float32[256] zeros
// expect: unsupported
// says: tensor cores
#include <mma.h>  // HERE
using namespace nvcuda;  // HERE
extern "C" __global__ void product(float* y)
{
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;  // HERE
    wmma::fill_fragment(sum, 0.0f);
    wmma::store_matrix_sync(y, sum, 16, wmma::mem_row_major);
}
