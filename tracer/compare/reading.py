"""Read many recordings one after the other, each into a ``Node``: only that stays in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil

from tracer.analysis.source import Source
from tracer.compare.facts import flattened
from tracer.compare.gaps import Gaps
from tracer.compare.intake import TABLES, Intake
from tracer.compare.node import Node
from tracer.errors import RecordingError
from tracer.recording import RecordingReader, Run, count_intervals

__all__ = ["MOST_INTERVALS", "Skipped", "read_node", "read_nodes"]

#: What one CPU reads in half a minute, and passes twenty times as many.
MOST_INTERVALS = 20_000
#: A gap that is longer than this, and than all since the gap before, parts a recording in two.
_APART_NS = 16_000_000_000
_SCRAMBLE = 2_654_435_761  # Knuth's multiplicative hash


@dataclass(frozen=True)
class Skipped:
    """A recording that is not compared, and why, in a sentence that may hold unescaped names."""

    path: str
    why: str


def read_nodes(
    paths: Sequence[str],
    progress: Callable[[int], None] = lambda done: None,
    budget: int = MOST_INTERVALS,
    opening: Callable[..., Run] = RecordingReader,
    counting: Callable[[str], int] = count_intervals,
) -> tuple[list[Node], list[Skipped]]:
    """Read recordings; name those that can't be read. ``progress`` hears how many are done.

    Where they have more than ``budget`` intervals together, one of every few is read. ``opening`` and ``counting``
    are for what else can be read as a recording is.
    """
    every = max(1, ceil(sum(map(counting, paths)) / budget))
    nodes: list[Node] = []
    skipped: list[Skipped] = []
    for done, path in enumerate(paths):
        progress(done)
        if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
            # A pipe that nobody writes to would be waited for.
            skipped.append(Skipped(path, "no plain file; recordings are read more than once."))
            continue
        try:
            nodes.append(read_node(path, every, opening))
        except RecordingError as error:
            # It begins with the path, which is told anyway.
            skipped.append(Skipped(path, error.message.removeprefix(path).lstrip(": ")))
    return nodes, skipped


def read_node(path: str | os.PathLike[str], every: int = 1, opening: Callable[..., Run] = RecordingReader) -> Node:
    """Read one of ``every`` so many intervals of a recording. Raises RecordingError when nothing of it can be used."""
    with opening(path, TABLES, (lambda number: _chosen(number, every)) if every > 1 else None) as reader:
        source = Source.from_header(reader.header)
        longest, run, gaps, began_ns = Intake(source, every), Intake(source, every), Gaps(source, every), 0
        for windows in reader:
            if not windows:
                continue
            gap_ns, start_ns = gaps.before(windows), windows[0].start_ns
            # What is on either side would be in a window or two, if forty are to last for the gap as well.
            if gap_ns > max(_APART_NS, start_ns - gap_ns - began_ns):
                longest, run, began_ns = _longer(longest, run), Intake(source, every), 0
            began_ns = began_ns or start_ns
            run.add(windows)
        facts, warning = flattened(reader.header), reader.warning
    intake = _longer(longest, run)
    if not intake.intervals:
        raise RecordingError("it has no interval.", hint="nothing of it can be compared")
    left_out = ["only the longest part between gaps is compared"] if longest.intervals else []
    remarks = [*intake.remarks(), *gaps.remarks(), *left_out, *([warning] if warning else [])]
    return intake.node(os.fspath(path), facts, tuple(remarks), every)


def _longer(one: Intake, other: Intake) -> Intake:
    return one if one.intervals > other.intervals else other


def _chosen(number: int, every: int) -> bool:
    """Return whether an interval is the one of its ``every``.

    Not always the same one: much that a node does comes every few seconds.
    """
    block, place = divmod(number, every)
    return place == (block * _SCRAMBLE >> 16) % every
