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
from tracer.difference.whose import Party

__all__ = ["Stretch", "slower_stretches"]


@dataclass(frozen=True)
class Stretch:
    """What is slower from ``start`` to ``end`` only, seconds after the side's beginning.

    ``parties``: who had more or less time then; None where that was not read.
    """

    start: float
    end: float
    changes: Changes
    series: frozenset[Series]
    parties: tuple[Party, ...] | None = None

    @property
    def seconds(self) -> float:
        """How long it is."""
        return self.end - self.start

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
    after = _part(whole, first, last)
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
    first, last = sides[1].windows(found.start, found.end)
    above = frozenset(measure.series for measure, is_so in zip(columns, found.above, strict=True) if is_so)
    start, end = ((after.first + place) * after.length_ns for place in (first, last))
    seconds = [max(0, start - after.start_ns) / 1e9, (min(end, after.end_ns) - after.start_ns) / 1e9]
    stretch = Stretch(seconds[0], seconds[1], changes_of(befores, _part(after, first, last), times), above)
    return (stretch, first, last) if stretch.slower else None


def _blocks(nodes: Sequence[Node], length_ns: float) -> Blocks:
    return Blocks(nodes, int(max(node.seen_ns.sum() for node in nodes) / length_ns))


def _typical_ns(node: Node) -> float:
    seen = node.seen_ns[node.seen_ns > 0]
    return float(np.median(seen)) if seen.size else 1.0


def _part(node: Node, first: int, last: int) -> Node:
    """Return a node of which only some windows count."""
    kept = np.zeros_like(node.seen_ns)
    kept[first:last] = node.seen_ns[first:last]
    return replace(node, seen_ns=kept)
