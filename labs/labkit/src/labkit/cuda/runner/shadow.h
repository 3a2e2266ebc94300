// Shadow memory: for each cell of a region the last write and up to two reads, to find accesses that nothing orders.
#pragma once
#include <cstddef>
#include <vector>

#include "clocks.h"

struct Access {
    uintptr_t address;
    int size;
    bool is_write;
    bool is_atomic;
    uint32_t code;  // where in the compiled kernel
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
    void split(size_t cell_bytes);
    void touch_cell(Region& region, Cell& cell, const Access& access);
    std::vector<Cell> cells_;
    size_t bytes_ = 0;
    int cell_shift_ = 0;
};

// A write that raced with another write: harmless if it leaves what was there. Known after the write only.
void finish_pending_write();
