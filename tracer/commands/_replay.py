"""Step through a recording of any length: only the last few intervals are held."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from types import TracebackType

from tracer.analysis.source import Source
from tracer.recording import RecordingReader
from tracer.reports.state import RECENT
from tracer.window import Window

__all__ = ["Replay"]

#: Intervals kept behind the current one; stepping back further reads the file again from its start.
_KEPT = 120
# A second of a big node is a few MB; one of a hostile recording 48 MB.
_KEPT_BYTES = 64 << 20


class Replay:
    """A recording with a position in it. ``known`` intervals were seen so far, all of them once ``complete``.

    ``message`` is what is wrong with it, known once its end was seen.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._reader = RecordingReader(path)
        self.source = Source.from_header(self._reader.header)
        self._kept: deque[list[Window]] = deque()
        self._kept_bytes = 0
        self._iterator: Iterator[list[Window]] = iter(self._reader)
        self._at = 0
        self.known = 0
        self.complete = False
        self.message = ""

    def until(self, position: int) -> list[list[Window]]:
        """Return the last few intervals up to the ``position``-th (from 1), or up to the end."""
        first, first_kept = max(1, position - RECENT + 1), self._at - len(self._kept) + 1
        if position < self._at and first < first_kept:
            self._rewind()
        while self._at < position and self._advance():
            pass
        ahead = max(0, self._at - position)
        kept = list(self._kept)
        return kept[: len(kept) - ahead][-RECENT:]

    def last(self) -> list[list[Window]]:
        """Return the last few intervals of the recording."""
        while self._advance():
            pass
        return list(self._kept)[-RECENT:]

    @property
    def damaged(self) -> bool:
        """Whether a damaged part was reached, so that the rest can't be read."""
        return bool(self._reader.damage)

    def close(self) -> None:
        self._reader.close()

    def __enter__(self) -> Replay:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _advance(self) -> bool:
        windows = next(self._iterator, None)
        if windows is None:
            # Remembered: a second reading, to step back, has not come to the end yet.
            self.complete, self.message = True, self._reader.warning
            return False
        self._keep(windows)
        self._at += 1
        self.known = max(self.known, self._at)
        return True

    def _keep(self, windows: list[Window]) -> None:
        self._kept.append(windows)
        self._kept_bytes += _size(windows)
        while len(self._kept) > 1 and (len(self._kept) > _KEPT or self._kept_bytes > _KEPT_BYTES):
            self._kept_bytes -= _size(self._kept.popleft())

    def _rewind(self) -> None:
        self._reader.close()
        self._reader = RecordingReader(self._path)
        self._iterator, self._at = iter(self._reader), 0
        self._kept.clear()
        self._kept_bytes = 0


def _size(windows: list[Window]) -> int:
    return sum(window.rows.nbytes for window in windows)
