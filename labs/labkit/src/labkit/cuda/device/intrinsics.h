// Intrinsics: bit casts, conversions with a stated rounding, bit counting, loads with cache hints.
#pragma once
inline int __float_as_int(float x) { return labkit_bits<int>(x); }
inline unsigned __float_as_uint(float x) { return labkit_bits<unsigned>(x); }
inline float __int_as_float(int x) { return labkit_bits<float>(x); }
inline float __uint_as_float(unsigned x) { return labkit_bits<float>(x); }
inline long long __double_as_longlong(double x) { return labkit_bits<long long>(x); }
inline double __longlong_as_double(long long x) { return labkit_bits<double>(x); }

// These saturate and send NaN to 0, as the hardware does; a plain cast of such a value is undefined, and reported.
LABKIT_UNCHECKED inline int labkit_to_int(float x) {
    if (x != x) return 0;
    if (x >= 2147483648.0f) return 2147483647;
    return x <= -2147483648.0f ? -2147483647 - 1 : (int)x;
}
LABKIT_UNCHECKED inline unsigned labkit_to_unsigned(float x) {
    if (!(x > 0.0f)) return 0u;
    return x >= 4294967296.0f ? 4294967295u : (unsigned)x;
}
inline int __float2int_rn(float x) { return labkit_to_int(rintf(x)); }
inline int __float2int_rz(float x) { return labkit_to_int(x); }
inline int __float2int_ru(float x) { return labkit_to_int(ceilf(x)); }
inline int __float2int_rd(float x) { return labkit_to_int(floorf(x)); }
inline unsigned __float2uint_rn(float x) { return labkit_to_unsigned(rintf(x)); }
inline unsigned __float2uint_rz(float x) { return labkit_to_unsigned(x); }
inline unsigned __float2uint_ru(float x) { return labkit_to_unsigned(ceilf(x)); }
inline unsigned __float2uint_rd(float x) { return labkit_to_unsigned(floorf(x)); }
inline float __int2float_rn(int x) { return (float)x; }
inline float __uint2float_rn(unsigned x) { return (float)x; }
inline float __double2float_rn(double x) { return (float)x; }

// Rounded to nearest even: this is what C++ does too, without contraction into fused multiply-adds.
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __frsqrt_rn(float x) { return (float)(1.0 / sqrt((double)x)); }

// The fast, approximate ones are exact here.
inline float __expf(float x) { return expf(x); }
inline float __exp10f(float x) { return powf(10.0f, x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __log10f(float x) { return log10f(x); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __tanf(float x) { return tanf(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __saturatef(float x) { return x != x ? 0.0f : fminf(fmaxf(x, 0.0f), 1.0f); }

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
    unsigned reversed = 0;
    for (int bit = 0; bit < 32; ++bit) reversed |= ((x >> bit) & 1u) << (31 - bit);
    return reversed;
}
inline unsigned __umulhi(unsigned x, unsigned y) { return (unsigned)(((unsigned long long)x * y) >> 32); }
inline int __mulhi(int x, int y) { return (int)(((long long)x * y) >> 32); }
inline int __mul24(int x, int y) { return x * y; }
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
    unsigned long long both = ((unsigned long long)high << 32) | low;
    unsigned result = 0;
    for (int i = 0; i < 4; ++i) {
        unsigned choice = (selector >> (4 * i)) & 15u;
        unsigned byte = (unsigned)(both >> (8 * (choice & 7u))) & 255u;
        if (choice & 8u) byte = (byte & 128u) ? 255u : 0u;
        result |= byte << (8 * i);
    }
    return result;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)(((((unsigned long long)high << 32) | low) << (shift & 31u)) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)((((unsigned long long)high << 32) | low) >> (shift & 31u));
}

template <class T> __forceinline__ T __ldg(const T* place) { return *place; }
template <class T> __forceinline__ T __ldcs(const T* place) { return *place; }
template <class T> __forceinline__ T __ldcg(const T* place) { return *place; }
template <class T> __forceinline__ T __ldca(const T* place) { return *place; }
template <class T> __forceinline__ void __stcs(T* place, T value) { *place = value; }
template <class T> __forceinline__ void __stcg(T* place, T value) { *place = value; }
