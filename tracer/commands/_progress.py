"""One line on standard error that says how far a trace is; notes above it."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import click

from tracer.reports.escape import printable
from tracer.window import Window

__all__ = ["Progress"]


class Progress:
    """Progress on a terminal, notes everywhere. Nothing goes to standard output: that is for results."""

    def __init__(self, *, enabled: bool) -> None:
        self._enabled = enabled
        self._line = enabled and sys.stderr.isatty()
        self._shown = False
        self._began = time.monotonic()

    def say(self, text: str) -> None:
        """Replace the line."""
        if self._line:
            click.echo(f"\r\x1b[K{text}", nl=False, err=True)
            self._shown = True

    def note(self, text: str) -> None:
        """Say something that stays. Text of the kernel is escaped."""
        if self._enabled:
            self._clear()
            click.echo(f"note: {printable(text)}", err=True)

    def interval(self, windows: Sequence[Window], duration_ns: int | None) -> None:
        """Say that another interval is on disk."""
        seconds = time.monotonic() - self._began
        total = f" of {duration_ns / 1e9:g} s" if duration_ns else "; Ctrl-C ends it"
        lost = sum(sum(window.losses.values()) for window in windows)
        losses = f"; {lost} lost in this interval" if lost else ""
        self.say(f"recording: {seconds:.0f} s{total}{losses}")

    def end(self) -> None:
        """Take the line away."""
        self._clear()

    def _clear(self) -> None:
        if self._shown:
            click.echo("\r\x1b[K", nl=False, err=True)
            self._shown = False
