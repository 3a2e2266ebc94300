#include "scheduler.h"

#include <sys/mman.h>

#include "barriers.h"
#include "clocks.h"
#include "report.h"
#include "traffic.h"
#include "warp.h"

Launch launch;
Thread* current = nullptr;

// Where a block's threads wait for their turn: a ring that holds each thread at most once.
static std::vector<Thread*> queue;
static size_t queue_front, queue_length;
static Context between_threads;
static int n_finished;
static std::vector<char*> free_stacks;

static Thread* pop_queue() {
    Thread* thread = queue[queue_front];
    queue_front = queue_front + 1 == queue.size() ? 0 : queue_front + 1;
    --queue_length;
    return thread;
}

static void push_back(Thread& thread) {
    size_t place = queue_front + queue_length;
    queue[place >= queue.size() ? place - queue.size() : place] = &thread;
    ++queue_length;
}

static void push_front(Thread& thread) {
    queue_front = queue_front == 0 ? queue.size() - 1 : queue_front - 1;
    queue[queue_front] = &thread;
    ++queue_length;
}

static char* take_stack() {
    if (free_stacks.empty()) {
        size_t bytes = stack_bytes + guard_bytes;
        char* memory =
            (char*)mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) give_up("no memory for the stacks of a block's threads");
        mprotect(memory, guard_bytes, PROT_NONE);
        free_stacks.push_back(memory + guard_bytes);
    }
    char* stack = free_stacks.back();
    free_stacks.pop_back();
    return stack;
}

// A thread that has finished still runs on its stack for a moment, so the stack is free one thread later.
static void retire_stack(Thread& thread) {
    static char* retired = nullptr;
    if (retired) free_stacks.push_back(retired);
    retired = thread.stack;
    thread.stack = nullptr;
}

static void run_next(Context& from);

static void thread_body() {
    for (;;) {
        launch.enter(launch.arguments);
        finish_pending_write();
        current->status = Status::finished;
        ++n_finished;
        finish_in_warp(*current);
        retire_stack(*current);
        run_next(current->context);
    }
}

static void run_next(Context& from) {
    if (queue_length == 0) {
        current = nullptr;
        switch_context(from, between_threads);
        return;
    }
    Thread* next = pop_queue();
    if (next == current) return;
    current = next;
    if (next->status == Status::fresh) {
        next->status = Status::ready;
        next->stack = take_stack();
        next->context = make_context(next->stack, stack_bytes, thread_body);
    }
    switch_context(from, next->context);
}

void wait_for_others() { run_next(current->context); }

void wake(Thread& thread) {
    thread.status = Status::ready;
    push_front(thread);
}

void yield_to_others() {
    finish_pending_write();
    push_back(*current);
    run_next(current->context);
}

Thread* owner_of_stack(uintptr_t address) {
    for (Thread& thread : launch.threads) {
        uintptr_t low = (uintptr_t)thread.stack - guard_bytes;
        if (thread.stack && address - low < stack_bytes + guard_bytes) return &thread;
    }
    return nullptr;
}

static void start_threads() {
    queue.resize(launch.n_threads + 1);
    queue_front = queue_length = 0;
    n_finished = 0;
    for (int index : launch.order) {
        Thread& thread = launch.threads[index];
        thread.status = Status::fresh;
        thread.spins = 0;
        push_back(thread);
    }
    start_barriers();
    start_clocks_of_block();
    start_warps();
}

void run_block() {
    start_threads();
    while (n_finished < launch.n_threads) {
        if (queue_length > 0) {
            run_next(between_threads);
        } else if (!complete_warp_calls_of_finished_lanes()) {
            report_threads_that_wait();
        }
    }
    count_traffic_of_block();
}

// The kernel asks for these by name.
extern "C" Index3 labkit_where_thread() { return current->position; }
extern "C" Index3 labkit_where_block() { return launch.block_index; }
extern "C" Index3 labkit_block_shape() { return launch.block; }
extern "C" Index3 labkit_grid_shape() { return launch.grid; }
extern "C" long long labkit_clock() {
    static long long calls = 0;
    return ++calls;
}
