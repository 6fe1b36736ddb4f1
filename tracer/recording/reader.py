"""Read a recording one interval at a time, up to where it ends, was cut off or is damaged."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, BinaryIO, Protocol

from tracer.errors import RecordingError
from tracer.recording.codec import FrameDecoder
from tracer.recording.frames import HEAD_BYTES, PREAMBLE, Frame, FrameCut, Kind, check_preamble, read_frame, read_head
from tracer.recording.paths import shown
from tracer.window import Window

__all__ = ["Recording", "RecordingReader", "Run", "count_intervals", "read_recording"]


class Run(Protocol):
    """What can be read as a recording is: one ``list[Window]`` per interval. See ``RecordingReader``."""

    header: dict[str, Any]
    intervals: int
    damage: str

    @property
    def warning(self) -> str: ...  # noqa: D102  # as RecordingReader's

    def __iter__(self) -> Iterator[list[Window]]: ...

    def __enter__(self) -> Run: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class RecordingReader:
    """A recording to iterate over: one ``list[Window]`` per interval; a context manager.

    Memory is bounded whatever the file holds: one interval at a time, at most about 64 MB of it.
    A file can be iterated again, a pipe once. These say, after an iteration, how it ended:

    Attributes:
        header: the map that the writer was given.
        intervals: whole intervals read.
        truncated: None when the closing frame was reached; else the recording was cut off, and this many bytes
            of a partial frame were left over (0 when it was cut between two frames, as by SIGKILL).
        damage: "" or where and why reading stopped before the end.
        skipped: frames of kinds that a later minor version added.
        warning: "" or all of that as one line, for every consumer to print.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        tables: Container[tuple[str, str]] | None = None,
        keep: Callable[[int], bool] | None = None,
    ) -> None:
        """Open ``path`` ("-" is standard input) and read its header. Raises RecordingError.

        Only windows of ``tables`` are decoded, if any are given. ``keep`` says by their numbers which intervals of a
        file are needed: others are checked for damage and left out, which takes a tenth of the time.
        """
        self.path = path
        self._tables, self._keep = tables, keep
        self._name = "standard input" if path == "-" else shown(path)
        self._file = _open(path, self._name)
        self.header: dict[str, Any] = {}
        self.intervals = 0
        self.truncated: int | None = 0  # until the closing frame is seen, it was cut off
        self.damage = ""
        self.skipped = 0
        self._offset = 0
        self._started = False
        try:
            self._seekable = path != "-" and self._file.seekable()
            self._read_header()
        except RecordingError as error:
            self.close()
            raise RecordingError(f"{self._name}: {error.message}", hint=error.hint) from None
        except OSError as error:
            self.close()
            raise RecordingError(f"{self._name} can't be read: {error.strerror}.", hint=_CHECK) from None
        self._first = self._offset

    def __enter__(self) -> RecordingReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if self.path != "-":
            self._file.close()

    def __iter__(self) -> Iterator[list[Window]]:
        """Yield each interval. Raises RecordingError when the recording is damaged before its first interval."""
        if self._started:
            if not self._seekable:
                raise RecordingError(f"{self._name} can be read only once.", hint="save it to a file first")
            self._restart()
        self._started = True
        decoder = FrameDecoder()
        while True:
            try:
                windows = self._next_interval(decoder)
            except FrameCut as cut:
                self.truncated = cut.left
                return
            except RecordingError as error:
                self._stop(error.message)
                return
            except OSError as error:
                self._stop(f"{error.strerror}.")
                return
            if windows is None:
                return
            self.intervals += 1
            yield windows
            del windows  # else two intervals were in memory while the next is read

    @property
    def warning(self) -> str:
        """Say in one line what is missing from what was read; "" when nothing is."""
        parts = []
        if self.damage:
            parts.append(self.damage)
        elif self.truncated is not None:
            left = f", {_count(self.truncated, 'byte')} left over" if self.truncated else " between two intervals"
            parts.append(f"{self._name} was cut off after {_count(self.intervals, 'interval')}{left}.")
        if self.skipped:
            parts.append(f"{_count(self.skipped, 'frame')} of a later foreshock version skipped.")
        return " ".join(parts)

    def _restart(self) -> None:
        self._file.seek(self._first)
        self._offset = self._first
        self.intervals, self.truncated, self.damage, self.skipped = 0, 0, "", 0

    def _read_header(self) -> None:
        check_preamble(_read_exactly(self._file, len(PREAMBLE)))
        self._offset = len(PREAMBLE)
        try:
            frame = self._next_frame()
        except FrameCut:
            frame = None
        if frame is None:
            raise RecordingError("cut off before its header.", hint="nothing of it can be read; record again")
        if frame.kind != Kind.HEADER:
            raise RecordingError("damaged: its header is missing.", hint="nothing of it can be read; record again")
        self.header = FrameDecoder().header(frame)

    def _next_interval(self, decoder: FrameDecoder) -> list[Window] | None:
        """Return the next interval, None at the end, closing frame or not."""
        while True:
            start = self._offset
            if self._keep and self._seekable and not self._keep(self.intervals) and self._passed(decoder):
                continue
            frame = self._next_frame()
            if frame is None:
                return None
            try:
                if frame.kind == Kind.WINDOWS:
                    return decoder.windows(frame, self._tables)
                if frame.kind == Kind.END:
                    decoder.end(frame)
                    break
                if frame.kind == Kind.HEADER:
                    raise RecordingError("a second header.")
            except RecordingError:
                self._offset = start  # a failure is reported where its frame starts
                raise
            self.skipped += 1
        self.truncated = None
        if self._file.read(1):
            raise RecordingError("bytes follow the closing frame.")
        return None

    def _passed(self, decoder: FrameDecoder) -> bool:
        """Go past the next frame if it is an interval that later ones don't need; else stay before it."""
        frame = read_frame(self._file.read, first=_START)
        if frame is not None and frame.kind == Kind.WINDOWS and decoder.passes(frame.payload):
            self._offset += frame.size
            self.intervals += 1
            return True
        self._file.seek(self._offset)
        return False

    def _next_frame(self) -> Frame | None:
        frame = read_frame(self._file.read)
        if frame is not None:
            self._offset += frame.size
        return frame

    def _stop(self, why: str) -> None:
        self.damage = (
            f"{self._name} is damaged at byte {self._offset}, after {_count(self.intervals, 'good interval')}: {why}"
        )
        if not self.intervals and self.truncated is not None:
            raise RecordingError(self.damage, hint="nothing of it can be read; copy it again or record again") from None


@dataclass(frozen=True)
class Recording:
    """A whole recording in memory: what ``RecordingReader`` reads, and how that ended."""

    header: dict[str, Any]
    intervals: list[list[Window]]
    truncated: int | None
    damage: str
    warning: str


def read_recording(path: str | os.PathLike[str]) -> Recording:
    """Read a small recording whole; iterate over a ``RecordingReader`` for one of any size. Raises RecordingError."""
    with RecordingReader(path) as reader:
        intervals = list(reader)
        return Recording(reader.header, intervals, reader.truncated, reader.damage, reader.warning)


_CHECK = "check the path and its permissions"
_COUNTED = 100  # one by one
_START = 8  # of a payload: enough to see what its map has


def count_intervals(path: str | os.PathLike[str]) -> int:
    """Return how many intervals a file has, by the heads of its frames; those before whatever is wrong with it.

    Of more than a hundred, how many there are about: as many more as it has more bytes.
    """
    found = 0
    try:
        # A pipe would be waited for, and be empty afterwards.
        with open(path, "rb") if os.path.isfile(path) else open(os.devnull, "rb") as file:
            check_preamble(file.read(len(PREAMBLE)))
            while len(head := file.read(HEAD_BYTES)) == HEAD_BYTES:
                length, kind = read_head(head)
                found += kind == Kind.WINDOWS
                place = file.seek(length, os.SEEK_CUR)
                if found >= _COUNTED:
                    return found * os.fstat(file.fileno()).st_size // place
    except (OSError, ValueError, RecordingError):
        return found
    return found


def _open(path: str | os.PathLike[str], name: str) -> BinaryIO:
    try:
        if path == "-":
            return sys.stdin.buffer
        return open(path, "rb")
    except AttributeError:
        # Python has no sys.stdin when descriptor 0 is closed.
        raise RecordingError(f"{name} is closed.", hint=_CHECK) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise RecordingError(f"{name} can't be read: {reason.lower()}.", hint=_CHECK) from None


def _read_exactly(file: BinaryIO, size: int) -> bytes:
    data = b""
    while len(data) < size and (piece := file.read(size - len(data))):
        data += piece
    return data


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
