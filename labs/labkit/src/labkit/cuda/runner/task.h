// The task: what one launch is told, as words and numbers, one item a line.
#pragma once
#include <istream>
#include <string>
#include <vector>

#include "memory.h"

struct Argument {
    bool is_array = false;
    size_t region = 0;
    uint64_t offset = 0;  // of an array, in its region
    // of its elements, or of the number: f floating point, i integer, s structure; n an integer of Python's, which fits
    // wherever its value does; p a null pointer
    char kind = ' ';
    int element_bytes = 0;
    std::vector<unsigned char> bytes;  // of a number
};

struct Task {
    std::string library, entry;
    bool counts_branches = false;
    int data_descriptor = -1, report_descriptor = -1;
    size_t dynamic_shared_bytes = 0, max_shared_bytes = 48 << 10;
    std::vector<GlobalMemory> memory;
    std::vector<Argument> arguments;
    std::vector<Variable> variables;
};

// Read a task; grid, block and the like go to the launch at once.
Task read_task(std::istream& in);
