"""From the recorder to its writer: bounded, never blocking, asking the kernel for no memory. Standard library only.

The bytes go through memory that both share, where they are through a pipe: the end of whoever held the other end is
seen, and the system call orders what was written before it, on every architecture.
"""

from __future__ import annotations

import mmap
import os
import select
import struct
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tracer.blackbox.layout import Note

__all__ = ["HANDS", "Message", "Receiver", "Sender", "State"]

#: Who may empty it: the first at once, the second what the first has left for ``_HELP_SECONDS``. It is on other CPUs:
#: a task that was woken onto a CPU that is stuck stays there.
HANDS = 2
_HELP_SECONDS = 0.3
CAPACITY = 8 << 20
#: Kept free for alerts when the disk is slow.
RESERVE = 1 << 20
_PLACE = struct.Struct("<QQIBxxxQQQ")  # counter, length and slot, dropped, kind, sequence, monotonic, unix
_STATE_BYTES = 4096
_PIPE_BYTES = (1 << 16) // _PLACE.size * _PLACE.size  # as much as a pipe holds
#: Native: each number is then stored and loaded at once, never half of it.
_STATE = struct.Struct("@QQQQ")
#: One byte for each message that is under way: whether it has been dealt with.
_DONE, _SLOTS = 2048, 2048


@dataclass(frozen=True)
class Message:
    """One frame on its way; ``frame`` is valid until the next one is asked for."""

    frame: memoryview
    note: Note


@dataclass(frozen=True)
class State:
    """What a hand says of itself, or both together.

    ``serial``: of its segment. ``durable``: records that it made durable. ``lost``: those that the disk refused.
    ``error``: errno of the last refusal, 0 when there was none.
    """

    serial: int = 0
    durable: int = 0
    lost: int = 0
    error: int = 0

    def plus(self, other: State) -> State:
        """Return both together."""
        durable, lost = self.durable + other.durable, self.lost + other.lost
        return State(self.serial + other.serial, durable, lost, self.error or other.error)


class Sender:
    """The recorder's end. Raises OSError when there is no memory or descriptor for it."""

    def __init__(self, header: bytes) -> None:
        self.memory_fd = os.memfd_create("foreshock-blackbox", os.MFD_CLOEXEC)
        os.ftruncate(self.memory_fd, _STATE_BYTES + CAPACITY + len(header))
        self._memory = mmap.mmap(self.memory_fd, 0)
        self._memory[_STATE_BYTES + CAPACITY :] = header
        self.wake_fd, self._wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._tail = self._freed = self._number = 0
        self._under_way: deque[tuple[int, int]] = deque()

    def send(self, frame: bytes, note: Note, *, urgent: bool) -> bool:
        """Hand ``frame`` over; return False when there is no room. Raises BrokenPipeError when nobody takes it."""
        self._free()
        start = self._room(len(frame), CAPACITY if urgent else CAPACITY - RESERVE)
        if start is None:
            return False
        place, slot = _STATE_BYTES + start % CAPACITY, self._number % _SLOTS
        self._memory[place : place + len(frame)] = frame
        self._memory[_DONE + slot] = 0
        words = (note.dropped & 0xFFFFFFFF, note.kind, note.sequence, note.monotonic_ns, note.unix_ns)
        try:
            os.write(self._wake, _PLACE.pack(start, len(frame) | slot << 32, *words))
        except BlockingIOError:
            return False
        self._tail, self._number = start + len(frame), self._number + 1
        self._under_way.append((slot, self._tail))
        return True

    def state(self) -> State:
        """Return what the writer's hands said last."""
        first, second = (State(*_STATE.unpack_from(self._memory, 64 * hand)) for hand in range(HANDS))
        return first.plus(second)

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

    def _free(self) -> None:
        """Take back the room of what has been dealt with, in the order in which it was given."""
        while self._under_way and self._memory[_DONE + self._under_way[0][0]]:
            self._freed = self._under_way.popleft()[1]
        if not self._under_way:
            # From the start again, so that a queue that never fills touches a few pages only.
            self._tail = self._freed = -(-self._tail // CAPACITY) * CAPACITY

    def _room(self, size: int, capacity: int) -> int | None:
        """Return the counter at which ``size`` bytes lie in one piece."""
        start = self._tail
        if start % CAPACITY + size > CAPACITY:
            start = -(-start // CAPACITY) * CAPACITY
        fits = size and start + size - self._freed <= capacity and len(self._under_way) < _SLOTS
        return start if fits else None


class Receiver:
    """The end of one of the writer's hands: ``batches`` of messages, until the recorder ends."""

    def __init__(self, memory_fd: int, wake_fd: int, hand: int = 0) -> None:
        self._memory = mmap.mmap(memory_fd, 0)
        self._view = memoryview(self._memory)
        self._wake = wake_fd
        self._hand = hand

    @property
    def header(self) -> bytes:
        """The recording's header."""
        return bytes(self._view[_STATE_BYTES + CAPACITY :])

    def batches(self, is_alone: Callable[[], bool] = lambda: False) -> Iterator[list[Message]]:
        """Yield what is there, waiting for it; what was yielded is released when the next is asked for.

        Once ``is_alone`` only what is there already is still yielded.
        """
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        while True:
            ready = poll.poll(1000)
            alone = is_alone()
            if self._hand and ready and not alone and not ready[0][1] & select.POLLHUP:
                time.sleep(_HELP_SECONDS)
            try:
                data = os.read(self._wake, _PIPE_BYTES) if ready else None
            except BlockingIOError:
                data = None  # the other hand has it
            if alone:
                # At once, so that whoever sends from now on knows that nobody listens.
                os.close(self._wake)
            places = list(_PLACE.iter_unpack(data or b""))
            if places:
                yield [self._message(*place) for place in places]
            for _, size, *_ in places:
                self._memory[_DONE + (size >> 32)] = 1
            if alone or data == b"":
                return

    def say(self, state: State) -> None:
        """Tell the recorder how it goes."""
        _STATE.pack_into(self._memory, 64 * self._hand, state.serial, state.durable, state.lost, state.error)

    def _message(self, start: int, size: int, dropped: int, kind: int, sequence: int, mono: int, unix: int) -> Message:
        place, length = _STATE_BYTES + start % CAPACITY, size & 0xFFFFFFFF
        return Message(self._view[place : place + length], Note(kind, sequence, dropped, mono, unix))
