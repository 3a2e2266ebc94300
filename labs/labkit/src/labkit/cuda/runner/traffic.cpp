#include "traffic.h"

#include <algorithm>

#include "memory.h"
#include "report.h"
#include "scheduler.h"

namespace {

const int sector_shift = 5;       // 32 bytes: the unit that global memory is moved in
const int n_banks = 32;           // of shared memory, each 4 bytes wide
const int bytes_per_round = 128;  // what all banks deliver at once

std::vector<WarpLog> logs;  // of the warps of a block; none in an unchecked launch

// Of one instruction of the kernel.
struct Counts {
    uint32_t kind;
    long long thread_accesses = 0, warp_accesses = 0, bytes = 0;
    long long sectors = 0;       // global
    long long extra_rounds = 0;  // shared: beyond those that the bytes themselves need
    long long partial = 0;       // accesses of a warp in which some of its lanes took no part
};
std::vector<Counts> counts;
std::vector<uint32_t> counts_of_code;  // where in `counts`, plus one

uint32_t code_of(uint32_t kind) { return kind & (max_code_bytes - 1); }

size_t place_of_counts(uint32_t kind) {
    uint32_t& place = counts_of_code[code_of(kind)];
    if (!place) {
        counts.push_back({kind});
        place = (uint32_t)counts.size();
    }
    return place - 1;
}

// One access of a warp: what its lanes accessed with the same instruction at the same time.
struct WarpAccess {
    const uint64_t* addresses;
    uint32_t kind;
    int n_lanes;
    int size() const { return 1 << (kind >> code_bits & 7); }
    bool is_shared() const { return kind & shared_bit; }
    // Does each lane access what follows on the lane before it?
    bool is_run() const {
        if (n_lanes > 1 && addresses[1] - addresses[0] != (uint64_t)size()) return false;
        int shift = kind >> code_bits & 7;
        uint64_t differences = 0;
        for (int i = 0; i < n_lanes; ++i) differences |= addresses[i] - addresses[0] - ((uint64_t)i << shift);
        return differences == 0;
    }
    bool is_one_word() const {
        uint64_t differences = 0;
        for (int i = 0; i < n_lanes; ++i) differences |= addresses[i] ^ addresses[0];
        return differences >> 2 == 0;
    }
};

// The same, gathered from lanes that are not all, or not at one place of the log.
struct GatheredAccess {
    uint64_t addresses[warp_lanes];
    uint32_t kind = 0;
    int n_lanes = 0;
    void add(uint64_t address, uint32_t of_kind) {
        kind = of_kind;
        addresses[n_lanes++] = address;
    }
    operator WarpAccess() const { return {addresses, kind, n_lanes}; }
};

int count_sectors(const WarpAccess& access) {
    uint64_t sectors[2 * warp_lanes];
    int n = 0;
    bool ascending = true;
    for (int i = 0; i < access.n_lanes; ++i) {
        uint64_t first = access.addresses[i] >> sector_shift;
        uint64_t last = (access.addresses[i] + access.size() - 1) >> sector_shift;
        for (uint64_t sector = first; sector <= last; ++sector) {
            if (n && sector == sectors[n - 1]) continue;
            ascending &= n == 0 || sector > sectors[n - 1];
            sectors[n++] = sector;
        }
    }
    if (ascending) return n;
    std::sort(sectors, sectors + n);
    return (int)(std::unique(sectors, sectors + n) - sectors);
}

// Rounds that lanes [first, last) need: each bank delivers one word in a round, to all who want that word.
int count_rounds(const WarpAccess& access, int first, int last) {
    uint64_t words[4 * warp_lanes];
    int n = 0, per_bank[n_banks] = {}, rounds = 0;
    for (int i = first; i < last; ++i) {
        uint64_t end = (access.addresses[i] + access.size() - 1) >> 2;
        for (uint64_t word = access.addresses[i] >> 2; word <= end; ++word) words[n++] = word;
    }
    if (!std::is_sorted(words, words + n)) std::sort(words, words + n);
    n = (int)(std::unique(words, words + n) - words);
    for (int i = 0; i < n; ++i) rounds = std::max(rounds, ++per_bank[words[i] % n_banks]);
    return rounds;
}

// Lanes that want one word each: all the same one, or all from different banks?
bool is_one_round(const WarpAccess& access) {
    if (access.is_one_word()) return true;
    uint32_t banks = 0;
    for (int i = 0; i < access.n_lanes; ++i) banks |= 1u << (access.addresses[i] >> 2) % n_banks;
    return __builtin_popcount(banks) == access.n_lanes;
}

// A warp that moves more than 128 bytes is served in equal parts of so many lanes that each moves 128.
int count_extra_rounds(const WarpAccess& access) {
    if (access.size() <= 4 && is_one_round(access)) return 0;
    int lanes_at_once = std::min(warp_lanes, bytes_per_round / access.size()), extra = 0;
    for (int first = 0; first < access.n_lanes; first += lanes_at_once) {
        extra += count_rounds(access, first, std::min(access.n_lanes, first + lanes_at_once)) - 1;
    }
    return extra;
}

void count_warp_access(const WarpAccess& access, int n_lanes_of_warp) {
    Counts& count = counts[place_of_counts(access.kind)];
    long long bytes = (long long)access.n_lanes * access.size();
    count.thread_accesses += access.n_lanes;
    count.warp_accesses += 1;
    count.bytes += bytes;
    count.partial += access.n_lanes < n_lanes_of_warp;
    if (access.is_run()) {  // whatever its width, a run of bytes meets no bank twice in a round
        uint64_t first = access.addresses[0], last = first + (uint64_t)bytes - 1;
        if (!access.is_shared()) count.sectors += (long long)((last >> sector_shift) - (first >> sector_shift)) + 1;
    } else if (access.is_shared()) {
        count.extra_rounds += count_extra_rounds(access);
    } else {
        count.sectors += count_sectors(access);
    }
}

struct Warp {
    const WarpLog& log;
    int first, n_lanes;
    int length(int lane) const { return launch.threads[first + lane].n_logged; }
    uint64_t address(int place, int lane) const { return log.addresses[place][lane]; }
    uint32_t kind(int place, int lane) const { return log.kinds[place][lane]; }
};

bool is_alike(const uint32_t* kinds, int n_lanes) {
    uint32_t differences = 0;
    for (int lane = 0; lane < n_lanes; ++lane) differences |= kinds[lane] ^ kinds[0];
    return differences == 0;
}

// While all lanes that have an access at this place have it by the same instruction: the way of most kernels.
int count_while_alike(const Warp& warp) {
    int shortest = log_length, place = 0;
    for (int lane = 0; lane < warp.n_lanes; ++lane) shortest = std::min(shortest, warp.length(lane));
    for (; place < shortest; ++place) {
        if (!is_alike(warp.log.kinds[place], warp.n_lanes)) return place;
        count_warp_access({warp.log.addresses[place], warp.log.kinds[place][0], warp.n_lanes}, warp.n_lanes);
    }
    for (;; ++place) {
        GatheredAccess access;
        for (int lane = 0; lane < warp.n_lanes; ++lane) {
            if (place >= warp.length(lane)) continue;
            if (access.n_lanes && warp.kind(place, lane) != access.kind) return place;
            access.add(warp.address(place, lane), warp.kind(place, lane));
        }
        if (access.n_lanes == 0) return place;
        count_warp_access(access, warp.n_lanes);
    }
}

// Accesses of lanes that went different ways, matched: the n-th time of an instruction in one lane to the n-th in
// another.
class Matching {
public:
    void add(uint64_t address, uint32_t kind, int time) {
        size_t key = place_of_counts(kind) * log_length + time;
        if (key >= place_of_.size()) place_of_.resize(key + log_length, none);
        if (place_of_[key] == none) {
            place_of_[key] = (int)matched_.size();
            keys_.push_back(key);
            matched_.emplace_back();
        }
        matched_[place_of_[key]].add(address, kind);
    }
    void count(int n_lanes_of_warp) {
        for (const GatheredAccess& access : matched_) count_warp_access(access, n_lanes_of_warp);
        for (size_t key : keys_) place_of_[key] = none;
        matched_.clear();
        keys_.clear();
    }

private:
    static constexpr int none = -1;
    std::vector<int> place_of_;  // in `matched_`, by instruction and time
    std::vector<size_t> keys_;   // those in use
    std::vector<GatheredAccess> matched_;
};

void count_by_occurrence(const Warp& warp, int from) {
    static Matching matching;
    static std::vector<int> times;  // that an instruction has come up in this lane
    for (int lane = 0; lane < warp.n_lanes; ++lane) {
        times.assign(times.size(), 0);
        for (int place = from; place < warp.length(lane); ++place) {
            size_t instruction = place_of_counts(warp.kind(place, lane));
            if (instruction >= times.size()) times.resize(instruction + 1, 0);
            matching.add(warp.address(place, lane), warp.kind(place, lane), times[instruction]++);
        }
    }
    matching.count(warp.n_lanes);
}

}  // namespace

void start_traffic() {
    logs.resize((launch.n_threads + warp_lanes - 1) / warp_lanes);
    for (Thread& thread : launch.threads) {
        thread.logged_addresses = &logs[thread.warp].addresses[0][thread.index % warp_lanes];
        thread.logged_kinds = &logs[thread.warp].kinds[0][thread.index % warp_lanes];
    }
    counts_of_code.assign(launch.module_high - launch.module_low + 1, 0);
}

void count_traffic_of_warp(int number) {
    if (logs.empty()) return;
    int first = number * warp_lanes;
    Warp warp{logs[number], first, std::min(warp_lanes, launch.n_threads - first)};
    int alike = count_while_alike(warp);
    bool all = true;
    for (int lane = 0; lane < warp.n_lanes; ++lane) all &= warp.length(lane) <= alike;
    if (!all) count_by_occurrence(warp, alike);
    for (int lane = 0; lane < warp.n_lanes; ++lane) launch.threads[first + lane].n_logged = 0;
}

void count_traffic_of_block() {
    for (int warp = 0; warp * warp_lanes < launch.n_threads; ++warp) count_traffic_of_warp(warp);
}

void count_traffic_at_warp_call(int warp) {
    if (launch.threads[warp * warp_lanes].n_logged > log_length / 2) count_traffic_of_warp(warp);
}

void count_traffic_at_barrier() {
    for (int warp = 0; warp * warp_lanes < launch.n_threads; ++warp) count_traffic_at_warp_call(warp);
}

// The log is full: let the others of the warp catch up, so that accesses of the same time are matched.
void make_room_in_log() {
    yield_to_others();
    if (current->n_logged == log_length) count_traffic_of_warp(current->warp);
}

std::string traffic_as_json() {
    Json list = Json::array();
    for (uint32_t code = 0; code < counts_of_code.size(); ++code) {
        if (!counts_of_code[code]) continue;
        const Counts& count = counts[counts_of_code[code] - 1];
        Json item = Json::object();
        const char* verb = count.kind & atomic_bit ? "updates" : count.kind & write_bit ? "writes" : "reads";
        item.number("code", code).text("verb", verb);
        item.text("space", count.kind & shared_bit ? "shared" : "global")
            .number("thread_accesses", count.thread_accesses);
        item.number("warp_accesses", count.warp_accesses).number("bytes", count.bytes).number("sectors", count.sectors);
        item.number("extra_rounds", count.extra_rounds).number("partial", count.partial);
        list.append(item);
    }
    return list.str();
}
