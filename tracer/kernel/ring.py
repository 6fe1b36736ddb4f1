"""Read single events from a BPF ring buffer.

Source: Documentation/bpf/ringbuf.rst and kernel/bpf/ringbuf.c. One page holds the consumer position (ours to
write), the next the producer position; the data follow, mapped twice in a row so that no record wraps.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator

__all__ = ["Ring"]

_POSITION = struct.Struct("<Q")
_HEADER = struct.Struct("<II")
_BUSY = 1 << 31
_DISCARDED = 1 << 30


class Ring:
    """The consumer's side of one ring buffer; there must be only one consumer.

    ``descriptor`` is readable (poll, epoll) once an event was sent that wakes its reader.
    """

    def __init__(self, descriptor: int, size: int) -> None:
        self.descriptor = descriptor
        self._size = size
        page = mmap.PAGESIZE
        self._consumer = mmap.mmap(descriptor, page, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        self._data = mmap.mmap(descriptor, page + 2 * size, mmap.MAP_SHARED, mmap.PROT_READ, offset=page)

    @property
    def size_bytes(self) -> int:
        """Kernel memory the ring takes."""
        return self._size

    def read(self) -> Iterator[bytes]:
        """Yield the records that are complete, oldest first, and free them.

        Ends when the ring is empty, at a record still being written, or after one whole turn of the ring, so
        that a producer faster than the reader can't hold it here.
        """
        position = _POSITION.unpack_from(self._consumer)[0]
        stop = position + self._size
        while position < min(_POSITION.unpack_from(self._data)[0], stop):
            at = mmap.PAGESIZE + (position & (self._size - 1))
            length, _ = _HEADER.unpack_from(self._data, at)
            if length & _BUSY:
                return
            payload = length & ~_DISCARDED
            record = b"" if length & _DISCARDED else self._data[at + 8 : at + 8 + payload]
            position += (payload + 8 + 7) & ~7
            _POSITION.pack_into(self._consumer, 0, position)
            if record:
                yield record

    def close(self) -> None:
        self._consumer.close()
        self._data.close()
        os.close(self.descriptor)
