#include "branches.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "report.h"
#include "scheduler.h"

namespace {

const size_t longest_way = 4000;  // before the others of the warp shall catch up

std::vector<std::vector<uint32_t>> ways;  // of the threads of a block; none in another launch

// Of one basic block of the kernel.
struct Branch {
    uint32_t next = 0;  // where it went the first time
    bool is_fork = false;
    long long executed = 0, divergent = 0;
};
std::unordered_map<uint32_t, Branch> branches;

// One execution of a block by the warp.
struct Execution {
    uint32_t block, next;
    bool is_divergent;
};

// The n-th execution of each block, found by the block and n.
class Executions {
public:
    void add_way(const std::vector<uint32_t>& way) {
        times_.clear();
        for (size_t i = 0; i + 1 < way.size(); ++i) {
            uint64_t time = times_[way[i]]++;
            auto [found, is_new] = number_of_.try_emplace(time << 32 | way[i], all_.size());
            if (is_new) all_.push_back({way[i], way[i + 1], false});
            all_[found->second].is_divergent |= all_[found->second].next != way[i + 1];
        }
    }
    void count() const {
        for (const Execution& execution : all_) {
            auto [found, is_new] = branches.try_emplace(execution.block);
            Branch& branch = found->second;
            if (is_new) branch.next = execution.next;
            ++branch.executed;
            branch.divergent += execution.is_divergent;
            branch.is_fork |= execution.is_divergent || branch.next != execution.next;
        }
    }

private:
    std::unordered_map<uint32_t, uint64_t> times_;
    std::unordered_map<uint64_t, size_t> number_of_;
    std::vector<Execution> all_;
};

}  // namespace

void start_branches() { ways.resize(launch.n_threads); }

void count_branches_of_warp(int number) {
    if (ways.empty()) return;
    int first = number * warp_lanes, end = std::min(first + warp_lanes, launch.n_threads);
    Executions executions;
    for (int i = first; i < end; ++i) {
        std::vector<uint32_t>& way = ways[i];
        if (way.empty()) continue;
        bool is_finished = launch.threads[i].status == Status::finished;
        if (is_finished && way.back() != 0) way.push_back(0);
        executions.add_way(way);
        way.erase(way.begin(), is_finished ? way.end() : way.end() - 1);  // the way goes on from the last block
    }
    executions.count();
}

void count_branches_at_warp_call(int warp) {
    if (!ways.empty() && ways[warp * warp_lanes].size() > longest_way / 2) count_branches_of_warp(warp);
}

std::string branches_as_json() {
    std::vector<uint32_t> forks;
    for (const auto& [block, branch] : branches) {
        if (branch.is_fork) forks.push_back(block);
    }
    std::sort(forks.begin(), forks.end());
    Json list = Json::array();
    for (uint32_t block : forks) {
        const Branch& branch = branches[block];
        Json item = Json::object();
        item.number("code", block).number("executed", branch.executed).number("divergent", branch.divergent);
        list.append(item);
    }
    return list.str();
}

// The compiler calls this in each basic block.
extern "C" void __sanitizer_cov_trace_pc() {
    if (ways.empty()) return;
    std::vector<uint32_t>& way = ways[current->index];
    if (way.size() >= longest_way) {
        yield_to_others();
        if (way.size() >= longest_way) count_branches_of_warp(current->warp);
    }
    way.push_back(code_offset(__builtin_return_address(0)));
}
