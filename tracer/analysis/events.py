"""The worst single events, and who was to blame over all of them, in bounded memory."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable
from typing import Any, Generic, TypeVar

import numpy as np

from tracer.analysis.rows import has, numbers, record

__all__ = ["Tally", "Worst"]

KEEP = 64
TALLY_KEYS = 4096

Key = TypeVar("Key", bound=Hashable)


class Worst:
    """The ``keep`` largest events of a table by ``size``, and how many there were.

    Rows with equal ``same`` columns tell of one event that goes on: only the latest word counts.
    """

    def __init__(self, size: str, same: tuple[str, ...] = (), keep: int = KEEP) -> None:
        self.size = size
        self.same = same
        self.keep = keep
        self.count = 0
        self._heap: list[tuple[int, int, dict[str, Any]]] = []

    def add(self, rows: np.ndarray) -> None:
        """Add a window's events."""
        again = self._update(rows) if self.same and all(has(rows, name) for name in self.same) else set()
        sizes = numbers(rows, self.size)
        for place in np.argsort(sizes, kind="stable")[-self.keep :].tolist():
            size = int(sizes[place])
            if place not in again and (len(self._heap) < self.keep or size > self._heap[0][0]):
                # The negative order breaks ties in favour of the first one seen, and dicts are never compared.
                entry = (size, -(self.count + place), record(rows[place]))
                (heapq.heappush if len(self._heap) < self.keep else heapq.heapreplace)(self._heap, entry)
        self.count += rows.shape[0] - len(again)

    def _update(self, rows: np.ndarray) -> set[int]:
        """Replace kept events that ``rows`` tell more of; return which rows those were."""
        known = {self._identity(event): place for place, (_, _, event) in enumerate(self._heap)}
        again = set()
        for place, row in enumerate(rows):
            event = record(row)
            kept = known.get(self._identity(event))
            if kept is not None:
                size, order, _ = self._heap[kept]
                if int(event[self.size]) >= size:
                    self._heap[kept] = (int(event[self.size]), order, event)
                again.add(place)
        heapq.heapify(self._heap)
        return again

    def _identity(self, event: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(event.get(name) for name in self.same)

    @property
    def events(self) -> list[dict[str, Any]]:
        """The kept events, largest first."""
        return [event for _, _, event in sorted(self._heap, key=lambda entry: entry[:2], reverse=True)]


class Tally(Generic[Key]):
    """Sums per key. When there are too many keys the smallest move into ``other``, so that totals stay true."""

    def __init__(self, keep: int = TALLY_KEYS) -> None:
        self.keep = keep
        self.other = 0
        self._sums: dict[Key, int] = {}

    def add(self, key: Key, amount: int) -> None:
        """Add ``amount`` to ``key``."""
        self._sums[key] = self._sums.get(key, 0) + amount
        if len(self._sums) > 2 * self.keep:
            self._shrink()

    @property
    def total(self) -> int:
        """The sum over everything ever added."""
        return sum(self._sums.values()) + self.other

    def items(self) -> Iterable[tuple[Key, int]]:
        """Return the kept keys and their sums, largest first."""
        return sorted(self._sums.items(), key=lambda item: -item[1])

    def _shrink(self) -> None:
        ranked = list(self.items())
        self.other += sum(amount for _, amount in ranked[self.keep :])
        self._sums = dict(ranked[: self.keep])
