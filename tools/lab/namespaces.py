"""Namespaces and mounts, straight from the kernel: nothing is in the way that could be missing."""

import ctypes
import os
import signal

NET, UTS, IPC = 0x40000000, 0x04000000, 0x08000000
PID, MOUNT = 0x20000000, 0x00020000
BIND, RECURSIVE, PRIVATE, NOSUID, NODEV = 0x1000, 0x4000, 1 << 18, 2, 4

_libc = ctypes.CDLL(None, use_errno=True)


def checked(result, what):
    """Raises OSError, which names the failed call."""
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags):
    """New namespaces for this process; with PID for its children."""
    checked(_libc.unshare(flags), "unshare")


def try_out(flags):
    """Raises OSError if there are no such namespaces."""
    child = os.fork()
    if not child:
        try:
            unshare(flags | PID)
            os._exit(0)
        except OSError as error:
            os._exit(error.errno)
        finally:
            os._exit(255)
    number = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if number:
        raise OSError(number, os.strerror(number))


def mount(source, target, kind=None, flags=0, data=None):
    """mount(2), which does not look at what paths mean elsewhere."""
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind)]
    checked(_libc.mount(*words, ctypes.c_ulong(flags), None if data is None else data.encode()),
            f"mount {kind or source} on {target}")


def cover(folder, keep=(), mode="1777"):
    """An empty folder in memory over this one, in which paths of `keep` stay what they were."""
    folder = os.path.realpath(folder)
    below = [path for path in map(os.path.realpath, keep)
             if os.path.commonpath((path, folder)) == folder]
    kept = {path: os.open(path, os.O_PATH) for path in below}
    mount("paceline-lab", folder, "tmpfs", NOSUID | NODEV, f"mode={mode}")
    for path, descriptor in kept.items():
        os.makedirs(path, exist_ok=True)
        mount(f"/proc/self/fd/{descriptor}", path, flags=BIND | RECURSIVE)
        os.close(descriptor)


def spawn(flags, main):
    """Runs main() as process 1 of a new process namespace and others; its number seen from here.

    It ends with main(), or with its parent's namespace; process 1 of that namespace inherits it."""
    read, write = os.pipe()
    between = os.fork()
    if not between:
        end = 1
        try:
            os.close(read)
            unshare(flags | PID)
            child = os.fork()
            if child:
                os.write(write, str(child).encode())
                end = 0
            else:
                os.close(write)
                main()
                end = 0
        finally:
            os._exit(end)  # nothing of the parent's is to be tidied up in here
    os.close(write)
    with os.fdopen(read) as told:
        number = told.read()
    os.waitpid(between, 0)
    if not number:
        raise OSError("no new namespaces; the lab needs root and a kernel with all of them")
    return int(number)


def private_mounts():
    """Makes mounts private from here on; the processes are those of this namespace."""
    mount("none", "/", flags=RECURSIVE | PRIVATE)
    mount("proc", "/proc", "proc", NOSUID | NODEV)


def reap():
    """The (process, status) of all children that have ended, also inherited ones."""
    while True:
        try:
            process, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not process:
            return
        yield process, os.waitstatus_to_exitcode(status)


def end_all():
    """Ends every process of this namespace but this one, which is process 1. The (process, status)
    of all of them, which is lost once they are reaped."""
    try:
        os.kill(-1, signal.SIGKILL)
    except ProcessLookupError:
        return
    while True:
        try:
            process, status = os.waitpid(-1, 0)
        except ChildProcessError:
            return
        yield process, os.waitstatus_to_exitcode(status)
