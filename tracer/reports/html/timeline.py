"""The report's time axis: equal bins, as many as a screen has room for, whatever a recording's length."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

__all__ = ["MOST_BINS", "Layer", "Timeline"]

MOST_BINS = 2048


class Layer(Protocol):
    """Numbers by bin."""

    def halve(self) -> None:
        """Add up pairs of bins: bin ``n`` becomes ``n // 2``."""


class Timeline:
    """Gives moments their bins. When there are too many, bins become twice as long, and so in all ``layers``.

    Attributes:
        start_ns: where bin 0 begins. bin_ns: length of a bin. bins: how many there are.
        halvings: how often they became longer.
    """

    def __init__(self, interval_ns: int, most: int = MOST_BINS) -> None:
        self.start_ns = 0
        self.bin_ns = interval_ns
        self.bins = 0
        self.halvings = 0
        self.layers: list[Layer] = []
        self._most = most

    def bin(self, start_ns: int, end_ns: int) -> int:
        """Return the bin of an interval: the one with its middle."""
        if not self.bins:
            self.start_ns = start_ns
            self.bin_ns = self.bin_ns or max(1, end_ns - start_ns)
        while (found := self._found(start_ns, end_ns)) >= self._most:
            self.halve()
        self.bins = max(self.bins, found + 1)
        return found

    def pieces(self, longest_ns: int, end_ns: int, most: int) -> Iterator[tuple[int, float, float]]:
        """Yield (bin, start, end) of at most ``most`` pieces of the time of ``longest_ns`` until ``end_ns``, in ns.

        The first and the last reach farther than the axis. Of pieces of several bins it is the one in the middle.
        """
        first, last = (min(self._found(at, at), self.bins - 1) for at in (end_ns - longest_ns, end_ns))
        step = -(-(last - first + 1) // max(1, most))
        for bin in range(first, last + 1, step):
            start_ns = self.start_ns + bin * self.bin_ns if bin > first else float("-inf")
            end = min(bin + step, last + 1)
            yield (bin + end) // 2, start_ns, self.start_ns + end * self.bin_ns if end <= last else float("inf")

    def halve(self) -> None:
        """Make bins twice as long."""
        self.bin_ns *= 2
        self.bins = (self.bins + 1) // 2
        self.halvings += 1
        for layer in self.layers:
            layer.halve()

    def _found(self, start_ns: int, end_ns: int) -> int:
        return max(0, ((start_ns + end_ns) // 2 - self.start_ns) // self.bin_ns)
