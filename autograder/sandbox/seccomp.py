"""A system-call filter for the sandbox: calls that no lab needs and escapes do.

It is a list of what is refused, not of what is allowed: NumPy, torch and their allocators use
too much of the rest. The namespaces are the wall; this is the second lock. A machine whose
numbers are not below gets no filter, and `doctor` says so.
"""

import errno
import platform
import struct

X86_64 = {
    "shmget": 29, "semget": 64, "msgget": 68, "ptrace": 101, "pivot_root": 155, "mount": 165, "umount2": 166,
    "mq_open": 240, "add_key": 248, "request_key": 249, "keyctl": 250, "unshare": 272, "perf_event_open": 298,
    "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311, "memfd_create": 319, "bpf": 321,
    "userfaultfd": 323,
}  # fmt: skip
AARCH64 = {
    "umount2": 39, "mount": 40, "pivot_root": 41, "unshare": 97, "ptrace": 117, "mq_open": 180, "msgget": 186,
    "semget": 190, "shmget": 194, "add_key": 217, "request_key": 218, "keyctl": 219, "perf_event_open": 241,
    "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271, "memfd_create": 279, "bpf": 280,
    "userfaultfd": 282,
}  # fmt: skip
EVERYWHERE = {  # numbers above 423 are the same on every architecture
    "io_uring_setup": 425, "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432,
    "pidfd_getfd": 438, "mount_setattr": 442, "memfd_secret": 447,
}  # fmt: skip
MACHINES = {"x86_64": (0xC000003E, X86_64), "aarch64": (0xC00000B7, AARCH64)}
X32_BIT = 0x40000000
LOAD, JUMP_EQUAL, JUMP_AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
ALLOW, KILL, REFUSE = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM
OFFSET_OF_NUMBER, OFFSET_OF_ARCHITECTURE = 0, 4


def program(machine: str = "") -> bytes:
    """Return the filter as BPF instructions for `bwrap --seccomp`; empty where not known.

    Calls by another architecture's numbers end the process; those with the x32 bit are refused.

    Source: the kernel's tables arch/x86/entry/syscalls/syscall_64.tbl and
    include/uapi/asm-generic/unistd.h.
    """
    known = MACHINES.get(machine or platform.machine())
    if known is None:
        return b""
    architecture, own_numbers = known
    numbers = sorted({*own_numbers.values(), *EVERYWHERE.values()})
    lines = [
        (LOAD, 0, 0, OFFSET_OF_ARCHITECTURE),
        (JUMP_EQUAL, 1, 0, architecture),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, OFFSET_OF_NUMBER),
        (JUMP_AT_LEAST, len(numbers) + 1, 0, X32_BIT),
    ]
    lines += [(JUMP_EQUAL, len(numbers) - i, 0, number) for i, number in enumerate(numbers)]
    lines += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, REFUSE)]
    return b"".join(struct.pack("<HBBI", *line) for line in lines)
