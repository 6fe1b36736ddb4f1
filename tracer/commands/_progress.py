"""One line on standard error that says how far a trace is; notes above it."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Sequence

import click

from tracer.analysis.losses import missed
from tracer.escape import printable
from tracer.units import clip, many
from tracer.window import Window

__all__ = ["Progress"]


class Progress:
    """Progress on a terminal, notes everywhere. Nothing goes to standard output: that is for results."""

    def __init__(self, *, enabled: bool) -> None:
        self._enabled = enabled
        self._line = enabled and sys.stderr.isatty()
        self._shown = False
        self._began_ns = 0  # of the first window: attaching does not count
        self._lost = 0

    def say(self, text: str) -> None:
        """Replace the line. It ends where the terminal does: one that goes on below could not be taken away."""
        if self._line:
            self._shown = True
            self._write(f"\r\x1b[K{clip(text, shutil.get_terminal_size().columns - 1)}")

    def note(self, text: str) -> None:
        """Say something that stays. Text of the kernel is escaped."""
        if self._enabled:
            self._clear()
            self._write(f"note: {printable(text)}\n")

    def interval(self, windows: Sequence[Window], duration_ns: int | None) -> None:
        """Say that another interval is on disk."""
        if not self._line:
            return
        now_ns = time.monotonic_ns()
        self._began_ns = min(self._began_ns or now_ns, *(window.start_ns for window in windows))
        seconds = (now_ns - self._began_ns) / 1e9
        total = f" of {duration_ns / 1e9:g} s" if duration_ns else "; Ctrl-C ends it"
        self._lost += sum(sum(missed(window.probe, window.losses).values()) for window in windows)
        losses = f"; {many(self._lost, 'event')} not seen so far" if self._lost else ""
        self.say(f"recording: {seconds:.0f} s{total}{losses}")

    def end(self) -> None:
        """Take the line away."""
        self._clear()

    def _clear(self) -> None:
        if self._shown:
            self._shown = False
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        try:
            click.echo(text, nl=False, err=True)
        except OSError:
            # A terminal that was closed, a pipe nobody reads: a recording goes on all the same. What is still
            # buffered must not fail again at exit.
            self._enabled = self._line = self._shown = False
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
