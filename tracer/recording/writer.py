"""Write a recording: one system call per interval, so a killed process leaves whole intervals behind."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

from tracer.errors import OutputError
from tracer.recording.codec import FrameEncoder
from tracer.recording.creating import HINTS, create, reason
from tracer.recording.frames import PREAMBLE
from tracer.recording.paths import shown
from tracer.window import Window

__all__ = ["RecordingWriter"]


class RecordingWriter:
    """A recording being written; a context manager.

    The file is created with mode 0600 (less what the umask takes): it names the node's processes. A pipe is waited
    for until it is read from; a link is followed only with ``overwrite``. In a folder where everybody may write, what
    another user put there is an error unless it is a plain file, and that is replaced.
    ``intervals`` is the number of whole intervals in the file. After a failed write the file ends with the last of
    them, without a closing frame, and every later ``write`` raises the same error.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        header: Mapping[str, Any],
        *,
        overwrite: bool = False,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        """Create the file and write the header; ``stopped`` ends the wait for a pipe's reader. Raises OutputError."""
        self.path = path
        self.intervals = 0
        self._encoder = FrameEncoder()
        self._size = 0
        self._failure: OutputError | None = None
        opening = PREAMBLE + self._encoder.header(header)
        self._fd, created = create(path, overwrite, stopped)
        try:
            self._append(opening)
        except OutputError:
            self._release()
            # Nothing can be read from a file without a header: leave none.
            if created:
                with suppress(OSError):
                    os.unlink(path)
            raise

    def __enter__(self) -> RecordingWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # After an error something may be missing, so no closing frame; Ctrl-C is how a recording usually ends.
        if isinstance(error, Exception):
            self._release()
        else:
            self.close()

    def write(self, windows: Sequence[Window]) -> None:
        """Append one interval. Raises OutputError; nothing of the interval is in the file then."""
        if self._failure is not None:
            raise self._failure
        if self._fd < 0:
            raise ValueError("the recording is closed")
        self._append(self._encoder.windows(windows))
        self.intervals += 1

    def close(self) -> None:
        """Write the closing frame, and wait for the disk to have everything. Raises OutputError."""
        if self._fd < 0:
            return
        try:
            if self._failure is None:
                self._append(self._encoder.end())
                self._sync()
        finally:
            self._release()

    def _release(self) -> None:
        fd, self._fd = self._fd, -1
        # Its errors were fsync's before.
        with suppress(OSError):
            os.close(fd)

    def _append(self, data: bytes) -> None:
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._fd, left) :]
        except OSError as error:
            self._fail(error)
        self._size += len(data)

    def _sync(self) -> None:
        try:
            os.fsync(self._fd)
        except OSError as error:
            # A pipe or a device has nothing to wait for.
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):
                self._fail(error)

    def _fail(self, error: OSError) -> None:
        # A device or a pipe can't be cut back; a reader of it drops the partial frame.
        with suppress(OSError):
            os.ftruncate(self._fd, self._size)
        intervals = "1 interval" if self.intervals == 1 else f"{self.intervals} intervals"
        self._failure = OutputError(
            f"{shown(self.path)}: write failed after {intervals}, which can be read: {reason(error)}.",
            hint=HINTS.get(error.errno or 0, "the recording ends there"),
        )
        raise self._failure from None
