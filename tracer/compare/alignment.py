"""Put nodes on one grid of windows: the same moment in UTC is the same column for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median_low

import numpy as np

from tracer.compare.buckets import folded
from tracer.compare.metrics import Series
from tracer.compare.node import Node

__all__ = ["Grid", "align"]

# A column counts when so many of the nodes have it; a node, when it has so many of those columns.
_PRESENT = 0.5
_SHARED = 4
_HALF = 0.5
# Nodes with buckets this many times as long as most would make everybody's windows that long.
_LONGER = 4
_APART = "it has fewer than four windows in common with the others"
_CLOCKLESS = "its clock is not known, and the others are compared by theirs"


@dataclass(frozen=True)
class Grid:
    """Windows of ``length_ns`` that ``nodes`` have in common; ``first`` is the first one's number since 1970.

    ``by_start``: the recordings are of different times, and laid beside each other from their starts.
    """

    nodes: tuple[Node, ...]
    length_ns: int
    first: int
    windows: int
    by_start: bool = False

    def histograms(self, series: Series) -> tuple[int, np.ndarray]:
        """Return the first slot in use by any node, and ``(nodes, windows, slots in use)``.

        Nothing is counted where a node has none.
        """
        having = {place: node.histograms[series] for place, node in enumerate(self.nodes) if series in node.histograms}
        used = [one for one in having.values() if one.counts.size]
        first = min((one.first for one in used), default=0)
        last = max((one.first + one.counts.shape[1] for one in used), default=0)
        whole = np.zeros((len(self.nodes), self.windows, last - first), np.uint64)
        for place, one in having.items():
            begin = one.first - first
            self.lay(whole[place, :, begin : begin + one.counts.shape[1]], self.nodes[place], one.counts)
        return first, whole

    def numbers(self, series: Series) -> np.ndarray:
        """Return (above, below), shape ``(nodes, windows, 2)``; zeros where a node has none."""
        whole = np.zeros((len(self.nodes), self.windows, 2))
        for place, node in enumerate(self.nodes):
            if series in node.numbers:
                self.lay(whole[place], node, node.numbers[series])
        return whole

    @cached_property
    def recorded(self) -> np.ndarray:
        """Whether a node recorded at least half of a window, of the intervals that were read: (nodes, windows)."""
        seen = np.zeros((len(self.nodes), self.windows))
        for place, node in enumerate(self.nodes):
            self.lay(seen[place], node, node.seen_ns)
            seen[place] *= node.every
        return np.asarray(seen >= _HALF * self.length_ns)

    @property
    def compared(self) -> int:
        """How many windows hold something: that half of the nodes recorded."""
        return int((self.recorded.mean(axis=0) >= _PRESENT).sum()) if self.nodes else 0

    def unix_ns(self, window: int) -> float:
        """Return when a window begins; NaN when the nodes have no time in common."""
        return float("nan") if self.by_start else float((self.first + window) * self.length_ns)

    def own_ns(self, node: Node, window: int) -> int:
        """Return when a window begins on a node, in ns since 1970 by its own recording."""
        return (window + (node.start_ns // self.length_ns if self.by_start else self.first)) * self.length_ns

    def lay(self, target: np.ndarray, node: Node, values: np.ndarray) -> None:
        """Put values of a node's buckets into ``target``, shape ``(windows, …)``."""
        first, values = _fitted(node, values, self.length_ns)
        places = (0 if self.by_start else first - self.first) + np.arange(len(values))
        inside = (places >= 0) & (places < self.windows)
        target[places[inside]] = values[inside]


def align(nodes: Sequence[Node]) -> tuple[Grid, list[tuple[Node, str]]]:
    """Return the grid, and the nodes that have too little time in common with the others, each with the reason."""
    left_out: list[tuple[Node, str]] = []
    usual = median_low([node.length_ns for node in nodes]) if nodes else 0
    kept = []
    for node in nodes:
        if node.length_ns > _LONGER * usual:
            left_out.append((node, "it is so much longer than the others that its windows don't fit theirs"))
        else:
            kept.append(node)
    grid = _shared(kept)
    if sum(_columns(node, grid) >= _SHARED for node in kept) < max(2, _PRESENT * len(kept)):
        return _coarse(_by_start(kept)), left_out
    late = [node for node in kept if _columns(node, grid) < _SHARED]
    left_out += [(node, _APART if node.clocked else _CLOCKLESS) for node in late]
    return _coarse(replace(grid, nodes=tuple(node for node in kept if node not in late))), left_out


def _shared(nodes: Sequence[Node]) -> Grid:
    """Return the columns, from first to last, that at least half of the nodes have."""
    if not nodes:
        return Grid((), 1, 0, 0)
    length_ns = max(node.length_ns for node in nodes)
    spans = [_span(node, length_ns) for node in nodes]
    enough = max(2, _PRESENT * len(nodes))
    # Only where a span begins does the number of nodes rise, only behind its end does it fall.
    begins = sorted({begin for begin, _ in spans})
    ends = sorted({end for _, end in spans})
    common = [begin for begin in begins if sum(low <= begin < high for low, high in spans) >= enough]
    until = [end for end in ends if sum(low <= end - 1 < high for low, high in spans) >= enough]
    if not common or until[-1] <= common[0]:
        return Grid(tuple(nodes), length_ns, 0, 0)
    return Grid(tuple(nodes), length_ns, common[0], until[-1] - common[0])


def _by_start(nodes: Sequence[Node]) -> Grid:
    length_ns = max((node.length_ns for node in nodes), default=1)
    lengths = [end - begin for begin, end in (_span(node, length_ns) for node in nodes)]
    return Grid(tuple(nodes), length_ns, 0, int(np.median(lengths)) if lengths else 0, by_start=True)


def _coarse(grid: Grid) -> Grid:
    """Return a grid of windows that are so long that most of them are recorded: intervals may come late, and rarely."""
    while grid.compared < _PRESENT * grid.windows and grid.windows >= 2 * _SHARED:
        first, last = grid.first // 2, (grid.first + grid.windows - 1) // 2
        grid = replace(grid, length_ns=2 * grid.length_ns, first=first, windows=last - first + 1)
    return grid


def _span(node: Node, length_ns: int) -> tuple[int, int]:
    """Return the node's first column and the one after its last."""
    return node.start_ns // length_ns, (node.end_ns - 1) // length_ns + 1


def _columns(node: Node, grid: Grid) -> int:
    begin, end = _span(node, grid.length_ns)
    return max(0, min(end, grid.first + grid.windows) - max(begin, grid.first))


def _fitted(node: Node, values: np.ndarray, length_ns: int) -> tuple[int, np.ndarray]:
    times = (length_ns // node.length_ns).bit_length() - 1
    return node.first >> times, folded(values, node.first, times)
