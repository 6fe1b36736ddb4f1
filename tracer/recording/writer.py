"""Write a recording: one system call per interval, so a killed process leaves whole intervals behind."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

from tracer.errors import OutputError
from tracer.recording.codec import FrameEncoder
from tracer.recording.frames import PREAMBLE
from tracer.recording.paths import shown
from tracer.window import Window

__all__ = ["RecordingWriter"]

_HINTS = {
    errno.ENOENT: "create the folder first",
    errno.ENOTDIR: "a part of the path is a file, not a folder",
    errno.EISDIR: "name a file in it",
    errno.EACCES: "choose a folder that you may write to",
    errno.EPERM: "choose a folder that you may write to",
    errno.EROFS: "choose a folder on a writable file system",
    errno.ENOSPC: "free some space or choose another file system",
    errno.EDQUOT: "free some space or choose another file system",
    errno.EFBIG: "raise the file size limit (ulimit -f) or choose another file system",
    errno.ENAMETOOLONG: "choose a shorter name",
}

#: How often a pipe is looked at that has no reader yet.
_LOOK_SECONDS = 0.05


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
        self._fd, created = _create(path, overwrite, stopped)
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
            f"{shown(self.path)}: write failed after {intervals}, which can be read: {_reason(error)}.",
            hint=_HINTS.get(error.errno or 0, "the recording ends there"),
        )
        raise self._failure from None


def _create(path: str | os.PathLike[str], overwrite: bool, stopped: Callable[[], bool]) -> tuple[int, bool]:
    """Open ``path`` for writing; return the descriptor and whether the file is new."""
    try:
        existing = _existing(path)
        mode = existing.st_mode if existing else 0
        if existing and not stat.S_ISREG(mode) and _planted(path, existing):
            raise OutputError(f"{shown(path)} was put there by somebody else, and is no file.", hint=_OWN_FOLDER)
        if overwrite and stat.S_ISREG(mode):
            # A new file, not the old one cut to nothing: whoever reads the old one keeps it.
            os.unlink(path)
        elif stat.S_ISFIFO(mode):
            return _open_pipe(path, stopped), False
        elif stat.S_ISCHR(mode):
            # Nothing of it is lost.
            return os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC), False
        elif overwrite and stat.S_ISLNK(mode) and os.path.exists(path):
            # /dev/stdout is a link, and must stay one.
            return os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC), False
        # Creates, and never through a link.
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), True
    except FileExistsError:
        message, hint = _in_the_way(path, mode)
        raise OutputError(message, hint=hint) from None
    except (OSError, ValueError) as error:
        number = error.errno if isinstance(error, OSError) else 0
        raise OutputError(
            f"can't create {shown(path)}: {_reason(error)}.", hint=_hint(path, number or 0)
        ) from None


def _open_pipe(path: str | os.PathLike[str], stopped: Callable[[], bool]) -> int:
    """Wait until a pipe is read from, as shells do; but who waits inside ``open`` is not stopped by a flag."""
    while True:
        try:
            fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
        else:
            os.set_blocking(fd, True)
            return fd
        if stopped():
            raise OutputError(f"{shown(path)}: nobody has read from this pipe.", hint="start its reader first")
        time.sleep(_LOOK_SECONDS)


_ANOTHER = "choose another path"
_OWN_FOLDER = "choose a folder of your own: what is written through it goes where they say"


def _existing(path: str | os.PathLike[str]) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return None


def _hint(path: str | os.PathLike[str], number: int) -> str:
    # In /proc nothing can be made, and it says that there is no such file.
    there = number == errno.ENOENT and os.path.isdir(os.path.dirname(os.fspath(path)) or ".")
    return _ANOTHER if there else _HINTS.get(number, _ANOTHER)


def _planted(path: str | os.PathLike[str], existing: os.stat_result) -> bool:
    """Return whether another user made what is there, in a folder where everybody may: a link may lead anywhere."""
    folder = os.stat(os.path.dirname(os.fspath(path)) or ".")
    return bool(folder.st_mode & stat.S_IWOTH) and existing.st_uid not in (os.geteuid(), folder.st_uid)


def _in_the_way(path: str | os.PathLike[str], mode: int) -> tuple[str, str]:
    """Return what is said of something at ``path`` that can't be written to, and the hint."""
    if stat.S_ISDIR(mode):
        return f"{shown(path)} is a folder.", _HINTS[errno.EISDIR]
    if stat.S_ISLNK(mode) and not os.path.exists(path):
        return f"{shown(path)} is a link to nothing.", "remove the link or choose another name"
    if stat.S_ISBLK(mode) or stat.S_ISSOCK(mode):
        return f"{shown(path)} is no file.", "choose another name"
    return f"{shown(path)} exists.", "choose another name, or replace it with --overwrite"


def _reason(error: OSError | ValueError) -> str:
    # A path with a NUL in it is a ValueError.
    return (error.strerror or str(error)).lower() if isinstance(error, OSError) else str(error)
