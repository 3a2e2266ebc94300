// Barriers and warp collectives. Each passes the line it stands in, which a message about it names.
#pragma once
#include "operations.h"

// The caller's line: a default argument is evaluated where the call stands.
#define LABKIT_LINE int line = __builtin_LINE()

inline void __syncthreads(LABKIT_LINE) { labkit_barrier(LABKIT_BARRIER, 0, line); }
inline int __syncthreads_count(int predicate, LABKIT_LINE) { return labkit_barrier(LABKIT_BARRIER_COUNT, predicate, line); }
inline int __syncthreads_and(int predicate, LABKIT_LINE) { return labkit_barrier(LABKIT_BARRIER_AND, predicate, line); }
inline int __syncthreads_or(int predicate, LABKIT_LINE) { return labkit_barrier(LABKIT_BARRIER_OR, predicate, line); }
inline void __syncwarp(unsigned mask = 0xffffffffu, LABKIT_LINE) {
    labkit_warp_call(LABKIT_SYNCWARP, mask, 0, 0, 0, 0, 32, line);
}

template <class T>
inline T labkit_exchange(int operation, unsigned mask, T value, int argument, int width, int line) {
    T result;
    labkit_warp_call(operation, mask, &value, &result, sizeof(T), argument, width, line);
    return result;
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
    unsigned result;
    int yes = predicate != 0;
    labkit_warp_call(operation, mask, &yes, &result, sizeof(int), 0, 32, line);
    return result;
}
inline unsigned __ballot_sync(unsigned mask, int predicate, LABKIT_LINE) { return labkit_vote(LABKIT_BALLOT, mask, predicate, line); }
inline int __any_sync(unsigned mask, int predicate, LABKIT_LINE) { return (int)labkit_vote(LABKIT_ANY, mask, predicate, line); }
inline int __all_sync(unsigned mask, int predicate, LABKIT_LINE) { return (int)labkit_vote(LABKIT_ALL, mask, predicate, line); }
inline unsigned __activemask(LABKIT_LINE) {
    unsigned result;
    labkit_warp_call(LABKIT_ACTIVE_MASK, 0, 0, &result, sizeof(int), 0, 32, line);
    return result;
}
template <class T>
inline unsigned __match_any_sync(unsigned mask, T value, LABKIT_LINE) {
    unsigned result;
    labkit_warp_call(LABKIT_MATCH_ANY, mask, &value, &result, sizeof(T), 0, 32, line);
    return result;
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
