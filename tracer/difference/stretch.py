"""What is slower in stretches of a side only: within the whole side that passes for noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tracer.compare.metrics import Series
from tracer.compare.node import Node
from tracer.difference import limits
from tracer.difference.changes import Change, Changes, changes_of, columns_of
from tracer.difference.measures import Blocks
from tracer.difference.scan import scan
from tracer.difference.side import Span
from tracer.difference.whose import Party
from tracer.units import SECOND

__all__ = ["Stretch", "slower_stretches"]


@dataclass(frozen=True)
class Stretch:
    """What is slower in some ``spans`` only: (from, to) in seconds after the side's beginning, in order of time.

    ``parties``: who had more or less time then; None where that was not read.
    """

    spans: tuple[Span, ...]
    changes: Changes
    series: frozenset[Series]
    parties: tuple[Party, ...] | None = None

    @property
    def seconds(self) -> float:
        """How long it is, without the gaps."""
        return sum(end - start for start, end in self.spans)

    @property
    def start(self) -> float:
        """When it begins."""
        return self.spans[0][0]

    @property
    def end(self) -> float:
        """When it ends."""
        return self.spans[-1][1]

    @property
    def slower(self) -> tuple[Change, ...]:
        """What is slower in it."""
        return self.slower_by(0)

    def slower_by(self, effect: float, *, surely: bool = False) -> tuple[Change, ...]:
        """Return what is slower by a factor ``effect``, which is ``limits.STRETCH_EFFECT`` at least.

        ``surely``: only what no other time of the same explains.
        """
        told = self.changes.told("slower", max(effect, limits.STRETCH_EFFECT), surely=surely)
        return tuple(one for one in told if one.measure.series in self.series)


def slower_stretches(befores: Sequence[Node], after: Node, times: Sequence[int] = ()) -> tuple[Stretch, ...]:
    """Return the stretches of ``after`` that are slower, the clearest first; none that chance may make.

    ``times`` are those of ``changes_of``.

    Many stretches are looked at, so that more is asked of each: ``limits.STRETCH_EFFECT`` at least. What is on either
    side of one is looked through by itself.
    """
    found: list[Stretch] = []
    waiting = [(0, len(after.seen_ns))]
    while waiting and len(found) < limits.MOST_STRETCHES:
        first, last = waiting.pop(0)
        one = _clearest(befores, after, times, first, last)
        if one is not None:
            stretch, begin, end = one
            found.append(stretch)
            waiting += [(first, begin), (end, last)]
    return tuple(found)


def _clearest(
    befores: Sequence[Node], whole: Node, times: Sequence[int], first: int, last: int
) -> tuple[Stretch, int, int] | None:
    """Return the clearest stretch within some windows, and from which window to which it is."""
    after = _part(whole, (first, last))
    if not after.seen_ns.any():
        return None
    length_ns = max(map(_typical_ns, [*befores, after]))
    sides = [_blocks(nodes, length_ns) for nodes in (befores, [after])]
    columns = {one: values for one, values in columns_of(*sides).items() if not one.is_load}
    if not columns:
        return None
    ours, theirs = (np.stack([pair[side] for pair in columns.values()], axis=1) for side in (0, 1))
    found = scan(np.split(ours, np.cumsum(sides[0].numbers_of_blocks)[:-1]), theirs)
    if found is None:
        return None
    spans = [sides[1].windows(*one) for one in found.spans]
    above = frozenset(measure.series for measure, is_so in zip(columns, found.above, strict=True) if is_so)
    times_s = tuple((_seconds(after, begin), _seconds(after, end)) for begin, end in spans)
    stretch = Stretch(times_s, changes_of(befores, _part(after, *spans), times), above)
    return (stretch, spans[0][0], spans[-1][1]) if stretch.slower else None


def _seconds(node: Node, window: int) -> float:
    """Return how long after the beginning of its recording a window begins."""
    start_ns = (node.first + window) * node.length_ns
    return (min(max(start_ns, node.start_ns), node.end_ns) - node.start_ns) / SECOND


def _blocks(nodes: Sequence[Node], length_ns: float) -> Blocks:
    return Blocks(nodes, int(max(node.seen_ns.sum() for node in nodes) / length_ns))


def _typical_ns(node: Node) -> float:
    seen = node.seen_ns[node.seen_ns > 0]
    return float(np.median(seen)) if seen.size else 1.0


def _part(node: Node, *spans: tuple[int, int]) -> Node:
    """Return a node of which only some windows count."""
    kept = np.zeros_like(node.seen_ns)
    for first, last in spans:
        kept[first:last] = node.seen_ns[first:last]
    return replace(node, seen_ns=kept)
