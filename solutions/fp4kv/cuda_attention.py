"""Task of `lab05_kernel` in CUDA C: decode attention that reads a packed cache and never writes what it dequantised.

The text is a skeleton that a student gets, with one loop to write, and ends with the device functions of labkit.
"""

from labkit.device_code import DEVICE_CODE

DECODE_ATTENTION = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);

#define FULL_WARP 0xffffffffu                        // all 32 lanes take part in a shuffle
#define TILE 32                                      // tokens in shared memory at a time: one for each lane
#define MAX_WIDTH 256                                // a lane holds every 32nd channel of the output
#define POSITIVE_INFINITY __int_as_float(0x7f800000)

// Dequantise rows of a cache into shared memory: tile[t * (width + 1) + d] is channel d of token t.
//
// The rows follow each other in memory, so the block reads them as one run of 32-bit words: eight codes each, the first
// in the lowest four bits, all under one scale. Rows of the tile are one float longer than they need to be: 32 lanes
// that read the same channel of 32 tokens then read from 32 different banks. And so that most of them also write to
// different banks, every fourth lane begins with another one of its eight codes.
__device__ void load_tile(
    float* tile, const unsigned char* packed, const unsigned char* scales, long long row, int n_tokens, int width)
{
    const unsigned int* words = reinterpret_cast<const unsigned int*>(packed + row * (width / 2));
    scales += row * (width / 16);
    for (int w = threadIdx.y * 32 + threadIdx.x; w < n_tokens * width / 8; w += blockDim.y * 32) {
        const unsigned int word = words[w];
        const float scale = decode_e4m3(scales[w / 2]);
        const int t = 8 * w / width, d = 8 * w % width;
        for (int i = 0; i < 8; ++i) {
            const int j = (i + threadIdx.x / 4) % 8;
            tile[t * (width + 1) + d + j] = scale * decode_e2m1(word >> 4 * j & 15u);
        }
    }
}

// The largest of the numbers that 32 lanes have, and their sum: every lane calls, and every lane gets it.
__device__ float warp_max(float x)
{
    for (int distance = 16; distance > 0; distance /= 2) x = fmaxf(x, __shfl_xor_sync(FULL_WARP, x, distance));
    return x;
}

__device__ float warp_sum(float x)
{
    for (int distance = 16; distance > 0; distance /= 2) x += __shfl_xor_sync(FULL_WARP, x, distance);
    return x;
}

// q: [batch][query heads][width]. lengths: [batch], how many tokens of each sequence count.
// Cache: [batch][KV heads][max_tokens] rows of width / 2 bytes, and as many of width / 16 scales.
// Parts: [batch][query heads][parts], and [width] for the output.
//
// The context is cut into parts of part_tokens. One block takes one part of one KV head, for all the query heads that
// share it: blockIdx is (part, KV head, sequence), threadIdx is (lane, query head of the group). So one warp is one
// query head, a KV head is read once for the whole group, and the blocks of a long context run side by side.
// For its part, a warp leaves the largest logit m, the sum of exp(logit - m), and the sum of exp(logit - m) * value.
extern "C" __global__ void decode_attention(
    const float* q,
    const unsigned char* k_packed, const unsigned char* k_scales,
    const unsigned char* v_packed, const unsigned char* v_scales,
    const int* lengths,
    float* part_output, float* part_max, float* part_sum,
    int max_tokens, int part_tokens, int width)
{
    const int lane = threadIdx.x;
    const int begin = blockIdx.x * part_tokens;
    const int end = min(begin + part_tokens, lengths[blockIdx.z]);
    if (begin >= end) return;                        // a part beyond the end: the whole block leaves, none waits for it

    const long long kv_head = (long long)blockIdx.z * gridDim.y + blockIdx.y;
    const long long query_head = kv_head * blockDim.y + threadIdx.y;
    const long long row = kv_head * max_tokens;      // the row of this head's token 0

    extern __shared__ float shared[];
    float* tile = shared;                                                    // [TILE][width + 1], of the whole block
    float* query = tile + TILE * (width + 1) + threadIdx.y * width;          // [width], this warp's own
    float* weights = tile + TILE * (width + 1) + blockDim.y * width + threadIdx.y * TILE;    // [TILE], this warp's own
    for (int d = lane; d < width; d += 32) query[d] = q[query_head * width + d] / sqrtf((float)width);

    float running_max = -POSITIVE_INFINITY, running_sum = 0.0f;
    float output[MAX_WIDTH / 32] = {};               // output[c] is channel lane + 32 * c

    // For each TILE tokens from `begin` to `end`, the last of them fewer:
    // 1. load the keys; each lane takes the logit of one token (no token: minus infinity, so weight 0);
    // 2. find the new maximum; the weight of a token is exp(logit - new maximum), kept in weights[lane];
    // 3. rescale the sum and the output by exp(old maximum - new maximum), and add this tile's weights to the sum;
    // 4. load the values into the same tile; add weights times values, channel by channel, to the output.
    // The tile is the whole block's: nobody may overwrite what another warp still reads, or read too early.
    // ### BEGIN SOLUTION
    for (int first = begin; first < end; first += TILE) {
        const int n_tokens = min(TILE, end - first);
        load_tile(tile, k_packed, k_scales, row + first, n_tokens, width);
        __syncthreads();                             // the keys are there

        float logit = -POSITIVE_INFINITY;
        if (lane < n_tokens) {
            logit = 0.0f;
            for (int d = 0; d < width; ++d) logit += query[d] * tile[lane * (width + 1) + d];
        }
        const float new_max = fmaxf(running_max, warp_max(logit));
        const float correction = expf(running_max - new_max);        // the first time exp(-infinity): 0
        weights[lane] = expf(logit - new_max);
        running_sum = running_sum * correction + warp_sum(weights[lane]);
        running_max = new_max;

        __syncthreads();                             // nobody reads the keys any more, and the weights are there
        load_tile(tile, v_packed, v_scales, row + first, n_tokens, width);
        __syncthreads();                             // the values are there
        for (int c = 0; c < MAX_WIDTH / 32; ++c) {
            const int d = lane + 32 * c;
            float sum = output[c] * correction;
            for (int t = 0; t < n_tokens && d < width; ++t) sum += weights[t] * tile[t * (width + 1) + d];
            output[c] = sum;
        }
        __syncthreads();                             // nobody reads the values any more
    }
    // ### END SOLUTION

    const long long part = query_head * gridDim.x + blockIdx.x;
    for (int c = 0; c < MAX_WIDTH / 32; ++c) {
        const int d = lane + 32 * c;
        if (d < width) part_output[part * width + d] = output[c];
    }
    if (lane == 0) {
        part_max[part] = running_max;
        part_sum[part] = running_sum;
    }
}

// One block for each query head of each sequence, blockIdx is (query head, sequence); one thread for each channel.
// The parts have different maxima: each is brought to the largest of them before they are added. Without a token there
// is nothing to average, and the output is 0.
extern "C" __global__ void combine_parts(
    const float* part_output, const float* part_max, const float* part_sum, const int* lengths,
    float* output, int n_parts, int part_tokens, int width)
{
    const int length = lengths[blockIdx.y];
    const int n_used = (length + part_tokens - 1) / part_tokens;     // the parts beyond left nothing
    const long long query_head = (long long)blockIdx.y * gridDim.x + blockIdx.x;
    part_output += query_head * n_parts * width;
    part_max += query_head * n_parts;
    part_sum += query_head * n_parts;

    float largest = -POSITIVE_INFINITY;
    for (int part = 0; part < n_used; ++part) largest = fmaxf(largest, part_max[part]);

    for (int d = threadIdx.x; d < width; d += blockDim.x) {
        float total = 0.0f, sum = 0.0f;
        for (int part = 0; part < n_used; ++part) {
            const float share = expf(part_max[part] - largest);
            total += share * part_sum[part];
            sum += share * part_output[part * width + d];
        }
        output[query_head * width + d] = length > 0 ? sum / total : 0.0f;
    }
}
"""
    + DEVICE_CODE
)
"""Kernels `decode_attention` and `combine_parts`: one query per head over a packed cache, in two launches."""
