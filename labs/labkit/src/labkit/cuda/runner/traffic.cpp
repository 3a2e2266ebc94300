#include "traffic.h"

#include <algorithm>

#include "memory.h"
#include "report.h"
#include "scheduler.h"

std::vector<AccessLog> logs;

namespace {

const int sector_shift = 5;       // 32 bytes: the unit that global memory is moved in
const int n_banks = 32;           // of shared memory, each 4 bytes wide
const int bytes_per_round = 128;  // what all banks deliver at once

// Of one instruction of the kernel.
struct Counts {
    bool is_write, is_atomic, is_shared;
    long long thread_accesses = 0, warp_accesses = 0, bytes = 0;
    long long sectors = 0;       // global
    long long extra_rounds = 0;  // shared: beyond those that the bytes themselves need
    long long partial = 0;       // accesses of a warp in which some of its lanes took no part
};
std::vector<Counts> counts;
std::vector<uint32_t> counts_of_code;  // where in `counts`, plus one

size_t place_of_counts(const LoggedAccess& access) {
    uint32_t& place = counts_of_code[access.code];
    if (!place) {
        counts.push_back({access.is_write, access.is_atomic, access.is_shared});
        place = (uint32_t)counts.size();
    }
    return place - 1;
}

// One access of a warp: what its lanes accessed with the same instruction at the same time.
struct WarpAccess {
    const LoggedAccess* lanes[warp_lanes];
    int n_lanes = 0;
};

int count_sectors(const WarpAccess& access) {
    uint64_t sectors[2 * warp_lanes];
    int n = 0;
    bool ascending = true;
    for (int i = 0; i < access.n_lanes; ++i) {
        uint64_t first = access.lanes[i]->address >> sector_shift;
        uint64_t last = (access.lanes[i]->address + access.lanes[i]->size - 1) >> sector_shift;
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
        uint64_t end = (access.lanes[i]->address + access.lanes[i]->size - 1) >> 2;
        for (uint64_t word = access.lanes[i]->address >> 2; word <= end; ++word) words[n++] = word;
    }
    if (!std::is_sorted(words, words + n)) std::sort(words, words + n);
    n = (int)(std::unique(words, words + n) - words);
    for (int i = 0; i < n; ++i) rounds = std::max(rounds, ++per_bank[words[i] % n_banks]);
    return rounds;
}

// A warp that moves more than 128 bytes is served in equal parts of so many lanes that each moves 128.
int count_extra_rounds(const WarpAccess& access) {
    int lanes_at_once = std::min(warp_lanes, bytes_per_round / access.lanes[0]->size), extra = 0;
    for (int first = 0; first < access.n_lanes; first += lanes_at_once) {
        extra += count_rounds(access, first, std::min(access.n_lanes, first + lanes_at_once)) - 1;
    }
    return extra;
}

void count_warp_access(const WarpAccess& access, int n_lanes_of_warp) {
    const LoggedAccess& first = *access.lanes[0];
    Counts& count = counts[place_of_counts(first)];
    count.thread_accesses += access.n_lanes;
    count.warp_accesses += 1;
    count.bytes += (long long)access.n_lanes * first.size;
    count.partial += access.n_lanes < n_lanes_of_warp;
    if (first.is_shared) {
        count.extra_rounds += count_extra_rounds(access);
    } else {
        count.sectors += count_sectors(access);
    }
}

struct Warp {
    int first, n_lanes;
    AccessLog& log(int lane) const { return logs[first + lane]; }
};

// While all lanes that have an access at this place have it by the same instruction: the way of most kernels.
int count_while_alike(const Warp& warp) {
    for (int place = 0;; ++place) {
        WarpAccess access;
        for (int lane = 0; lane < warp.n_lanes; ++lane) {
            if (place >= warp.log(lane).length) continue;
            access.lanes[access.n_lanes++] = &warp.log(lane).accesses[place];
            if (access.lanes[access.n_lanes - 1]->code != access.lanes[0]->code) return place;
        }
        if (access.n_lanes == 0) return place;
        count_warp_access(access, warp.n_lanes);
    }
}

// Accesses of lanes that went different ways, matched: the n-th time of an instruction in one lane to the n-th in
// another.
class Matching {
public:
    void add(const LoggedAccess& logged, int time) {
        size_t key = place_of_counts(logged) * log_length + time;
        if (key >= place_of_.size()) place_of_.resize(key + log_length, none);
        if (place_of_[key] == none) {
            place_of_[key] = (int)matched_.size();
            keys_.push_back(key);
            matched_.emplace_back();
        }
        WarpAccess& access = matched_[place_of_[key]];
        access.lanes[access.n_lanes++] = &logged;
    }
    void count(int n_lanes_of_warp) {
        for (const WarpAccess& access : matched_) count_warp_access(access, n_lanes_of_warp);
        for (size_t key : keys_) place_of_[key] = none;
        matched_.clear();
        keys_.clear();
    }

private:
    static constexpr int none = -1;
    std::vector<int> place_of_;  // in `matched_`, by instruction and time
    std::vector<size_t> keys_;   // those in use
    std::vector<WarpAccess> matched_;
};

void count_by_occurrence(const Warp& warp, int from) {
    static Matching matching;
    static std::vector<int> times;  // that an instruction has come up in this lane
    for (int lane = 0; lane < warp.n_lanes; ++lane) {
        times.assign(times.size(), 0);
        for (int place = from; place < warp.log(lane).length; ++place) {
            const LoggedAccess& logged = warp.log(lane).accesses[place];
            size_t instruction = place_of_counts(logged);
            if (instruction >= times.size()) times.resize(instruction + 1, 0);
            matching.add(logged, times[instruction]++);
        }
    }
    matching.count(warp.n_lanes);
}

}  // namespace

void start_traffic() {
    logs.resize(launch.n_threads);
    for (int i = 0; i < launch.n_threads; ++i) launch.threads[i].log = &logs[i];
    counts_of_code.assign(launch.module_high - launch.module_low + 1, 0);
}

void count_traffic_of_warp(int number) {
    if (logs.empty()) return;
    Warp warp{number * warp_lanes, std::min(warp_lanes, launch.n_threads - number * warp_lanes)};
    int alike = count_while_alike(warp);
    bool all = true;
    for (int lane = 0; lane < warp.n_lanes; ++lane) all &= warp.log(lane).length <= alike;
    if (!all) count_by_occurrence(warp, alike);
    for (int lane = 0; lane < warp.n_lanes; ++lane) warp.log(lane).length = 0;
}

void count_traffic_of_block() {
    for (int warp = 0; warp * warp_lanes < launch.n_threads; ++warp) count_traffic_of_warp(warp);
}

void count_traffic_at_warp_call(int warp) {
    if (!logs.empty() && logs[warp * warp_lanes].length > log_length / 2) count_traffic_of_warp(warp);
}

void count_traffic_at_barrier() {
    for (int warp = 0; warp * warp_lanes < launch.n_threads; ++warp) count_traffic_at_warp_call(warp);
}

// The log is full: let the others of the warp catch up, so that accesses of the same time are matched.
void make_room_in_log() {
    yield_to_others();
    if (logs[current->index].length == log_length) count_traffic_of_warp(current->warp);
}

std::string traffic_as_json() {
    Json list = Json::array();
    for (uint32_t code = 0; code < counts_of_code.size(); ++code) {
        if (!counts_of_code[code]) continue;
        const Counts& count = counts[counts_of_code[code] - 1];
        Json item = Json::object();
        item.number("code", code).text("verb", count.is_atomic ? "updates" : count.is_write ? "writes" : "reads");
        item.text("space", count.is_shared ? "shared" : "global").number("thread_accesses", count.thread_accesses);
        item.number("warp_accesses", count.warp_accesses).number("bytes", count.bytes).number("sectors", count.sectors);
        item.number("extra_rounds", count.extra_rounds).number("partial", count.partial);
        list.append(item);
    }
    return list.str();
}
