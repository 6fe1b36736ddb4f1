"""What no node beside another shows: nodes of two kinds from the start on."""

from __future__ import annotations

import numpy as np

from tracer.compare import limits
from tracer.compare.robust import medians, scatter
from tracer.compare.scan import baseline_of

__all__ = ["student", "two_kinds"]

_SIGMAS = 5.0
# Of either kind so many stay what they are from the start on.
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


def student(nodes: int) -> float:
    """Return how many times as much as of many nodes it takes where so few tell their scatter.

    As Student's distribution has it where the normal one has five sigmas, by Wallace's approximation (1959).
    """
    freedom = nodes - 1
    return float(np.sqrt(freedom * np.expm1(_SIGMAS**2 / freedom)) / _SIGMAS)
