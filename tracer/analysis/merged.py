"""One table merged over time: what is known per key, in memory that doesn't grow with the length of a recording."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tracer.analysis.rows import has, key_bytes, numbers, plain
from tracer.analysis.statistics import Statistics
from tracer.histogram import SLOTS

__all__ = ["Group", "Merged", "Shape", "MAX_KEYS"]

# 256 CPUs with 10 softirq vectors and 30 interrupt lines each fit; at 2.4 kB a histogram the worst table holds 40 MB.
MAX_KEYS = 16384


@dataclass(frozen=True)
class Shape:
    """How a table merges: rows of equal ``keys`` add up ``sums`` and histograms and keep the last ``gauges``."""

    keys: tuple[str, ...]
    sums: tuple[str, ...] = ()
    gauges: tuple[str, ...] = ()


@dataclass
class Group:
    """All rows of one key, or of several keys together. Names in keys are as stored: bytes."""

    slots: np.ndarray
    sum_ns: int
    sums: dict[str, int]
    gauges: dict[str, Any] = field(default_factory=dict)

    @property
    def statistics(self) -> Statistics:
        """The histogram's numbers; nothing when the table has none."""
        return Statistics.from_slots(self.slots, self.sum_ns)


class Merged:
    """Rows of one table, added up per key. What exceeds ``most`` keys is counted in ``unkept_rows``."""

    def __init__(self, shape: Shape, most: int = MAX_KEYS) -> None:
        self.shape = shape
        self._most = most
        self.ns = 0
        self.windows = 0
        self.unkept_rows = 0
        self.columns: frozenset[str] = frozenset()
        self._index: dict[tuple[Any, ...], int] = {}
        self._slots = np.zeros((0, SLOTS), dtype=np.uint64)
        self._sum_ns = np.zeros(0, dtype=np.uint64)
        self._sums: dict[str, np.ndarray] = {}
        self._gauges: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._last: tuple[bytes | None, np.ndarray, np.ndarray, bool] | None = None

    @property
    def seconds(self) -> float:
        """How long this table was recorded."""
        return self.ns / 1e9

    def add(self, rows: np.ndarray, length_ns: int) -> None:
        """Add one window's rows, which cover ``length_ns``."""
        self.ns += length_ns
        self.windows += 1
        self.columns |= set(rows.dtype.names or ())
        if rows.shape[0] == 0:
            return
        which, places, straight = self._places(rows)
        kept = rows if len(which) == len(rows) else rows[which]
        self.unkept_rows += rows.shape[0] - kept.shape[0]
        if has(rows, "slots"):
            _add_at(self._slots, places, kept["slots"], straight)
            _add_at(self._sum_ns, places, kept["sum"], straight)
        for name in self.shape.sums:
            if has(rows, name):
                column = self._sums.setdefault(name, np.zeros(len(self._slots), dtype=np.uint64))
                _add_at(column, places, np.maximum(numbers(kept, name), 0), straight)
        self._keep_gauges(kept)

    def groups(self, *names: str, **only: Any) -> dict[tuple[Any, ...], Group]:
        """Return the merged rows per value of the key columns ``names``, of rows whose keys equal ``only``."""
        positions = [self.shape.keys.index(name) for name in names]
        wanted = {self.shape.keys.index(name): value for name, value in only.items()}
        places: dict[tuple[Any, ...], list[int]] = {}
        keys: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        for key, place in self._index.items():
            if all(key[position] == value for position, value in wanted.items()):
                group = tuple(key[position] for position in positions)
                places.setdefault(group, []).append(place)
                keys[group] = key
        return {group: self._group(chosen, keys[group]) for group, chosen in places.items()}

    def total(self, **only: Any) -> Group:
        """Return everything (of the rows whose keys equal ``only``) as one group."""
        return self.groups(**only).get(
            (), Group(np.zeros(SLOTS, dtype=np.uint64), 0, dict.fromkeys(self.shape.sums, 0))
        )

    def _group(self, places: list[int], key: tuple[Any, ...]) -> Group:
        sums = {name: int(self._sums[name][places].sum()) if name in self._sums else 0 for name in self.shape.sums}
        slots = self._slots[places].sum(axis=0, dtype=np.uint64)
        return Group(slots, int(self._sum_ns[places].sum()), sums, dict(self._gauges.get(key, {})))

    def _places(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        """Return which rows are kept, where they are added, and whether that is the first places in their order.

        The keys of a table rarely change from one interval to the next, so that the answer of the last time is
        tried first: a week of seconds is 600,000 windows of perhaps thousands of rows.
        """
        identity = key_bytes(rows, self.shape.keys)
        if self._last is not None and identity is not None and self._last[0] == identity:
            return self._last[1:]
        columns = [_key_column(rows, name).tolist() for name in self.shape.keys]
        found = [self._place(key) for key in zip(*columns, strict=True)] if columns else [self._place(())] * len(rows)
        which = np.array([row for row, place in enumerate(found) if place >= 0], dtype=np.intp)
        places = np.array([place for place in found if place >= 0], dtype=np.intp)
        self._grow()
        self._last = (identity, which, places, np.array_equal(places, np.arange(len(places))))
        return self._last[1:]

    def _place(self, key: tuple[Any, ...]) -> int:
        if key not in self._index and len(self._index) >= self._most:
            return -1
        return self._index.setdefault(key, len(self._index))

    def _grow(self) -> None:
        size = len(self._slots)
        if len(self._index) <= size:
            return
        more = max(len(self._index), 2 * size) - size
        self._slots = np.concatenate([self._slots, np.zeros((more, SLOTS), dtype=np.uint64)])
        self._sum_ns = np.concatenate([self._sum_ns, np.zeros(more, dtype=np.uint64)])
        self._sums = {n: np.concatenate([c, np.zeros(more, dtype=np.uint64)]) for n, c in self._sums.items()}

    def _keep_gauges(self, rows: np.ndarray) -> None:
        names = [name for name in self.shape.gauges if has(rows, name)]
        if not names:
            return
        for row in rows:
            key = tuple(row[name].item() if has(rows, name) else 0 for name in self.shape.keys)
            self._gauges[key] = {name: plain(row[name]) for name in names}


def _add_at(target: np.ndarray, places: np.ndarray, values: np.ndarray, straight: bool) -> None:
    if values.dtype.kind != "u":
        values = values.astype(np.uint64)
    if straight:
        # Nearly always, and five times as fast: nothing is copied.
        first = target[: len(places)]
        np.add(first, values, out=first)
    elif len(np.unique(places)) == len(places):
        target[places] += values
    else:
        # A key that appears twice in a window: plain indexing would add one of the two.
        np.add.at(target, places, values)


def _key_column(rows: np.ndarray, name: str) -> np.ndarray:
    return np.asarray(rows[name]) if has(rows, name) else np.zeros(rows.shape[0], dtype=np.int64)
