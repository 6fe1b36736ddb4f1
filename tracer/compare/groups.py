"""What no node beside another shows: nodes of two kinds from the start on, or all of them slower from a moment on."""

from __future__ import annotations

import numpy as np

from tracer.compare import limits
from tracer.compare.robust import medians, scatter
from tracer.compare.scan import LEAST_WINDOWS, baseline_of

__all__ = ["all_at_once", "student", "two_kinds"]

_SIGMAS = 5.0
# Sigmas of what all nodes scatter from window to window: they go through phases, which are no fault.
_RISEN = 6.0
# As many values as before, in octaves: another phase of the job has other numbers of them.
_SAME_LOAD = 0.5
# So many of the windows after it are beyond all before it, and of the nodes stay what they are from the start on.
_MOST = 0.9


def two_kinds(deviations: np.ndarray, floor: float, sigmas: float = _SIGMAS) -> dict[int, float]:
    """Return the slower nodes where there are two kinds from the start on, and by how many octaves each is slower.

    ``deviations`` are ``(nodes, windows)``. More than ``limits.COMMON_SHARE`` of the nodes are on either side of the
    widest gap between them, and the gap is beyond ``sigmas`` of what the larger side scatters.
    """
    nodes, windows = deviations.shape
    least = int(limits.COMMON_SHARE * nodes) + 1
    baseline = baseline_of(windows)
    levels, later = (medians(deviations[:, part], 1) for part in (slice(baseline or windows), slice(baseline, windows)))
    known = np.flatnonzero(~np.isnan(levels + later))
    order = known[levels[known].argsort()]
    gaps = np.diff(levels[order])[least - 1 : len(order) - least]
    if nodes < limits.FEW_NODES or not gaps.size:
        return {}
    place = least + int(gaps.argmax())
    fast, slow = order[:place], order[place:]
    most = max(fast, slow, key=len)
    sigma = max(float(scatter(levels[most] - medians(levels[most]))), floor)
    needed = max(float(np.log2(limits.KINDS)), sigmas * student(len(most)) * sigma)
    # Later on a few may have become slower, or well.
    slowest, fastest = np.quantile(later[fast], _MOST), np.quantile(later[slow], 1 - _MOST)
    if min(gaps.max(), fastest - slowest) < needed:
        return {}
    whole = medians(deviations, 1)
    usual = float(medians(whole[fast]))
    return {int(node): float(whole[node] - usual) for node in slow}


def all_at_once(values: np.ndarray, counts: np.ndarray, floor: float) -> tuple[dict[int, float], int]:
    """Return by how many octaves each node rose, and from which window on, where all did and have as much to do.

    ``values`` and ``counts`` (of what these are the middle) are ``(nodes, windows)``. The cluster's median is held
    against its own past; nothing is returned where a phase of the job would explain it.
    """
    middles, load = medians(values), np.log2(1 + medians(counts))
    known = ~np.isnan(middles)
    windows, baseline = len(middles), baseline_of(len(middles))
    best, onset = _RISEN, 0
    for begin in range(baseline, windows - LEAST_WINDOWS + 1) if baseline else ():
        sides = [np.flatnonzero(known[:begin]), begin + np.flatnonzero(known[begin:])]
        if min(map(len, sides)) < LEAST_WINDOWS:
            continue
        before, after = (middles[side] for side in sides)
        loads = [float(medians(load[side])) for side in sides]
        beyond = after > before.max()
        if abs(loads[1] - loads[0]) > _SAME_LOAD or not beyond[0] or beyond.mean() < _MOST:
            continue
        noise = max(floor, *(float(scatter(side - medians(side))) for side in (before, after)))
        score = float(medians(after) - medians(before)) / noise
        if score > best:
            best, onset = score, begin
    if not onset:
        return {}, 0
    changes = medians(values[:, onset:], 1) - medians(values[:, :onset], 1)
    if not (changes >= np.log2(limits.EFFECT)).all():
        return {}, 0
    return {node: float(change) for node, change in enumerate(changes)}, onset


def student(nodes: int) -> float:
    """Return how many times as much as of many nodes it takes where so few tell their scatter.

    As Student's distribution has it where the normal one has five sigmas, by Wallace's approximation (1959).
    """
    freedom = nodes - 1
    return float(np.sqrt(freedom * np.expm1(_SIGMAS**2 / freedom)) / _SIGMAS)
