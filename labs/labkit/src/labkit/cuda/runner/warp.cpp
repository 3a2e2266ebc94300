#include "warp.h"

#include <algorithm>
#include <cstring>

#include "../device/operations.h"
#include "branches.h"
#include "clocks.h"
#include "faults.h"
#include "report.h"
#include "scheduler.h"
#include "traffic.h"

const char* warp_operation_name(int operation) {
    static const char* names[] = {"__syncwarp",        "__shfl_sync",       "__shfl_xor_sync",   "__shfl_up_sync",
                                  "__shfl_down_sync",  "__ballot_sync",     "__any_sync",        "__all_sync",
                                  "__match_any_sync",  "__reduce_add_sync", "__reduce_min_sync", "__reduce_max_sync",
                                  "__reduce_min_sync", "__reduce_max_sync", "__reduce_and_sync", "__reduce_or_sync",
                                  "__reduce_xor_sync", "__activemask"};
    return names[operation];
}

namespace {
struct WarpState {
    int n_running = 0;        // threads that have not finished
    Thread* first = nullptr;  // of the lanes that wait in a collective the one that came first,
    unsigned came = 0;        // and those that have come to the same one since
    bool is_mixed = false;    // lanes have waited in different collectives: counting is not enough any more
};
std::vector<WarpState> states;
}  // namespace

static int lanes_of_warp(int warp) { return std::min(warp_lanes, launch.n_threads - warp * warp_lanes); }

void start_warps() {
    states.assign((launch.n_threads + warp_lanes - 1) / warp_lanes, WarpState());
    for (size_t warp = 0; warp < states.size(); ++warp) states[warp].n_running = lanes_of_warp((int)warp);
}

void finish_in_warp(Thread& thread) {
    if (--states[thread.warp].n_running > 0) return;
    count_traffic_of_warp(thread.warp);
    count_branches_of_warp(thread.warp);
}

namespace {

// The lanes that take part in one collective: null where a lane does not.
struct Lanes {
    Thread* threads[warp_lanes] = {};
    unsigned mask = 0;
    explicit Lanes(const Thread& caller) {
        for (int lane = 0; lane < warp_lanes; ++lane) {
            if (!(caller.warp_call.mask >> lane & 1)) continue;
            Thread& thread = launch.threads[caller.warp * warp_lanes + lane];
            if (thread.status == Status::finished) continue;
            threads[lane] = &thread;
            mask |= 1u << lane;
        }
    }
};

int lane_of(const Thread& thread) { return thread.index % warp_lanes; }

// The lane whose value a lane gets; its own where the shuffle would leave the segment of `width` lanes.
int source_lane(const WarpCall& call, int lane) {
    int first = lane & ~(call.width - 1), source = lane;
    switch (call.operation) {
        case LABKIT_SHUFFLE: return first + (call.argument & (call.width - 1));
        case LABKIT_SHUFFLE_XOR: source = lane ^ call.argument; return source >= first + call.width ? lane : source;
        case LABKIT_SHUFFLE_UP: source = lane - call.argument; return source < first ? lane : source;
        default: source = lane + call.argument; return source >= first + call.width ? lane : source;
    }
}

void report_absent_source(const Thread& thread, int source) {
    Json body = where(thread);
    body.number("line", thread.line)
        .text("operation", warp_operation_name(thread.warp_call.operation))
        .number("lane", source);
    report_fault("warp_call", (uint64_t)thread.line, 1, body);
}

void shuffle(const Lanes& lanes) {
    for (int lane = 0; lane < warp_lanes; ++lane) {
        if (!lanes.threads[lane]) continue;
        WarpCall& call = lanes.threads[lane]->warp_call;
        int source = source_lane(call, lane);
        if (source >= 0 && source < warp_lanes && lanes.threads[source]) {
            call.result = lanes.threads[source]->warp_call.value;
        } else {
            report_absent_source(*lanes.threads[lane], source);
            call.result = launch.absent_value;
        }
    }
}

void give_to_all(const Lanes& lanes, unsigned result) {
    for (Thread* thread : lanes.threads) {
        if (thread) thread->warp_call.result = result;
    }
}

void vote(const Lanes& lanes, int operation) {
    unsigned yes = 0;
    for (int lane = 0; lane < warp_lanes; ++lane) {
        if (lanes.threads[lane] && lanes.threads[lane]->warp_call.value) yes |= 1u << lane;
    }
    give_to_all(lanes, operation == LABKIT_BALLOT ? yes : operation == LABKIT_ANY ? yes != 0 : yes == lanes.mask);
}

void match(const Lanes& lanes) {
    for (Thread* thread : lanes.threads) {
        if (!thread) continue;
        unsigned equal = 0;
        for (int lane = 0; lane < warp_lanes; ++lane) {
            const Thread* other = lanes.threads[lane];
            if (other && other->warp_call.value == thread->warp_call.value) equal |= 1u << lane;
        }
        thread->warp_call.result = equal;
    }
}

unsigned combine(int operation, unsigned a, unsigned b) {
    switch (operation) {
        case LABKIT_REDUCE_ADD: return a + b;
        case LABKIT_REDUCE_MIN: return (int)a < (int)b ? a : b;
        case LABKIT_REDUCE_MAX: return (int)a > (int)b ? a : b;
        case LABKIT_REDUCE_UNSIGNED_MIN: return std::min(a, b);
        case LABKIT_REDUCE_UNSIGNED_MAX: return std::max(a, b);
        case LABKIT_REDUCE_AND: return a & b;
        case LABKIT_REDUCE_OR: return a | b;
        default: return a ^ b;
    }
}

void reduce(const Lanes& lanes, int operation) {
    bool first = true;
    unsigned result = 0;
    for (const Thread* thread : lanes.threads) {
        if (!thread) continue;
        unsigned value = (unsigned)thread->warp_call.value;
        result = first ? value : combine(operation, result, value);
        first = false;
    }
    give_to_all(lanes, result);
}

void wake_lanes(const Lanes& lanes) {
    // wake() puts a thread in front, so the last in the order goes first
    Thread* woken[warp_lanes];
    int n = 0;
    for (Thread* thread : lanes.threads) {
        if (thread && thread != current) woken[n++] = thread;
    }
    if (launch.order_seed)
        std::sort(woken, woken + n, [](Thread* a, Thread* b) { return launch.rank[a->index] < launch.rank[b->index]; });
    while (n > 0) wake(*woken[--n]);
}

void complete(const Thread& caller) {
    Lanes lanes(caller);
    int operation = caller.warp_call.operation;
    if (operation == LABKIT_SYNCWARP) {
        pass_syncwarp(lanes.threads);
    } else if (operation <= LABKIT_SHUFFLE_DOWN) {
        shuffle(lanes);
    } else if (operation <= LABKIT_ALL) {
        vote(lanes, operation);
    } else if (operation == LABKIT_MATCH_ANY) {
        match(lanes);
    } else {
        reduce(lanes, operation);
    }
    WarpState& state = states[caller.warp];
    if (state.first && !(lanes.mask & ~state.came)) state = {state.n_running, nullptr, 0, state.is_mixed};
    if (__builtin_popcount(lanes.mask) == state.n_running) {
        count_traffic_at_warp_call(caller.warp);
        count_branches_at_warp_call(caller.warp);
    }
    wake_lanes(lanes);
}

bool in_same_call(const Thread& thread, const Thread& caller) {
    const WarpCall &a = thread.warp_call, &b = caller.warp_call;
    return thread.status == Status::at_warp_call && thread.line == caller.line && a.mask == b.mask &&
           a.operation == b.operation;
}

// Has every lane of the mask come? A lane that has finished counts where it is excused.
bool all_have_come(const Thread& caller, bool excuse_finished) {
    for (int lane = 0; lane < warp_lanes; ++lane) {
        if (!(caller.warp_call.mask >> lane & 1)) continue;
        const Thread& other = launch.threads[caller.warp * warp_lanes + lane];
        if (excuse_finished && other.status == Status::finished) continue;
        if (!in_same_call(other, caller)) return false;
    }
    return true;
}

// Has the current thread come last to its collective? Mostly all lanes come to the same one, and counting them is
// enough.
bool has_come_last() {
    WarpState& state = states[current->warp];
    if (!state.first) state.first = current;
    if (in_same_call(*state.first, *current)) {
        state.came |= 1u << lane_of(*current);
    } else {
        state.is_mixed = true;
    }
    return state.is_mixed ? all_have_come(*current, false) : state.came == current->warp_call.mask;
}

bool needs_every_lane(int operation) { return operation >= LABKIT_SHUFFLE && operation <= LABKIT_SHUFFLE_DOWN; }

// __activemask: those who have come to the same call by the time that nobody else can go on.
bool complete_active_mask(Thread& caller) {
    Lanes lanes(caller);
    lanes.mask = 0;
    for (Thread*& thread : lanes.threads) {
        if (thread && !in_same_call(*thread, caller)) thread = nullptr;
        if (thread) lanes.mask |= 1u << lane_of(*thread);
    }
    give_to_all(lanes, lanes.mask);
    wake_lanes(lanes);
    return true;
}

[[noreturn]] void report_not_in_own_mask(int operation, unsigned mask, int line) {
    Json body = where_now();
    body.number("line", line)
        .text("operation", warp_operation_name(operation))
        .number("mask", mask)
        .number("own_lane", lane_of(*current));
    report_fault("warp_call", (uint64_t)line, 0, body);
    finish_launch("fault");
}

}  // namespace

bool complete_warp_calls_of_finished_lanes() {
    for (Thread& thread : launch.threads) {
        if (thread.status != Status::at_warp_call || needs_every_lane(thread.warp_call.operation)) continue;
        if (thread.warp_call.operation == LABKIT_ACTIVE_MASK) return complete_active_mask(thread);
        if (!all_have_come(thread, true)) continue;
        complete(thread);
        return true;
    }
    return false;
}

extern "C" uint64_t labkit_warp_call(int operation, unsigned mask, uint64_t value, int argument, int width, int line) {
    finish_pending_write();
    if (alarms.is_time_over) note_call(0, line);
    if (operation == LABKIT_ACTIVE_MASK) mask = ~0u;
    if (!(mask >> lane_of(*current) & 1)) report_not_in_own_mask(operation, mask, line);
    int lanes = lanes_of_warp(current->warp);
    if (lanes < warp_lanes) mask &= (1u << lanes) - 1;  // lanes past the end of the block do not exist
    current->status = Status::at_warp_call;
    current->line = line;
    current->warp_call = {operation, argument, width, mask, value, 0};
    if (operation != LABKIT_ACTIVE_MASK && has_come_last()) {
        complete(*current);
        current->status = Status::ready;
    } else {
        wait_for_others();
    }
    return current->warp_call.result;
}
