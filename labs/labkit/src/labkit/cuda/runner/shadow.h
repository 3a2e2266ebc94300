// Shadow memory: for each cell of a region the last write and up to two reads, to find accesses that nothing orders.
#pragma once
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <vector>

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

// Two reads are enough: with readers of one phase in it, a write races with at least one that is not its own thread.
struct Cell {
    Record write;
    Record reads[2];
};

// The cells of one region. They begin as large as the elements; the first smaller access, say by bytes to an
// array of words, splits every cell into equal ones of that size.
class Shadow {
public:
    void resize(size_t bytes, size_t cell_bytes);
    void touch(Region& region, const Access& access);

private:
    void allocate(size_t n_cells);
    void split(size_t cell_bytes);
    void touch_cell(Region& region, Cell& cell, const Access& access, const Record& now);
    std::unique_ptr<Cell[], decltype(&free)> cells_{nullptr, free};
    size_t n_cells_ = 0;
    int cell_shift_ = 0;
};

// A write that raced with another write: harmless if it leaves what was there. Known after the write only.
extern bool is_write_pending;
void judge_pending_write();
inline void finish_pending_write() {
    if (__builtin_expect(is_write_pending, false)) judge_pending_write();
}
