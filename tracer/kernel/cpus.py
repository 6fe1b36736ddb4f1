"""CPUs and processes of this node: which there are."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

__all__ = [
    "possible_count",
    "online",
    "OnlineCpus",
    "undisturbed",
    "parse_list",
    "process_exists",
    "in_host_pids",
    "leave_undisturbed",
]

_SYS = Path("/sys/devices/system/cpu")
_INITIAL_PID_NAMESPACE = 0xEFFFFFFC  # PROC_PID_INIT_INO


def parse_list(text: str) -> list[int]:
    """Return the CPUs of a kernel list such as ``"0-3,8"``. Raises ValueError for anything else."""
    cpus: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, dash, last = part.partition("-")
        low, high = int(first), int(last if dash else first)
        if low > high or high >= 1 << 16:
            raise ValueError(f"bad CPU range {part!r}")
        cpus.update(range(low, high + 1))
    return sorted(cpus)


def possible_count() -> int:
    """Return one more than the highest CPU number this kernel can ever have; per-CPU maps have so many rows."""
    return max(parse_list((_SYS / "possible").read_text())) + 1


def online() -> list[int]:
    """Return the CPUs that are online now."""
    return parse_list((_SYS / "online").read_text())


class OnlineCpus:
    """Which CPUs are online, asked often: the file stays open, and its text is read into numbers when it changes."""

    def __init__(self) -> None:
        self._file = os.open(_SYS / "online", os.O_RDONLY | os.O_CLOEXEC)
        self._text = b""
        self._cpus: frozenset[int] = frozenset()

    def read(self) -> frozenset[int]:
        """Return the CPUs that are online now, in a microsecond."""
        text = os.pread(self._file, 65536, 0)
        if text != self._text:
            self._text, self._cpus = text, frozenset(parse_list(text.decode()))
        return self._cpus

    def close(self) -> None:
        os.close(self._file)


def undisturbed() -> set[int]:
    """Return the isolated and nohz_full CPUs: they get no clock event and no thread of ours."""
    cpus: set[int] = set()
    for name in ("isolated", "nohz_full"):
        try:
            cpus.update(parse_list((_SYS / name).read_text().replace("(null)", "")))
        except OSError:
            continue
    return cpus


def leave_undisturbed() -> None:
    """Keep this thread, and those it starts, off the undisturbed CPUs, as far as it may run on others."""
    allowed = os.sched_getaffinity(0)
    others = allowed - undisturbed()
    if others and others != allowed:
        # A cpuset may have changed meanwhile: then we stay where we are.
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, others)


def process_exists(pid: int) -> bool:
    """Return whether ``pid`` is a running process (and not just a thread of one)."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(errors="replace")
    except OSError:
        return False
    return f"\nTgid:\t{pid}\n" in status


def in_host_pids() -> bool:
    """Return whether pids here are those of the kernel's programs: not so in a pid namespace of a container."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino == _INITIAL_PID_NAMESPACE
    except OSError:
        return True
