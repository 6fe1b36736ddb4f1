"""How much of a known kind of slowness a node shows: all levels together, weighed by their own and common noise.

On a loaded node all levels of a distribution scatter, but together: with the load. A slower node moves them otherwise
than load does. The combination of levels that load moves least, for what a kind of slowness moves it by, is that of
generalised least squares (Aitken 1935); it is told in units of that slowness, so that it can be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tracer.compare.limits import EFFECT
from tracer.compare.robust import medians, scatter
from tracer.compare.scan import baseline_of
from tracer.compare.shapes import PER_OCTAVE, beyond, one_more

__all__ = ["PATTERNS", "Pattern", "amounts"]

_OUTLIER = 4.0  # sigmas of a level: bursts don't tell how levels scatter together
# So many nodes' worth of how levels scatter together comes from all windows, the rest from each window itself.
_BORROWED = 26.0
# Of each level's variance is noise that no other level shares, besides what is seen.
_RIDGE = 0.05
_TINY = 1e-12


@dataclass(frozen=True)
class Pattern:
    """A ``share`` of all values takes longer by so many ``octaves``."""

    octaves: float
    share: float

    @property
    def whole(self) -> bool:
        """Whether all values take longer."""
        return self.share == 1.0

    def ratio(self, amount: float) -> float:
        """Return by which factor the mean grows, when ``amount`` times this pattern is there."""
        grown: float = 2.0**self.octaves
        return grown**amount if self.whole else 1 + amount * self.share * (grown - 1)

    @property
    def floor(self) -> float:
        """The least sigma of an amount: five of them make the least effect that is told."""
        whole = np.log2(EFFECT) / self.octaves
        return float(whole if self.whole else (EFFECT - 1) / (self.ratio(1.0) - 1)) / 5


#: All values a fifth longer; and each two octaves longer, so many that the mean grows by 30 %.
PATTERNS = (Pattern(0.25, 1.0), *(Pattern(float(by), 0.3 / (2**by - 1)) for by in (1, 2, 4, 6)))


def amounts(functions: np.ndarray, reference: np.ndarray, values: np.ndarray) -> Iterator[tuple[Pattern, np.ndarray]]:
    """Yield how many times each pattern is in what nodes do beside the ``reference``, ``(nodes, windows)``.

    ``functions`` ``(nodes, windows, n)`` and ``reference`` ``(windows, n)`` are of ``blurred``, ``values`` ``(nodes,
    windows)`` is how many there are. NaN where a node is not known.
    """
    levels = beyond(functions, reference, values, np.zeros(len(functions)), 0.0)
    shown, usual = np.stack([more for more, _ in levels], axis=-1), medians(values)
    # A level beyond which none is has no scatter, and chance may still put one there.
    sigma = np.fmax(scatter(shown - medians(shown)), one_more(usual))
    covariance = _covariance(shown / sigma)
    baseline = baseline_of(shown.shape[1])
    changed = np.stack([(1 - one.share) * reference + one.share * _later(reference, one.octaves) for one in PATTERNS])
    levels = beyond(changed, reference, np.broadcast_to(usual, changed.shape[:-1]), np.zeros(len(changed)), 0.0)
    for pattern, moved in zip(PATTERNS, np.stack([more for more, _ in levels], axis=-1), strict=True):
        moved = np.nan_to_num(moved / sigma)
        weights = np.linalg.solve(covariance, moved[..., None])[..., 0]
        gain = np.maximum((weights * moved).sum(axis=-1), _TINY)
        amount = np.einsum("nwl,wl->nw", shown / sigma, weights) / gain
        yield pattern, amount
        if pattern.whole and baseline:
            # A node that always is a little slower shows that otherwise in another phase of the job.
            shown = shown - np.nan_to_num(medians(amount[:, :baseline], 1))[:, None, None] * moved * sigma


def _covariance(shown: np.ndarray) -> np.ndarray:
    """Return how levels scatter together in each window, ``(windows, levels, levels)``, in units of their sigmas."""
    nodes, _, levels = shown.shape
    away = np.nan_to_num(np.clip(shown - medians(shown), -_OUTLIER, _OUTLIER))
    own = np.einsum("nwi,nwj->wij", away, away) / nodes
    borrowed = _BORROWED / (nodes + _BORROWED)
    return np.asarray((1 - borrowed) * own + borrowed * own.mean(axis=0) + _RIDGE * np.eye(levels))


def _later(functions: np.ndarray, octaves: float) -> np.ndarray:
    """Return functions of ``blurred`` of values that are later by so many octaves, a multiple of a quarter."""
    size = functions.shape[-1]
    by = min(int(octaves * PER_OCTAVE), size)
    return np.concatenate([np.zeros((*functions.shape[:-1], by)), functions[..., : size - by]], axis=-1)
