// Where the runner puts memory: low enough for the smallest address space of arm64, far from everything else.
#pragma once
#define LABKIT_ARENA 0x1000000000ull
#define LABKIT_GUARD_BYTES (1ull << 20)
#define LABKIT_DYNAMIC_SHARED (LABKIT_ARENA + LABKIT_GUARD_BYTES)
