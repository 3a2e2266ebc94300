// Faults that the hardware finds, and the time limit.
#pragma once

// From here on a signal ends the launch with a report; the limit is processor time, so that a busy machine
// cuts nobody short.
void catch_faults(double limit_s);
