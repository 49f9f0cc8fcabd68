"""paceline.profile(): a part of a program, recorded."""

import os
from contextlib import contextmanager

from paceline import world
from paceline.errors import UsageError

FOLDER = "paceline-profile"


class Recording:
    """A profile under way, and afterwards its contents. `folder`: where the ranks' files are."""

    def __init__(self, folder):
        self.folder = folder
        self._communicator = world.init()

    @contextmanager
    def label(self, name):
        """Calls in this block that have no tag are labelled `name` on this rank."""
        self._communicator._core.label_calls(name)
        try:
            yield self
        finally:
            self._communicator._core.label_calls("")

    def calls(self):
        """The calls of all ranks; every rank must have left the block."""
        from paceline.profiling.calls import read

        return read(self.folder)

    def report(self):
        """The text that a terminal shows."""
        from paceline.profiling import terminal

        return terminal.text(self.calls())


@contextmanager
def profile(folder=FOLDER, *, bytes=16 << 20):
    """Records the collectives of this process, in all communicators of the world, in a block.

        with paceline.profile("epoch-3") as p:
            with p.label("forward"):
                comm.allreduce(x)
        if comm.rank == 0:
            print(p.report())

    All ranks enter and leave the block; leaving waits for all of them. `folder`, which all ranks
    reach, gets a file of each rank; `paceline profile --read FOLDER` shows it. bytes: room for a
    rank's records, of 56 bytes each.

    Raises ResourceError if the file cannot be made, UsageError for less room than a page.
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
