// Warp collectives: shuffles, votes, reductions and __syncwarp among the lanes that a mask names.
#pragma once
#include "launch.h"

const char* warp_operation_name(int operation);

void start_warps();

// The thread has finished: if all of its warp have, their accesses are counted.
void finish_in_warp(Thread& thread);

// When nobody can go on: lanes that have finished are excused from what needs no value of them (a vote, a
// reduction, __syncwarp), as CUDA's rules say. Returns whether that lets anyone go on.
bool complete_warp_calls_of_finished_lanes();
