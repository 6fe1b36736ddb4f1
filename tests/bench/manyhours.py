"""A day of a node, made up: the windows that the collector makes of its maps, again and again with other times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tracer.collect.collector import Collector
from tracer.window import Window

from .bignode import Names, Node

__all__ = ["header", "intervals"]

_DIFFERENT = 8
_SECOND_NS = 1_000_000_000
#: Tables that have rows only while something is stuck.
_ILL = frozenset({("cpustall", "open"), ("workqueue", "open")})


def header(cpus: int, seconds: int) -> dict[str, object]:
    """Return the header of a recording of ``intervals``."""
    return {
        "host": "bench",
        "cpus": cpus,
        "interval_ns": seconds * _SECOND_NS,
        "clock_offset_ns": 1_764_468_665 * _SECOND_NS,
    }


def intervals(cpus: int, number: int, seconds: int) -> Iterator[list[Window]]:
    """Yield ``number`` intervals of ``seconds`` each of a healthy node."""
    node = Node(cpus)
    node.count()
    collector = Collector(node, Names())  # type: ignore[arg-type]
    some = []
    for _ in range(min(number, _DIFFERENT)):
        node.count()
        some.append([one for one in collector.collect() if (one.probe, one.table) not in _ILL])
    for place in range(number):
        start = (place + 1) * seconds * _SECOND_NS
        yield [replace(one, start_ns=start, end_ns=start + seconds * _SECOND_NS) for one in some[place % _DIFFERENT]]
