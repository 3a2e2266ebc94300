#include "clocks.h"

#include <algorithm>
#include <unordered_map>

uint32_t now = 0, phase = 0, first_phase_of_block = 0, age_of_phase = 0;
bool any_fence = false;

namespace {

struct StartedBlock {
    uint32_t first_phase;
    Index3 index;
};
std::vector<StartedBlock> blocks;

// Of each thread of a block, the moment of its last fence in each phase that has one.
std::vector<std::vector<uint32_t>> fences;

// One atomic by a thread that had fenced before.
struct Release {
    uint32_t first_phase_of_block, phase, moment;
    int thread;
    Fence fence;
    std::vector<uint32_t> known_moments;  // of the lanes of its warp, if they met at a __syncwarp
    std::vector<Acquired> acquired;       // what its thread had learnt itself
};
typedef std::vector<Release> History;  // of one place, in order
std::unordered_map<uintptr_t, History> histories;

void learn(std::vector<Acquired>& all, const Acquired& more) {
    for (Acquired& known : all) {
        if (known.place == more.place) {
            known.length = std::max(known.length, more.length);
            return;
        }
    }
    all.push_back(more);
}

bool fenced_before_barrier(const Release& release, const Record& record) {
    const std::vector<uint32_t>& own = fences[record.thread()];
    auto next = std::lower_bound(own.begin(), own.end(), record.moment);
    return next != own.end() && *next < release.phase;
}

bool covers(const Release& release, const Record& record) {
    if (release.first_phase_of_block > record.moment || release.moment < record.moment) return false;
    if (record.moment < release.fence.phase) return true;
    if (record.thread() == release.thread && record.moment <= release.fence.moment) return true;
    bool same_warp = record.thread() / warp_lanes == release.thread / warp_lanes;
    if (!release.known_moments.empty() && same_warp &&
        record.moment <= release.known_moments[record.thread() % warp_lanes])
        return true;
    return fenced_before_barrier(release, record);
}

// Follow what was learnt at each place, and what those who released there had learnt before.
bool is_known(const std::vector<Acquired>& acquired, const Record& record, std::vector<Acquired>& visited) {
    for (const Acquired& known : acquired) {
        uint32_t seen = 0;
        for (const Acquired& v : visited) {
            if (v.place == known.place) seen = std::max(seen, v.length);
        }
        if (known.length <= seen) continue;
        learn(visited, known);
        const History& history = histories[known.place];
        for (uint32_t i = known.length; i-- > seen;) {
            if (covers(history[i], record) || is_known(history[i].acquired, record, visited)) return true;
        }
    }
    return false;
}

// What every thread of the block knows after a barrier.
std::vector<Acquired> acquired_by_all() {
    std::vector<Acquired> all;
    for (const Thread& thread : launch.threads) {
        for (const Acquired& known : thread.acquired) learn(all, known);
    }
    return all;
}

}  // namespace

void start_clocks_of_block() {
    first_phase_of_block = phase = ++now;
    age_of_phase = 0;
    blocks.push_back({phase, launch.block_index});
    if (!any_fence) return;
    for (Thread& thread : launch.threads) {
        thread.fence = Fence();
        thread.acquired.clear();
    }
}

void pass_barrier() {
    phase = ++now;
    age_of_phase = phase - first_phase_of_block;
    if (!any_fence) return;
    std::vector<Acquired> all = acquired_by_all();
    for (Thread& thread : launch.threads) thread.acquired = all;
}

void pass_syncwarp(Thread* const* lanes) {
    uint32_t joined[warp_lanes] = {};
    std::vector<Acquired> acquired;
    for (int lane = 0; lane < warp_lanes; ++lane) {
        if (!lanes[lane]) continue;
        const Thread& thread = *lanes[lane];
        if (thread.known_phase == phase) {
            for (int k = 0; k < warp_lanes; ++k) joined[k] = std::max(joined[k], thread.known_moments[k]);
        }
        joined[lane] = now;
        for (const Acquired& known : thread.acquired) learn(acquired, known);
    }
    for (int lane = 0; lane < warp_lanes; ++lane) {
        if (!lanes[lane]) continue;
        Thread& thread = *lanes[lane];
        thread.known_phase = phase;
        std::copy(joined, joined + warp_lanes, thread.known_moments);
        thread.acquired = acquired;
    }
    ++now;
}

extern "C" void labkit_fence() {
    if (!launch.checked) return;
    any_fence = true;
    fences.resize(launch.n_threads);
    std::vector<uint32_t>& own = fences[current->index];
    if (own.empty() || own.back() < phase) own.emplace_back();
    own.back() = now;
    current->fence = {phase, now++};
}

static bool is_same_release(const Release& last) {
    return last.thread == current->index && last.phase == phase && last.fence.moment == current->fence.moment;
}

void pass_atomic(uintptr_t place) {
    if (!any_fence) return;
    History& history = histories[place];
    if (!history.empty()) learn(current->acquired, {place, (uint32_t)history.size()});
    if (!history.empty() && is_same_release(history.back())) return;  // spinning on a lock adds nothing
    Release release{first_phase_of_block, phase, now, current->index, current->fence, {}, current->acquired};
    if (current->known_phase == current->fence.phase && current->known_phase > 0) {
        release.known_moments.assign(current->known_moments, current->known_moments + warp_lanes);
    }
    history.push_back(std::move(release));
}

bool is_ordered_by_calls(const Record& record) {
    bool same_block = record.moment >= first_phase_of_block;
    bool same_warp = record.thread() / warp_lanes == current->warp;
    if (same_block && same_warp && current->known_phase == phase &&
        record.moment <= current->known_moments[record.thread() % warp_lanes]) {
        return true;
    }
    if (!any_fence) return false;
    std::vector<Acquired> visited;
    return is_known(current->acquired, record, visited);
}

Index3 block_at(uint32_t moment) {
    auto later = std::upper_bound(blocks.begin(), blocks.end(), moment,
                                  [](uint32_t m, const StartedBlock& b) { return m < b.first_phase; });
    return (later - 1)->index;
}
