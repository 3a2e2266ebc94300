// Faults that the hardware finds, and the time limit.
#pragma once
#include <cstdint>

// From here on a signal ends the launch with a report; the limit is processor time, so that a busy machine
// cuts nobody short.
void catch_faults(double limit_s);

// Once the time is over (alarms.is_time_over): note where the kernel calls the runner. A loop makes the same calls in
// every round, so that the same ones are noted in every run.
void note_call(uint32_t code, int line);
