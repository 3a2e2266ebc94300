#include "task.h"

#include <cstdlib>
#include <map>

#include "report.h"

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

static GlobalMemory read_memory(std::istream& in) {
    GlobalMemory memory{0, 0, 0, true};
    in >> memory.file_offset >> memory.bytes >> memory.element_bytes;
    return memory;
}

static Variable read_variable(std::istream& in) {
    Variable variable{};
    in >> variable.offset >> variable.bytes >> variable.is_shared;
    return variable;
}

// What the rest of a line is, by its first word.
typedef void (*Reader)(std::istream& in, Task& task);
static const std::map<std::string, Reader> readers = {
    {"library", [](std::istream& in, Task& task) { std::getline(in >> std::ws, task.library); }},
    {"entry", [](std::istream& in, Task& task) { in >> task.entry; }},
    {"data", [](std::istream& in, Task& task) { in >> task.data_descriptor; }},
    {"report", [](std::istream& in, Task& task) { in >> task.report_descriptor; }},
    {"grid", [](std::istream& in, Task&) { launch.grid = read_index(in); }},
    {"block", [](std::istream& in, Task&) { launch.block = read_index(in); }},
    {"shared", [](std::istream& in, Task& task) { in >> task.dynamic_shared_bytes; }},
    {"max_shared", [](std::istream& in, Task& task) { in >> task.max_shared_bytes; }},
    {"order", [](std::istream& in, Task&) { in >> launch.order_seed; }},
    {"absent", [](std::istream& in, Task&) { in >> launch.absent_value; }},
    {"limit", [](std::istream& in, Task&) { in >> launch.limit_s; }},
    {"branches", [](std::istream& in, Task& task) { in >> task.counts_branches; }},
    {"checked", [](std::istream& in, Task&) { in >> launch.checked; }},
    {"variable", [](std::istream& in, Task& task) { task.variables.push_back(read_variable(in)); }},
    {"memory", [](std::istream& in, Task& task) { task.memory.push_back(read_memory(in)); }},
    {"array", [](std::istream& in, Task& task) { task.arguments.push_back(read_array(in)); }},
    {"number", [](std::istream& in, Task& task) { task.arguments.push_back(read_number(in)); }},
    {"null", [](std::istream& in, Task& task) { task.arguments.push_back(read_number(in)); }},
};

Task read_task(std::istream& in) {
    Task task;
    std::string word;
    while (in >> word) {
        auto reader = readers.find(word);
        if (reader == readers.end()) give_up("the task has a line that begins with " + word);
        reader->second(in, task);
    }
    return task;
}
