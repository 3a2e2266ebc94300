"""Device functions that every kernel of the course may use: single numbers to and from E2M1 and E4M3, in CUDA C.

A kernel's text ends with `DEVICE_CODE`, so that its own lines keep their numbers in messages, and begins with the
declarations of what it uses from here:

    __device__ unsigned char encode_e4m3(float x);             // byte of the E4M3 number nearest to x, x at least 0
    __device__ float decode_e4m3(unsigned char byte);          // bytes 0x00 to 0x7e
    __device__ unsigned int encode_e2m1(float x);              // code 0 to 15 of the E2M1 number nearest to x
    __device__ float decode_e2m1(unsigned int code);

All four round to nearest, ties to even, and saturate; NaN and infinity are for the caller to refuse.
"""

from typing import Final

DEVICE_CODE: Final = r"""
// ---- Given: one number at a time, to and from a small float format. --------------------------------------------
//
// A float32 has 8 bits of exponent with bias 127 and 23 of mantissa. E4M3 (4 bits with bias 7, then 3) and E2M1 (2 bits
// with bias 1, then 1) keep the top bits of the same picture: shift the rest away, and let the exponent count from
// another zero. Only below the smallest normal number are steps of equal size left, which are counted instead.

// The byte of the E4M3 number nearest to x, ties to even; x is at least 0. From 448 on: 0x7e, which is 448.
__device__ unsigned char encode_e4m3(float x)
{
    if (x >= 448.0f) return 0x7e;                            // 0x7f would be NaN
    if (x < 0.015625f) return __float2int_rn(x * 512.0f);    // below 2^-6: steps of 2^-9; the eighth is 2^-6 itself
    unsigned int bits = __float_as_uint(x);
    bits += 0x7ffffu + (bits >> 20 & 1u);                    // carries into bit 20 if the lower 20 bits round up
    return (bits >> 20) - ((127u - 7u) << 3);
}

// The number of an E4M3 byte, 0x00 to 0x7e: a scale has no sign.
__device__ float decode_e4m3(unsigned char byte)
{
    if (byte < 8) return byte * 0.001953125f;                // steps of 2^-9
    return __uint_as_float((byte + ((127u - 7u) << 3)) << 20);
}

// The code of the E2M1 number nearest to x, ties to even; bit 3 is the sign. Beyond 6 in size: the code of 6.
__device__ unsigned int encode_e2m1(float x)
{
    const float size = fminf(fabsf(x), 6.0f);
    unsigned int code;
    if (size < 2.0f) code = __float2uint_rn(2.0f * size);            // steps of 0.5: 0 to 4 of them, codes 0 to 4
    else if (size < 4.0f) code = 2u + __float2uint_rn(size);         // steps of 1: 2 to 4 of them, codes 4 to 6
    else code = 4u + __float2uint_rn(0.5f * size);                   // steps of 2: 2 or 3 of them, codes 6 and 7
    return code | __float_as_uint(x) >> 31 << 3;
}

// The number of an E2M1 code, 0 to 15.
__device__ float decode_e2m1(unsigned int code)
{
    const unsigned int sign = (code & 8u) << 28, size = code & 7u;
    if (size < 2u) return __uint_as_float(__float_as_uint(0.5f * size) | sign);      // 0 and 0.5
    return __uint_as_float((size + ((127u - 1u) << 1)) << 22 | sign);
}
"""
"""CUDA C of the four functions; a kernel's text is followed by it."""
