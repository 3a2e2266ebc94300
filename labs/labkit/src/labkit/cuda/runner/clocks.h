// Who knows what: the order between accesses of different threads.
//
// Time is counted in *phases*, the stretches between two barriers of a block, numbered through the whole launch, and in
// *ticks* of a thread within them. Of two accesses by different threads of a block, the earlier one is ordered before
// the later if a barrier lies between them (its phase is over), if both threads met at a __syncwarp since, or if the
// first thread executed __threadfence() and then an atomic at a place where the second, or one it met at a
// barrier, executed an atomic later. Between blocks there is only the last way.
//
// Two leniencies, so that no correct kernel is accused: an atomic that sees a release needs no fence of its own behind
// it, and a fence in front of a barrier counts for atomics that another thread executes behind the barrier.
#pragma once
#include "launch.h"

const int code_bits = 21;
const uint32_t max_code_bytes = 1u << code_bits, max_threads = 1024;

// What the shadow remembers of an access.
struct Record {
    uint32_t phase;  // 0: none
    uint32_t tick;
    uint32_t who;  // the instruction, the thread of the block, and whether it is an atomic
    uint32_t code() const { return who & (max_code_bytes - 1); }
    int thread() const { return (int)(who >> code_bits & (max_threads - 1)); }
    bool is_atomic() const { return who >> 31; }
};

extern uint32_t phase;                 // now
extern uint32_t first_phase_of_block;  // of the block that runs
extern bool any_fence;                 // has any thread executed one?

// Of this block, and over: ordered before everything that happens now.
inline bool is_past(uint32_t of) { return of - first_phase_of_block < phase - first_phase_of_block; }

void start_clocks_of_block();
void pass_barrier();
void pass_syncwarp(Thread* const* lanes);  // one for each lane; null where a lane takes no part
void pass_atomic(uintptr_t place);

// Is the record, of this block or an earlier one, before everything that the current thread does now?
// The common answers are given at once; the rest is looked up.
bool is_ordered_by_calls(const Record& record);
inline bool is_ordered(const Record& record) {
    if (is_past(record.phase) || (record.phase == phase && record.thread() == current->index)) return true;
    if (!any_fence && current->known_phase != phase) return false;  // no call has ordered anything
    return is_ordered_by_calls(record);
}

// The block in which a phase was.
Index3 block_of_phase(uint32_t of);
