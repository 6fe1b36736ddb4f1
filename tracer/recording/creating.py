"""Create the file, or open the pipe or device, that a recording goes to."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable

from tracer.errors import OutputError
from tracer.recording.paths import shown

__all__ = ["HINTS", "create", "reason"]

#: What to do about an error, by its number.
HINTS = {
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


def create(path: str | os.PathLike[str], overwrite: bool, stopped: Callable[[], bool]) -> tuple[int, bool]:
    """Open ``path`` for writing; return the descriptor and whether the file is new. Raises OutputError.

    ``stopped`` ends the wait for a pipe's reader.
    """
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
        raise OutputError(f"can't create {shown(path)}: {reason(error)}.", hint=_hint(path, number or 0)) from None


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
    return _ANOTHER if there else HINTS.get(number, _ANOTHER)


def _planted(path: str | os.PathLike[str], existing: os.stat_result) -> bool:
    """Return whether another user made what is there, in a folder where everybody may: a link may lead anywhere."""
    folder = os.stat(os.path.dirname(os.fspath(path)) or ".")
    return bool(folder.st_mode & stat.S_IWOTH) and existing.st_uid not in (os.geteuid(), folder.st_uid)


def _in_the_way(path: str | os.PathLike[str], mode: int) -> tuple[str, str]:
    """Return what is said of something at ``path`` that can't be written to, and the hint."""
    if stat.S_ISDIR(mode):
        return f"{shown(path)} is a folder.", HINTS[errno.EISDIR]
    if stat.S_ISLNK(mode) and not os.path.exists(path):
        return f"{shown(path)} is a link to nothing.", "remove the link or choose another name"
    if stat.S_ISBLK(mode) or stat.S_ISSOCK(mode):
        return f"{shown(path)} is no file.", "choose another name"
    return f"{shown(path)} exists.", "choose another name, or replace it with --overwrite"


def reason(error: OSError | ValueError) -> str:
    """Return what went wrong, for the end of a sentence."""
    # A path with a NUL in it is a ValueError.
    return (error.strerror or str(error)).lower() if isinstance(error, OSError) else str(error)
