"""Rows that CPUs give out on first use: what each counted between two snapshots."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from tracer.histogram import SLOTS

__all__ = ["place_rows"]


def place_rows(
    before: np.ndarray,
    after: np.ndarray,
    *,
    per_cpu: int,
    keys: tuple[str, ...],
    counters: tuple[str, ...],
    gauges: tuple[str, ...] = (),
    histogram: str,
) -> np.ndarray:
    """Return the rows in which anything counted: ``cpu``, keys, differenced counters, gauges, ``sum``, ``slots``.

    ``per_cpu`` rows of the map belong to each CPU. A row may change its keys: what it counted in the interval
    is then told under the new ones, since a row is given away only after it was idle for longer than an interval.
    """
    changed = before[histogram]["sum"] != after[histogram]["sum"]
    # Only zeros leave the sum as it is.
    changed |= before[histogram]["slots"][:, 0] != after[histogram]["slots"][:, 0]
    for name in counters:
        changed |= before[name] != after[name]
    chosen = np.flatnonzero(changed)
    rows = np.zeros(len(chosen), dtype=_dtype(after.dtype, keys, (*counters, *gauges)))
    if not len(chosen):
        return rows
    rows["cpu"] = chosen // per_cpu
    for name in (*keys, *gauges):
        rows[name] = after[name][chosen]
    for name in counters:
        rows[name] = after[name][chosen] - before[name][chosen]
    for name in ("sum", "slots"):
        rows[name] = after[histogram][name][chosen] - before[histogram][name][chosen]
    return rows


# The same object every time: numpy compares the fields of others one by one.
@lru_cache
def _dtype(row: np.dtype, keys: tuple[str, ...], numbers: tuple[str, ...]) -> np.dtype:
    fields: list[Any] = [("cpu", "u4"), *((name, row[name]) for name in keys)]
    fields += [(name, "u8") for name in numbers]
    return np.dtype([*fields, ("sum", "u8"), ("slots", "u4", (SLOTS,))])
