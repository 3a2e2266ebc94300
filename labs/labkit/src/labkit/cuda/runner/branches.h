// Branches: where the lanes of a warp part. The kernel is compiled with a call in each of its basic blocks for this, in
// a launch of its own: nothing else is checked or counted in it.
//
// Each thread notes its way, block by block. When the threads of a warp have come as far as one another, their ways are
// laid side by side: the n-th time in a block of one lane and the n-th time of another are one execution by the warp.
// If lanes go on to different blocks from there, it is divergent.
#pragma once
#include <string>

void start_branches();

// The ways of a warp as far as they go; a thread that has finished goes nowhere from its last block.
void count_branches_of_warp(int warp);

// All threads of the warp are at one place: a good moment to count, once enough has come together.
void count_branches_at_warp_call(int warp);
std::string branches_as_json();
