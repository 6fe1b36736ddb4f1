"""All nodes slower from a moment on: nothing but their own past is left to hold them against, phase by phase."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tracer.compare import limits
from tracer.compare.deviation import Deviation, Findings
from tracer.compare.groups import student
from tracer.compare.onset import Onset
from tracer.compare.robust import medians, quantiles, scatter
from tracer.compare.scan import LEAST_WINDOWS, baseline_of
from tracer.compare.shapes import blurred, centroids, means_ns, states

__all__ = ["Risen", "all_at_once", "with_all"]

# Sigmas of what all nodes scatter from window to window.
_RISEN = 5.0
# A window is like an earlier one with as many values, and most levels moved by the same, in octaves: only later.
_SAME_LOAD, _SAME_SHAPE = 0.5, 0.5
_LEVELS = 0.8
# So many of the windows are like earlier ones, and of these so many are beyond all that they are like.
_KNOWN, _MOST = 0.5, 0.9
# The standard error of a median, beside that of a mean.
_OF_MEDIAN = 1.25
# Beside what all rise by, a node that rises more is another fault; how much nodes differ in that shows in the others.
_BESIDE = float(np.log2(limits.KINDS))


class Risen(NamedTuple):
    """By how many octaves each of all nodes rose from window ``onset`` on, and the standard errors of that."""

    onset: int
    changes: Mapping[int, float]
    errors: Mapping[int, float]


def with_all(findings: Findings, slots: np.ndarray, first: int, length_ns: float) -> Findings:
    """Return ``findings``, or, where nothing is common and all nodes became slower, what these did.

    ``slots`` ``(nodes, windows, n)`` are histograms whose first slot is ``first``, of ``length_ns`` in each window.
    """
    risen = None if findings.common else all_at_once(slots, first)
    if risen is None:
        return findings
    onset, changes = risen.onset, risen.changes
    part = slots[:, onset:].sum(axis=1)
    spent = np.nan_to_num(means_ns(part, first)) * part.sum(axis=1) / ((slots.shape[1] - onset) * length_ns)
    if np.median([spent[node] * (1 - 2.0**-change) for node, change in changes.items()]) < limits.LEAST_LOST:
        return findings
    found = {one.node: one for one in findings.deviations}
    middle = float(np.median([*changes.values()]))
    for node, score in _beside(risen).items():
        ratio = 2.0 ** (changes[node] - middle)
        lost = float(spent[node]) * (1 - 1 / ratio)
        if lost >= limits.LEAST_LOST and (node not in found or found[node].score < score):
            since = Onset(onset, 1.0)
            found[node] = Deviation(node, "bulk", score, ratio, onset, slots.shape[1], False, lost, since)
    every = {node: 2.0**change for node, change in changes.items()}
    return replace(findings, deviations=tuple(found.values()), common=every, onset=onset)


def all_at_once(slots: np.ndarray, first: int = 0) -> Risen | None:
    """Return by how much each node rose, and from which window on, where all did and have as much to do.

    Of ``slots`` ``(nodes, windows, n)``. Jobs go through phases: each window is held against the earlier ones that it
    is like but for when its values come, and the least that it is later by counts.
    """
    counts = slots.sum(axis=-1, dtype=np.float64)
    if len(slots) < limits.FEW_NODES or not baseline_of(slots.shape[1]):
        return None
    whole = slots.sum(axis=0)
    middles, _ = centroids(whole, first)
    shifts = middles[:, None] - middles
    alike = _alike(states(blurred(whole), medians(counts)), shifts)
    onset = _onset(shifts, alike)
    if not onset:
        return None
    values, _ = centroids(slots, first)
    windows = onset + np.flatnonzero(alike[onset:, :onset].any(axis=1))
    lifts = np.stack([values[:, one] - medians(values[:, np.flatnonzero(alike[one, :onset])], 1) for one in windows])
    usual = medians(lifts, 1)
    # Who was not recorded for long enough says nothing against it.
    known = (~np.isnan(lifts)).sum(axis=0) > LEAST_WINDOWS
    away = lifts - usual[:, None]
    changes = float(medians(usual)) + medians(away)
    if known.mean() < 1 - limits.COMMON_SHARE or (changes[known] < np.log2(limits.EFFECT)).any():
        return None
    errors = _OF_MEDIAN * scatter(away - medians(away)) / np.sqrt((~np.isnan(away)).sum(axis=0))
    return Risen(onset, *({int(node): float(one[node]) for node in np.flatnonzero(known)} for one in (changes, errors)))


def _alike(levels: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """Return which windows are like which others, ``(windows, windows)``, of ``states``, but for their ``shifts``."""
    apart = levels[:, :, None] - levels[:, None]
    away = quantiles(np.abs(apart[:-1] - shifts), _LEVELS)
    found = (np.abs(apart[-1]) <= _SAME_LOAD) & (away <= _SAME_SHAPE)
    np.fill_diagonal(found, False)
    return np.asarray(found)


def _onset(shifts: np.ndarray, alike: np.ndarray) -> int:
    """Return the window from which on all are later than what they are like; 0 for none."""
    windows = len(shifts)
    best, onset = _RISEN, 0
    for begin in range(baseline_of(windows), windows - LEAST_WINDOWS + 1):
        least = np.where(alike[begin:, :begin], shifts[begin:, :begin], np.inf).min(axis=1)
        known = np.isfinite(least)
        enough = known.sum() >= max(LEAST_WINDOWS, _KNOWN * len(known))
        if not (enough and known[0] and least[0] > 0 and (least[known] > 0).mean() >= _MOST):
            continue
        beside = medians(np.where(alike[:, :begin], shifts[:, :begin], np.nan), 1)
        before, after = beside[:begin], beside[begin:]
        noise = np.fmax(limits.BULK_FLOOR, np.fmax(scatter(before), scatter(after - medians(after))))
        score = float(medians(after) / noise)
        if score > best:
            best, onset = score, begin
    return onset


def _beside(risen: Risen) -> dict[int, float]:
    """Return the nodes that rose more than all others did, and how sure that is, as a multiple of what is needed."""
    values = np.array([*risen.changes.values()])
    away = values - float(np.median(values))
    least = max(_BESIDE, limits.AMONG * student(len(values)) * float(scatter(away)))
    found = {
        node: (one, max(least, limits.AMONG * risen.errors[node]))
        for node, one in zip(risen.changes, away, strict=True)
    }
    return {node: float(one / needed) for node, (one, needed) in found.items() if one > needed}
