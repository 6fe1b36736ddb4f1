"""Numbers for what rows are of: a table that numpy looks them up in, in front of a dict that has them all."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.analysis.rows import has
from tracer.analysis.sums import hashed

__all__ = ["Keys"]

#: Of the table, for each key: fewer, and more of them would share a place, which only one of them can have.
_PLACES = 4


class Keys:
    """Gives numbers from 0 on to different keys, at most ``most``, in the order in which they come.

    ``columns`` are names and types: whole numbers from 0 on, or names of 8, 16, … bytes; longer ones are cut.
    """

    def __init__(self, *columns: tuple[str, str], most: int) -> None:
        self._dtype = np.dtype([*columns])
        self._wide = np.dtype([(name, kind if kind.startswith("S") else "u8") for name, kind in columns])
        self._most = most
        self._numbers: dict[bytes, int] = {}
        self._words = np.zeros((self._wide.itemsize // 8, 256), np.uint64)
        self._table = np.zeros(1 << (_PLACES * most - 1).bit_length(), np.int32)

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def full(self) -> bool:
        """Whether there is no room for another one."""
        return len(self) >= self._most

    def numbers(self, rows: np.ndarray, **more: Any) -> np.ndarray:
        """Return each row's number, shape ``(n,)``; -1 where there was no room. Columns that rows lack: ``more``."""
        taken = np.zeros(len(rows), self._wide)
        for name in self._dtype.names or ():
            if name in more or has(rows, name):
                taken[name] = more[name] if name in more else rows[name]
        words = np.ascontiguousarray(taken.view(np.uint64).reshape(len(rows), len(self._words)).T)
        places = hashed([*words]) & np.uint64(len(self._table) - 1)
        found: np.ndarray = self._table.take(places.astype(np.int64)).astype(np.int64)
        same = np.logical_and.reduce(
            [known.take(found) == word for known, word in zip(self._words, words, strict=True)]
        )
        if not self._numbers:
            same[:] = False
        if len(others := np.flatnonzero(~same)):
            found[others] = self._looked_up(taken.take(others), words.take(others, axis=1))
            there = others[found[others] >= 0]
            # Whoever came last has the place.
            self._table[places[there]] = found[there]
        return found

    def rows(self) -> np.ndarray:
        """Return the keys by number."""
        wide: np.ndarray = np.ascontiguousarray(self._words[:, : len(self)].T).view(self._wide).reshape(len(self))
        return wide.astype(self._dtype)

    def keep(self, numbers: np.ndarray) -> None:
        """Forget all other keys; these are 0, 1, … from now on."""
        rows = self.rows().take(numbers)
        self._numbers = {}
        self.numbers(rows)

    def _looked_up(self, rows: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Return the rows' numbers; new ones are learnt."""
        before, numbers = len(self), self._numbers
        found, new = [], []
        for place, key in enumerate(rows.view(f"V{rows.itemsize}").tolist()):
            number = numbers.get(key, -1)
            if number < 0 and len(numbers) < self._most:
                number = numbers[key] = len(numbers)
                new.append(place)
            found.append(number)
        while self._words.shape[1] < len(numbers):
            self._words = np.concatenate([self._words, np.zeros_like(self._words)], axis=1)
        self._words[:, before : len(numbers)] = words.take(new, axis=1)
        return np.array(found, np.int64)
