// Barriers and warp collectives. Each passes the line it stands in, which a message about it names.
#pragma once
#include "operations.h"

// The caller's line: a default argument is evaluated where the call stands.
#define LABKIT_LINE int line = __builtin_LINE()

inline void __syncthreads(LABKIT_LINE) { labkit_barrier(LABKIT_BARRIER, 0, line); }
inline int __syncthreads_count(int predicate, LABKIT_LINE) {
    return labkit_barrier(LABKIT_BARRIER_COUNT, predicate, line);
}
inline int __syncthreads_and(int predicate, LABKIT_LINE) { return labkit_barrier(LABKIT_BARRIER_AND, predicate, line); }
inline int __syncthreads_or(int predicate, LABKIT_LINE) { return labkit_barrier(LABKIT_BARRIER_OR, predicate, line); }
inline void __syncwarp(unsigned mask = 0xffffffffu, LABKIT_LINE) {
    labkit_warp_call(LABKIT_SYNCWARP, mask, 0, 0, 32, line);
}

// Values travel as the bits of an integer of their size: 8 bytes at most, as on a GPU.
template <int bytes>
struct LabkitWord;
template <>
struct LabkitWord<1> {
    typedef unsigned char type;
};
template <>
struct LabkitWord<2> {
    typedef unsigned short type;
};
template <>
struct LabkitWord<4> {
    typedef unsigned type;
};
template <>
struct LabkitWord<8> {
    typedef unsigned long long type;
};
template <class To, class From>
__forceinline__ To labkit_bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "a bit cast keeps the size");
    To to;
    __builtin_memcpy(&to, &from, sizeof to);
    return to;
}

template <class T>
__forceinline__ T labkit_exchange(int operation, unsigned mask, T value, int argument, int width, int line) {
    typedef typename LabkitWord<sizeof(T)>::type Word;
    return labkit_bits<T>((Word)labkit_warp_call(operation, mask, labkit_bits<Word>(value), argument, width, line));
}
template <class T>
inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, LABKIT_LINE) {
    return labkit_exchange(LABKIT_SHUFFLE, mask, value, source, width, line);
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32, LABKIT_LINE) {
    return labkit_exchange(LABKIT_SHUFFLE_XOR, mask, value, lanes, width, line);
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned distance, int width = 32, LABKIT_LINE) {
    return labkit_exchange(LABKIT_SHUFFLE_UP, mask, value, (int)distance, width, line);
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = 32, LABKIT_LINE) {
    return labkit_exchange(LABKIT_SHUFFLE_DOWN, mask, value, (int)distance, width, line);
}

inline unsigned labkit_vote(int operation, unsigned mask, int predicate, int line) {
    return (unsigned)labkit_warp_call(operation, mask, predicate != 0, 0, 32, line);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, LABKIT_LINE) {
    return labkit_vote(LABKIT_BALLOT, mask, predicate, line);
}
inline int __any_sync(unsigned mask, int predicate, LABKIT_LINE) {
    return (int)labkit_vote(LABKIT_ANY, mask, predicate, line);
}
inline int __all_sync(unsigned mask, int predicate, LABKIT_LINE) {
    return (int)labkit_vote(LABKIT_ALL, mask, predicate, line);
}
inline unsigned __activemask(LABKIT_LINE) { return labkit_vote(LABKIT_ACTIVE_MASK, 0, 0, line); }
template <class T>
inline unsigned __match_any_sync(unsigned mask, T value, LABKIT_LINE) {
    typedef typename LabkitWord<sizeof(T)>::type Word;
    return (unsigned)labkit_warp_call(LABKIT_MATCH_ANY, mask, labkit_bits<Word>(value), 0, 32, line);
}

#define LABKIT_REDUCE(name, T, operation) \
    inline T name(unsigned mask, T value, LABKIT_LINE) { return labkit_exchange(operation, mask, value, 0, 32, line); }
LABKIT_REDUCE(__reduce_add_sync, int, LABKIT_REDUCE_ADD)
LABKIT_REDUCE(__reduce_add_sync, unsigned, LABKIT_REDUCE_ADD)
LABKIT_REDUCE(__reduce_min_sync, int, LABKIT_REDUCE_MIN)
LABKIT_REDUCE(__reduce_max_sync, int, LABKIT_REDUCE_MAX)
LABKIT_REDUCE(__reduce_min_sync, unsigned, LABKIT_REDUCE_UNSIGNED_MIN)
LABKIT_REDUCE(__reduce_max_sync, unsigned, LABKIT_REDUCE_UNSIGNED_MAX)
LABKIT_REDUCE(__reduce_and_sync, unsigned, LABKIT_REDUCE_AND)
LABKIT_REDUCE(__reduce_or_sync, unsigned, LABKIT_REDUCE_OR)
LABKIT_REDUCE(__reduce_xor_sync, unsigned, LABKIT_REDUCE_XOR)
#undef LABKIT_REDUCE
