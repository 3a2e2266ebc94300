// The scheduler: which CUDA thread runs next. All of a block's threads share one thread of the operating system;
// one runs until it waits for others, then the next in the queue goes on.
#pragma once
#include "launch.h"

const size_t stack_bytes = 128 << 10;
const size_t guard_bytes = 4096;

// Run every thread of the block at launch.block_index to its end, or end the process with a report.
void run_block();

// The current thread cannot go on until wake() is called for it; run another one.
void wait_for_others();

// A waiting thread may go on, before those that have not started: a warp stays together, and few stacks are in use.
void wake(Thread& thread);

// Let the others run, and come back.
void yield_to_others();

// The thread whose stack holds the address, or whose stack's guard does; none otherwise.
Thread* owner_of_stack(uintptr_t address);
