// Access checks: what happens at each load, store and atomic of a checked kernel, before the memory is touched.
#pragma once
#include "shadow.h"

// Say that an address is no place for this access, and end the launch.
[[noreturn]] void report_bad_address(const Access& access);

// A misaligned address, found by the compiler's own check: named by line, not by code.
void describe_bad_place(class Json& body, uintptr_t address);
