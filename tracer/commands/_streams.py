"""Started without standard streams (by a daemon, with ``>&-``), have their numbers taken all the same."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress

import click

__all__ = ["aside", "hold_streams", "tell"]


def hold_streams() -> None:
    """Open what is closed of descriptors 0 to 2: else the next file opened would be taken for a standard stream.

    ``sys.stdin`` stays None then, so that reading from it is an error instead of an empty input. Writing to standard
    output is one too: a result that goes nowhere is not done. Messages may be lost.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDONLY if descriptor == 1 else os.O_RDWR)  # the lowest free number is this one
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", closefd=False)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What a terminal's encoding lacks is no reason to fail; in JSON this is an escape, too.
        sys.stdout.reconfigure(errors="backslashreplace")


def aside(text: str) -> None:
    """Print a message on standard error. It may be lost: the result and the exit code don't depend on it."""
    with suppress(OSError):
        click.echo(text, err=True)


def tell(text: str) -> None:
    """Print ``text`` and a newline, with ASCII signs where standard output's encoding has no others."""
    from tracer.reports.layout import plain_ascii
    from tracer.reports.terminal import shows_unicode

    click.echo(text if shows_unicode(sys.stdout) else plain_ascii(text))
