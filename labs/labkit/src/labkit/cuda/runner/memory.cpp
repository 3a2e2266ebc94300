#include "memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "../device/addresses.h"
#include "traffic.h"

Arena arena;
std::vector<Region> regions;
Region* static_shared = nullptr;
Region* dynamic_shared = nullptr;
Region* variables = nullptr;
Granules shared_granules;
static std::vector<Variable> known_variables;  // in the order in which they lie

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
    arena.owner.assign(bytes >> slot_shift, nullptr);
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
    regions.emplace_back();
    Region& region = regions.back();
    region.low = pages + ((body - bytes) & ~(size_t)255);
    region.high = region.low + bytes;
    std::fill_n(arena.owner.begin() + (long)((next - arena.low) >> slot_shift), room >> slot_shift, &region);
    next += room;
    return region;
}

// Variables of one kind reach from the first to the last; what is between is nobody's, or of the other kind.
static Region* find_variables(bool shared) {
    regions.emplace_back();
    Region& region = regions.back();
    region.space = shared ? Space::static_shared : Space::variables;
    region.low = launch.module_high;
    for (const Variable& variable : known_variables) {
        if (variable.is_shared != shared) continue;
        region.low = std::min(region.low, launch.module_low + variable.offset);
        region.high = std::max(region.high, launch.module_low + variable.offset + variable.bytes);
    }
    region.high = std::max(region.high, region.low);
    return &region;
}

static void find_granules() {
    const uintptr_t granule = max_access_bytes;
    shared_granules.base = static_shared->low & ~(granule - 1);
    shared_granules.bytes = round_up(static_shared->high - shared_granules.base, granule);
    shared_granules.is_whole.assign(shared_granules.bytes / granule, 0);
    for (const Variable& variable : known_variables) {
        if (!variable.is_shared) continue;
        uintptr_t low = launch.module_low + variable.offset - shared_granules.base, high = low + variable.bytes;
        for (uintptr_t i = round_up(low, granule) / granule; i < high / granule; ++i) shared_granules.is_whole[i] = 1;
    }
}

static void lay_out_arena(int file, const std::vector<GlobalMemory>& stretches, size_t dynamic_bytes) {
    size_t total = room_for(dynamic_bytes) + guard;
    for (const GlobalMemory& memory : stretches) total += room_for(memory.bytes);
    reserve_arena(round_up(total, slot));

    uintptr_t next = arena.low;
    dynamic_shared = &place_region(next, dynamic_bytes, -1, 0);
    dynamic_shared->space = Space::dynamic_shared;
    dynamic_shared->high -= dynamic_shared->low - LABKIT_DYNAMIC_SHARED;
    dynamic_shared->low = LABKIT_DYNAMIC_SHARED;  // not at the end of its pages: kernels are compiled with this address
    for (const GlobalMemory& memory : stretches) {
        Region& region = place_region(next, memory.bytes, file, memory.file_offset);
        region.number = (int)(&memory - &stretches[0]);
        region.read_only = memory.read_only;
    }
    std::replace(arena.owner.begin(), arena.owner.end(), (Region*)nullptr, dynamic_shared);
}

void lay_out_memory(int file, const std::vector<GlobalMemory>& stretches, std::vector<Variable> all_variables,
                    size_t dynamic_bytes) {
    known_variables = std::move(all_variables);
    std::sort(known_variables.begin(), known_variables.end(),
              [](const Variable& a, const Variable& b) { return a.offset < b.offset; });
    regions.reserve(stretches.size() + 3);  // pointers to regions stay good
    lay_out_arena(file, stretches, dynamic_bytes);
    static_shared = find_variables(true);
    variables = find_variables(false);
    find_granules();
    for (Region& region : regions) {
        region.kind = region.is_shared() ? shared_bit : 0;
        region.whole_bytes = (region.high - region.low) / max_access_bytes * max_access_bytes;
        region.shadow.cover(region.low, region.high, region.is_shared());
    }
}

uintptr_t address_of_stretch(size_t number) {
    for (const Region& region : regions) {
        if (region.number == (int)number) return region.low;
    }
    give_up("an argument names memory that the task does not have");
}

// Most accesses are to the variable of the last one.
Region* region_in_module(uintptr_t address, size_t size) {
    static Variable last{};
    uint64_t offset = address - launch.module_low;
    if (offset - last.offset >= last.bytes) {
        if (!is_in_module(address)) return nullptr;
        auto after = std::upper_bound(known_variables.begin(), known_variables.end(), offset,
                                      [](uint64_t place, const Variable& v) { return place < v.offset; });
        if (after == known_variables.begin()) return nullptr;
        last = *(after - 1);
    }
    if (offset - last.offset >= last.bytes || offset + size > last.offset + last.bytes) return nullptr;
    return last.is_shared ? static_shared : variables;
}

Region* region_near(uintptr_t address) {
    if (Region* region = region_in_arena(address)) return region;
    if (Region* region = region_in_module(address, 1)) return region;
    // past its end too: what follows it in the module is no place for an access
    bool beside = address - static_shared->low < static_shared->high - static_shared->low + beside_shared_bytes;
    return beside ? static_shared : nullptr;
}

void reset_shared_memory() {
    for (const Variable& variable : known_variables) {
        if (variable.is_shared) memset((void*)(launch.module_low + variable.offset), 0xff, variable.bytes);
    }
    memset((void*)dynamic_shared->low, 0xff, dynamic_shared->high - dynamic_shared->low);
}

void describe_place(Json& body, const Region& region, uintptr_t address) {
    static const char* names[] = {"global", "shared", "dynamic", "variable"};
    body.text("space", names[(int)region.space])
        .number("offset", (long long)(address - (region.space == Space::variables ? launch.module_low : region.low)))
        .number("bytes", (long long)(region.high - region.low));
    if (region.number >= 0) body.number("region", region.number);
}
