#include "memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "../device/addresses.h"

Arena arena;
std::vector<Region> regions;
Region* static_shared = nullptr;
Region* dynamic_shared = nullptr;
std::vector<uint16_t> shared_owner;
static std::vector<Variable> known_variables;

static const size_t page = 4096, slot = (size_t)1 << slot_shift, guard = LABKIT_GUARD_BYTES;

static size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

// One guard, the memory, and what is left of its last slot; the next one's guard follows.
static size_t room_for(size_t bytes) { return guard + round_up(round_up(bytes, page) + page, slot); }

static void reserve_arena(size_t bytes) {
    int kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    void* memory = mmap((void*)LABKIT_ARENA, bytes, PROT_NONE, kind, -1, 0);
    if (memory != (void*)LABKIT_ARENA) give_up("no address space for the arrays");
    arena.low = (uintptr_t)memory;
    arena.size = bytes;
    arena.owner.assign(bytes >> slot_shift, 0);
}

static void* map_pages(uintptr_t at, size_t bytes, int file, uint64_t file_offset) {
    int kind = file >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
    void* memory = mmap((void*)at, bytes, PROT_READ | PROT_WRITE, kind | MAP_FIXED, file, (off_t)file_offset);
    if (memory == MAP_FAILED) give_up("no memory for an array");
    return memory;
}

// Give the next region its room in the arena. It ends at the end of a page as far as alignment to 256 bytes (CUDA's
// own) allows, so that even an unchecked kernel faults soon behind it.
static Region& place_region(uintptr_t& next, size_t bytes, int file, uint64_t file_offset) {
    size_t room = room_for(bytes), body = round_up(bytes, page);
    uintptr_t pages = next + guard;
    if (body) map_pages(pages, body, file, file_offset);
    for (size_t i = 0; i < room >> slot_shift; ++i)
        arena.owner[((next - arena.low) >> slot_shift) + i] = (uint16_t)regions.size();
    regions.emplace_back();
    Region& region = regions.back();
    region.low = pages + ((body - bytes) & ~(size_t)255);
    region.high = region.low + bytes;
    next += room;
    return region;
}

static void add_shared(Region& region, size_t bytes) {
    region.shared = true;
    if (launch.checked) region.shadow.resize(bytes, sizeof(float));
}

// The static shared memory reaches from the first shared variable to the last; what is between is nobody's, or is
// another variable.
static void find_static_shared(const std::vector<Variable>& variables) {
    regions.emplace_back();
    static_shared = &regions.back();
    static_shared->low = launch.module_high;
    for (const Variable& variable : variables) {
        if (!variable.is_shared) continue;
        static_shared->low = std::min(static_shared->low, launch.module_low + variable.offset);
        static_shared->high = std::max(static_shared->high, launch.module_low + variable.offset + variable.bytes);
    }
    static_shared->high = std::max(static_shared->high, static_shared->low);
    shared_owner.assign(static_shared->high - static_shared->low, 0);
    uint16_t number = 0;
    for (const Variable& variable : variables) {
        if (!variable.is_shared) continue;
        long first = (long)(launch.module_low + variable.offset - static_shared->low);
        std::fill_n(shared_owner.begin() + first, variable.bytes, ++number);
    }
    add_shared(*static_shared, shared_owner.size());
}

void lay_out_memory(int file, const std::vector<GlobalMemory>& stretches, const std::vector<Variable>& variables,
                    size_t dynamic_bytes) {
    known_variables = variables;
    size_t total = room_for(dynamic_bytes) + guard;
    for (const GlobalMemory& memory : stretches) total += room_for(memory.bytes);
    reserve_arena(round_up(total, slot));
    regions.reserve(stretches.size() + 2);  // pointers to regions stay good

    uintptr_t next = arena.low;
    dynamic_shared = &place_region(next, dynamic_bytes, -1, 0);
    dynamic_shared->high -= dynamic_shared->low - LABKIT_DYNAMIC_SHARED;
    dynamic_shared->low = LABKIT_DYNAMIC_SHARED;  // not at the end of its pages: kernels are compiled with this address
    add_shared(*dynamic_shared, dynamic_bytes);
    for (const GlobalMemory& memory : stretches) {
        Region& region = place_region(next, memory.bytes, file, memory.file_offset);
        region.number = (int)(&memory - &stretches[0]);
        region.read_only = memory.read_only;
        if (launch.checked) region.shadow.resize(memory.bytes, memory.element_bytes);
    }
    find_static_shared(variables);
}

uintptr_t address_of_stretch(size_t number) {
    for (const Region& region : regions) {
        if (region.number == (int)number) return region.low;
    }
    give_up("an argument names memory that the task does not have");
}

bool is_global_variable(uintptr_t address, int size) {
    if (!is_in_module(address)) return false;
    uint64_t offset = address - launch.module_low;
    return std::any_of(known_variables.begin(), known_variables.end(), [&](const Variable& v) {
        return !v.is_shared && offset >= v.offset && offset + size <= v.offset + v.bytes;
    });
}

void reset_shared_memory() {
    for (const Variable& variable : known_variables) {
        if (variable.is_shared) memset((void*)(launch.module_low + variable.offset), 0xff, variable.bytes);
    }
    memset((void*)dynamic_shared->low, 0xff, dynamic_shared->high - dynamic_shared->low);
}

void describe_place(Json& body, const Region& region, uintptr_t address) {
    const char* space = !region.shared ? "global" : &region == static_shared ? "shared" : "dynamic";
    body.text("space", space)
        .number("offset", (long long)(address - region.low))
        .number("bytes", (long long)(region.high - region.low));
    if (region.number >= 0) body.number("region", region.number);
}
