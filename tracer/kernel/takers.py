"""What processes lost by who took it, out of the cells and the hash of bpf/ledger_counts.bpf.h."""

from __future__ import annotations

import numpy as np

from tracer.kernel.halves import Halves
from tracer.kernel.hashes import Hash
from tracer.layouts import constants, layout

__all__ = ["Takers"]

_HALVES = constants("ledger")["LEDGER_HALVES"]


class Takers:
    """``cells`` are the live rows, ``counts`` is the hash with room for ``keys``; ``halves`` turns both over."""

    def __init__(self, halves: Halves, cells: np.ndarray, counts: int, keys: int) -> None:
        self._halves = halves
        self._cells = cells.reshape(-1, _HALVES, constants("ledger")["LEDGER_CELLS"])
        self._hash = Hash(counts, layout("ledger", "ledger_key"), layout("ledger", "ledger_count"), keys)

    def take(self) -> tuple[np.ndarray, np.ndarray, bool]:
        """Return keys and counts since the last time, and whether nobody was at work on them; a key may come again."""
        generation, settled = self._halves.turn()
        half = generation % _HALVES
        keys, counts = self._hash.read()
        over = keys["half"] == half
        self._hash.remove(keys[over])
        cells = self._cells[:, half][self._cells["key"]["kind"][:, half] > 0]
        self._cells["key"]["kind"][:, half] = 0
        return (
            np.concatenate([keys[over], cells["key"]]),
            np.concatenate([counts[over], cells["count"]]),
            settled,
        )
