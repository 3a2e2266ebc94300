// What the runner offers to a kernel: where a thread is, and the few calls that need the other threads.
#pragma once
extern "C" {
int labkit_barrier(int operation, int predicate, int line);
unsigned long long labkit_warp_call(int operation, unsigned mask, unsigned long long value, int argument, int width,
                                    int line);
void labkit_atomic(const void* address, int size, int reads);
void labkit_fence();
void labkit_yield();
void labkit_trap(int line);
void labkit_assertion(const char* condition, int line);
long long labkit_clock();
void labkit_copy(void* to, const void* from, size_t bytes);
void labkit_fill(void* to, int value, size_t bytes);

int labkit_print(const char* format, ...) __attribute__((format(printf, 1, 2)));
}

// Functions, not variables: a kernel must not be able to assign to them. The answer is the same during a whole thread.
extern "C" {
uint3 labkit_where_thread() __attribute__((const));
uint3 labkit_where_block() __attribute__((const));
uint3 labkit_block_shape() __attribute__((const));
uint3 labkit_grid_shape() __attribute__((const));
}
#define threadIdx (labkit_where_thread())
#define blockIdx (labkit_where_block())
#define blockDim (labkit_block_shape())
#define gridDim (labkit_grid_shape())
#define warpSize 32
#define printf labkit_print

// A kernel that declares one of these itself must not reach the C library's, whose accesses nobody checks: the names
// that a source writes are ours, those that the compiler calls for a copy of its own stay.
#define memcpy labkit_memcpy
#define memmove labkit_memmove
#define memset labkit_memset
#define frexp labkit_frexp
#define frexpf labkit_frexpf
#define modf labkit_modf
#define modff labkit_modff
#define sincos labkit_sincos
#define sincosf labkit_sincosf

// Fixed sizes go to the compiler, which turns most of them into one load and one store; those are checked as such.
__forceinline__ void* memcpy(void* to, const void* from, size_t bytes) {
    if (__builtin_constant_p(bytes) && bytes <= 16) return __builtin_memcpy(to, from, bytes);
    labkit_copy(to, from, bytes);
    return to;
}
__forceinline__ void* memset(void* to, int value, size_t bytes) {
    labkit_fill(to, value, bytes);
    return to;
}

inline void __threadfence() { labkit_fence(); }
inline void __threadfence_block() { labkit_fence(); }
inline void __threadfence_system() { labkit_fence(); }
inline void __nanosleep(unsigned) { labkit_yield(); }
inline long long clock64() { return labkit_clock(); }
inline int clock() { return (int)labkit_clock(); }
#define __trap() labkit_trap(__LINE__)
#define assert(condition) ((condition) ? (void)0 : labkit_assertion(#condition, __LINE__))
