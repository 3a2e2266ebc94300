#include "shadow.h"

#include <algorithm>
#include <cstring>

#include "memory.h"
#include "report.h"

namespace {
// Held until the write has happened.
struct PendingWrite {
    bool is_open = false;
    const char* kind = nullptr;
    uintptr_t address = 0;
    int size = 0;
    unsigned char before[16];
    uint32_t code = 0, other_code = 0;
    Json body = Json::object();
} pending;

void hold_until_written(const Access& access, uint32_t other_code, const Json& body) {
    pending.is_open = true;
    pending.address = access.address;
    pending.size = std::min(access.size, (int)sizeof pending.before);
    memcpy(pending.before, (void*)access.address, pending.size);
    pending.code = access.code;
    pending.other_code = other_code;
    pending.body = body;
}
}  // namespace

void finish_pending_write() {
    if (!pending.is_open) return;
    pending.is_open = false;
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

static int log2_floor(size_t n) { return 63 - __builtin_clzll(n); }

void Shadow::resize(size_t bytes, size_t cell_bytes) {
    bytes_ = bytes;
    cell_shift_ = std::min(log2_floor(std::max(cell_bytes, (size_t)1)), 4);
    while (bytes % ((size_t)1 << cell_shift_)) --cell_shift_;
    cells_.assign((bytes >> cell_shift_), Cell());
}

void Shadow::split(size_t cell_bytes) {
    int shift = log2_floor(cell_bytes);
    size_t parts = (size_t)1 << (cell_shift_ - shift);
    std::vector<Cell> finer(cells_.size() * parts);
    for (size_t i = 0; i < finer.size(); ++i) finer[i] = cells_[i / parts];
    cells_.swap(finer);
    cell_shift_ = shift;
}

void Shadow::touch(Region& region, const Access& access) {
    size_t offset = access.address - region.low, cell_bytes = (size_t)1 << cell_shift_;
    if ((size_t)access.size < cell_bytes || (offset & (cell_bytes - 1))) {
        size_t alignment = offset ? (size_t)1 << __builtin_ctzll(offset) : cell_bytes;
        split(std::min({cell_bytes, alignment, (size_t)1 << log2_floor(access.size)}));
    }
    Cell* end = &cells_[0] + ((offset + access.size - 1) >> cell_shift_) + 1;
    for (Cell* cell = &cells_[0] + (offset >> cell_shift_); cell != end; ++cell) touch_cell(region, *cell, access);
}

static inline bool conflicts(const Record& other, const Access& access, uint32_t oldest) {
    return other.phase && other.phase >= oldest && !(other.atomic && access.is_atomic) && !is_ordered(other);
}

void Shadow::touch_cell(Region& region, Cell& cell, const Access& access) {
    // Shared memory is new in each block: what an earlier one left in the shadow is void.
    uint32_t oldest = region.shared ? first_phase_of_block : 1;
    if (region.shared && !access.is_write && cell.write.phase < oldest) {
        Json body = where_now();
        body.number("code", access.code);
        describe_place(body, region, access.address);
        report_fault("uninitialised", access.code, 0, body);
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

    Record now;
    now.phase = phase;
    now.tick = current->tick;
    now.code = access.code;
    now.thread = (uint32_t)current->index;
    now.atomic = access.is_atomic;
    if (access.is_write) {
        cell.write = now;
        cell.reads[0].phase = cell.reads[1].phase = 0;
    } else if (conflicts(cell.reads[0], access, oldest)) {
        cell.reads[1] = now;
    } else {
        cell.reads[0] = now;
    }
}
