"""Every way foreshock can fail on purpose: what happened, what to do, and the exit code that says so."""

from __future__ import annotations

__all__ = [
    "ForeshockError",
    "UsageError",
    "UnavailableError",
    "NotAllowedError",
    "ProbeUnavailableError",
    "RecordingError",
    "OutputError",
    "LimitPassedError",
    "UndecidedError",
]


class ForeshockError(Exception):
    """An error the user can act on; or the answer is one: a node deviates, a check failed.

    ``message`` is one line saying what happened; ``hint`` one line saying what to do about it.
    The command line prints both and exits with ``exit_code``.
    """

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(ForeshockError):
    """The command line asks for something that can't be: an unknown probe, clashing options."""

    exit_code = 2


class UnavailableError(ForeshockError):
    """This node can't do it: not root, no BTF, no bcc, locked down."""

    exit_code = 3


class NotAllowedError(UnavailableError):
    """This user may not do it, root may: the hint says what else would do."""


class ProbeUnavailableError(UnavailableError):
    """A probe that the user named can't start here."""


class RecordingError(ForeshockError):
    """A recording can't be read: not one, cut off before its header, corrupt, from a later version."""

    exit_code = 4


class OutputError(ForeshockError):
    """A result can't be written: disk full, no permission, the file exists, standard output is closed."""

    exit_code = 5


class LimitPassedError(ForeshockError):
    """A limit that the command line set is passed: something is slower than `--fail-over` allows."""

    exit_code = 6


class UndecidedError(ForeshockError):
    """Too little was recorded to tell: it may have been another time; or no node deviates in what there is."""

    exit_code = 7
