// Barriers: __syncthreads and its kin, and what to say when not all threads come to the same one.
#pragma once

// Before the first thread of a block starts.
void start_barriers();

// Name who waits where, and end the launch: no thread can go on.
[[noreturn]] void report_threads_that_wait();
