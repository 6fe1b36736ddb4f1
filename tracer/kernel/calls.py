"""What a thread sleeps for by the system call it is in: the one table of those kinds, as bpf/ledger.h has it."""

from __future__ import annotations

import platform
import stat
from collections.abc import Mapping

import numpy as np

from tracer.layouts import constants

__all__ = ["fill"]

_KNOWN = constants("ledger")

#: Numbers of x86-64, by what they wait for. Source: arch/x86/entry/syscalls/syscall_64.tbl.
_CALLS: Mapping[str, tuple[int, ...]] = {
    # futex, futex_waitv, futex_wait: other threads' locks, conditions, barriers
    "FUTEX": (202, 449, 455),
    # connect, accept, sendto, recvfrom, sendmsg, recvmsg, accept4, recvmmsg, sendmmsg
    "SOCKET": (42, 43, 44, 45, 46, 47, 288, 299, 307),
    # poll, select, io_getevents, epoll_wait, pselect6, ppoll, epoll_pwait, io_pgetevents, io_uring_enter, epoll_pwait2
    "POLL": (7, 23, 208, 232, 270, 271, 281, 333, 426, 441),
    # nanosleep, clock_nanosleep
    "TIMER": (35, 230),
    # wait4, waitid
    "CHILD": (61, 247),
    # open, stat, lstat, access, flock, getdents, rename, mkdir, unlink, sync, getdents64, openat, newfstatat, unlinkat,
    # renameat, faccessat, syncfs, renameat2, statx, openat2, faccessat2
    "FILE": (2, 4, 6, 21, 73, 78, 82, 83, 87, 162, 217, 257, 262, 263, 264, 269, 306, 316, 332, 437, 439),
    # read, write, close, fstat, ioctl, pread64, pwrite64, readv, writev, fcntl, fsync, fdatasync, ftruncate, splice,
    # sync_file_range, fallocate, preadv, pwritev, preadv2, pwritev2
    "BY_FILE": (0, 1, 3, 5, 16, 17, 18, 19, 20, 72, 74, 75, 77, 275, 277, 285, 295, 296, 327, 328),
}
_TYPES: Mapping[str, tuple[int, ...]] = {
    "SOCKET": (stat.S_IFSOCK,),
    "PIPE": (stat.S_IFIFO,),
    "FILE": (stat.S_IFREG, stat.S_IFDIR, stat.S_IFBLK, stat.S_IFLNK),
    "DEVICE": (stat.S_IFCHR,),
    # eventfd, timerfd, signalfd and the like, before they said that they were regular files
    "POLL": (0,),
}
_TYPE_SHIFT = 12


def fill(rows: np.ndarray) -> None:
    """Write the table to the live rows of ``ledger_calls``; elsewhere than on x86-64 it stays empty."""
    if platform.machine() != "x86_64":
        return
    for kind, numbers in _CALLS.items():
        rows["kind"][list(numbers)] = _KNOWN[f"LEDGER_{kind}"]
    for kind, types in _TYPES.items():
        rows["kind"][[_KNOWN["LEDGER_CALLS"] + (one >> _TYPE_SHIFT) for one in types]] = _KNOWN[f"LEDGER_{kind}"]
