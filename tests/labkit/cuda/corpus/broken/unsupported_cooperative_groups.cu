// about: Cooperative groups.
// kernel: groups
// grid: 1
// block: 32
// arg: int32[32] zeros
// expect: unsupported
// says: cooperative groups
#include <cooperative_groups.h>  // HERE
namespace cg = cooperative_groups;  // HERE
extern "C" __global__ void groups(int* y)
{
    cg::thread_block block = cg::this_thread_block();
    block.sync();
    y[threadIdx.x] = block.size();
}
