"""Give up what is not needed any more once everything is attached."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["KEPT", "KEPT_FOR_STACKS", "held", "in_host_users", "keep_only", "may_trace", "needs"]

#: Numbers from include/uapi/linux/capability.h.
_CAPABILITIES = {
    "dac_override": 1,  # the output file may lie in somebody else's folder
    "dac_read_search": 2,
    "ipc_lock": 14,
    "sys_ptrace": 19,
    "sys_admin": 21,
    "sys_nice": 23,
    "syslog": 34,
    "perfmon": 38,
    "bpf": 39,
}

#: Files. Maps are read through their descriptors; what else takes privileges is the helper's (``deeds``).
KEPT = ("dac_override", "dac_read_search")
#: Symbols: other processes' maps and files, kernel addresses.
KEPT_FOR_STACKS = (*KEPT, "sys_ptrace", "syslog")

_INITIAL_USER_NAMESPACE = 0xEFFFFFFD  # PROC_USER_INIT_INO
_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


def held() -> set[str]:
    """Return the capabilities of this thread that matter here."""
    effective = _held()[0]
    return {name for name, number in _CAPABILITIES.items() if effective >> number & 1}


def may_trace() -> bool:
    """Return whether this process has what loading and attaching BPF programs asks for."""
    having = held()
    return in_host_users() and ("sys_admin" in having or {"bpf", "perfmon"} <= having)


def in_host_users() -> bool:
    """Return whether capabilities are for the whole node: not so in a user namespace, of a rootless container."""
    try:
        return os.stat("/proc/self/ns/user").st_ino == _INITIAL_USER_NAMESPACE
    except OSError:
        return True


def needs(action: Callable[[], object]) -> bool:
    """Return whether the kernel refuses ``action`` without privileges: it is tried without, and they come back."""
    effective, permitted = _held()
    _set(0, permitted)
    try:
        action()
    except PermissionError:
        return True
    finally:
        _set(effective, permitted)
    return False


def keep_only(names: Iterable[str]) -> None:
    """Give up every other capability, for this thread and those it starts, and for every program it may run.

    Call it before starting threads. Without privileges to give up it changes nothing.
    """
    # A set: what is named twice is one bit all the same.
    kept = sum(1 << _CAPABILITIES[name] for name in set(names))
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    for number in range(64):
        if not kept >> number & 1:
            _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)
    effective, permitted = _held()
    _set(effective & kept, permitted & kept)


def _set(effective: int, permitted: int) -> None:
    """Set the capabilities of this thread; none is inheritable."""
    words = (effective, permitted, 0)
    data = struct.pack("<6I", *(word & 0xFFFFFFFF for word in words), *(word >> 32 for word in words))
    _libc.capset(_header(), ctypes.create_string_buffer(data, 24))


def _held() -> tuple[int, int]:
    """Return the effective and the permitted capabilities of this thread."""
    held = ctypes.create_string_buffer(24)
    _libc.capget(_header(), held)  # all zeros if it fails
    low_effective, low_permitted, _, high_effective, high_permitted, _ = struct.unpack("<6I", held.raw[:24])
    return low_effective | high_effective << 32, low_permitted | high_permitted << 32


def _header() -> Any:
    return ctypes.create_string_buffer(struct.pack("<Ii", _VERSION_3, 0))
