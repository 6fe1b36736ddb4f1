"""Sums per key for very many rows, where a dict would take seconds: merged by sorting them by a hash, now and then."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tracer.analysis.order import order, words
from tracer.analysis.rows import has

__all__ = ["MOST_KEYS", "Sums"]

#: 64 bytes a row: 64 MB while they are merged.
_AT_ONCE = 1 << 18
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
        self._merged = np.zeros(0, self._dtype)
        self._pending: list[np.ndarray] = []
        self._waiting = 0

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
            self._merge()

    def rows(self) -> np.ndarray:
        """Return one row per key (two, should the hashes of two keys ever be the same), in no order."""
        self._merge()
        return self._merged

    def _merge(self) -> None:
        if not self._pending:
            return
        rows = np.concatenate([self._merged, *self._pending])
        self._pending, self._waiting = [], 0
        keys = [word for name in self._keys for word in words(rows[name])]
        places = order(_hashed(keys), _MOST_HASH)
        first = np.ones(len(rows), bool)
        first[1:] = np.logical_or.reduce([(word := each.take(places))[1:] != word[:-1] for each in keys])
        starts = np.flatnonzero(first)
        # take: indexing copies rows with fields field by field, which is sixty times as slow.
        merged = rows.take(places.take(starts))
        for name in self._sums:
            merged[name] = np.add.reduceat(rows[name].take(places), starts)
        self._merged = self._heaviest(merged)

    def _heaviest(self, rows: np.ndarray) -> np.ndarray:
        if len(rows) <= self._most:
            return rows
        places = order(rows[self._sums[0]])
        for name in self._sums:
            self.other[name] += int(rows[name].take(places[: -self._most]).sum())
        return rows.take(np.sort(places[-self._most :]))


def _hashed(words: Sequence[np.ndarray]) -> np.ndarray:
    """Return a hash per row, up to ``_MOST_HASH``, shape ``(n,)``."""
    hashes = np.zeros(len(words[0]), np.uint64)
    for word in words:
        hashes = (hashes ^ word) * np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio
        hashes ^= hashes >> np.uint64(29)
    kept: np.ndarray = hashes >> np.uint64(64 - _MOST_HASH.bit_length())
    return kept
