// Shadow memory: for each cell of a region the last write and up to two reads, to find accesses that nothing orders.
#pragma once
#include <cstddef>
#include <cstdlib>
#include <memory>

#include "clocks.h"

struct Access {
    uintptr_t address;
    int size;
    bool is_write;
    bool is_atomic;
    uint32_t code;  // where in the compiled kernel
    bool is_read_too = false;
};

struct Region;

// The last write and a read since; of further reads in its phase, the last stands apart. Two are enough: with readers
// of one phase in them, a write races with at least one that is not its own thread. Reads from before the write count
// for nothing.
struct Cell {
    Record write, read;
};

inline Record record_of(uint32_t code, bool is_atomic) {
    return {now, code | (uint32_t)current->index << code_bits | (uint32_t)is_atomic << 31};
}

// The cells of one region. They begin as large as the first access; the first smaller one, say by bytes to an array of
// words, splits every cell into equal ones of that size.
class Shadow {
public:
    void cover(uintptr_t low, uintptr_t high, bool is_shared);

    // Most accesses touch one cell that holds nothing but what is over: then this is all. Else look with care.
    template <int size, bool is_write>
    bool touch_quickly(uintptr_t address, uint32_t code);
    void touch(Region& region, const Access& access);

private:
    void allocate(size_t n_cells);
    void split(size_t cell_bytes);
    void touch_cell(Region& region, size_t number, const Access& access);
    bool is_void(uint32_t moment) const { return moment < (is_shared_ ? first_phase_of_block : 1); }
    bool is_free(uint32_t moment) const { return is_past(moment) || is_void(moment); }
    static bool is_own(const Record& record) { return record.moment >= phase && record.thread() == current->index; }

    std::unique_ptr<Cell[], decltype(&free)> cells_{nullptr, free};
    std::unique_ptr<Record[], decltype(&free)> second_reads_{nullptr, free};
    uintptr_t base_ = 0;  // a multiple of the widest access
    size_t bytes_ = 0, n_cells_ = 0, cell_bytes_ = 0;
    int cell_shift_ = 0;
    bool is_shared_ = false;
};

// The address is a multiple of the size; and so is the base, of an array.
template <int size, bool is_write>
inline bool Shadow::touch_quickly(uintptr_t address, uint32_t code) {
    if (size != cell_bytes_) return false;
    size_t number = (address - base_) / size;
    Cell& cell = cells_[number];
    if (any_fence || !(is_free(cell.write.moment) || is_own(cell.write))) return false;
    if (!is_write && is_shared_ && is_void(cell.write.moment)) return false;
    Record& mine = is_write ? cell.write : cell.read;
    if (is_free(cell.read.moment)) {  // and so the second one is
        mine = record_of(code, false);
    } else if (is_own(cell.read)) {
        if (is_write && !is_free(second_reads_[number].moment)) return false;
        mine = record_of(code, false);
    } else {
        if (is_write || current->known_phase == phase) return false;
        second_reads_[number] = record_of(code, false);
    }
    return true;
}

// A write that raced with another write: harmless if it leaves what was there. Known after the write only.
void judge_pending_write();
inline void finish_pending_write() {
    if (__builtin_expect(alarms.is_write_pending, false)) judge_pending_write();
}
