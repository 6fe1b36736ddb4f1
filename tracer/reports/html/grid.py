"""Numbers by bin that add up when bins do."""

from __future__ import annotations

import numpy as np

from tracer.reports.html.timeline import MOST_BINS

__all__ = ["Grid"]


class Grid:
    """An array of shape ``(bins, *shape)`` that grows with the highest bin in use; sums stop at the dtype's maximum."""

    def __init__(self, shape: tuple[int, ...], dtype: str) -> None:
        self.values = np.zeros((0, *shape), dtype)
        self._most = np.iinfo(dtype).max if self.values.dtype.kind == "u" else None

    def add(self, bin: int, values: np.ndarray | float) -> None:
        """Add to one bin."""
        if bin >= len(self.values):
            more = max(bin + 1, min(2 * len(self.values), MOST_BINS)) - len(self.values)
            self.values = np.concatenate([self.values, np.zeros((more, *self.values.shape[1:]), self.values.dtype)])
        known = self.values[bin]
        self.values[bin] = known + (values if self._most is None else np.minimum(values, self._most - known))

    def halve(self) -> None:
        """Add up pairs of bins."""
        values = self.values
        if len(values) % 2:
            values = np.concatenate([values, np.zeros_like(values[:1])])
        self.values = _sum(values[0::2], values[1::2])


def _sum(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    total: np.ndarray = one + other
    if total.dtype.kind == "u" and (over := total < one).any():
        total[over] = np.iinfo(total.dtype).max
    return total
