"""From the recorder to its writer: bounded, never blocking, asking the kernel for no memory. Standard library only.

The bytes go through memory that both share, where they are through a pipe: the end of whoever held the other end is
seen, and the system call orders what was written before it, on every architecture.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Message", "Receiver", "Sender", "State"]

CAPACITY = 8 << 20
#: Kept free for alerts when the disk is slow.
RESERVE = 1 << 20
_PLACE = struct.Struct("<QIIBxxxxxxxQQ")  # counter, length, dropped, kind, monotonic, unix
_STATE_BYTES = 4096
#: Native: each number is then stored and loaded at once, never half of it.
_STATE = struct.Struct("@QQQQQ")


@dataclass(frozen=True)
class Message:
    """One frame on its way; ``frame`` is valid until the next one is asked for. For the rest see RecordHead."""

    frame: memoryview
    kind: int
    dropped: int
    monotonic_ns: int
    unix_ns: int


@dataclass(frozen=True)
class State:
    """What the writer says of itself.

    ``released``: bytes taken from the queue. ``serial``: of the segment. ``durable``: records made durable by it.
    ``lost``: those that the disk refused. ``error``: errno of the last refusal, 0 when there was none.
    """

    released: int = 0
    serial: int = 0
    durable: int = 0
    lost: int = 0
    error: int = 0


class Sender:
    """The recorder's end. Raises OSError when there is no memory or descriptor for it."""

    def __init__(self) -> None:
        self.memory_fd = os.memfd_create("foreshock-blackbox", os.MFD_CLOEXEC)
        os.ftruncate(self.memory_fd, _STATE_BYTES + CAPACITY)
        self._memory = mmap.mmap(self.memory_fd, _STATE_BYTES + CAPACITY)
        self.wake_fd, self._wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._tail = self._freed = 0

    def send(self, frame: bytes, kind: int, dropped: int, monotonic_ns: int, unix_ns: int, *, urgent: bool) -> bool:
        """Hand ``frame`` over; return False when there is no room. Raises BrokenPipeError when nobody takes it."""
        start = self._room(len(frame), CAPACITY if urgent else CAPACITY - RESERVE)
        if start is None:
            return False
        place = _STATE_BYTES + start % CAPACITY
        self._memory[place : place + len(frame)] = frame
        try:
            os.write(self._wake, _PLACE.pack(start, len(frame), dropped & 0xFFFFFFFF, kind, monotonic_ns, unix_ns))
        except BlockingIOError:
            return False
        self._tail = start + len(frame)
        return True

    def state(self) -> State:
        """Return what the writer said last."""
        return State(*_STATE.unpack_from(self._memory))

    def finish(self) -> None:
        """Let the writer finish what it has and end. Only ``state`` and ``close`` may follow."""
        if self._wake >= 0:
            os.close(self._wake)
            self._wake = -1

    def close(self) -> None:
        """Give everything back; the writer keeps what it needs."""
        self.finish()
        self._memory.close()
        os.close(self.memory_fd)
        if self.wake_fd >= 0:
            self.handed_over()

    def handed_over(self) -> None:
        """Close the writer's end here, else its death would go unnoticed."""
        os.close(self.wake_fd)
        self.wake_fd = -1

    def _room(self, size: int, capacity: int) -> int | None:
        """Return the counter at which ``size`` bytes lie in one piece."""
        released = self.state().released
        if released >= self._tail:
            # Empty: from the start again, so that a queue that never fills touches a few pages only.
            self._tail = self._freed = -(-self._tail // CAPACITY) * CAPACITY
        else:
            self._freed = max(self._freed, released)
        start = self._tail
        if start % CAPACITY + size > CAPACITY:
            start = -(-start // CAPACITY) * CAPACITY
        return start if size and start + size - self._freed <= capacity else None


class Receiver:
    """The writer's end: ``batches`` of messages until the recorder is gone."""

    def __init__(self, memory_fd: int, wake_fd: int) -> None:
        self._memory = mmap.mmap(memory_fd, _STATE_BYTES + CAPACITY)
        self._view = memoryview(self._memory)
        self._wake = wake_fd
        self._state = State()
        os.set_blocking(wake_fd, True)

    def batches(self) -> Iterator[list[Message]]:
        """Yield what is there, waiting for it; what was yielded is released when the next is asked for."""
        while data := os.read(self._wake, 64 * _PLACE.size):
            places = list(_PLACE.iter_unpack(data))
            yield [
                Message(self._piece(start, length), kind, dropped, monotonic, unix)
                for start, length, dropped, kind, monotonic, unix in places
            ]
            start, length, *_ = places[-1]
            self.say(released=start + length)

    def say(self, **changes: int) -> None:
        """Tell the recorder about ``State`` fields that changed."""
        self._state = State(**{**self._state.__dict__, **changes})
        state = self._state
        _STATE.pack_into(self._memory, 0, state.released, state.serial, state.durable, state.lost, state.error)

    def _piece(self, start: int, length: int) -> memoryview:
        place = _STATE_BYTES + start % CAPACITY
        return self._view[place : place + length]
