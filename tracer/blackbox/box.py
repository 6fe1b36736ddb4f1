"""Read a box: on a live node while it is written, after a reboot, or from a copy on any machine."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from types import TracebackType

import numpy as np

from tracer.alerts.alert import Alert
from tracer.alerts.record import alert_from
from tracer.blackbox.scan import Found, Scan
from tracer.blackbox.tally import Tally, frame_of
from tracer.errors import RecordingError
from tracer.recording import FrameDecoder, Kind
from tracer.recording.paths import shown
from tracer.recording.payload import unpack_payload
from tracer.window import Window

__all__ = ["Box", "Missing", "is_box"]

_HINT = "nothing of it can be read; is it a black box of foreshock agent?"


@dataclass(frozen=True)
class Missing:
    """What a box has not got.

    ``torn``: records and segments that were being written when it ended. ``damaged``: those that were whole once.
    ``lost``: records that the disk refused. ``dropped``: those that the agent could not hand over to it.
    ``cut``: bytes missing at the end of the file.
    """

    torn: int = 0
    damaged: int = 0
    lost: int = 0
    dropped: int = 0
    cut: int = 0


class Box:
    """A box that can be read; a context manager.

    Attributes:
        header: the recording header of its latest run.
        boot_id: of the boot that it is of.
        first, last: heads of its first and its last record: when they were handed over.
        starts: how many times an agent began in it.
        goodbye: the reason with which the agent said goodbye; None when it did not.
        missing: what it has not got.
        live: whether an agent writes it now.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open the box and look at every record. Raises RecordingError."""
        self.path = os.fspath(path)
        self._name = shown(path)
        self._fd = _open(path, self._name)
        try:
            self._look()
        except RecordingError as error:
            self.close()
            raise RecordingError(f"{self._name}: {error.message}", hint=error.hint or _HINT) from None
        except OSError as error:
            self.close()
            raise RecordingError(f"{self._name} can't be read: {_reason(error)}.", hint="check the disk") from None

    def __enter__(self) -> Box:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    @property
    def size_bytes(self) -> int:
        """How large it is when it is whole."""
        return self._scan.geometry.size_bytes

    def records(self) -> Iterator[Found]:
        """Yield every record in its order."""
        return self._scan.in_order(self._fd)

    def alerts(self) -> Iterator[Alert]:
        """Yield every message about an alert, in order; those that can't be understood are left out."""
        for found in self._of_kind(Kind.ALERT):
            try:
                yield alert_from(unpack_payload(frame_of(found).payload)[0])
            except RecordingError:
                continue

    def intervals(self, last_ns: int, wanted: Callable[[np.dtype], bool] | None = None) -> Iterator[list[Window]]:
        """Yield the windows of each interval of the last ``last_ns`` before the box's end; only those ``wanted``."""
        for found in self._of_kind(Kind.WINDOWS, since_ns=self.last.monotonic_ns - last_ns):
            try:
                frame = frame_of(found)
                yield FrameDecoder().some(frame, wanted) if wanted else FrameDecoder().windows(frame)
            except RecordingError:
                continue

    def every_interval(
        self, tables: Container[tuple[str, str]] | None = None, keep: Callable[[int], bool] | None = None
    ) -> Iterator[list[Window]]:
        """Yield the windows of each interval; only ``tables``, and of the intervals that ``keep`` wants, by number."""
        for number, found in enumerate(self._of_kind(Kind.WINDOWS)):
            if keep is None or keep(number):
                try:
                    yield FrameDecoder().windows(frame_of(found), tables)
                except RecordingError:
                    continue

    def count_intervals(self) -> int:
        """Return how many intervals there are."""
        return sum(1 for _ in self._of_kind(Kind.WINDOWS))

    def _of_kind(self, kind: Kind, since_ns: int = 0) -> Iterator[Found]:
        for found in self._scan.in_order(self._fd, since_ns):
            if found.head.kind == kind and found.head.monotonic_ns >= since_ns:
                yield found

    def _look(self) -> None:
        scan = Scan.of(self._fd)
        if scan is None:
            size = os.fstat(self._fd).st_size
            raise RecordingError("no black box." if size else "the black box is empty.")
        self._scan, self.live = scan, _is_written(self._fd)
        summed = Tally(scan.whole_since_ns(self._fd))
        for found in scan.in_order(self._fd):
            summed.add(found)
        if summed.first is None or summed.last is None:
            raise RecordingError("the black box has no record yet.", hint="its agent had not begun; nothing is missing")
        self.first, self.last, self.starts, self.boot_id = summed.first, summed.last, summed.starts, summed.boot_id
        self.goodbye, self.header = summed.goodbye(), summed.header()
        torn = sum(segment.torn for segment in scan.segments) + scan.torn_heads
        damaged = sum(segment.damaged for segment in scan.segments)
        lost = max(0, summed.gaps - damaged)
        # A record or a segment being written right now is not torn.
        self.missing = Missing(0 if self.live else torn, damaged, lost, summed.dropped, scan.cut)


def is_box(path: str | os.PathLike[str]) -> bool:
    """Return whether there is a file at ``path`` that says it is a box, in whatever state."""
    try:
        fd = _open(path, "")
    except RecordingError:
        return False
    try:
        return Scan.of(fd) is not None
    except OSError:
        return False
    finally:
        os.close(fd)


def _open(path: str | os.PathLike[str], name: str) -> int:
    try:
        # A pipe is not opened at all: who waits to write to it would take that for its reader.
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise RecordingError(f"{name} is no file.", hint="name the black box itself")
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        raise RecordingError(f"{name} can't be read: {_reason(error)}.", hint="check the path") from None


def _is_written(fd: int) -> bool:
    """Return whether somebody holds the box's lock. A file on a read-only or odd file system is taken as at rest."""
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno == errno.EWOULDBLOCK
    fcntl.flock(fd, fcntl.LOCK_UN)
    return False


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror or str(error)).lower() if isinstance(error, OSError) else str(error)
