"""Limits that Linux keeps for a process, and that nothing in the process can take off again.

The filter refuses to start processes and threads, to run programs, to open sockets, and to send signals. So limits on
one process are limits on all that a notebook can do.
"""

import ctypes
import platform
import struct
import sys

CALLS = {  # of Linux: (x86-64, ARM)
    "clone": (56, 220),
    "clone3": (435, 435),
    "fork": (57, None),
    "vfork": (58, None),
    "execve": (59, 221),
    "execveat": (322, 281),
    "socket": (41, 198),
    "kill": (62, 129),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "ptrace": (101, 117),
    "process_vm_writev": (311, 271),
    "io_uring_setup": (425, 425),  # would do many of these in another way
}
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # the column above, and the kernel's own name
LOAD, IS, AT_LEAST, ANSWER = 0x20, 0x15, 0x35, 0x06  # operations of the kernel's small language for filters
ALLOWED, REFUSED = 0x7FFF0000, 0x00050001  # REFUSED: as EPERM, "Operation not permitted"
NO_NEW_RIGHTS, SET_FILTER, FILTER = 38, 22, 2


def refuse_processes() -> bool:
    """Refuse `CALLS` to this process from now on, by the system; return whether it does."""
    if not sys.platform.startswith("linux") or platform.machine() not in MACHINES or sys.maxsize < 2**32:
        return False
    column, machine = MACHINES[platform.machine()]
    numbers = [number for call in CALLS.values() if (number := call[column]) is not None]
    steps = [
        (LOAD, 0, 0, 4),
        (IS, 0, len(numbers) + 3, machine),
        (LOAD, 0, 0, 0),
        (AT_LEAST, len(numbers) + 1, 0, 1 << 30),
    ]
    steps += [(IS, len(numbers) - i, 0, number) for i, number in enumerate(numbers)]
    steps += [(ANSWER, 0, 0, ALLOWED), (ANSWER, 0, 0, REFUSED)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(steps), ctypes.addressof(code)))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    word = ctypes.c_ulong
    done = prctl(NO_NEW_RIGHTS, word(1), word(0), word(0), word(0)) == 0
    return done and prctl(SET_FILTER, word(FILTER), program, word(0), word(0)) == 0
