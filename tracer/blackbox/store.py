"""The box as a file: claimed by one writer, created whole, the previous one kept. Standard library only."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import struct
import time
from collections import deque
from dataclasses import dataclass

from tracer.blackbox.kept import kept_boxes, set_aside
from tracer.blackbox.layout import BLOCK, Geometry, SegmentHead
from tracer.blackbox.log import Position
from tracer.blackbox.scan import Scan
from tracer.errors import OutputError

__all__ = ["Claim", "claim"]

_END_KIND = 3  # Kind.END of tracer.recording
_PATIENCE_SECONDS = 1.0
_ZEROS = bytes(1 << 20)
# Source: include/uapi/linux/fs.h.
_FS_IOC_GETFLAGS, _FS_IOC_SETFLAGS, _FS_NOCOW_FL = 0x80086601, 0x40086602, 0x00800000


@dataclass
class Claim:
    """A box that is ours: locked for as long as ``fd`` is open."""

    fd: int
    positions: list[Position]
    notes: list[str]


def claim(path: str, geometry: Geometry, boot_id: str, run: int, hands: int = 1) -> Claim:
    """Open or create the box at ``path`` for so many hands. Raises OutputError.

    One of this boot whose agent ended in good order, or of this very ``run``, goes on. Any other with something in it
    is moved aside first.
    """
    notes: list[str] = []
    for _ in range(3):
        fd = _open(path)
        if fd is None:
            fd = _create(path, geometry, boot_id, run)
            return Claim(fd, [Position.of(geometry, hand, hands) for hand in range(hands)], notes)
        try:
            _lock(fd, path)
            if not _is_at(fd, path):
                continue  # another recorder has just moved it aside
            scan = _going_on(fd, path, geometry, boot_id, run)
            if scan is not None:
                return Claim(os.dup(fd), [_position(scan, hand, hands) for hand in range(hands)], notes)
            notes += set_aside(fd, path, boot_id)
        except OSError as error:
            raise _error(path, error) from None
        finally:
            os.close(fd)
    raise OutputError(f"black box {path}: somebody else keeps replacing it.", hint="choose another path")


def _open(path: str) -> int | None:
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _error(path, error) from None
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_nlink != 1:
        os.close(fd)
        raise OutputError(f"black box {path}: it is no plain file of this user.", hint="choose another path")
    return fd


def _lock(fd: int, path: str) -> None:
    until = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            # A reader holds a box's lock for a moment, the second hand of a killed writer until it has noticed.
            if time.monotonic() > until:
                raise OutputError(
                    f"black box {path}: another agent is writing it.", hint="stop that one, or choose another path"
                ) from None
        time.sleep(0.02)


def _is_at(fd: int, path: str) -> bool:
    try:
        there, ours = os.lstat(path), os.fstat(fd)
    except FileNotFoundError:
        return False
    return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)


def _going_on(fd: int, path: str, geometry: Geometry, boot_id: str, run: int) -> Scan | None:
    """Return what is in an existing box if it can go on; None when it has to make room."""
    scan = Scan.of(fd)
    if scan is None:
        if os.fstat(fd).st_size and any(os.pread(fd, BLOCK, 0)):
            raise OutputError(f"black box {path}: the file there is none.", hint="choose another path, or remove it")
        return None
    if not scan.segments or scan.geometry != geometry or scan.cut:
        return None
    latest = deque(scan.in_order(fd), maxlen=1)
    in_order = any(found.head.kind == _END_KIND or found.segment.run == run for found in latest)
    return scan if in_order and latest[0].segment.boot_id == boot_id else None


def _position(scan: Scan, hand: int, hands: int) -> Position:
    """Return where a hand goes on: after the latest segment in its places, with a serial above all others'."""
    at = Position.of(scan.geometry, hand, hands)
    own = [segment.head for segment in scan.segments if segment.head.number in at.places]
    if own:
        at.number = max(own, key=lambda head: head.serial).number
    at.serial = max(segment.head.serial for segment in scan.segments) // 2 * 2 + hand
    return at


def _create(path: str, geometry: Geometry, boot_id: str, run: int) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        fd = os.open(path, flags, 0o600)
    except OSError as error:
        raise _error(path, error) from None
    try:
        _lock(fd, path)
        _allocate(fd, path, geometry, SegmentHead(geometry, 0, 0, run, boot_id))
    except (OSError, OutputError) as error:
        os.close(fd)
        with contextlib.suppress(OSError):
            os.unlink(path)
        raise (_error(path, error) if isinstance(error, OSError) else error) from None
    return fd


def _allocate(fd: int, path: str, geometry: Geometry, head: SegmentHead) -> None:
    """Give the file all its blocks now, written once, so that no later write needs any. Raises OSError."""
    # Copy-on-write would allocate at each write (btrfs); other file systems don't know the flag.
    with contextlib.suppress(OSError):
        flags = struct.unpack("i", fcntl.ioctl(fd, _FS_IOC_GETFLAGS, bytes(4)))[0]
        fcntl.ioctl(fd, _FS_IOC_SETFLAGS, struct.pack("i", flags | _FS_NOCOW_FL))
    while True:
        try:
            os.posix_fallocate(fd, 0, geometry.size_bytes)
            break
        except OSError as error:
            oldest = kept_boxes(path)[:-1]
            if error.errno not in (errno.ENOSPC, errno.EDQUOT) or not oldest:
                raise
            os.unlink(oldest[0])
    for offset in range(0, geometry.size_bytes, len(_ZEROS)):
        os.pwrite(fd, _ZEROS[: geometry.size_bytes - offset], offset)
    os.pwrite(fd, head.pack(), 0)
    os.fsync(fd)
    # None of it is read again here; and of a large folio in the cache a small write would make all of it dirty.
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


_HINTS = {
    errno.ENOSPC: "free some space, or choose a smaller --blackbox-size or another path",
    errno.EDQUOT: "free some space, or choose a smaller --blackbox-size or another path",
    errno.EFBIG: "raise the file size limit (ulimit -f), or choose a smaller --blackbox-size",
    errno.ENOENT: "create the folder first",
    errno.ELOOP: "a link is not followed; name the file itself",
    errno.EISDIR: "name a file in it",
    errno.EROFS: "choose a path on a writable file system",
}


def _error(path: str, error: OSError) -> OutputError:
    reason = (error.strerror or str(error)).lower()
    hint = _HINTS.get(error.errno or 0, "choose another path")
    return OutputError(f"black box {path if path.isprintable() else ascii(path)}: {reason}.", hint=hint)
