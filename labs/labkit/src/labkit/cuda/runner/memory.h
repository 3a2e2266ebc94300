// Memory that a kernel may use, as regions with exact bounds: each array it was given, the static and the dynamic
// shared memory of the block. Arrays lie far apart in one arena, so that an address past the end of one is nobody's.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "report.h"
#include "shadow.h"

enum class Space : uint8_t { global, static_shared, dynamic_shared, variables };

struct Region {
    uintptr_t low = 0, high = 0;
    int number = -1;  // as outside counts them; -1: shared memory, or variables
    Space space = Space::global;
    bool read_only = false;
    uint32_t kind = 0;      // what its accesses are noted with (traffic.h)
    size_t whole_bytes = 0;  // an aligned access that begins in these lies in the region
    Shadow shadow;
    bool is_shared() const { return space == Space::static_shared || space == Space::dynamic_shared; }
    bool holds(uintptr_t address, size_t size) const { return address - low < high - low && address + size <= high; }
};

struct Arena {
    uintptr_t low = 0, size = 0;
    std::vector<Region*> owner;  // the region to which each slot of 64 KiB belongs, guards included
};
const int slot_shift = 16;
const uintptr_t beside_shared_bytes = 4096;

extern Arena arena;
extern std::vector<Region> regions;
extern Region* static_shared;   // its place is in the compiled kernel, not in the arena
extern Region* dynamic_shared;  // the first in the arena, perhaps empty
extern Region* variables;       // __device__ and __constant__ ones: in the compiled kernel too

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
void lay_out_memory(int file, const std::vector<GlobalMemory>& stretches, std::vector<Variable> all_variables,
                    size_t dynamic_bytes);

// Where a stretch of the file came to lie.
uintptr_t address_of_stretch(size_t number);

// The static shared memory in granules as large as the widest access: does the whole of one lie in one variable?
struct Granules {
    uintptr_t base = 0, bytes = 0;
    std::vector<uint8_t> is_whole;
};
extern Granules shared_granules;

// The static shared variables, or the other ones, if all of an access lies in a single variable; else none.
Region* region_in_module(uintptr_t address, size_t size);

// The array to whose slots an address belongs, if to any; the region that all of an access lies in.
inline Region* region_in_arena(uintptr_t address) {
    return address - arena.low < arena.size ? arena.owner[(address - arena.low) >> slot_shift] : nullptr;
}
inline Region* region_of(uintptr_t address, size_t size) {
    Region* region = region_in_arena(address);
    if (!region) return region_in_module(address, size);
    return region->holds(address, size) ? region : nullptr;
}

// New shared memory for a block: bytes that make NaN and huge integers, so that a value read too early shows.
void reset_shared_memory();

// The region that an address lies in, or beside; null if it is nowhere near one.
Region* region_near(uintptr_t address);

// Space, region and offset of an address, for the body of a fault.
void describe_place(Json& body, const Region& region, uintptr_t address);
