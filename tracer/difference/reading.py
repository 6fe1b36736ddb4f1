"""Read the sides of a difference: files, or parts of one file in a single pass."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tracer.analysis.intervals import is_within, span
from tracer.analysis.source import Source
from tracer.analysis.summary import Summary
from tracer.compare.facts import flattened
from tracer.compare.gaps import Gaps
from tracer.compare.intake import Intake
from tracer.difference.side import Side, Span
from tracer.errors import RecordingError, UsageError
from tracer.recording import RecordingReader, Run
from tracer.units import SECOND, duration, many, moment
from tracer.window import Window

__all__ = ["Part", "read_part", "read_sides"]

#: Which part of a recording is meant, given its source and its first interval.
Part = Callable[[Source, tuple[int, int]], Span]
_Spans = Callable[[Source, tuple[int, int]], Sequence[Span]]


def read_sides(
    files: Sequence[str],
    parts: Sequence[Part],
    progress: Callable[[str], None] = lambda said: None,
    opening: Callable[[str], Run] = RecordingReader,
) -> tuple[tuple[Side, ...], Side]:
    """Read files, or parts of one: all but the last are of before. Of several ``parts`` has none, one for all, or one
    for each.

    ``progress`` hears what is done; ``opening`` is for what else can be read as a recording is. Raises RecordingError
    for a file that can't be read or has no interval, UsageError for a part in which nothing was recorded.
    """
    if len(files) == 1:
        sides = _read(files[0], [*map(_alone, parts)], progress, opening)
    else:
        of_each = parts if len(parts) == len(files) else [*parts, _whole][:1] * len(files)
        sides = [
            side
            for path, part in zip(files, of_each, strict=True)
            for side in _read(path, [_alone(part)], progress, opening)
        ]
    return tuple(sides[:-1]), sides[-1]


def read_part(side: Side, spans: Sequence[Span], opening: Callable[[str], Run] = RecordingReader) -> Side:
    """Read spans of a side again, as one. Raises as ``read_sides``."""
    (part,) = _read(side.node.path, [lambda source, first: spans], lambda said: None, opening)
    return part


def _alone(part: Part) -> _Spans:
    return lambda source, first: [part(source, first)]


def _whole(source: Source, first: tuple[int, int]) -> Span:
    return float("-inf"), float("inf")


def _read(
    path: str, parts: Sequence[_Spans], progress: Callable[[str], None], opening: Callable[[str], Run]
) -> list[Side]:
    with opening(path) as reader:
        source = Source.from_header(reader.header)
        gathered: list[_Gathered] = []
        for windows in reader:
            if not windows:
                continue
            if not gathered:
                first = span(windows)
                first_ns = first[0]
                gathered = [_Gathered(source, part(source, first)) for part in parts]
            if reader.intervals % 100 == 0:
                progress(f"reading {many(reader.intervals, 'interval')}")
            last_ns = max(window.end_ns for window in windows)
            _learn_clock(source, windows)
            for one in gathered:
                one.add(windows)
        facts, warning, damaged = flattened(reader.header), reader.warning, bool(reader.damage)
        # A black box has no end: what it lacks is its own to say.
        cut = isinstance(reader, RecordingReader) and reader.truncated is not None and not damaged
    if not gathered:
        raise RecordingError(f"{path} has no interval.", hint="nothing of it can be compared")
    for number, one in enumerate(gathered, 1):
        if not one.intake.intervals:
            which = f" (the one named at place {number})" if len(parts) > 1 else ""
            raise UsageError(
                f"nothing was recorded in that --range of {path}{which}.",
                hint=f"it was recorded {_told(source, first_ns, last_ns)}",
            )
    return [
        replace(
            one.side(path, facts, warning, first_ns, last_ns),
            damaged=damaged and one.reaches(last_ns),
            cut=cut and one.reaches(last_ns),
        )
        for one in gathered
    ]


def _told(source: Source, first_ns: int, last_ns: int) -> str:
    """Say from when to when was recorded, in the forms that a range takes."""
    start, end = source.unix_ns(first_ns), source.unix_ns(last_ns)
    clock = f", {moment(start)} to {moment(end)}; times of day are UTC" if start == start else ""
    each = f" in intervals of {duration(source.interval_ns)}" if source.interval_ns else ""
    return f"for {duration(last_ns - first_ns)}{each}{clock}"


def _learn_clock(source: Source, windows: Sequence[Window]) -> None:
    """Hear of a clock that is set outside of every part as well."""
    for window in windows:
        if (window.probe, window.table) == ("agent", "clock"):
            source.learn_clock(window)


class _Gathered:
    """One part of a recording, of one span or several; which intervals belong to it ``is_within`` says."""

    def __init__(self, source: Source, spans: Sequence[Span]) -> None:
        # Windows as short as intervals: a moment of a second has to have several.
        self.intake = Intake(source, length_ns=source.interval_ns or SECOND)
        self._found, self._gaps, self._squeezed_ns = Gaps(source), list[tuple[int, int]](), 0
        self._summary = Summary(source.interval_ns, source)
        self._spans = spans
        self._low, self._high = min(low for low, _ in spans), max(high for _, high in spans)

    def add(self, windows: Sequence[Window]) -> None:
        """Add an interval, if it is in this part."""
        interval = span(windows)
        if any(is_within(interval, one) for one in self._spans):
            # Windows are as long as a gap would have them be: it is left out, and added again to what is told of times.
            if gap_ns := self._found.before(windows):
                self._leave_out(interval[0] - gap_ns, gap_ns)
            if self.intake.add([_earlier(window, self._squeezed_ns) for window in windows]):
                # Who had the time is told of the time that is compared.
                self._summary.add_interval(windows)
            elif self.intake.intervals:
                self._leave_out(interval[0], interval[1] - interval[0])

    def _leave_out(self, start_ns: int, length_ns: int) -> None:
        self._gaps.append((start_ns - self._squeezed_ns, length_ns))
        self._squeezed_ns += length_ns

    def reaches(self, last_ns: int) -> bool:
        """Return whether more of the recording would belong to this part, too."""
        return self._high > last_ns

    def side(self, path: str, facts: Mapping[str, str], warning: str, first_ns: int, last_ns: int) -> Side:
        """Return what was gathered; ``first_ns`` and ``last_ns`` are of the whole recording."""
        remarks = [*self.intake.remarks(), *self._found.remarks(), *([warning] if warning else [])]
        seen = self._summary.intervals
        finite = [max(0.0, first_ns - self._low), max(0.0, self._high - last_ns)]
        outside = sum(one for one in finite if one != float("inf"))
        if outside > seen.typical_ns:
            remarks.append(f"{duration(outside)} of its range lie outside of the recording")
        node = self.intake.node(path, dict(facts), tuple(remarks), 1)
        name = "standard input" if path == "-" else os.path.basename(path)
        return Side(name, node, self._summary, seen.start_ns, seen.end_ns, tuple(self._gaps))


def _earlier(window: Window, by_ns: int) -> Window:
    return replace(window, start_ns=window.start_ns - by_ns, end_ns=window.end_ns - by_ns) if by_ns else window
