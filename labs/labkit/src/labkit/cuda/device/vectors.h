// char1 … double4 and dim3, with CUDA's alignments: a float4 must lie at a multiple of 16 bytes.
#pragma once
#define LABKIT_VECTORS(T, name, align2, align4)                                                          \
    struct name##1 { T x; };                                                                             \
    struct __align__(align2) name##2 { T x, y; };                                                        \
    struct name##3 { T x, y, z; };                                                                       \
    struct __align__(align4) name##4 { T x, y, z, w; };                                                  \
    inline name##1 make_##name##1(T x) { return name##1{x}; }                                            \
    inline name##2 make_##name##2(T x, T y) { return name##2{x, y}; }                                    \
    inline name##3 make_##name##3(T x, T y, T z) { return name##3{x, y, z}; }                            \
    inline name##4 make_##name##4(T x, T y, T z, T w) { return name##4{x, y, z, w}; }

LABKIT_VECTORS(signed char, char, 2, 4)
LABKIT_VECTORS(unsigned char, uchar, 2, 4)
LABKIT_VECTORS(short, short, 4, 8)
LABKIT_VECTORS(unsigned short, ushort, 4, 8)
LABKIT_VECTORS(int, int, 8, 16)
LABKIT_VECTORS(unsigned int, uint, 8, 16)
LABKIT_VECTORS(long, long, 16, 16)
LABKIT_VECTORS(unsigned long, ulong, 16, 16)
LABKIT_VECTORS(long long, longlong, 16, 16)
LABKIT_VECTORS(unsigned long long, ulonglong, 16, 16)
LABKIT_VECTORS(float, float, 8, 16)
LABKIT_VECTORS(double, double, 16, 16)
#undef LABKIT_VECTORS

struct dim3 {
    unsigned int x, y, z;
    constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
};
