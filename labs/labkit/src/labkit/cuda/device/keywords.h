// CUDA's keywords, in the words of an ordinary C++ compiler.
#pragma once
#define __CUDACC_RTC__ 1
#define __CUDA_ARCH__ 800
#define LABKIT_CPU_RUN 1

// Everything that a kernel calls is made part of it, as a GPU's compiler does. A structure that is passed by value is
// then copied where its load is seen; in a call it is not.
#define __global__ __attribute__((noinline, flatten))
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__
#define LABKIT_NOT_INLINED __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))

// Static shared variables stand in sections by which they are told from other variables, one for each declaration: the
// linker leaves a gap between them. (GCC forgets the section of a variable in a template; those are told by names.)
#define LABKIT_TEXT(text) #text
#define LABKIT_SECTION(number) __attribute__((section("labkit_shared." LABKIT_TEXT(number))))
#define __shared__ static LABKIT_SECTION(__COUNTER__)

// Dynamic shared memory lies at one address always, so that a declaration of it needs no code to run.
#include "addresses.h"

// For our own functions: their accesses are not the kernel's.
#define LABKIT_UNCHECKED __attribute__((no_sanitize_thread, no_sanitize_undefined))

typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
