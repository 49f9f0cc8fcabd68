"""Checks if ranks on this machine can copy from each other's memory."""

import ctypes
import subprocess
import sys

from paceline import _core

# Reads and writes 8 bytes of its parent: the system treats them like two ranks.
PROBE = """
import ctypes, errno, os, sys
class Piece(ctypes.Structure): _fields_ = [("base", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]
room = ctypes.create_string_buffer(8)
own, theirs = Piece(ctypes.addressof(room), 8), Piece(int(sys.argv[1]), 8)
libc = ctypes.CDLL(None, use_errno=True)
for call in (libc.process_vm_readv, libc.process_vm_writev):
    if call(os.getppid(), ctypes.byref(own), 1, ctypes.byref(theirs), 1, 0) != 8:
        sys.exit(errno.errorcode[ctypes.get_errno()])
"""

# The right to trace the other process decides.
REASONS = {
    "EPERM": "ptrace rights are missing: a container without CAP_SYS_PTRACE, a seccomp filter, or "
             "kernel.yama.ptrace_scope above 0",
    "ENOSYS": "the kernel has no cross-memory attach",
}


def trouble():
    """The reason why ranks here cannot copy from each other's memory; empty if they can."""
    if _core.option("single_copy") == "off":
        return "PACELINE_SINGLE_COPY=off"
    place = ctypes.create_string_buffer(8)
    command = [sys.executable, "-S", "-c", PROBE, str(ctypes.addressof(place))]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    name = found.stderr.strip().splitlines()[-1] if found.returncode else ""
    return f"{name}: {REASONS[name]}" if name in REASONS else name

