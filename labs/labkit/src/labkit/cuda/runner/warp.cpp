#include "warp.h"

#include <algorithm>
#include <cstring>

#include "../device/operations.h"
#include "clocks.h"
#include "report.h"
#include "scheduler.h"
#include "traffic.h"

const char* warp_operation_name(int operation) {
    static const char* names[] = {
        "__syncwarp",        "__shfl_sync",       "__shfl_xor_sync",   "__shfl_up_sync",    "__shfl_down_sync",  "__ballot_sync",
        "__any_sync",        "__all_sync",        "__match_any_sync",  "__reduce_add_sync", "__reduce_min_sync", "__reduce_max_sync",
        "__reduce_min_sync", "__reduce_max_sync", "__reduce_and_sync", "__reduce_or_sync",  "__reduce_xor_sync", "__activemask"};
    return names[operation];
}

static std::vector<int> n_running;  // threads of each warp that have not finished

static int lanes_of_warp(int warp) { return std::min(warp_lanes, launch.n_threads - warp * warp_lanes); }

void start_warps() {
    n_running.resize((launch.n_threads + warp_lanes - 1) / warp_lanes);
    for (size_t warp = 0; warp < n_running.size(); ++warp) n_running[warp] = lanes_of_warp((int)warp);
}

void finish_in_warp(Thread& thread) {
    if (--n_running[thread.warp] == 0) count_traffic_of_warp(thread.warp);
}

namespace {

const size_t max_value_bytes = 16;

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
    body.number("line", thread.line).text("operation", warp_operation_name(thread.warp_call.operation)).number("lane", source);
    report_fault("warp_call", (uint64_t)thread.line, 1, body);
}

void shuffle(const Lanes& lanes) {
    unsigned char values[warp_lanes][max_value_bytes];
    for (int lane = 0; lane < warp_lanes; ++lane) {
        if (lanes.threads[lane]) memcpy(values[lane], lanes.threads[lane]->warp_call.in, lanes.threads[lane]->warp_call.size);
    }
    for (int lane = 0; lane < warp_lanes; ++lane) {
        if (!lanes.threads[lane]) continue;
        const WarpCall& call = lanes.threads[lane]->warp_call;
        int source = source_lane(call, lane);
        if (source >= 0 && source < warp_lanes && lanes.threads[source]) {
            memcpy(call.out, values[source], call.size);
        } else {
            report_absent_source(*lanes.threads[lane], source);
            memset(call.out, 0xff, call.size);
        }
    }
}

void give_to_all(const Lanes& lanes, unsigned result) {
    for (Thread* thread : lanes.threads) {
        if (thread) *(unsigned*)thread->warp_call.out = result;
    }
}

void vote(const Lanes& lanes, int operation) {
    unsigned yes = 0;
    for (int lane = 0; lane < warp_lanes; ++lane) {
        if (lanes.threads[lane] && *(const int*)lanes.threads[lane]->warp_call.in) yes |= 1u << lane;
    }
    give_to_all(lanes, operation == LABKIT_BALLOT ? yes : operation == LABKIT_ANY ? yes != 0 : yes == lanes.mask);
}

void match(const Lanes& lanes) {
    for (Thread* thread : lanes.threads) {
        if (!thread) continue;
        unsigned equal = 0;
        for (int lane = 0; lane < warp_lanes; ++lane) {
            const Thread* other = lanes.threads[lane];
            if (other && !memcmp(other->warp_call.in, thread->warp_call.in, thread->warp_call.size)) equal |= 1u << lane;
        }
        *(unsigned*)thread->warp_call.out = equal;
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
        unsigned value = *(const unsigned*)thread->warp_call.in;
        result = first ? value : combine(operation, result, value);
        first = false;
    }
    give_to_all(lanes, result);
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
    // wake() puts a thread in front, so the last in the order goes first
    Thread* woken[warp_lanes];
    int n = 0;
    for (Thread* thread : lanes.threads) {
        if (thread && thread != current) woken[n++] = thread;
    }
    if (launch.order_seed) std::sort(woken, woken + n, [](Thread* a, Thread* b) { return launch.rank[a->index] < launch.rank[b->index]; });
    while (n > 0) wake(*woken[--n]);
}

bool in_same_call(const Thread& thread, const Thread& caller) {
    const WarpCall &a = thread.warp_call, &b = caller.warp_call;
    return thread.status == Status::at_warp_call && thread.line == caller.line && a.mask == b.mask && a.operation == b.operation;
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

bool needs_every_lane(int operation) { return operation >= LABKIT_SHUFFLE && operation <= LABKIT_SHUFFLE_DOWN; }

unsigned active_mask() {
    unsigned active = 0;
    for (int lane = 0; lane < lanes_of_warp(current->warp); ++lane) {
        if (launch.threads[current->warp * warp_lanes + lane].status != Status::finished) active |= 1u << lane;
    }
    return active;
}

[[noreturn]] void report_not_in_own_mask(int operation, unsigned mask, int line) {
    Json body = where_now();
    body.number("line", line).text("operation", warp_operation_name(operation)).number("mask", mask).number("own_lane", lane_of(*current));
    report_fault("warp_call", (uint64_t)line, 0, body);
    finish_launch("fault");
}

}  // namespace

bool complete_warp_calls_of_finished_lanes() {
    for (Thread& thread : launch.threads) {
        if (thread.status != Status::at_warp_call || needs_every_lane(thread.warp_call.operation)) continue;
        if (!all_have_come(thread, true)) continue;
        complete(thread);
        return true;
    }
    return false;
}

extern "C" void labkit_warp_call(int operation, unsigned mask, const void* in, void* out, int size, int argument, int width, int line) {
    finish_pending_write();
    if (operation == LABKIT_ACTIVE_MASK) {
        *(unsigned*)out = active_mask();
        return;
    }
    if (!(mask >> lane_of(*current) & 1)) report_not_in_own_mask(operation, mask, line);
    int lanes = lanes_of_warp(current->warp);
    if (lanes < warp_lanes) mask &= (1u << lanes) - 1;  // lanes past the end of the block do not exist
    current->status = Status::at_warp_call;
    current->line = line;
    current->warp_call = {operation, size, argument, width, mask, in, out};
    if (all_have_come(*current, false)) {
        complete(*current);
        current->status = Status::ready;
    } else {
        wait_for_others();
    }
}
