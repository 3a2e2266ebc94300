// Do the arguments fit the kernel? What does not is refused before a thread runs, by CuPy's rules.
#pragma once
#include "../device/signature.h"
#include "task.h"

// Also finds out which memory the kernel takes as const.
void check_arguments(Task& task, const labkit::Signature& signature);
void check_shared_memory(const Task& task);
