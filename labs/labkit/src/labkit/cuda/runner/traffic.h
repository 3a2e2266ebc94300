// Traffic: what each memory instruction of the kernel moves, counted as a GPU counts it, for a warp at a time.
//
// Each thread notes its accesses in a log. When the threads of a warp have come as far as one another, their logs
// are laid side by side: accesses of different lanes by the same instruction, for the same time, are one access of the
// warp. It costs as many transactions as sectors of 32 bytes are touched in global memory, and as many rounds
// as the fullest bank of shared memory needs.
#pragma once
#include <string>

#include "shadow.h"

const int log_length = 220;

// What the threads of a warp have accessed since it was counted last: a row for each place, a column for each lane.
struct WarpLog {
    uint64_t addresses[log_length][warp_lanes];
    uint32_t kinds[log_length][warp_lanes];
};

// Of an access: its instruction, behind that its size, and what it does there.
const uint32_t write_bit = 1u << 24, atomic_bit = 1u << 25, shared_bit = 1u << 26;

void start_traffic();
void make_room_in_log();
void count_traffic_of_warp(int warp);
void count_traffic_of_block();

// All threads of the warp, or of the block, are at one place: a good moment to count, once enough has come together.
void count_traffic_at_warp_call(int warp);
void count_traffic_at_barrier();
std::string traffic_as_json();

// Before anything is said of an access: others may run here, and change what is true of it.
inline void have_room_in_log() {
    if (__builtin_expect(current->n_logged == log_length, false)) make_room_in_log();
}

constexpr uint32_t kind_of(int size, bool is_write, bool is_atomic) {
    return (uint32_t)__builtin_ctz((unsigned)size) << code_bits | (is_write ? write_bit : 0) |
           (is_atomic ? atomic_bit : 0);
}
inline void count_access(uintptr_t address, uint32_t kind) {
    size_t place = (size_t)(unsigned)current->n_logged++ * warp_lanes;
    current->logged_addresses[place] = address;
    current->logged_kinds[place] = kind;
}
