"""In which spans a stretch is slow, where there are gaps between in which it is not."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tracer.difference import limits

__all__ = ["slow_spans"]


def slow_spans(rise: np.ndarray, start: int, end: int, scatter: float) -> tuple[tuple[int, int], ...]:
    """Return from which block to before which the stretch from ``start`` to ``end`` is slow, in order of time.

    ``rise`` ``(blocks,)`` is by how much each block is above the usual ones, which are off by ``scatter``. A block
    speaks for being slow as much as its rise is likelier of a slow block (the median of those that have half of the
    rise) than of a usual one, both normal. A gap, or a span, is told where its blocks together speak for it by
    ``limits.CLEAR_GAP``.
    """
    whole = ((start, end),)
    inside = rise[start:end]
    level = float(np.median(inside[inside >= inside.mean() / 2]))
    evidence = (rise - level / 2) * level / scatter**2
    spans = tuple(one for one in _without_gaps(evidence, start, end) if evidence[slice(*one)].sum() >= limits.CLEAR_GAP)
    # What is left of it has to be a stretch still.
    return spans if sum(last - first for first, last in spans) >= limits.LEAST_BLOCKS else whole


def _without_gaps(evidence: np.ndarray, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield what is left when the clearest gap is taken out, and that of what is on either side of it."""
    summed = np.concatenate([[0.0], np.cumsum(evidence[start:end])])
    # The run of blocks with the least sum: from the highest sum before to each place.
    falls = summed - np.maximum.accumulate(summed)
    last = int(falls.argmin())
    if falls[last] > -limits.CLEAR_GAP:
        yield start, end
        return
    first = int(summed[: last + 1].argmax())
    yield from _without_gaps(evidence, start, start + first)
    yield from _without_gaps(evidence, start + last, end)
