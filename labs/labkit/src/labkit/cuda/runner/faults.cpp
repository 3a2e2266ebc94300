#include "faults.h"

#include <signal.h>
#include <sys/time.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "access.h"
#include "memory.h"
#include "report.h"
#include "scheduler.h"

static uintptr_t program_counter(const void* context) {
    const mcontext_t& machine = ((const ucontext_t*)context)->uc_mcontext;
#if defined(__x86_64__)
    return (uintptr_t)machine.gregs[REG_RIP];
#else
    return (uintptr_t)machine.pc;
#endif
}

static uintptr_t stack_pointer(const void* context) {
    const mcontext_t& machine = ((const ucontext_t*)context)->uc_mcontext;
#if defined(__x86_64__)
    return (uintptr_t)machine.gregs[REG_RSP];
#else
    return (uintptr_t)machine.sp;
#endif
}

static bool is_kernel_code(uintptr_t address) { return address >= launch.code_low && address < launch.code_high; }

// Where the kernel is, as the address that a call returns to: lines are looked up for the byte before.
// Outside of its own code, in the C library or in ours, it is the nearest caller on the stack.
static uint32_t code_of(const void* context) {
    uintptr_t at = program_counter(context);
    if (is_kernel_code(at)) return code_offset((void*)at) + 1;
    uintptr_t top = (uintptr_t)current->stack + stack_bytes;
    for (uintptr_t place = std::max(stack_pointer(context), (uintptr_t)current->stack) & ~(uintptr_t)7; place < top;
         place += 8) {
        uintptr_t word = *(const uintptr_t*)place;
        if (is_kernel_code(word)) return code_offset((void*)word);
    }
    return 0;
}

static void on_fault(int signal, siginfo_t* information, void* context) {
    if (!current) give_up("the runner itself failed with signal " + std::to_string(signal));
    uintptr_t address = (uintptr_t)information->si_addr;
    Json body = where_now();
    body.number("code", code_of(context));
    const char* kind = "bad_pointer";
    if (signal == SIGFPE) {
        kind = "division_by_zero";
    } else if (signal == SIGILL) {
        kind = "trap";
    } else if (address - ((uintptr_t)current->stack - guard_bytes) < guard_bytes) {
        kind = "stack_overflow";
        body.number("limit", (long long)stack_bytes);
    } else if (Region* region = region_near(address)) {
        kind = "out_of_bounds";
        describe_place(body, *region, address);
    } else if (address < 4096) {
        body.text("target", "null").number("address", (long long)address);
    }
    report_fault(kind, 0, 0, body);
    finish_launch("fault");
}

// An endless loop has many lines. Look at it many times, and leave it to the reader of the report to name the first.
static const int n_looks = 100;
static const int looks_every_us = 1000;
static std::set<uint32_t> seen_codes;

// An array, for the last look may come in the middle of a note.
struct NotedCall {
    uint32_t code;
    int line;
};
static const int max_noted = 256;
static NotedCall noted[max_noted];
static int n_noted = 0;

void note_call(uint32_t code, int line) {
    for (int i = 0; i < n_noted; ++i) {
        if (noted[i].code == code && noted[i].line == line) return;
    }
    if (n_noted == max_noted) return;
    noted[n_noted] = {code, line};
    ++n_noted;
}

static void set_timer(double first_s) {
    itimerval timer{};
    timer.it_value.tv_sec = (time_t)first_s;
    timer.it_value.tv_usec = (suseconds_t)((first_s - (double)timer.it_value.tv_sec) * 1e6);
    timer.it_interval.tv_usec = looks_every_us;
    setitimer(ITIMER_PROF, &timer, nullptr);
}

// Many threads may take turns for ever; the first is named, the same in every run.
static const Thread& first_unfinished() {
    for (const Thread& thread : launch.threads) {
        if (thread.status != Status::finished) return thread;
    }
    return *current;
}

static void on_time_limit(int, siginfo_t*, void* context) {
    static int looks = 0;
    alarms.is_time_over = true;
    if (current) {
        if (uint32_t code = code_of(context)) seen_codes.insert(code);
    }
    if (++looks < n_looks) return;
    Json codes = Json::array(), lines = Json::array();
    for (int i = 0; i < n_noted; ++i)
        noted[i].code ? codes.append((long long)noted[i].code) : lines.append((long long)noted[i].line);
    if (!n_noted) {
        for (uint32_t code : seen_codes) codes.append((long long)code);
    }
    Json body = current ? where(first_unfinished()) : Json::object();
    body.raw("codes", codes.str()).raw("lines", lines.str());
    report_fault("time_limit", 0, 0, body);
    finish_launch("time_limit");
}

static void handle(int signal, void (*handler)(int, siginfo_t*, void*)) {
    struct sigaction action{};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigaction(signal, &action, nullptr);
}

void catch_faults(double limit_s) {
    stack_t stack{};
    stack.ss_size = 1 << 16;
    stack.ss_sp = malloc(stack.ss_size);
    sigaltstack(&stack, nullptr);
    for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) handle(signal, on_fault);
    handle(SIGPROF, on_time_limit);
    set_timer(limit_s);
}
