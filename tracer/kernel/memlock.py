"""Keep a process's memory where it is: what alerts must not wait for a disk, nor for memory to be found.

Source: mlockall(2), mlock(2). Pages are locked as they are touched (MCL_ONFAULT, since v4.4): to touch all of a forked
process's would copy everything that it shares with its parent. So whoever locks has done all it will ever do before.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import resource
from collections.abc import Iterator
from pathlib import Path

__all__ = ["give_back_memory", "lift_limit", "lock_memory"]

_MCL_CURRENT, _MCL_FUTURE, _MCL_ONFAULT = 1, 2, 4
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4
_SPARE_BYTES = 1 << 20
#: Code is read in whole, with its error paths; but not what numpy and Python bring along and nothing here calls,
#: algebra and ciphers, 40 MB.
_UNUSED = re.compile(r"/numpy\.libs/|/libcrypto\.|/libssl\.|/libstdc\+\+\.|/unicodedata\.")

# "7f0c1a000000-7f0c1a200000 r-xp 00001000 08:01 1234   /usr/lib/libc.so.6"
_MAPPING = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) r-[x-]p \S+ \S+ [1-9]\d* +(/.*)$", re.M)

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mlock.argtypes = (ctypes.c_void_p, ctypes.c_size_t)


def give_back_memory() -> None:
    """Return to the kernel what the heap has free: else every process forked from now on keeps a copy."""
    _libc.malloc_trim(0)


def lift_limit() -> None:
    """Let this process lock as much memory as it likes, if it may.

    Before v5.11 BPF maps and programs count, with those of all others of the same user: beside foreshock's no other
    one can be made below the usual limit of 8 MiB.
    """
    with contextlib.suppress(OSError, ValueError):  # without CAP_SYS_RESOURCE
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def lock_memory() -> str:
    """Lock this process's memory, now and from now on; return "" or why that is not possible.

    It needs CAP_IPC_LOCK for good, or no limit (RLIMIT_MEMLOCK): at the limit later allocations would fail.
    """
    # The heap keeps what it has, and a little more than it needs.
    for option, value in ((_M_TRIM_THRESHOLD, 1 << 30), (_M_TOP_PAD, _SPARE_BYTES), (_M_MMAP_MAX, 0)):
        _libc.mallopt(option, value)
    lift_limit()
    if _libc.mlockall(_MCL_CURRENT | _MCL_FUTURE | _MCL_ONFAULT):
        error = os.strerror(ctypes.get_errno())
        limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
        return f"mlockall: {error} (no CAP_IPC_LOCK, and RLIMIT_MEMLOCK is {limit >> 10} kB)"
    for start, size in _code():
        # What can't be read in now is locked when it is.
        _libc.mlock(start, size)
    return ""


def _code() -> Iterator[tuple[int, int]]:
    """Yield address and size of what is mapped of files and not written to."""
    for match in _MAPPING.finditer(Path("/proc/self/maps").read_text(errors="replace")):
        if not _UNUSED.search(match[3]):
            start = int(match[1], 16)
            yield start, int(match[2], 16) - start
