// Contexts: a stack and the place where it stopped. Switching costs a few nanoseconds, where the C library's
// swapcontext makes two system calls; a kernel with shuffles switches millions of times.
#pragma once
#include <cstddef>

struct Context {
    void* stack_pointer = nullptr;
};

// Save the registers that a call preserves on the current stack, and go on with the other context.
extern "C" void labkit_switch(void** save_stack_pointer, void* load_stack_pointer);

inline void switch_context(Context& from, Context& to) { labkit_switch(&from.stack_pointer, to.stack_pointer); }

// A context that begins with start(), which must never return.
Context make_context(char* stack, size_t bytes, void (*start)());
