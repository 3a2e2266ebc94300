#include "memory.h"

#include <sys/mman.h>

#include <cstring>

Arena arena;
std::vector<Region> regions;
Region* static_shared = nullptr;
Region* dynamic_shared = nullptr;

static const size_t page = 4096, slot = (size_t)1 << slot_shift, guard = 1 << 20;
// The same addresses in every run, so that messages with addresses are the same too.
static void* const arena_hint = (void*)0x200000000000;

static size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

// One guard, the memory, and what is left of its last slot; the next one's guard follows.
static size_t room_for(size_t bytes) { return guard + round_up(round_up(bytes, page) + page, slot); }

static void reserve_arena(size_t bytes) {
    void* memory = mmap(arena_hint, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) give_up("no address space for the arrays");
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
    for (size_t i = 0; i < room >> slot_shift; ++i) arena.owner[((next - arena.low) >> slot_shift) + i] = (uint16_t)regions.size();
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

void lay_out_memory(int file, const std::vector<GlobalMemory>& stretches, char* shared_low, char* shared_high, size_t dynamic_bytes) {
    size_t total = room_for(dynamic_bytes) + guard;
    for (const GlobalMemory& memory : stretches) total += room_for(memory.bytes);
    reserve_arena(round_up(total, slot));
    regions.reserve(stretches.size() + 2);  // pointers to regions stay good

    uintptr_t next = arena.low;
    for (const GlobalMemory& memory : stretches) {
        Region& region = place_region(next, memory.bytes, file, memory.file_offset);
        region.number = (int)regions.size() - 1;
        region.read_only = memory.read_only;
        if (launch.checked) region.shadow.resize(memory.bytes, memory.element_bytes);
    }
    if (dynamic_bytes) {
        dynamic_shared = &place_region(next, dynamic_bytes, -1, 0);
        add_shared(*dynamic_shared, dynamic_bytes);
    }
    regions.emplace_back();
    static_shared = &regions.back();
    static_shared->low = (uintptr_t)shared_low;
    static_shared->high = (uintptr_t)shared_high;
    add_shared(*static_shared, shared_high - shared_low);
}

extern "C" void* labkit_dynamic_shared() { return dynamic_shared ? (void*)dynamic_shared->low : nullptr; }

void reset_shared_memory() {
    memset((void*)static_shared->low, 0xff, static_shared->high - static_shared->low);
    if (dynamic_shared) memset((void*)dynamic_shared->low, 0xff, dynamic_shared->high - dynamic_shared->low);
}

void describe_place(Json& body, const Region& region, uintptr_t address) {
    const char* space = !region.shared ? "global" : &region == static_shared ? "shared" : "dynamic";
    body.text("space", space).number("offset", (long long)(address - region.low)).number("bytes", (long long)(region.high - region.low));
    if (region.number >= 0) body.number("region", region.number);
}
