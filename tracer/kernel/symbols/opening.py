"""Open files that others own: regular ones only, and never waiting for anybody."""

from __future__ import annotations

import os
import stat

__all__ = ["open_regular"]


def open_regular(path: bytes, *, follow: bool = True) -> int:
    """Return a descriptor to read a regular file with. Raises OSError for anything else; ``follow`` allows links.

    What it is is asked of the very file that is then opened: opening a device can do things, and a pipe can wait.
    """
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW))
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise FileNotFoundError(path.decode(errors="replace"))
        return os.open(f"/proc/self/fd/{handle}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    finally:
        os.close(handle)
