#include "access.h"

#include "../device/addresses.h"
#include "faults.h"
#include "memory.h"
#include "report.h"
#include "scheduler.h"
#include "traffic.h"

static const uintptr_t null_page = 4096;
static const unsigned spins_before_yield = 10000;

void describe_bad_place(Json& body, uintptr_t address) {
    if (Region* region = region_near(address)) describe_place(body, *region, address);
}

static const char* kind_of_bad_address(const Access& access) {
    if (access.address < null_page) return "bad_pointer";
    if (owner_of_stack(access.address)) return "bad_pointer";
    return region_near(access.address) ? "out_of_bounds" : "bad_pointer";
}

static Json body_of(const Access& access) {
    Json body = where_now();
    body.number("code", access.code)
        .number("size", access.size)
        .text("verb", access.is_atomic  ? "updates"
                      : access.is_write ? "writes"
                                        : "reads");
    return body;
}

void report_bad_address(const Access& access) {
    finish_pending_write();
    Json body = body_of(access);
    if (access.address < null_page) {
        body.text("target", "null").number("address", (long long)access.address);
    } else if (owner_of_stack(access.address)) {
        body.text("target", "local");
    } else {
        describe_bad_place(body, access.address);
    }
    report_fault(kind_of_bad_address(access), access.code, 0, body);
    finish_launch("fault");
}

[[noreturn]] static void report_at(const char* kind, const Region& region, const Access& access) {
    finish_pending_write();
    Json body = body_of(access);
    describe_place(body, region, access.address);
    report_fault(kind, access.code, 0, body);
    finish_launch("fault");
}

static void let_others_run_at_times() {
    if (++current->spins < spins_before_yield) return;
    current->spins = 0;
    yield_to_others();
}

static inline bool address_is_local(uintptr_t address) { return address - (uintptr_t)current->stack < stack_bytes; }

static void see_to_alarms(uint32_t code) {
    finish_pending_write();
    if (alarms.is_time_over) note_call(code, 0);
}

// Memory that the kernel only reads needs no watching. Reads of variables are not counted: tables of constants lie
// among them.
static void take(Region& region, const Access& access) {
    if (!region.read_only) region.shadow.touch(region, access);
    if (region.space != Space::variables || access.is_write)
        count_access(access.address,
                     access.code | kind_of(access.size, access.is_write, access.is_atomic) | region.kind);
}

static void check(const Access& access, bool must_align = true) {
    if (address_is_local(access.address)) return;
    if (alarms.any()) see_to_alarms(access.code);
    have_room_in_log();
    Region* region = region_of(access.address, (size_t)access.size);
    if (!region) report_bad_address(access);
    if (must_align && (access.address & (access.size - 1))) report_at("misaligned", *region, access);
    if (access.is_write && region->read_only) report_at("read_only", *region, access);
    take(*region, access);
}

static void __attribute__((noinline)) check_with_care(uintptr_t address, int size, bool is_write, uint32_t code) {
    check({address, size, is_write, false, code});
}

// The region of an aligned access that no end of an array or variable is near.
static inline __attribute__((always_inline)) Region* region_quickly(uintptr_t address) {
    if (address - LABKIT_ARENA < arena.size) {
        Region* region = arena.owner[(address - LABKIT_ARENA) >> slot_shift];
        return address - region->low < region->whole_bytes ? region : nullptr;
    }
    uintptr_t place = address - shared_granules.base;
    bool is_shared = place < shared_granules.bytes && shared_granules.is_whole[place / max_access_bytes];
    return is_shared ? static_shared : nullptr;
}

// The same for the accesses that most kernels make most: to an array, at its place, and with nothing to be said.
template <int size, bool is_write>
static inline __attribute__((always_inline)) bool is_checked_quickly(uintptr_t address, uint32_t code) {
    if ((address & (size - 1)) || alarms.any() || current->n_logged == log_length) return false;
    Region* region = region_quickly(address);
    if (!region) return false;
    if (region->read_only ? is_write : !region->shadow.touch_quickly<size, is_write>(address, code)) return false;
    count_access(address, code | kind_of(size, is_write, false) | region->kind);
    return true;
}

template <int size, bool is_write>
static inline __attribute__((always_inline)) void check(uintptr_t address, uint32_t code) {
    if (address_is_local(address)) return;
    if (__builtin_expect(!is_checked_quickly<size, is_write>(address, code), false))
        check_with_care(address, size, is_write, code);
}

// A structure is moved word by word, as a GPU does it.
static void check_range(const void* address, size_t bytes, bool is_write, uint32_t code) {
    int word = ((uintptr_t)address | bytes) % sizeof(int) ? 1 : sizeof(int);
    for (size_t i = 0; i < bytes; i += word) check({(uintptr_t)address + i, word, is_write, false, code});
}

// A flag in global memory that one thread sets and another waits for: volatile, and with fences as good as an atomic.
// In shared memory volatile orders nothing, and reductions that rely on it are wrong.
static bool acts_as_atomic(uintptr_t address) {
    Region* region = region_near(address);
    return region && !region->is_shared();
}

static void check_volatile(uintptr_t address, int size, bool is_write, uint32_t code) {
    have_room_in_log();
    bool atomic = acts_as_atomic(address);
    if (atomic) pass_atomic(address);
    check({address, size, is_write, atomic, code});
    let_others_run_at_times();
}

extern "C" void labkit_atomic(const void* address, int size, int reads) {
    let_others_run_at_times();
    if (!launch.checked) return;
    have_room_in_log();
    pass_atomic((uintptr_t)address);
    check({(uintptr_t)address, size, true, true, code_offset(__builtin_return_address(0)), reads != 0});
}

extern "C" void labkit_yield() { yield_to_others(); }

// The compiler puts these calls in front of each access, for a race detector that we stand in for.
#define HERE code_offset(__builtin_return_address(0))
#define ACCESS_CALLS(size)                                                                                           \
    extern "C" void __tsan_read##size(void* p) { check<size, false>((uintptr_t)p, HERE); }                           \
    extern "C" void __tsan_write##size(void* p) { check<size, true>((uintptr_t)p, HERE); }                           \
    extern "C" void __tsan_unaligned_read##size(void* p) { check({(uintptr_t)p, size, false, false, HERE}, false); } \
    extern "C" void __tsan_unaligned_write##size(void* p) { check({(uintptr_t)p, size, true, false, HERE}, false); } \
    extern "C" void __tsan_volatile_read##size(void* p) { check_volatile((uintptr_t)p, size, false, HERE); }         \
    extern "C" void __tsan_volatile_write##size(void* p) { check_volatile((uintptr_t)p, size, true, HERE); }
ACCESS_CALLS(1)
ACCESS_CALLS(2)
ACCESS_CALLS(4)
ACCESS_CALLS(8)
ACCESS_CALLS(16)
extern "C" void __tsan_read_range(void* p, size_t bytes) { check_range(p, bytes, false, HERE); }
extern "C" void __tsan_write_range(void* p, size_t bytes) { check_range(p, bytes, true, HERE); }
extern "C" void __tsan_init() {}
extern "C" void __tsan_func_entry(void*) {}
extern "C" void __tsan_func_exit() {}

extern "C" void labkit_copy(void* to, const void* from, size_t bytes) {
    if (launch.checked) {
        check_range(from, bytes, false, HERE);
        check_range(to, bytes, true, HERE);
    }
    __builtin_memmove(to, from, bytes);
}
extern "C" void labkit_fill(void* to, int value, size_t bytes) {
    if (launch.checked) check_range(to, bytes, true, HERE);
    __builtin_memset(to, value, bytes);
}
