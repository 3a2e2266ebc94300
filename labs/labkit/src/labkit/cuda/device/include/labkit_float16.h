// What half and bfloat16 have in common: a type of 16 bits whose arithmetic is done in float and rounded once.
// (For + - * / and square roots that gives the correctly rounded result: float has more than twice the digits.)
// For g++ and for NVIDIA's compiler; on a GPU, CuPy takes NVIDIA's own headers.
#pragma once
#define LABKIT_INLINE __device__ __forceinline__

#define LABKIT_FLOAT16_OPERATOR(T, op)                                        \
    LABKIT_INLINE T operator op(T a, T b) { return T((float)a op(float) b); } \
    LABKIT_INLINE T& operator op## = (T & a, T b) { return a = a op b; }
#define LABKIT_FLOAT16_COMPARISON(T, op) \
    LABKIT_INLINE bool operator op(T a, T b) { return (float)a op(float) b; }

// T with its conversions, operators and, in T2, pairs of it
#define LABKIT_FLOAT16(T, T2, from_float, to_float)                     \
    struct __align__(2) T {                                             \
        unsigned short bits;                                            \
        T() = default;                                                  \
        LABKIT_INLINE T(float x) : bits(from_float(x)) {}               \
        LABKIT_INLINE T(double x) : bits(from_float((float)x)) {}       \
        LABKIT_INLINE T(int x) : bits(from_float((float)x)) {}          \
        LABKIT_INLINE T(unsigned x) : bits(from_float((float)x)) {}     \
        LABKIT_INLINE operator float() const { return to_float(bits); } \
    };                                                                  \
    struct __align__(4) T2 {                                            \
        T x, y;                                                         \
        T2() = default;                                                 \
        LABKIT_INLINE T2(T x, T y) : x(x), y(y) {}                      \
    };                                                                  \
    LABKIT_FLOAT16_OPERATOR(T, +)                                       \
    LABKIT_FLOAT16_OPERATOR(T, -)                                       \
    LABKIT_FLOAT16_OPERATOR(T, *)                                       \
    LABKIT_FLOAT16_OPERATOR(T, /)                                       \
    LABKIT_FLOAT16_COMPARISON(T, ==)                                    \
    LABKIT_FLOAT16_COMPARISON(T, !=)                                    \
    LABKIT_FLOAT16_COMPARISON(T, <)                                     \
    LABKIT_FLOAT16_COMPARISON(T, >)                                     \
    LABKIT_FLOAT16_COMPARISON(T, <=)                                    \
    LABKIT_FLOAT16_COMPARISON(T, >=)                                    \
    LABKIT_INLINE T operator-(T a) { return T(-(float)a); }             \
    LABKIT_FLOAT16_FUNCTIONS(T, T2)                                     \
    LABKIT_FLOAT16_SHUFFLES(T)

#define LABKIT_FLOAT16_FUNCTIONS(T, T2)                                                                     \
    LABKIT_INLINE T __hadd(T a, T b) { return a + b; }                                                      \
    LABKIT_INLINE T __hsub(T a, T b) { return a - b; }                                                      \
    LABKIT_INLINE T __hmul(T a, T b) { return a * b; }                                                      \
    LABKIT_INLINE T __hdiv(T a, T b) { return a / b; }                                                      \
    LABKIT_INLINE T __hfma(T a, T b, T c) { return T(fmaf((float)a, (float)b, (float)c)); }                 \
    LABKIT_INLINE T __hneg(T a) { return -a; }                                                              \
    LABKIT_INLINE T __habs(T a) { return T(fabsf((float)a)); }                                              \
    LABKIT_INLINE T __hmax(T a, T b) { return T(fmaxf((float)a, (float)b)); }                               \
    LABKIT_INLINE T __hmin(T a, T b) { return T(fminf((float)a, (float)b)); }                               \
    LABKIT_INLINE T hsqrt(T a) { return T(sqrtf((float)a)); }                                               \
    LABKIT_INLINE T hexp(T a) { return T(expf((float)a)); }                                                 \
    LABKIT_INLINE T hrcp(T a) { return T(1.0f / (float)a); }                                                \
    LABKIT_INLINE bool __heq(T a, T b) { return a == b; }                                                   \
    LABKIT_INLINE bool __hne(T a, T b) { return a != b; }                                                   \
    LABKIT_INLINE bool __hlt(T a, T b) { return a < b; }                                                    \
    LABKIT_INLINE bool __hgt(T a, T b) { return a > b; }                                                    \
    LABKIT_INLINE bool __hle(T a, T b) { return a <= b; }                                                   \
    LABKIT_INLINE bool __hge(T a, T b) { return a >= b; }                                                   \
    LABKIT_INLINE bool __hisnan(T a) { return (float)a != (float)a; }                                       \
    LABKIT_INLINE T2 __hadd2(T2 a, T2 b) { return T2(a.x + b.x, a.y + b.y); }                               \
    LABKIT_INLINE T2 __hsub2(T2 a, T2 b) { return T2(a.x - b.x, a.y - b.y); }                               \
    LABKIT_INLINE T2 __hmul2(T2 a, T2 b) { return T2(a.x * b.x, a.y * b.y); }                               \
    LABKIT_INLINE T2 __hfma2(T2 a, T2 b, T2 c) { return T2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)); } \
    LABKIT_INLINE float __low2float(T2 a) { return (float)a.x; }                                            \
    LABKIT_INLINE float __high2float(T2 a) { return (float)a.y; }

#ifdef LABKIT_CPU_RUN
#define LABKIT_FLOAT16_SHUFFLES(T)  // the shuffles of the CPU run are templates
#else
#define LABKIT_FLOAT16_SHUFFLES(T)                                                         \
    LABKIT_INLINE T labkit_from_bits(unsigned bits, T like) {                              \
        like.bits = (unsigned short)bits;                                                  \
        return like;                                                                       \
    }                                                                                      \
    LABKIT_INLINE T __shfl_sync(unsigned mask, T a, int lane, int width = 32) {            \
        return labkit_from_bits(__shfl_sync(mask, (unsigned)a.bits, lane, width), a);      \
    }                                                                                      \
    LABKIT_INLINE T __shfl_xor_sync(unsigned mask, T a, int lanes, int width = 32) {       \
        return labkit_from_bits(__shfl_xor_sync(mask, (unsigned)a.bits, lanes, width), a); \
    }                                                                                      \
    LABKIT_INLINE T __shfl_up_sync(unsigned mask, T a, unsigned by, int width = 32) {      \
        return labkit_from_bits(__shfl_up_sync(mask, (unsigned)a.bits, by, width), a);     \
    }                                                                                      \
    LABKIT_INLINE T __shfl_down_sync(unsigned mask, T a, unsigned by, int width = 32) {    \
        return labkit_from_bits(__shfl_down_sync(mask, (unsigned)a.bits, by, width), a);   \
    }
#endif
