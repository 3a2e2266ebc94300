#include "barriers.h"

#include <map>
#include <tuple>

#include "branches.h"
#include "clocks.h"
#include "faults.h"
#include "../device/operations.h"
#include "report.h"
#include "scheduler.h"
#include "traffic.h"
#include "warp.h"

static bool all_at_one_barrier() {
    const Thread& first = launch.threads[0];
    for (const Thread& thread : launch.threads) {
        bool same = thread.status == Status::at_barrier && thread.line == first.line &&
                    thread.barrier.operation == first.barrier.operation;
        if (!same) return false;
    }
    return true;
}

static void complete_barrier() {
    int n_true = 0;
    for (Thread& thread : launch.threads) n_true += thread.barrier.predicate != 0;
    for (Thread& thread : launch.threads) {
        switch (thread.barrier.operation) {
            case LABKIT_BARRIER_AND: thread.barrier.result = n_true == launch.n_threads; break;
            case LABKIT_BARRIER_OR: thread.barrier.result = n_true > 0; break;
            default: thread.barrier.result = n_true;
        }
    }
    pass_barrier();
    count_traffic_at_barrier();
    for (int warp = 0; warp * warp_lanes < launch.n_threads; ++warp) count_branches_at_warp_call(warp);
    // wake() puts a thread in front, so the last in the order goes first
    for (auto index = launch.order.rbegin(); index != launch.order.rend(); ++index) {
        if (&launch.threads[*index] != current) wake(launch.threads[*index]);
    }
    current->status = Status::ready;
}

static int n_waiting;

void start_barriers() { n_waiting = 0; }

extern "C" int labkit_barrier(int operation, int predicate, int line) {
    finish_pending_write();
    if (alarms.is_time_over) note_call(0, line);
    current->status = Status::at_barrier;
    current->line = line;
    current->barrier = {operation, predicate, 0};
    if (++n_waiting == launch.n_threads && all_at_one_barrier()) {
        n_waiting = 0;
        complete_barrier();
    } else {
        wait_for_others();
    }
    return current->barrier.result;
}

// Threads that are in the same state at the same line, as one group of the report.
typedef std::tuple<Status, int, int> Place;

static Place place_of(const Thread& thread) {
    if (thread.status == Status::finished) return {thread.status, 0, 0};
    int operation = thread.status == Status::at_warp_call ? thread.warp_call.operation : thread.barrier.operation;
    return {thread.status, thread.line, operation};
}

static const char* name_of(const Place& place) {
    if (std::get<0>(place) == Status::finished) return "finished";
    if (std::get<0>(place) == Status::at_warp_call) return warp_operation_name(std::get<2>(place));
    static const char* names[] = {"__syncthreads", "__syncthreads_count", "__syncthreads_and", "__syncthreads_or"};
    return names[std::get<2>(place)];
}

void report_threads_that_wait() {
    std::map<Place, std::vector<const Thread*>> groups;
    bool any_in_warp_call = false;
    for (const Thread& thread : launch.threads) {
        groups[place_of(thread)].push_back(&thread);
        any_in_warp_call |= thread.status == Status::at_warp_call;
    }
    Json list = Json::array();
    for (auto& [place, threads] : groups) {
        const Thread& first = *threads.front();
        Json group = Json::object();
        group.text("state", name_of(place))
            .number("line", std::get<1>(place))
            .number("threads", (long long)threads.size());
        group.number("first", first.index).number("last", threads.back()->index);
        if (first.status == Status::at_warp_call) group.number("mask", first.warp_call.mask);
        list.append(group);
    }
    Json body = Json::object();
    body.raw("block", block_of_current_launch()).raw("groups", list.str());
    report_fault(any_in_warp_call ? "deadlock" : "barrier", 0, 0, body);
    finish_launch("fault");
}
