"""Errors of Paceline. A message names the call, the values at fault, the rule, and a remedy."""

import builtins


class Error(RuntimeError):
    """Base of all errors that Paceline raises; a RuntimeError, as torch's own errors are."""


class UsageError(Error, ValueError):
    """The caller passed a wrong argument; nothing was sent."""


class RefusalError(Error):
    """This algorithm, device or build cannot serve the call; nothing was sent."""


class MismatchError(Error):
    """Ranks make different calls; the communicator is broken."""


class TimeoutError(Error, builtins.TimeoutError):
    """A rank did not make its call in time; the communicator is broken.

    Only a torch Work.wait() with a time-out of its own breaks nothing.
    """


class RankLost(Error):
    """A rank died or left; the communicator is broken."""

    @property
    def is_interrupt(self) -> bool:
        """True if Ctrl-C interrupted the lost rank; this rank may get it later."""
        return "interrupted by Ctrl-C" in str(self)


class ResourceError(Error):
    """The machine lacks memory, shared memory or open files."""


class InternalError(Error):
    """A bug in Paceline; please report it with the message."""
