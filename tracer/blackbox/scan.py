"""Find what is in a box: its segments in their order, the records in each. Standard library only.

Nothing is trusted: a box may be damaged, cut off, or made by somebody to harm its reader. One segment is in memory at a
time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import merge
from itertools import chain, dropwhile

from tracer.blackbox.layout import BLOCK, Geometry, RecordHead, SegmentHead

__all__ = ["Found", "Scan", "Segment"]


@dataclass(frozen=True)
class Found:
    """A record whose checksum is right, and whose segment it is in."""

    head: RecordHead
    frame: bytes
    segment: SegmentHead


@dataclass
class Segment:
    """One segment's turn. ``torn``: records at its end that were not written to the end; ``damaged``: others.

    ``last_ns``: when its last record was handed over; None before it was looked at.
    """

    head: SegmentHead
    torn: int = 0
    damaged: int = 0
    last_ns: int | None = None


@dataclass
class Scan:
    """A box that can be read: its segments that have had a turn, oldest first.

    ``torn_heads``: segments whose head can't be read. ``cut``: bytes that are missing at the end of the file.
    """

    geometry: Geometry
    segments: list[Segment] = field(default_factory=list)
    torn_heads: int = 0
    cut: int = 0

    @classmethod
    def of(cls, fd: int) -> Scan | None:
        """Look at every segment's head; None when there is none. Raises OSError."""
        size = os.fstat(fd).st_size
        found = _first_head(fd, size)
        if found is None:
            return None
        geometry = found.geometry
        scan = cls(geometry, cut=max(0, geometry.size_bytes - size))
        for number in range(geometry.segments):
            block = os.pread(fd, BLOCK, number * geometry.segment_bytes)
            head = SegmentHead.unpack(block)
            if head is None or head.geometry != geometry or head.number != number:
                scan.torn_heads += any(block)
            elif head.serial:
                scan.segments.append(Segment(head))
        scan.segments.sort(key=lambda segment: segment.head.serial)
        return scan

    def in_order(self, fd: int, since_ns: int = 0) -> Iterator[Found]:
        """Yield the records of all segments in the order in which they were handed over. Raises OSError.

        Segments whose records are known to be older than ``since_ns`` are left out, and what the second hand has from
        before the first one's oldest segment: what happened next has been written over.
        """
        begins_ns = self.whole_since_ns(fd, hands=1)
        hands: list[list[Segment]] = [[], []]
        for segment in self.segments:
            if segment.last_ns is None or segment.last_ns >= since_ns:
                hands[segment.head.serial % 2].append(segment)
        chains = (chain.from_iterable(self.records(fd, segment) for segment in hand) for hand in hands)
        found = merge(*chains, key=lambda found: (found.head.monotonic_ns, found.head.sequence))
        return dropwhile(lambda each: each.head.monotonic_ns < begins_ns, found)

    def whole_since_ns(self, fd: int, hands: int = 2) -> int:
        """Return since when nothing of the first ``hands`` has been written over; 0 for ever. Raises OSError."""
        return max(self._begins_ns(fd, hand) for hand in range(hands))

    def _begins_ns(self, fd: int, hand: int) -> int:
        own = [segment.head for segment in self.segments if segment.head.serial % 2 == hand]
        # A second hand that has written nothing has left no gap either.
        hands = 1 + any(segment.head.serial % 2 for segment in self.segments)
        if not own or len(own) + self.torn_heads < len(self.geometry.places(hand, hands)):
            return 0
        first = next(self.records(fd, Segment(own[0])), None)
        return first.head.monotonic_ns if first else 0

    def records(self, fd: int, segment: Segment) -> Iterator[Found]:
        """Yield the segment's records in their order, and count what can't be read. Raises OSError."""
        start = segment.head.number * self.geometry.segment_bytes
        data = memoryview(os.pread(fd, self.geometry.segment_bytes, start))
        segment.torn = segment.damaged = 0
        offset, last = BLOCK, -1
        # Checksums of what is no record, in bytes: made-up heads must not cost more than the segment itself.
        patience = len(data)
        while offset < len(data) and patience >= 0:
            head = RecordHead.unpack(data[offset : offset + BLOCK], segment.head.serial)
            frame = RecordHead.frame_of(data[offset:], head) if head else None
            if head is None or frame is None or head.sequence < last:
                # Counted as torn for as long as nothing good follows.
                segment.torn += head is not None
                patience -= head.length if head else 0
                offset += BLOCK
                continue
            segment.damaged, segment.torn = segment.damaged + segment.torn, 0
            last = head.sequence
            segment.last_ns = max(segment.last_ns or 0, head.monotonic_ns)
            offset += head.blocks * BLOCK
            yield Found(head, frame, segment.head)


def _first_head(fd: int, size: int) -> SegmentHead | None:
    """Return the first head that can be read, wherever: the first segment's may be damaged."""
    for offset in _steps(size):
        head = SegmentHead.unpack(os.pread(fd, BLOCK, offset))
        if head and head.number * head.geometry.segment_bytes == offset:
            return head
    return None


def _steps(size: int) -> Iterator[int]:
    """Offsets at which a segment may begin. All of a small box, those of the usual divisions of a larger one."""
    yield 0
    for segments in (4, 16):
        segment = size // segments // BLOCK * BLOCK
        if segment:
            yield from range(segment, size - BLOCK + 1, segment)
