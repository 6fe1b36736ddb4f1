"""What the kernel says of programs as they come and go: forks, execs, and files that become executable memory.

Records of dummy perf events, one per CPU, as ``perf record`` has them: a tracer that looks a second later finds a short
process gone. Sources: perf_event_open(2), include/uapi/linux/perf_event.h.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterable
from typing import NamedTuple

from tracer.kernel.loader import syscalls

__all__ = ["ENDED", "EXEC", "FORK", "MAPPED", "Record", "Sideband", "open_events"]

MAPPED, EXEC, FORK, ENDED = range(4)

_LOST, _COMM, _EXIT, _FORK, _MMAP2 = 2, 3, 4, 7, 10
_COMM_EXEC = 1 << 13  # in misc
_HEADER = struct.Struct("<IHHII")  # type, misc, size; pid and what follows it: tid, of a fork the parent
_LAST = struct.Struct("<Q")  # of every record: its time
_TID = struct.Struct("<I")  # of a fork, an exit: behind the header
_LOST_COUNT = struct.Struct("<Q")  # behind an id
_HEAD_AT = 1024  # data_head, data_tail: u64 each
#: Of all CPUs together, and of one: programs that do nothing, one after the other, make 700 KB a second.
_MOST_BYTES, _MOST_BYTES_OF_ONE, _LEAST_BYTES_OF_ONE = 16 << 20, 1 << 20, max(32 << 10, mmap.PAGESIZE)
#: Taken in at once, about 2 µs per record of 100 bytes.
_MOST_READ = 4 << 20
#: A path has 4096 bytes at most. The kernel tells that there was no room with the next record that found some: a ring
#: with room for less may have lost something already.
_LARGEST_RECORD = 4096 + 256


class Record(NamedTuple):
    """Times are CLOCK_MONOTONIC ns; ``parent`` is a forked process's. Of a mapping that is the record's ``misc``.

    ``body`` is what the kernel wrote of a mapping, from its address on.
    """

    time_ns: int
    kind: int
    pid: int
    parent: int
    body: bytes


def open_events(cpus: Iterable[int]) -> list[int]:
    """Return an event for each CPU, which are the caller's. Raises OSError where that is not allowed, or not there."""
    events: list[int] = []
    try:
        events.extend(syscalls.open_sideband(cpu) for cpu in cpus)
    except OSError:
        for event in events:
            os.close(event)
        raise
    return events


class Sideband:
    """The rings of ``events``. They are mapped at the first read: a forked process would not have them.

    ``trouble`` says why there are none: that of who wanted events, or others of this user have used up the memory that
    the kernel lends (perf_event_mlock_kb). ``lost`` counts records so far.
    """

    def __init__(self, events: list[int], trouble: str = "") -> None:
        self.trouble = trouble
        self.lost = 0
        self._events = events
        self._rings: list[mmap.mmap] = []
        self._size = _LEAST_BYTES_OF_ONE
        while self._size < _MOST_BYTES_OF_ONE and 2 * self._size * len(events) <= _MOST_BYTES:
            self._size *= 2

    def read(self) -> tuple[list[Record], bool]:
        """Return what is new, in the order in which it happened, and whether that is all."""
        if not self._rings and not self.trouble:
            self._map()
        records: list[Record] = []
        whole, left = not self.trouble, _MOST_READ
        for ring in self._rings:
            data = self._taken(ring)
            left -= len(data)
            found, lost = _records(data)
            if left < 0:
                found, lost = [], lost + len(found)
            records += found
            self.lost += lost
            whole = whole and not lost and len(data) + _LARGEST_RECORD <= self._size
        records.sort()
        return records, whole

    def close(self) -> None:
        """Let go of rings and events."""
        for ring in self._rings:
            ring.close()
        for event in self._events:
            os.close(event)
        self._rings, self._events = [], []

    def _map(self) -> None:
        try:
            for event in self._events:
                self._rings.append(mmap.mmap(event, mmap.PAGESIZE + self._size))
        except OSError as error:
            self.trouble = error.strerror or str(error)
            for ring in self._rings:
                ring.close()
            self._rings = []

    def _taken(self, ring: mmap.mmap) -> bytes:
        head, tail = struct.unpack_from("<QQ", ring, _HEAD_AT)
        if head == tail:
            return b""
        start, end = tail % self._size, head % self._size
        base = mmap.PAGESIZE
        data = ring[base + start : base + end] if start < end else ring[base + start :] + ring[base : base + end]
        _LAST.pack_into(ring, _HEAD_AT + 8, head)
        return data


def _records(data: bytes) -> tuple[list[Record], int]:
    """Return what is in a ring's data, and how many records the kernel had no room for; one that is cut off is lost."""
    records: list[Record] = []
    lost, at, end = 0, 0, len(data)
    while at + _HEADER.size <= end:
        kind, misc, size, pid, other = _HEADER.unpack_from(data, at)
        if size < _HEADER.size or at + size > end:
            return records, lost + 1
        (time_ns,) = _LAST.unpack_from(data, at + size - _LAST.size)
        if kind == _MMAP2:
            records.append(Record(time_ns, MAPPED, pid, misc, data[at + _HEADER.size : at + size - _LAST.size]))
        elif kind == _COMM and misc & _COMM_EXEC:
            records.append(Record(time_ns, EXEC, pid, 0, b""))
        elif kind == _FORK and pid != other:
            records.append(Record(time_ns, FORK, pid, other, b""))
        elif kind == _EXIT and pid == _TID.unpack_from(data, at + _HEADER.size)[0]:
            records.append(Record(time_ns, ENDED, pid, 0, b""))
        elif kind == _LOST:
            lost += _LOST_COUNT.unpack_from(data, at + 16)[0]
        at += size
    return records, lost
