// Memory that a kernel may use, as regions with exact bounds: each array it was given, the static and the dynamic
// shared memory of the block. Arrays lie far apart in one arena, so that an address past the end of one is nobody's.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "report.h"
#include "shadow.h"

struct Region {
    uintptr_t low = 0, high = 0;
    int number = -1;  // as outside counts them; -1: shared memory
    bool read_only = false;
    bool shared = false;
    Shadow shadow;
};

struct Arena {
    uintptr_t low = 0, size = 0;
    std::vector<uint16_t> owner;  // the region to which each slot of 64 KiB belongs, guards included
};
const int slot_shift = 16;
const uintptr_t beside_shared_bytes = 4096;

extern Arena arena;
extern std::vector<Region> regions;
extern Region* static_shared;   // its place is in the compiled kernel, not in the arena
extern Region* dynamic_shared;  // the first in the arena, perhaps empty

// A stretch of the file that arrays lie in: one array, or several that overlap.
struct GlobalMemory {
    uint64_t file_offset, bytes, element_bytes;
    bool read_only;
};

// A __device__, __constant__ or static __shared__ variable of the compiled kernel, by its offset in the module.
struct Variable {
    uint64_t offset, bytes;
    bool is_shared;
};

// Map global memory, each stretch at its place in the file, and find the shared memory.
void lay_out_memory(int file, const std::vector<GlobalMemory>& stretches, const std::vector<Variable>& variables,
                    size_t dynamic_bytes);

// Where a stretch of the file came to lie.
uintptr_t address_of_stretch(size_t number);

// Is all of an access in one variable that is not shared?
bool is_global_variable(uintptr_t address, int size);

// Of each byte from the first shared variable to the last, which of them it belongs to; 0 for what is between them.
extern std::vector<uint16_t> shared_owner;
inline bool is_in_one_shared_variable(uintptr_t address, int size) {
    size_t offset = address - static_shared->low;
    return shared_owner[offset] && shared_owner[offset] == shared_owner[offset + size - 1];
}

// New shared memory for a block: bytes that make NaN and huge integers, so that a value read too early shows.
void reset_shared_memory();

// The region that an address lies in, or beside; null if it is nowhere near one.
inline Region* region_near(uintptr_t address) {
    if (address - arena.low < arena.size) return &regions[arena.owner[(address - arena.low) >> slot_shift]];
    // past its end too: what follows it in the module is no place for an access
    return address - static_shared->low < static_shared->high - static_shared->low + beside_shared_bytes ? static_shared
                                                                                                         : nullptr;
}

// Space, region and offset of an address, for the body of a fault.
void describe_place(Json& body, const Region& region, uintptr_t address);
