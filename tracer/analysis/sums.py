"""Sums per key for very many rows, where a dict would take seconds.

Most rows have a key that is known, which is looked up by its hash; the others are merged by sorting, now and then.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tracer.analysis.order import order, words
from tracer.analysis.rows import has

__all__ = ["MOST_KEYS", "Sums", "hashed"]

#: How many rows are looked up at once, so that a few cost little.
_AT_ONCE = 1 << 14
#: With how many more they are merged: as many as are known, within these. 64 bytes a row: 64 MB while that goes on.
_LEAST_NEW, _MOST_NEW = 1 << 15, 1 << 18
MOST_KEYS = 1 << 19
#: As many as sort in three steps: two of half a million are the same once in two thousand times.
_MOST_HASH = 2**48 - 1


class Sums:
    """Adds up the columns ``sums`` of rows with equal ``keys`` (a dtype: integers, names of 8, 16, … bytes).

    Names that are longer are cut.
    Beyond ``most`` keys those of the least first sum go into ``other``, by column, so that totals stay true.
    """

    def __init__(self, keys: np.dtype, sums: tuple[str, ...], most: int = MOST_KEYS) -> None:
        self.other = dict.fromkeys(sums, 0)
        self._keys = keys.names or ()
        self._sums = sums
        self._dtype = np.dtype([*((name, keys[name]) for name in self._keys), *((name, "u8") for name in sums)])
        self._most = most
        # Rows that were only added, those of keys that were looked up in vain, and one of each key.
        self._pending: list[np.ndarray] = []
        self._waiting = 0
        self._new: list[np.ndarray] = []
        self._unknown = 0
        self._merged = np.zeros(0, self._dtype)
        # Of the merged rows: their keys, their sums, and where a key is that has this hash, if it is known at all.
        self._known: list[np.ndarray] = []
        self._totals = [np.zeros(0, np.uint64) for _ in sums]
        self._places = np.zeros(1, np.int32)

    def __len__(self) -> int:
        """Return how many keys there were when rows were merged last."""
        return len(self._merged)

    def add(self, rows: np.ndarray, **more: object) -> None:
        """Add rows; a column that they lack is taken from ``more``, else 0 or empty."""
        if not rows.shape[0]:
            return
        taken = np.zeros(rows.shape[0], self._dtype)
        for name in self._dtype.names or ():
            if name in more:
                taken[name] = more[name]
            elif has(rows, name):
                taken[name] = rows[name]
        self._pending.append(taken)
        self._waiting += len(taken)
        if self._waiting >= _AT_ONCE:
            self._look_up()

    def rows(self) -> np.ndarray:
        """Return one row per key (two, should the hashes of two keys ever be the same), in no order."""
        self._look_up()
        self._merge()
        for name, totals in zip(self._sums, self._totals, strict=True):
            self._merged[name] = totals
        return self._merged

    def _look_up(self) -> None:
        """Add what waits to what is known; where that fails, keep it for the next merge."""
        if not self._pending:
            return
        rows = np.concatenate(self._pending)
        self._pending, self._waiting = [], 0
        if len(self._merged):
            keys = self._words(rows)
            found = self._places.take(self._place(keys))
            same = np.logical_and.reduce([one.take(found) == key for one, key in zip(self._known, keys, strict=True)])
            known = np.flatnonzero(same)
            for name, totals in zip(self._sums, self._totals, strict=True):
                np.add.at(totals, found.take(known), rows[name].take(known))
            rows = rows.take(np.flatnonzero(~same))
        self._new.append(rows)
        self._unknown += len(rows)
        if self._unknown >= min(max(_LEAST_NEW, 2 * len(self._merged)), _MOST_NEW):
            self._merge()

    def _merge(self) -> None:
        if not self._unknown:
            return
        rows = np.concatenate([self._merged, *self._new])
        self._new, self._unknown = [], 0
        for name, totals in zip(self._sums, self._totals, strict=True):
            rows[name][: len(totals)] = totals
        keys = self._words(rows)
        places = order(hashed(keys), _MOST_HASH)
        first = np.ones(len(rows), bool)
        first[1:] = np.logical_or.reduce([(word := each.take(places))[1:] != word[:-1] for each in keys])
        starts = np.flatnonzero(first)
        # take: indexing copies rows with fields field by field, which is sixty times as slow.
        merged = rows.take(places.take(starts))
        for name in self._sums:
            merged[name] = np.add.reduceat(rows[name].take(places), starts)
        self._merged = self._heaviest(merged)
        self._known, self._totals = self._words(self._merged), [self._merged[name].copy() for name in self._sums]
        self._places = np.zeros(1 << (4 * len(self._merged) - 1).bit_length(), np.int32)
        self._places[self._place(self._known)] = np.arange(len(self._merged))

    def _words(self, rows: np.ndarray) -> list[np.ndarray]:
        """Return the keys as numbers."""
        return [word for name in self._keys for word in words(rows[name])]

    def _place(self, keys: list[np.ndarray]) -> np.ndarray:
        """Return where keys are looked up."""
        found: np.ndarray = (hashed(keys) & np.uint64(len(self._places) - 1)).astype(np.int64)
        return found

    def _heaviest(self, rows: np.ndarray) -> np.ndarray:
        if len(rows) <= self._most:
            return rows
        places = order(rows[self._sums[0]])
        for name in self._sums:
            self.other[name] += int(rows[name].take(places[: -self._most]).sum())
        return rows.take(np.sort(places[-self._most :]))


def hashed(words: Sequence[np.ndarray]) -> np.ndarray:
    """Return a hash per row, up to ``_MOST_HASH``, shape ``(n,)``."""
    hashes = np.zeros(len(words[0]), np.uint64)
    for word in words:
        hashes = (hashes ^ word) * np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio
        hashes ^= hashes >> np.uint64(29)
    kept: np.ndarray = hashes >> np.uint64(64 - _MOST_HASH.bit_length())
    return kept
