"""paceline.profile(): a part of a program, recorded."""

import os
from contextlib import contextmanager

from paceline import world
from paceline.errors import UsageError

FOLDER = "paceline-profile"


class Recording:
    """A profile: under way in the block, and complete after it. `folder` has the ranks' files."""

    def __init__(self, folder):
        self.folder = folder
        self._communicator = world.init()

    @contextmanager
    def label(self, name):
        """Labels this rank's calls in the block with `name`, but for calls that have a tag."""
        self._communicator._core.label_calls(name)
        try:
            yield self
        finally:
            self._communicator._core.label_calls("")

    def calls(self):
        """The calls of all ranks (profiling.calls.Calls), once every rank has left the block."""
        from paceline.profiling.calls import read

        return read(self.folder)

    def report(self):
        """The report that `paceline profile` shows, as plain text."""
        from paceline.profiling import terminal

        return terminal.text(self.calls())


@contextmanager
def profile(folder=FOLDER, *, bytes=16 << 20):
    """Records the collectives of a `with` block, in all communicators of the world.

        with paceline.profile("epoch-3") as p:
            with p.label("forward"):
                comm.allreduce(x)
        if comm.rank == 0:
            print(p.report())

    Collective: all ranks enter and leave the block, and leaving waits for all of them. Each rank
    writes a file to `folder`, which all ranks must reach; `paceline profile --read FOLDER` shows
    them.

    bytes: memory for the records of one rank, in bytes, 56 for each call; at least 4096.

    Raises ResourceError if the file cannot be made, and UsageError for too few bytes.
    """
    if bytes < 4096:
        raise UsageError(f"profile: bytes is {bytes}; it must be at least 4096.")
    communicator = world.init()
    recording = Recording(os.path.abspath(folder))
    communicator.barrier()
    communicator._core.begin_profile(recording.folder, bytes)
    try:
        yield recording
    finally:
        communicator._core.end_profile()
    communicator.barrier()
