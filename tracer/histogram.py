"""Exponential histograms, schema 3: exact integer edges, quantiles, merging.

Bucket ``i`` holds ``(2**((i-1)/8), 2**(i/8)]`` seconds, as Prometheus native histograms and
OpenTelemetry exponential histograms of scale 3 define it. The kernel counts integer nanoseconds,
and an integer ``v`` lies in bucket ``i`` exactly when ``edge(i-1) < v <= edge(i)`` with
``edge(i) = floor(1e9 * 2**(i/8))``, so nothing is re-bucketed on the way out.

Slot 0 of an array counts zeros, the last slot what lies above the last edge.
The constants come from ``bpf/hist.h``, the only copy.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from tracer.layouts import constants, layout

__all__ = [
    "FIRST_BUCKET",
    "LAST_BUCKET",
    "GROWTH",
    "SLOTS",
    "edge_ns",
    "edges_ns",
    "kernel_table",
    "slot_of",
    "count",
    "quantile_ns",
    "max_ns",
    "reaches",
    "count_above",
]

_CONSTANTS = constants("hist")
FIRST_BUCKET: int = _CONSTANTS["HIST_FIRST_BUCKET"]
LAST_BUCKET: int = _CONSTANTS["HIST_LAST_BUCKET"]
SLOTS: int = _CONSTANTS["HIST_SLOTS"]
#: How much higher a bucket's upper edge is than its lower one.
GROWTH: float = 2.0 ** (1 / 2 ** _CONSTANTS["HIST_SCHEMA"])

_Slots = npt.NDArray[np.integer]


def edge_ns(bucket: int) -> int:
    """Return the upper edge of ``bucket`` in whole nanoseconds: ``floor(1e9 * 2**(bucket/8))``, exactly."""
    # floor(1e9 * 2^(i/8)) is the integer 8th root of 1e72 * 2^i; scaled up for negative i.
    shift = 0 if bucket >= 0 else -(bucket // 8)
    radicand = 10**72 * 2 ** (bucket + 8 * shift)
    return _root8(radicand) >> shift


@cache
def edges_ns() -> npt.NDArray[np.uint64]:
    """Return the inclusive upper edge of every slot in ns, shape ``(SLOTS,)``; the overflow slot's is 2**64-1."""
    edges = [0, *(edge_ns(bucket) for bucket in range(FIRST_BUCKET, LAST_BUCKET + 1)), 2**64 - 1]
    return np.array(edges, dtype=np.uint64)


def slot_of(values_ns: npt.ArrayLike) -> npt.NDArray[np.intp]:
    """Return the slot that counts each value (non-negative integer ns)."""
    return np.searchsorted(edges_ns(), np.asarray(values_ns, dtype=np.uint64), side="left")


@cache
def kernel_table() -> bytes:
    """Return ``struct hist_edges`` as the kernel programs read it.

    ``guess[exponent * 8 + next three bits]`` is the slot of the smallest value with those top bits,
    so the true slot is at most two above it.
    """
    table = np.zeros((), dtype=layout("hist", "hist_edges"))
    table["edge_ns"] = edges_ns()
    exponent, fraction = np.divmod(np.arange(table["guess"].size), 8)
    smallest = [(8 + int(f)) << int(e) >> 3 for e, f in zip(exponent, fraction, strict=True)]
    table["guess"] = slot_of(np.array(smallest, dtype=np.uint64))
    return table.tobytes()


def count(slots: _Slots) -> npt.NDArray[np.uint64]:
    """Return how many values ``slots`` holds: the sum of the last axis of one snapshot, never a separate number."""
    total: npt.NDArray[np.uint64] = np.asarray(slots).sum(axis=-1, dtype=np.uint64)
    return total


def quantile_ns(slots: _Slots, fraction: float) -> float:
    """Return the upper edge in ns of the slot where ``fraction`` of the values is reached.

    ``slots`` has shape ``(SLOTS,)``. NaN when it is empty, inf when the quantile lies above the last edge.
    An upper edge overstates by at most one bucket (9 %); it never understates.
    """
    cumulative = np.cumsum(slots, dtype=np.uint64)
    if cumulative[-1] == 0:
        return float("nan")
    rank = max(1, int(np.ceil(fraction * int(cumulative[-1]))))
    return _upper_ns(int(np.searchsorted(cumulative, rank, side="left")))


def max_ns(slots: _Slots) -> float:
    """Return the upper edge in ns of the highest slot in use (to be shown as ``≤``); NaN when empty."""
    used = np.flatnonzero(slots)
    return _upper_ns(int(used[-1])) if used.size else float("nan")


def reaches(slots: _Slots, threshold_ns: int) -> npt.NDArray[np.bool_]:
    """Return for many histograms, shape ``(…, SLOTS)``, at once whether ``max_ns`` is at least ``threshold_ns``."""
    return np.asarray(np.any(np.asarray(slots)[..., int(slot_of(threshold_ns)) :], axis=-1))


def count_above(slots: _Slots, threshold_ns: int) -> int:
    """Return how many values lie in slots wholly above ``threshold_ns``."""
    first = int(slot_of(threshold_ns)) + 1
    return int(np.asarray(slots)[first:].sum(dtype=np.uint64))


def _upper_ns(slot: int) -> float:
    return float("inf") if slot == SLOTS - 1 else float(edges_ns()[slot])


def _root8(value: int) -> int:
    """Integer 8th root: three integer square roots, each exact."""
    from math import isqrt

    return isqrt(isqrt(isqrt(value)))
