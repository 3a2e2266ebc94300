// Who knows what: the order between accesses of different threads.
//
// Time is counted in *moments*, numbered through the whole launch; each barrier, __syncwarp and fence begins a new one.
// The moments between two barriers of a block are a *phase*, which is named by its first. Of two accesses by different
// threads of a block, the earlier one is ordered before the later if a barrier lies between them (its phase is over),
// if both threads met at a __syncwarp since, or if the first thread executed __threadfence() and then an atomic at a
// place where the second, or one it met at a barrier, executed an atomic later. Between blocks there is only the last
// way.
//
// Two leniencies, so that no correct kernel is accused: an atomic that sees a release needs no fence of its own behind
// it, and a fence in front of a barrier counts for atomics that another thread executes behind the barrier.
#pragma once
#include "launch.h"

const int code_bits = 21;
const uint32_t max_code_bytes = 1u << code_bits, max_threads = 1024;

// What the shadow remembers of an access.
struct Record {
    uint32_t moment;  // 0: none
    uint32_t who;     // the instruction, the thread of the block, and whether it is an atomic
    uint32_t code() const { return who & (max_code_bytes - 1); }
    int thread() const { return (int)(who >> code_bits & (max_threads - 1)); }
    bool is_atomic() const { return who >> 31; }
};

extern uint32_t now;
extern uint32_t phase;                 // the one that lasts
extern uint32_t first_phase_of_block;  // of the block that runs
extern uint32_t age_of_phase;          // the moments between those two
extern bool any_fence;                 // has any thread executed one?

// Of this block, and its phase over: ordered before everything that happens now.
inline bool is_past(uint32_t moment) { return moment - first_phase_of_block < age_of_phase; }

void start_clocks_of_block();
void pass_barrier();
void pass_syncwarp(Thread* const* lanes);  // one for each lane; null where a lane takes no part
void pass_atomic(uintptr_t place);

// Is the record, of this block or an earlier one, before everything that the current thread does now?
// The common answers are given at once; the rest is looked up.
bool is_ordered_by_calls(const Record& record);
inline bool is_ordered(const Record& record) {
    if (is_past(record.moment) || (record.moment >= phase && record.thread() == current->index)) return true;
    if (!any_fence && current->known_phase != phase) return false;  // no call has ordered anything
    return is_ordered_by_calls(record);
}

// The block that ran at a moment.
Index3 block_at(uint32_t moment);
