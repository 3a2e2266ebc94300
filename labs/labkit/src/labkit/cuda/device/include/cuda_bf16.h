// bfloat16: conversions and arithmetic, as far as a kernel that quantises or attends uses them.
#pragma once
#include "labkit_float16.h"

// The upper half of a float, rounded to nearest, ties to even.
LABKIT_INLINE unsigned short labkit_bfloat16_bits(float x) {
    unsigned bits = __float_as_uint(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;  // NaN
    return (unsigned short)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
LABKIT_INLINE float labkit_bfloat16_value(unsigned short bits) { return __uint_as_float((unsigned)bits << 16); }

LABKIT_FLOAT16(__nv_bfloat16, __nv_bfloat162, labkit_bfloat16_bits, labkit_bfloat16_value)
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

LABKIT_INLINE __nv_bfloat16 __float2bfloat16(float x) { return __nv_bfloat16(x); }
LABKIT_INLINE __nv_bfloat16 __float2bfloat16_rn(float x) { return __nv_bfloat16(x); }
LABKIT_INLINE __nv_bfloat16 __double2bfloat16(double x) { return __nv_bfloat16((float)x); }
LABKIT_INLINE __nv_bfloat16 __int2bfloat16_rn(int x) { return __nv_bfloat16((float)x); }
LABKIT_INLINE float __bfloat162float(__nv_bfloat16 x) { return (float)x; }
LABKIT_INLINE int __bfloat162int_rn(__nv_bfloat16 x) { return __float2int_rn((float)x); }
LABKIT_INLINE unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.bits; }
LABKIT_INLINE short __bfloat16_as_short(__nv_bfloat16 x) { return (short)x.bits; }
LABKIT_INLINE __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) {
    __nv_bfloat16 x;
    x.bits = bits;
    return x;
}
LABKIT_INLINE __nv_bfloat16 __short_as_bfloat16(short bits) { return __ushort_as_bfloat16((unsigned short)bits); }
LABKIT_INLINE __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return __nv_bfloat162(x, y); }
LABKIT_INLINE __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return __nv_bfloat162(x, y); }
LABKIT_INLINE __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 x) { return __nv_bfloat162(x, x); }
LABKIT_INLINE __nv_bfloat162 __float2bfloat162_rn(float x) {
    return __nv_bfloat162(__nv_bfloat16(x), __nv_bfloat16(x));
}
LABKIT_INLINE __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
    return __nv_bfloat162(__nv_bfloat16(x), __nv_bfloat16(y));
}
LABKIT_INLINE __nv_bfloat162 __float22bfloat162_rn(float2 x) {
    return __nv_bfloat162(__nv_bfloat16(x.x), __nv_bfloat16(x.y));
}
LABKIT_INLINE float2 __bfloat1622float2(__nv_bfloat162 x) { return make_float2((float)x.x, (float)x.y); }
LABKIT_INLINE __nv_bfloat16 __low2bfloat16(__nv_bfloat162 x) { return x.x; }
LABKIT_INLINE __nv_bfloat16 __high2bfloat16(__nv_bfloat162 x) { return x.y; }
