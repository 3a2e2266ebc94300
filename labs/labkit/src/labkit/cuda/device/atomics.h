// Atomics. Threads are switched in calls of the runner only, so an ordinary read and write is indivisible here;
// the runner is told first, and checks the place as an atomic one.
#pragma once
// inlined into the kernel, so that the runner sees the line of the kernel; unchecked, so that it sees the access once
#define LABKIT_ATOMIC(name, T, expression) LABKIT_ATOMIC_THAT(1, name, T, expression)
#define LABKIT_ATOMIC_THAT(reads, name, T, expression)                           \
    LABKIT_UNCHECKED LABKIT_NOT_INLINED inline T name##_unchecked(T* place, T value) { \
        T old = *place;                                                          \
        *place = (expression);                                                   \
        return old;                                                              \
    }                                                                            \
    __forceinline__ T name(T* place, T value) {                                  \
        labkit_atomic(place, sizeof(T), reads);                                  \
        return name##_unchecked(place, value);                                   \
    }
#define LABKIT_ATOMIC_INTEGERS(name, expression) \
    LABKIT_ATOMIC(name, int, expression)         \
    LABKIT_ATOMIC(name, unsigned, expression)    \
    LABKIT_ATOMIC(name, long long, expression)   \
    LABKIT_ATOMIC(name, unsigned long long, expression)

LABKIT_ATOMIC_INTEGERS(atomicAdd, old + value)
LABKIT_ATOMIC(atomicAdd, float, old + value)
LABKIT_ATOMIC(atomicAdd, double, old + value)
LABKIT_ATOMIC_INTEGERS(atomicSub, old - value)
LABKIT_ATOMIC_INTEGERS(atomicMin, old < value ? old : value)
LABKIT_ATOMIC_INTEGERS(atomicMax, old > value ? old : value)
LABKIT_ATOMIC_INTEGERS(atomicAnd, old& value)
LABKIT_ATOMIC_INTEGERS(atomicOr, old | value)
LABKIT_ATOMIC_INTEGERS(atomicXor, old ^ value)
// an exchange asks nothing of what was there
LABKIT_ATOMIC_THAT(0, atomicExch, int, value)
LABKIT_ATOMIC_THAT(0, atomicExch, unsigned, value)
LABKIT_ATOMIC_THAT(0, atomicExch, unsigned long long, value)
LABKIT_ATOMIC_THAT(0, atomicExch, float, value)
LABKIT_ATOMIC(atomicInc, unsigned, old >= value ? 0u : old + 1u)
LABKIT_ATOMIC(atomicDec, unsigned, (old == 0u || old > value) ? value : old - 1u)

#define LABKIT_COMPARE_AND_SWAP(T)                                                              \
    LABKIT_UNCHECKED LABKIT_NOT_INLINED inline T atomicCAS_unchecked(T* place, T expected, T value) { \
        T old = *place;                                                                         \
        if (old == expected) *place = value;                                                    \
        return old;                                                                             \
    }                                                                                           \
    __forceinline__ T atomicCAS(T* place, T expected, T value) {                                \
        labkit_atomic(place, sizeof(T), 1);                                                     \
        return atomicCAS_unchecked(place, expected, value);                                     \
    }
LABKIT_COMPARE_AND_SWAP(int)
LABKIT_COMPARE_AND_SWAP(unsigned)
LABKIT_COMPARE_AND_SWAP(unsigned short)
LABKIT_COMPARE_AND_SWAP(unsigned long long)
