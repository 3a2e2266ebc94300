// The state of one launch: its threads, where they stand, and what the kernel was given.
#pragma once
#include <cstdint>
#include <cstring>
#include <vector>

#include "context.h"

struct Index3 {
    unsigned x, y, z;
};

const int warp_lanes = 32;
const int max_access_bytes = 16;

enum class Status : uint8_t { fresh, ready, at_barrier, at_warp_call, finished };

// A call that a thread waits in until the other threads have made it too.
struct BarrierCall {
    int operation, predicate, result;
};
struct WarpCall {
    int operation, argument, width;
    unsigned mask;
    uint64_t value;   // the bits of what the lane gives
    uint64_t result;  // and gets
};

// A fence of a thread: when it was, and when the phase began that it lies in.
struct Fence {
    uint32_t phase = 0, moment = 0;
};

// What a thread has learnt of other threads through an atomic: the first `length` releases at one place in memory.
struct Acquired {
    uintptr_t place;
    uint32_t length;
};

struct Thread {
    Context context;
    Status status = Status::fresh;
    int index = 0;
    int warp = 0;
    Index3 position{};
    char* stack = nullptr;
    int line = 0;  // of the call it waits in
    BarrierCall barrier{};
    WarpCall warp_call{};
    uint64_t* logged_addresses = nullptr;  // this thread's column of its warp's log (traffic.h)
    uint32_t* logged_kinds = nullptr;
    int n_logged = 0;
    unsigned spins = 0;        // atomics and volatile reads since it last let others run

    // Order of accesses (clocks.h).
    uint32_t known_phase = 0;                 // the phase for which known_moments holds
    uint32_t known_moments[warp_lanes] = {};  // until when it knows each lane of its warp, by __syncwarp
    Fence fence;
    std::vector<Acquired> acquired;
};

struct Launch {
    Index3 grid{1, 1, 1}, block{1, 1, 1};
    int n_threads = 1;  // of a block
    bool checked = false;
    unsigned long order_seed = 0;
    double limit_s = 10;
    uint64_t absent_value = 0;  // what a shuffle gives in place of the value of a lane that takes no part
    void (*enter)(void**) = nullptr;
    void** arguments = nullptr;

    uintptr_t module_low = 0, module_high = 0;  // where the compiled kernel lies, and the code in it
    uintptr_t code_low = 0, code_high = 0;
    Index3 block_index{};
    std::vector<Thread> threads;
    std::vector<int> order;  // in which the threads of a block start
    std::vector<int> rank;   // the place of each thread in that order
};

extern Launch launch;
// What an access must see to before it is looked at itself, in one look.
struct alignas(2) Alarms {
    bool is_write_pending = false;  // shadow.h
    bool is_time_over = false;      // faults.h
    bool any() const {
        uint16_t both;
        memcpy(&both, this, sizeof both);
        return both != 0;
    }
};
extern Alarms alarms;

extern Thread* current;  // the CUDA thread that runs now; none while the runner works between blocks

inline bool is_in_module(uintptr_t address) {
    return address - launch.module_low < launch.module_high - launch.module_low;
}

// Where an instruction lies in the compiled kernel: what a line is found by.
inline uint32_t code_offset(const void* return_address) {
    return (uint32_t)((uintptr_t)return_address - launch.module_low);
}
