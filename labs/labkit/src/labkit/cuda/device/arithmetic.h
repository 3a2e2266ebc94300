// The C library's mathematics, and min, max and the like with CUDA's overloads.
#pragma once
extern "C" {
#define LABKIT_UNARY(name)           \
    float name##f(float) noexcept;   \
    double name(double) noexcept;
LABKIT_UNARY(exp) LABKIT_UNARY(exp2) LABKIT_UNARY(expm1)
LABKIT_UNARY(log) LABKIT_UNARY(log2) LABKIT_UNARY(log10) LABKIT_UNARY(log1p)
LABKIT_UNARY(sqrt) LABKIT_UNARY(cbrt)
LABKIT_UNARY(sin) LABKIT_UNARY(cos) LABKIT_UNARY(tan) LABKIT_UNARY(asin) LABKIT_UNARY(acos) LABKIT_UNARY(atan)
LABKIT_UNARY(sinh) LABKIT_UNARY(cosh) LABKIT_UNARY(tanh) LABKIT_UNARY(erf) LABKIT_UNARY(erfc)
LABKIT_UNARY(floor) LABKIT_UNARY(ceil) LABKIT_UNARY(trunc) LABKIT_UNARY(round) LABKIT_UNARY(rint) LABKIT_UNARY(nearbyint)
LABKIT_UNARY(fabs)
#undef LABKIT_UNARY
#define LABKIT_BINARY(name)                 \
    float name##f(float, float) noexcept;   \
    double name(double, double) noexcept;
LABKIT_BINARY(pow) LABKIT_BINARY(fmod) LABKIT_BINARY(fmax) LABKIT_BINARY(fmin)
LABKIT_BINARY(atan2) LABKIT_BINARY(copysign) LABKIT_BINARY(hypot) LABKIT_BINARY(nextafter) LABKIT_BINARY(remainder)
#undef LABKIT_BINARY
float fmaf(float, float, float) noexcept;
double fma(double, double, double) noexcept;
float ldexpf(float, int) noexcept;
double ldexp(double, int) noexcept;
float scalbnf(float, int) noexcept;
double scalbn(double, int) noexcept;
int ilogbf(float) noexcept;
long lrintf(float) noexcept;
long lroundf(float) noexcept;
int abs(int) noexcept;
long labs(long) noexcept;
}

#define LABKIT_FLOAT(name) \
    inline float name(float x) { return name##f(x); }
LABKIT_FLOAT(exp) LABKIT_FLOAT(exp2) LABKIT_FLOAT(log) LABKIT_FLOAT(log2) LABKIT_FLOAT(sqrt)
LABKIT_FLOAT(sin) LABKIT_FLOAT(cos) LABKIT_FLOAT(tanh) LABKIT_FLOAT(erf)
LABKIT_FLOAT(floor) LABKIT_FLOAT(ceil) LABKIT_FLOAT(trunc) LABKIT_FLOAT(round) LABKIT_FLOAT(rint)
LABKIT_FLOAT(fabs)
#undef LABKIT_FLOAT
inline float abs(float x) { return fabsf(x); }
inline double abs(double x) { return fabs(x); }
inline long long abs(long long x) { return x < 0 ? -x : x; }
inline float pow(float x, float y) { return powf(x, y); }
inline float fmod(float x, float y) { return fmodf(x, y); }
inline float fma(float x, float y, float z) { return fmaf(x, y, z); }
inline float fmax(float x, float y) { return fmaxf(x, y); }
inline float fmin(float x, float y) { return fminf(x, y); }
inline float ldexp(float x, int exponent) { return ldexpf(x, exponent); }
inline float exp10f(float x) { return powf(10.0f, x); }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline float rsqrt(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float fdividef(float x, float y) { return x / y; }

// The C library writes to a variable of ours, so that the write through the kernel's pointer is seen.
#define LABKIT_TWO_RESULTS(name, T, Second)                     \
    inline T labkit_##name(T x, Second* second) {               \
        Second found;                                           \
        const T first = __builtin_##name(x, &found);            \
        *second = found;                                        \
        return first;                                           \
    }
LABKIT_TWO_RESULTS(frexp, double, int) LABKIT_TWO_RESULTS(frexpf, float, int)
LABKIT_TWO_RESULTS(modf, double, double) LABKIT_TWO_RESULTS(modff, float, float)
#undef LABKIT_TWO_RESULTS
inline void sincosf(float x, float* sine, float* cosine) { *sine = sinf(x); *cosine = cosf(x); }
inline void sincos(double x, double* sine, double* cosine) { *sine = sin(x); *cosine = cos(x); }

#define LABKIT_MIN_MAX(T)                                \
    inline T max(T a, T b) { return a < b ? b : a; }     \
    inline T min(T a, T b) { return b < a ? b : a; }
LABKIT_MIN_MAX(int) LABKIT_MIN_MAX(unsigned) LABKIT_MIN_MAX(long) LABKIT_MIN_MAX(unsigned long)
LABKIT_MIN_MAX(long long) LABKIT_MIN_MAX(unsigned long long)
#undef LABKIT_MIN_MAX
#define LABKIT_MIN_MAX_MIXED(A, B, T)                        \
    inline T max(A a, B b) { return max((T)a, (T)b); }       \
    inline T min(A a, B b) { return min((T)a, (T)b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline float min(float a, float b) { return fminf(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
LABKIT_MIN_MAX_MIXED(int, unsigned, unsigned) LABKIT_MIN_MAX_MIXED(unsigned, int, unsigned)
LABKIT_MIN_MAX_MIXED(long, unsigned long, unsigned long) LABKIT_MIN_MAX_MIXED(unsigned long, long, unsigned long)
LABKIT_MIN_MAX_MIXED(long long, unsigned long long, unsigned long long)
LABKIT_MIN_MAX_MIXED(unsigned long long, long long, unsigned long long)
LABKIT_MIN_MAX_MIXED(float, double, double) LABKIT_MIN_MAX_MIXED(double, float, double)
#undef LABKIT_MIN_MAX_MIXED

#define LABKIT_CLASSIFY(name)                                      \
    inline bool name(float x) { return __builtin_##name(x); }      \
    inline bool name(double x) { return __builtin_##name(x); }
LABKIT_CLASSIFY(isnan) LABKIT_CLASSIFY(isinf) LABKIT_CLASSIFY(isfinite) LABKIT_CLASSIFY(signbit)
#undef LABKIT_CLASSIFY
