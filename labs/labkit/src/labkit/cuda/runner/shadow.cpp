#include "shadow.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "memory.h"
#include "report.h"

Alarms alarms;

namespace {
struct PendingWrite {
    uintptr_t address = 0;
    int size = 0;
    unsigned char before[16];
    uint32_t code = 0, other_code = 0;
    Json body = Json::object();
} pending;

void hold_until_written(const Access& access, uint32_t other_code, const Json& body) {
    alarms.is_write_pending = true;
    pending.address = access.address;
    pending.size = std::min(access.size, (int)sizeof pending.before);
    memcpy(pending.before, (void*)access.address, pending.size);
    pending.code = access.code;
    pending.other_code = other_code;
    pending.body = body;
}
}  // namespace

void judge_pending_write() {
    alarms.is_write_pending = false;
    bool unchanged = memcmp((void*)pending.address, pending.before, pending.size) == 0;
    report_fault(unchanged ? "same_value_race" : "race", pending.code, pending.other_code, pending.body);
}

static const char* verb(bool is_write, bool is_atomic) { return is_atomic ? "updates" : is_write ? "writes" : "reads"; }

static void report_race(const Region& region, const Access& access, const Record& other, bool other_wrote) {
    finish_pending_write();
    Json body = where_now();
    body.number("code", access.code).text("verb", verb(access.is_write, access.is_atomic));
    body.number("other_code", other.code()).text("other_verb", verb(other_wrote, other.is_atomic()));
    body.raw("other_block", json_of(block_at(other.moment)));
    body.raw("other_thread", json_of(launch.threads[other.thread()].position));
    describe_place(body, region, access.address);
    if (access.is_write && other_wrote && !access.is_atomic && !other.is_atomic()) {
        hold_until_written(access, other.code(), body);
    } else {
        report_fault("race", access.code, other.code(), body);
    }
}

static void report_uninitialised(const Region& region, const Access& access) {
    Json body = where_now();
    body.number("code", access.code);
    describe_place(body, region, access.address);
    report_fault("uninitialised", access.code, 0, body);
}

static int log2_floor(size_t n) { return 63 - __builtin_clzll(n); }

// One fault in place of 512 when the shadow of a large array is first used; a wish, not a need.
static void ask_for_large_pages(void* memory, size_t bytes) {
    const uintptr_t large = 2 << 20;
    uintptr_t low = ((uintptr_t)memory + large - 1) & ~(large - 1), high = ((uintptr_t)memory + bytes) & ~(large - 1);
    if (high > low) madvise((void*)low, high - low, MADV_HUGEPAGE);
}

// Zeros are empty cells, and the system hands out zeros page by page, as they are used.
template <class T>
static T* zeros(size_t n) {
    T* memory = (T*)calloc(std::max(n, (size_t)1), sizeof(T));
    if (!memory) give_up("no memory to watch an array with");
    ask_for_large_pages(memory, n * sizeof(T));
    return memory;
}

void Shadow::allocate(size_t n_cells) {
    n_cells_ = n_cells;
    cells_.reset(zeros<Cell>(n_cells));
    second_reads_.reset(zeros<Record>(n_cells));
}

void Shadow::cover(uintptr_t low, uintptr_t high, bool is_shared) {
    base_ = low & ~(uintptr_t)(max_access_bytes - 1);
    bytes_ = high - base_;
    is_shared_ = is_shared;
}

void Shadow::split(size_t cell_bytes) {
    int shift = log2_floor(cell_bytes), by = cell_shift_ - shift;
    size_t n_coarse = n_cells_;
    auto cells = std::move(cells_);
    auto second_reads = std::move(second_reads_);
    allocate((bytes_ + cell_bytes - 1) >> shift);
    for (size_t i = 0; i < n_cells_ && i >> by < n_coarse; ++i) {
        const Cell& cell = cells[i >> by];
        if (!cell.write.moment && !cell.read.moment) continue;  // and leave the page alone
        cells_[i] = cell;
        second_reads_[i] = second_reads[i >> by];
    }
    cell_shift_ = shift;
    cell_bytes_ = cell_bytes;
}

void Shadow::touch(Region& region, const Access& access) {
    size_t place = access.address - base_, alignment = place ? place & -place : max_access_bytes;
    size_t finest = std::min({(size_t)max_access_bytes, alignment, (size_t)1 << log2_floor((size_t)access.size)});
    if (!cells_) cell_shift_ = log2_floor(max_access_bytes);
    if (!cells_ || finest < cell_bytes_) split(finest);
    size_t last = (place + access.size - 1) >> cell_shift_;
    for (size_t number = place >> cell_shift_; number <= last; ++number) touch_cell(region, number, access);
}

static inline bool conflicts(const Record& other, const Access& access) {
    return !(other.is_atomic() && access.is_atomic) && !is_ordered(other);
}

void Shadow::touch_cell(Region& region, size_t number, const Access& access) {
    Cell& cell = cells_[number];
    Record& second = second_reads_[number];
    uint32_t oldest = std::max(is_shared_ ? first_phase_of_block : 1, cell.write.moment);
    auto races_with_read = [&](const Record& read) { return read.moment >= oldest && conflicts(read, access); };
    // Shared memory is new in each block: what an earlier one left in the shadow is void.
    if (is_shared_ && (!access.is_write || access.is_read_too) && is_void(cell.write.moment))
        report_uninitialised(region, access);
    if (!is_void(cell.write.moment) && conflicts(cell.write, access)) {
        report_race(region, access, cell.write, true);
    } else if (access.is_write && races_with_read(cell.read)) {
        report_race(region, access, cell.read, false);
    } else if (access.is_write && races_with_read(second)) {
        report_race(region, access, second, false);
    }

    Record record = record_of(access.code, access.is_atomic);
    if (access.is_write) {
        cell = {record, {}};
        second = {};
    } else {
        (races_with_read(cell.read) ? second : cell.read) = record;
    }
}
