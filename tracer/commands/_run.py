"""Open whatever holds a run, a recording or a black box, to be read interval by interval."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterator
from dataclasses import asdict
from types import TracebackType
from typing import Any

from tracer.blackbox.box import Box, is_box
from tracer.errors import RecordingError
from tracer.recording import RecordingReader, Run, count_intervals
from tracer.reports.postmortem import what_is_missing
from tracer.window import Window

__all__ = ["BoxRun", "count_run", "missing_of", "open_run"]


class BoxRun:
    """A black box, read as ``RecordingReader`` reads a recording."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        tables: Container[tuple[str, str]] | None = None,
        keep: Callable[[int], bool] | None = None,
    ) -> None:
        """Open the box at ``path``; see ``RecordingReader``. Raises RecordingError."""
        self._box, self._tables, self._keep = Box(path), tables, keep
        self.header: dict[str, Any] = self._box.header
        self.intervals = 0
        self.warning = missing_of(self._box)
        self.damage = self.warning if self._box.missing.damaged else ""

    def __enter__(self) -> BoxRun:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._box.close()

    def __iter__(self) -> Iterator[list[Window]]:
        """Yield each interval."""
        self.intervals = 0
        for windows in self._box.every_interval(self._tables, self._keep):
            self.intervals += 1
            yield windows


def open_run(
    path: str | os.PathLike[str],
    tables: Container[tuple[str, str]] | None = None,
    keep: Callable[[int], bool] | None = None,
) -> Run:
    """Open the recording or the black box at ``path``; "-" is standard input. Raises RecordingError."""
    try:
        return RecordingReader(path, tables, keep)
    except RecordingError:
        if path != "-" and is_box(path):
            return BoxRun(path, tables, keep)
        raise


def count_run(path: str | os.PathLike[str]) -> int:
    """Return how many intervals a recording or a black box has; of what can't be read, none."""
    if found := count_intervals(path):
        return found
    try:
        with Box(path) as box:
            return box.count_intervals()
    except RecordingError:
        return 0


def missing_of(box: Box) -> str:
    """Return in a sentence what a black box has not got; "" when nothing is missing."""
    missing = {name: number for name, number in asdict(box.missing).items() if number}
    return f"The black box lacks {what_is_missing(missing)}." if missing else ""
