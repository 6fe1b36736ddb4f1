"""Write whole messages to a descriptor without ever waiting for its reader."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import stat
import time

__all__ = ["Outlet", "reopened"]

_FLAGS = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def reopened(descriptor: int) -> int:
    """Return a descriptor of our own for what ``descriptor`` writes to. Raises OSError, EBADF for one that can't write.

    A pipe or a terminal is opened again through /proc: being non-blocking is then ours alone, and not the shell's,
    too. A file is not, for whoever else writes to it shares its position; a socket can't be.
    """
    if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
        # Opened again it might be able to: /dev/null, which stands for a closed standard output.
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    if _is_file(descriptor):
        return os.dup(descriptor)
    try:
        return os.open(f"/proc/self/fd/{descriptor}", _FLAGS)
    except OSError:
        return os.dup(descriptor)


class Outlet:
    """Owns ``descriptor``: a pipe's, a terminal's, a socket's.

    ``waits``: it is a file's, and the disk may keep a write waiting. ``trouble``: why the latest ``write_now``
    failed; "" when it did not, or only would have blocked.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.waits = _is_file(descriptor)
        self.trouble = ""
        # One that blocks takes this much without blocking once it polls writable: pipe(7).
        self._at_once = select.PIPE_BUF if os.get_blocking(descriptor) and not self.waits else None
        self._left = b""
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._descriptor

    def write_now(self, data: bytes) -> bool:
        """Take ``data`` whole, or nothing of it: False when that would block or fails.

        What a slow reader leaves of a message that was begun is kept, and goes first next time.
        """
        self.trouble = ""
        try:
            return self._take(data)
        except OSError as error:
            self._left = b""
            self.trouble = (error.strerror or str(error)).lower()
            return False

    def write(self, data: bytes, seconds: float) -> None:
        """Write ``data``, waiting at most ``seconds``. Raises OSError, of which TimeoutError is one."""
        give_up = time.monotonic() + seconds
        while not self._take(data):
            left = give_up - time.monotonic()
            if left <= 0:
                raise TimeoutError("its reader does not read")
            self._poll.poll(left * 1000)

    def close(self) -> None:
        """Close the descriptor."""
        with contextlib.suppress(OSError):
            os.close(self._descriptor)

    def _take(self, data: bytes) -> bool:
        if not self._push():
            return False
        self._left = data
        self._push()
        if len(self._left) < len(data):
            return True
        self._left = b""  # not begun: it may be given to another, or again
        return False

    def _push(self) -> bool:
        """Write what is left as far as it goes, and return whether nothing is. Raises OSError."""
        while self._left and self._poll.poll(0):
            try:
                written = os.write(self._descriptor, self._left[: self._at_once])
            except BlockingIOError:
                break
            self._left = self._left[written:]
        return not self._left


def _is_file(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISREG(mode) or stat.S_ISBLK(mode)
