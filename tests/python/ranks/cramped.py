"""Runs a script as in a sandbox that allows no shared memory but files: memfd_create is refused."""

import ctypes
import errno
import os
import platform
import runpy
import struct
import sys

MEMFD_CREATE = {"x86_64": 319, "aarch64": 279}[platform.machine()]
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
RULES = [  # of the filter in the kernel: code, jumps, value
    (0x20, 0, 0, 0),  # the number of the system call
    (0x15, 0, 1, MEMFD_CREATE),
    (0x06, 0, 0, 0x00050000 | errno.EPERM),
    (0x06, 0, 0, 0x7FFF0000),  # allowed
]


class Program(ctypes.Structure):
    """A struct sock_fprog."""

    _fields_ = [("count", ctypes.c_ushort), ("rules", ctypes.c_char_p)]


program = Program(len(RULES), b"".join(struct.pack("HBBI", *rule) for rule in RULES))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
assert libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program)) == 0

script, *arguments = sys.argv[1:]
sys.path.insert(0, os.path.dirname(script))
sys.argv = [script, *arguments]
runpy.run_path(script, run_name="__main__")
