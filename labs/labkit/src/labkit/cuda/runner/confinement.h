// Confinement: which system calls are left once the kernel runs. A source that is compiled here makes none, but a
// computed jump may land anywhere in the C library.
#pragma once

// From here on the process may use the memory it has and get more, write to its output and to the report, and end;
// every other system call is refused. Where Linux cannot filter, nothing changes: the child is no sandbox.
void confine(int report_descriptor);
