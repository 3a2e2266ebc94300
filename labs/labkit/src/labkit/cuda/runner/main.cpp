// Runs one launch of a compiled kernel: reads what to do from standard input, runs the grid block by block, and leaves
// the arrays in the file they came in and a report on a descriptor of its own.
#include <dlfcn.h>
#include <link.h>
#include <sys/personality.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <numeric>
#include <string>

#include "../device/signature.h"
#include "faults.h"
#include "memory.h"
#include "report.h"
#include "scheduler.h"
#include "traffic.h"

struct Argument {
    bool is_array = false;
    size_t region = 0;
    uint64_t offset = 0;               // of an array, in its region
    // of its elements, or of the number: f floating point, i integer, s structure; n an integer of Python's, which fits
    // wherever its value does; p a null pointer
    char kind = ' ';
    int element_bytes = 0;
    std::vector<unsigned char> bytes;  // of a number
};

struct Task {
    std::string library, entry;
    int data_descriptor = -1, report_descriptor = -1;
    size_t dynamic_shared_bytes = 0, max_shared_bytes = 48 << 10;
    std::vector<GlobalMemory> memory;
    std::vector<Argument> arguments;
    std::vector<Variable> variables;
};

static Index3 read_index(std::istream& in) {
    Index3 index{};
    in >> index.x >> index.y >> index.z;
    return index;
}

static std::vector<unsigned char> read_hex(std::istream& in) {
    std::string digits;
    in >> digits;
    std::vector<unsigned char> bytes(16);  // room for the widest parameter
    for (size_t i = 0; 2 * i + 1 < digits.size() && i < bytes.size(); ++i) {
        bytes[i] = (unsigned char)strtoul(digits.substr(2 * i, 2).c_str(), nullptr, 16);
    }
    return bytes;
}

static Argument read_array(std::istream& in) {
    Argument array;
    array.is_array = true;
    in >> array.region >> array.offset >> array.kind >> array.element_bytes;
    return array;
}

static Argument read_number(std::istream& in) {
    Argument number;
    in >> number.kind >> number.element_bytes;
    number.bytes = read_hex(in);
    return number;
}

// One word and its values on each line; the order of the lines is free but for arguments.
static Task read_task(std::istream& in) {
    Task task;
    std::string word;
    while (in >> word) {
        if (word == "library") std::getline(in >> std::ws, task.library);
        else if (word == "entry") in >> task.entry;
        else if (word == "data") in >> task.data_descriptor;
        else if (word == "report") in >> task.report_descriptor;
        else if (word == "grid") launch.grid = read_index(in);
        else if (word == "block") launch.block = read_index(in);
        else if (word == "shared") in >> task.dynamic_shared_bytes;
        else if (word == "max_shared") in >> task.max_shared_bytes;
        else if (word == "order") in >> launch.order_seed;
        else if (word == "absent") in >> launch.absent_value;
        else if (word == "limit") in >> launch.limit_s;
        else if (word == "checked") in >> launch.checked;
        else if (word == "array") task.arguments.push_back(read_array(in));
        else if (word == "number" || word == "null") task.arguments.push_back(read_number(in));
        else if (word == "variable") {
            Variable variable{};
            in >> variable.offset >> variable.bytes >> variable.is_shared;
            task.variables.push_back(variable);
        } else if (word == "memory") {
            GlobalMemory memory{0, 0, 0, true};
            in >> memory.file_offset >> memory.bytes >> memory.element_bytes;
            task.memory.push_back(memory);
        } else give_up("the task has a line that begins with " + word);
    }
    return task;
}

[[noreturn]] static void refuse(const char* reason, size_t position, const labkit::Parameter* parameter) {
    Json body = Json::object();
    body.text("reason", reason).number("position", (long long)position);
    if (parameter) {
        body.text("parameter_kind", std::string(1, parameter->kind)).number("parameter_size", parameter->size);
        body.text("pointee_kind", std::string(1, parameter->pointee_kind)).number("pointee_size", parameter->pointee_size);
    }
    report_fault("argument", 0, 0, body);
    finish_launch("refused");
}

// Bytes and structures may view any array; numbers must be of the kind and the size that the array has, or whole packs.
static bool pointer_fits(const labkit::Parameter& parameter, const Argument& array) {
    bool whole = parameter.pointee_size % array.element_bytes == 0;
    if (parameter.pointee_kind == 'v' || parameter.pointee_size == 1 || array.element_bytes == 1) return true;
    if (parameter.pointee_kind == 's') return whole || array.element_bytes % parameter.pointee_size == 0;
    return parameter.pointee_size == array.element_bytes && parameter.pointee_kind == array.kind;
}

static void check_shared_memory(const Task& task) {
    uint64_t static_bytes = 0;
    for (const Variable& variable : task.variables) static_bytes += variable.is_shared ? variable.bytes : 0;
    if (static_bytes + task.dynamic_shared_bytes <= task.max_shared_bytes) return;
    Json body = Json::object();
    body.text("reason", "shared").number("static", (long long)static_bytes).number("dynamic", (long long)task.dynamic_shared_bytes);
    body.number("limit", (long long)task.max_shared_bytes);
    report_fault("launch", 0, 0, body);
    finish_launch("refused");
}

static bool number_fits(const labkit::Parameter& parameter, const Argument& number) {
    if (number.kind != 'n') return parameter.size == number.element_bytes && parameter.kind == number.kind;
    if (parameter.kind != 'i') return false;
    if (parameter.size == number.element_bytes) return true;
    long long value;
    memcpy(&value, number.bytes.data(), sizeof value);
    int bits = 8 * parameter.size;
    return value >= -(1ll << (bits - 1)) && value < (1ll << bits);
}

static void check_argument(Task& task, size_t i, const labkit::Parameter& parameter) {
    const Argument& argument = task.arguments[i];
    if (argument.is_array) {
        if (parameter.kind != 'p') refuse("array for number", i, &parameter);
        if (!pointer_fits(parameter, argument)) refuse("element", i, &parameter);
        task.memory[argument.region].read_only &= parameter.pointee_is_const;
    } else if (parameter.kind == 'p') {
        if (argument.kind != 'p') refuse("number for pointer", i, &parameter);
    } else if (!number_fits(parameter, argument)) {
        refuse("number", i, &parameter);
    }
}

static void check_arguments(Task& task, const labkit::Signature& signature) {
    if ((size_t)signature.count != task.arguments.size()) refuse("count", (size_t)signature.count, nullptr);
    for (size_t i = 0; i < task.arguments.size(); ++i) check_argument(task, i, signature.parameters[i]);
}

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
        thread.position = {index % launch.block.x, index / launch.block.x % launch.block.y, index / (launch.block.x * launch.block.y)};
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

int main(int, char** arguments) {
    without_random_addresses(arguments);
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
    catch_faults(launch.limit_s);
    run_grid();
    finish_launch("ok");
}
