// What a kernel is compiled with on the CPU: everything that NVIDIA's run-time compiler declares by itself.
//
// No system header is included on purpose: a name that the run-time compiler lacks (uint8_t, INFINITY, std::…) is
// missing here too, and a kernel compiles in a fraction of a second.
// Names that begin with labkit_ are defined by the runner (../runner) or used by it.
#pragma once
#include "keywords.h"

#include "vectors.h"

#include "runtime.h"

#include "barriers.h"

#include "atomics.h"

#include "arithmetic.h"

#include "intrinsics.h"

#include "entry.h"
