// half: conversions and arithmetic, as far as a kernel that quantises or attends uses them.
#pragma once
#include "labkit_float16.h"

// To nearest, ties to even. A half has 10 bits of mantissa, and exponents from -14; below that steps of 2^-24.
LABKIT_INLINE unsigned short labkit_half_bits(float x) {
    unsigned bits = __float_as_uint(x), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return (unsigned short)(sign | 0x7fffu);   // NaN
    if (magnitude >= 0x477ff000u) return (unsigned short)(sign | 0x7c00u);  // 65520 and beyond round to infinity
    if (magnitude < 0x38800000u) {                                          // below 2^-14: count steps of 2^-24
        return (unsigned short)(sign | (unsigned)__float2int_rn(__uint_as_float(magnitude) * 16777216.0f));
    }
    unsigned rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    return (unsigned short)(sign | ((rounded - 0x38000000u) >> 13));
}
LABKIT_INLINE float labkit_half_value(unsigned short half) {
    unsigned sign = (half & 0x8000u) << 16, exponent = (half >> 10) & 31u, mantissa = half & 0x3ffu;
    if (exponent == 0) return __uint_as_float(sign | __float_as_uint((float)mantissa * (1.0f / 16777216.0f)));
    if (exponent == 31) return __uint_as_float(sign | 0x7f800000u | (mantissa << 13));
    return __uint_as_float(sign | ((exponent + 112u) << 23) | (mantissa << 13));
}

LABKIT_FLOAT16(__half, __half2, labkit_half_bits, labkit_half_value)
typedef __half half;
typedef __half2 half2;

LABKIT_INLINE __half __float2half(float x) { return __half(x); }
LABKIT_INLINE __half __float2half_rn(float x) { return __half(x); }
LABKIT_INLINE __half __double2half(double x) { return __half((float)x); }
LABKIT_INLINE __half __int2half_rn(int x) { return __half((float)x); }
LABKIT_INLINE float __half2float(__half x) { return (float)x; }
LABKIT_INLINE int __half2int_rn(__half x) { return __float2int_rn((float)x); }
LABKIT_INLINE int __half2int_rz(__half x) { return __float2int_rz((float)x); }
LABKIT_INLINE unsigned short __half_as_ushort(__half x) { return x.bits; }
LABKIT_INLINE short __half_as_short(__half x) { return (short)x.bits; }
LABKIT_INLINE __half __ushort_as_half(unsigned short bits) {
    __half x;
    x.bits = bits;
    return x;
}
LABKIT_INLINE __half __short_as_half(short bits) { return __ushort_as_half((unsigned short)bits); }
LABKIT_INLINE __half2 make_half2(__half x, __half y) { return __half2(x, y); }
LABKIT_INLINE __half2 __halves2half2(__half x, __half y) { return __half2(x, y); }
LABKIT_INLINE __half2 __half2half2(__half x) { return __half2(x, x); }
LABKIT_INLINE __half2 __float2half2_rn(float x) { return __half2(__half(x), __half(x)); }
LABKIT_INLINE __half2 __floats2half2_rn(float x, float y) { return __half2(__half(x), __half(y)); }
LABKIT_INLINE __half2 __float22half2_rn(float2 x) { return __half2(__half(x.x), __half(x.y)); }
LABKIT_INLINE float2 __half22float2(__half2 x) { return make_float2((float)x.x, (float)x.y); }
LABKIT_INLINE __half __low2half(__half2 x) { return x.x; }
LABKIT_INLINE __half __high2half(__half2 x) { return x.y; }
