// Runs one launch of a compiled kernel: reads what to do from standard input, runs the grid block by block, and leaves
// the arrays in the file they came in and a report on a descriptor of its own.
#include <dlfcn.h>
#include <link.h>
#include <sys/personality.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <numeric>

#include "arguments.h"
#include "branches.h"
#include "confinement.h"
#include "faults.h"
#include "memory.h"
#include "report.h"
#include "scheduler.h"
#include "task.h"
#include "traffic.h"

static int find_module(dl_phdr_info* information, size_t, void* base) {
    if ((void*)information->dlpi_addr != base) return 0;
    launch.module_low = information->dlpi_addr;
    for (int i = 0; i < information->dlpi_phnum; ++i) {
        const auto& part = information->dlpi_phdr[i];
        uintptr_t low = information->dlpi_addr + part.p_vaddr, high = low + part.p_memsz;
        if (part.p_type != PT_LOAD) continue;
        launch.module_high = std::max(launch.module_high, high);
        if (!(part.p_flags & PF_X)) continue;
        launch.code_low = low;
        launch.code_high = high;
    }
    return 1;
}

static void* find(void* library, const std::string& name) {
    void* symbol = dlsym(library, name.c_str());
    if (!symbol) give_up("the compiled kernel lacks " + name);
    return symbol;
}

static void* load_library(const Task& task) {
    void* library = dlopen(task.library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) give_up(dlerror());
    launch.enter = (void (*)(void**))find(library, "labkit_enter_" + task.entry);
    Dl_info information;
    dladdr((void*)launch.enter, &information);
    dl_iterate_phdr(find_module, information.dli_fbase);
    return library;
}

// The values of the arguments, and one pointer to each.
struct Values {
    std::vector<void*> pointers;
    std::vector<void*> to_each;
    explicit Values(Task& task) : pointers(task.arguments.size()), to_each(task.arguments.size()) {
        for (size_t i = 0; i < task.arguments.size(); ++i) {
            Argument& argument = task.arguments[i];
            if (argument.is_array) pointers[i] = (void*)(address_of_stretch(argument.region) + argument.offset);
            to_each[i] = argument.is_array ? (void*)&pointers[i] : argument.bytes.data();
        }
    }
};

static void make_threads() {
    launch.n_threads = (int)(launch.block.x * launch.block.y * launch.block.z);
    launch.threads.resize(launch.n_threads);
    for (int i = 0; i < launch.n_threads; ++i) {
        Thread& thread = launch.threads[i];
        unsigned index = (unsigned)i;
        thread.index = i;
        thread.warp = i / warp_lanes;
        thread.position = {index % launch.block.x, index / launch.block.x % launch.block.y,
                           index / (launch.block.x * launch.block.y)};
    }
}

// Order 0 is natural, 1 reversed, and every further number another shuffle, the same on every machine.
static void put_in_order(std::vector<int>& items) {
    std::iota(items.begin(), items.end(), 0);
    if (launch.order_seed == 1) std::reverse(items.begin(), items.end());
    if (launch.order_seed < 2) return;
    uint64_t state = launch.order_seed * 6364136223846793005ull + 1442695040888963407ull;
    for (size_t i = items.size(); i > 1; --i) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        std::swap(items[i - 1], items[(state >> 33) % i]);
    }
}

static void run_grid() {
    const Index3& grid = launch.grid;
    std::vector<int> blocks((size_t)grid.x * grid.y * grid.z);
    put_in_order(blocks);
    launch.order.resize(launch.n_threads);
    put_in_order(launch.order);
    launch.rank.resize(launch.n_threads);
    for (int place = 0; place < launch.n_threads; ++place) launch.rank[launch.order[place]] = place;
    for (int number : blocks) {
        unsigned block = (unsigned)number;
        launch.block_index = {block % grid.x, block / grid.x % grid.y, block / (grid.x * grid.y)};
        reset_shared_memory();
        run_block();
    }
}

// Load everything at the same addresses in every run, so that a faulty kernel behaves the same each time.
static void without_random_addresses(char** arguments) {
    int persona = personality(0xffffffff);
    if (persona < 0 || persona & ADDR_NO_RANDOMIZE) return;
    if (personality((unsigned long)persona | ADDR_NO_RANDOMIZE) >= 0) execv("/proc/self/exe", arguments);
}

// The C library would ask about the output when a kernel first prints, and may not then.
static void prepare_output() {
    static char buffer[1 << 16];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
}

int main(int, char** arguments) {
    without_random_addresses(arguments);
    prepare_output();
    Task task = read_task(std::cin);
    set_report_descriptor(task.report_descriptor);
    void* library = load_library(task);
    check_arguments(task, *(const labkit::Signature*)find(library, "labkit_signature_" + task.entry));
    check_shared_memory(task);
    lay_out_memory(task.data_descriptor, task.memory, task.variables, task.dynamic_shared_bytes);
    make_threads();
    Values values(task);
    launch.arguments = values.to_each.data();
    if (launch.checked) start_traffic();
    if (task.counts_branches) start_branches();
    catch_faults(launch.limit_s);
    confine(task.report_descriptor);
    run_grid();
    finish_launch("ok");
}
