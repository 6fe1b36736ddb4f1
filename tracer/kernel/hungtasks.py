"""What /proc says of tasks that sleep uninterruptibly, and of the kernel's detector of hung tasks.

Sources: proc(5); kernel/hung_task.c.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tracer.kernel.kept import Kept

__all__ = [
    "STACK_BYTES",
    "Detector",
    "TaskStacks",
    "TaskStatus",
    "blocked_tasks",
    "innermost",
    "kernel_frames",
    "kernel_stack",
    "stat_fields",
    "task_status",
    "threads",
]

#: At most so much is read of a file.
STACK_BYTES = 8192
_STACKS = 8
_FRAME = re.compile(rb"^\[<[^>]*>\] ([^+\s]+)(?:\+\S*)?(?: (\[[^\]]+\]))?", re.M)
_DETECTOR = b"khungtaskd"
_SWITCHES = re.compile(rb"^voluntary_ctxt_switches:\t(\d+)$", re.M)


@dataclass(frozen=True)
class TaskStatus:
    """A thread's name, state letter, process and switches it made itself."""

    comm: bytes
    state: bytes
    tgid: int
    switches: int


def task_status(tid: int) -> TaskStatus | None:
    """Return what the kernel says of a thread; None when it is gone."""
    fields = dict(line.partition(b":\t")[::2] for line in _read(f"/proc/{tid}/status").split(b"\n"))
    try:
        return TaskStatus(
            fields[b"Name"], fields[b"State"][:1], int(fields[b"Tgid"]), int(fields[b"voluntary_ctxt_switches"])
        )
    except (KeyError, ValueError):
        return None


def kernel_stack(tid: int) -> bytes:
    """Return where a thread sleeps, as the kernel writes it; ``TaskStacks`` makes functions of it.

    Only the innermost function (wchan) where the kernel shows no stacks; b"" where it shows nothing. May block for as
    long as the thread is in execve(). Needs CAP_SYS_ADMIN, CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH.
    """
    return _read(f"/proc/{tid}/stack") or _read(f"/proc/{tid}/wchan")


def kernel_frames(stack: bytes) -> list[tuple[bytes, bytes]]:
    """Return the functions in what ``kernel_stack`` returns, from the innermost, each with its module or b""."""
    frames = [(name, module) for name, module in _FRAME.findall(stack)]
    return frames or [(stack, b"")] * (stack not in (b"", b"0"))


def innermost(tid: int) -> bytes:
    """Return the function in which a thread sleeps, that of the scheduler's callers; b"" when nobody says."""
    name = _read(f"/proc/{tid}/wchan")
    return b"" if name == b"0" else name


def _functions(stack: bytes) -> bytes:
    """Return functions from the innermost, ``;`` between them, their modules in brackets."""
    return b";".join(name + (b" " + module if module else b"") for name, module in kernel_frames(stack))


def blocked_tasks(seconds: float) -> Iterator[list[int]]:
    """Look through all threads, for ``seconds`` at a time; yield those in state D that each turn found."""
    until = time.monotonic() + seconds
    found: list[int] = []
    for tid in threads():
        if stat_fields(tid)[:1] == [b"D"]:
            found.append(tid)
        if time.monotonic() > until:
            yield found
            found, until = [], time.monotonic() + seconds
    yield found


def stat_fields(tid: int) -> list[bytes]:
    """Return the fields of /proc/TID/stat from the third, the state, on; none when the thread is gone."""
    # "4411 (comm) D 1 …": a name may have anything in it but ends before the last parenthesis.
    return _read(f"/proc/{tid}/stat", 512).rpartition(b") ")[2].split()


def threads() -> Iterator[int]:
    """Yield the id of every thread of the node."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                yield from (int(tid) for tid in os.listdir(f"/proc/{name}/task"))
            except OSError:
                continue  # ended meanwhile


class TaskStacks:
    """Kernel stacks of threads, each taken once since a moment, a few per interval: each costs about 100 µs.

    ``take`` returns what ``kernel_stack`` does, or None when there is no answer; ``missing`` counts the interval's.
    """

    def __init__(self, take: Callable[[int], bytes | None]) -> None:
        self._known: dict[tuple[int, int], bytes] = {}
        self._left = 0
        self.missing = 0
        self._take = take

    def begin(self, wanted: set[tuple[int, int]]) -> None:
        """Begin an interval: forget all but the ``wanted`` (thread, since when)."""
        self._known = {key: stack for key, stack in self._known.items() if key in wanted}
        self._left, self.missing = _STACKS, 0

    def of(self, pid: int, since_ns: int) -> bytes:
        """Return the stack that a thread has had since then; b"" until there is time for it."""
        stack = self._known.get((pid, since_ns))
        if stack is None and self._left:
            self._left -= 1
            taken = self._take(pid)
            if taken is None:
                self.missing += 1
            else:
                stack = self._known[pid, since_ns] = _functions(taken)
        return stack or b""


class Detector:
    """khungtaskd: when it last looked through all tasks, as far as seen, and how many it has found hung."""

    def __init__(self) -> None:
        self.scanned_ns = 0
        pid = _find_detector()
        self._status = Kept(f"/proc/{pid}/status") if pid else None
        self._detected = Kept("/proc/sys/kernel/hung_task_detect_count")
        self._switches = -1

    def read(self, now_ns: int) -> tuple[int, int]:
        """Return ``(scanned_ns, detected)``: a scan between the last read and this one counts as now; 0 is unknown."""
        switches = _SWITCHES.search((self._status and self._status.read()) or b"")
        if switches:
            if self._switches not in (-1, int(switches[1])):
                self.scanned_ns = now_ns
            self._switches = int(switches[1])
        return self.scanned_ns, self._detected.number() or 0

    def close(self) -> None:
        self._detected.close()
        if self._status:
            self._status.close()


def _find_detector() -> int:
    # Kernel threads of the boot have low numbers: the first few hundred are all there is to read.
    for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):
        if _read(f"/proc/{pid}/comm").rstrip() == _DETECTOR:
            return pid
        if pid > 1 << 15:
            break
    return 0


def _read(path: str, limit: int = STACK_BYTES) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(fd, limit)
    except OSError:
        return b""
    finally:
        os.close(fd)
