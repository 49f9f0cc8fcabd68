"""Errors of Paceline. A message has the place, the error with values, the rule, and a remedy."""

import builtins


class Error(RuntimeError):
    """Base of all errors that Paceline raises; a RuntimeError, as torch's own errors are."""


class UsageError(Error, ValueError):
    """The caller passed something that no collective can take; nothing was sent."""


class RefusalError(Error):
    """This algorithm, device or build cannot serve the call; nothing was sent."""


class MismatchError(Error):
    """Ranks disagree about the call; the communicator is broken."""


class TimeoutError(Error, builtins.TimeoutError):
    """A rank did not come in time; the communicator is broken. A torch Work.wait() with a limit of
    its own breaks nothing."""


class RankLost(Error):
    """A rank died or left; the communicator is broken."""

    @property
    def is_interrupt(self) -> bool:
        """True if that rank was interrupted by Ctrl-C, which may yet reach this one."""
        return "interrupted by Ctrl-C" in str(self)


class ResourceError(Error):
    """The machine has no room: memory, shared memory, files."""


class InternalError(Error):
    """A bug in Paceline; the message holds what reproduces it."""
