// Traffic: what each memory instruction of the kernel moves, counted as a GPU counts it, for a warp at a time.
//
// Each thread notes its accesses in a log. When the threads of a warp have come as far as one another, their logs
// are laid side by side: accesses of different lanes by the same instruction, for the same time, are one access of the
// warp. It costs as many transactions as sectors of 32 bytes are touched in global memory, and as many rounds
// as the fullest bank of shared memory needs.
#pragma once
#include <string>

#include "shadow.h"

// No power of two: places of the same number in different logs would all fall into one set of the cache.
const int log_length = 220;

struct LoggedAccess {
    uint64_t address;
    uint32_t code;
    uint8_t size;
    bool is_write, is_atomic, is_shared;
};
struct AccessLog {
    int length = 0;
    LoggedAccess accesses[log_length];
};
extern std::vector<AccessLog> logs;  // one for each thread of a block; none in an unchecked launch

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
    if (__builtin_expect(current->log->length == log_length, false)) make_room_in_log();
}

inline void count_access(const Access& access, bool is_shared) {
    AccessLog& log = *current->log;
    log.accesses[log.length++] = {access.address,  access.code,      (uint8_t)access.size,
                                  access.is_write, access.is_atomic, is_shared};
}
