#include "task.h"

#include <cstdlib>

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

// One word and its values on each line; the order of the lines is free but for arguments.
Task read_task(std::istream& in) {
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
