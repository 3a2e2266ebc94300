#include "shadow.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "memory.h"
#include "report.h"

bool is_write_pending = false;

namespace {
struct PendingWrite {
    uintptr_t address = 0;
    int size = 0;
    unsigned char before[16];
    uint32_t code = 0, other_code = 0;
    Json body = Json::object();
} pending;

void hold_until_written(const Access& access, uint32_t other_code, const Json& body) {
    is_write_pending = true;
    pending.address = access.address;
    pending.size = std::min(access.size, (int)sizeof pending.before);
    memcpy(pending.before, (void*)access.address, pending.size);
    pending.code = access.code;
    pending.other_code = other_code;
    pending.body = body;
}
}  // namespace

void judge_pending_write() {
    is_write_pending = false;
    bool unchanged = memcmp((void*)pending.address, pending.before, pending.size) == 0;
    report_fault(unchanged ? "same_value_race" : "race", pending.code, pending.other_code, pending.body);
}

static const char* verb(bool is_write, bool is_atomic) { return is_atomic ? "updates" : is_write ? "writes" : "reads"; }

static void report_race(const Region& region, const Access& access, const Record& other, bool other_wrote) {
    finish_pending_write();
    Json body = where_now();
    body.number("code", access.code).text("verb", verb(access.is_write, access.is_atomic));
    body.number("other_code", other.code).text("other_verb", verb(other_wrote, other.atomic));
    body.raw("other_block", json_of(block_of_phase(other.phase)));
    body.raw("other_thread", json_of(launch.threads[other.thread].position));
    describe_place(body, region, access.address);
    if (access.is_write && other_wrote && !access.is_atomic && !other.atomic) {
        hold_until_written(access, other.code, body);
    } else {
        report_fault("race", access.code, other.code, body);
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
void Shadow::allocate(size_t n_cells) {
    n_cells_ = n_cells;
    cells_.reset((Cell*)calloc(std::max(n_cells, (size_t)1), sizeof(Cell)));
    if (!cells_) give_up("no memory to watch an array with");
    ask_for_large_pages(cells_.get(), n_cells * sizeof(Cell));
}

void Shadow::resize(size_t bytes, size_t cell_bytes) {
    cell_shift_ = std::min(log2_floor(std::max(cell_bytes, (size_t)1)), 4);
    while (bytes % ((size_t)1 << cell_shift_)) --cell_shift_;
    allocate(bytes >> cell_shift_);
}

void Shadow::split(size_t cell_bytes) {
    int shift = log2_floor(cell_bytes);
    size_t parts = (size_t)1 << (cell_shift_ - shift), n_coarse = n_cells_;
    auto coarse = std::move(cells_);
    allocate(n_coarse * parts);
    for (size_t i = 0; i < n_coarse * parts; ++i) cells_[i] = coarse[i / parts];
    cell_shift_ = shift;
}

void Shadow::touch(Region& region, const Access& access) {
    size_t offset = access.address - region.low, cell_bytes = (size_t)1 << cell_shift_;
    if ((size_t)access.size < cell_bytes || (offset & (cell_bytes - 1))) {
        size_t alignment = offset ? (size_t)1 << __builtin_ctzll(offset) : cell_bytes;
        split(std::min({cell_bytes, alignment, (size_t)1 << log2_floor(access.size)}));
    }
    Record now;
    now.phase = phase;
    now.tick = current->tick;
    now.code = access.code;
    now.thread = (uint32_t)current->index;
    now.atomic = access.is_atomic;
    Cell* end = &cells_[0] + ((offset + access.size - 1) >> cell_shift_) + 1;
    for (Cell* cell = &cells_[0] + (offset >> cell_shift_); cell != end; ++cell) touch_cell(region, *cell, access, now);
}

static inline bool conflicts(const Record& other, const Access& access, uint32_t oldest) {
    return other.phase && other.phase >= oldest && !(other.atomic && access.is_atomic) && !is_ordered(other);
}

void Shadow::touch_cell(Region& region, Cell& cell, const Access& access, const Record& now) {
    // Shared memory is new in each block: what an earlier one left in the shadow is void.
    uint32_t oldest = region.shared ? first_phase_of_block : 1;
    if (region.shared && (!access.is_write || access.is_read_too) && cell.write.phase < oldest) {
        report_uninitialised(region, access);
    }
    if (conflicts(cell.write, access, oldest)) {
        report_race(region, access, cell.write, true);
    } else if (access.is_write) {
        for (const Record& read : cell.reads) {
            if (!conflicts(read, access, oldest)) continue;
            report_race(region, access, read, false);
            break;
        }
    }

    if (access.is_write) {
        cell.write = now;
        cell.reads[0].phase = cell.reads[1].phase = 0;
    } else if (conflicts(cell.reads[0], access, oldest)) {
        cell.reads[1] = now;
    } else {
        cell.reads[0] = now;
    }
}
