"""A part of a recording's time, as people say it: ``10s..20s`` from its start, or ``02:11:05..02:11:20`` in UTC."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import click

from tracer.commands._options import OFFSET
from tracer.errors import UsageError

if TYPE_CHECKING:
    from tracer.analysis.source import Source

__all__ = ["RANGE", "TimeRange"]

_CLOCK = re.compile(r"(?:(\d{4}-\d\d-\d\d)[T ])?(\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)Z?", re.ASCII)
_SAY = "say for example 10s..20s from the start, 90s.., or 02:11:05..02:11:20 in UTC"


@dataclass(frozen=True)
class TimeRange:
    """From ``start`` to ``end``: ns since the recording's start, (date or "", time of day) in UTC, or None.

    ``said`` is how it was given.
    """

    start: int | tuple[str, str] | None = None
    end: int | tuple[str, str] | None = None
    said: str = field(default="", compare=False)

    def monotonic_ns(self, source: Source, first: tuple[int, int]) -> tuple[float, float]:
        """Return both ends, at whole intervals, on the clock of a recording whose ``first`` interval was then.

        They are where the report's time axis has its steps: each belongs to the range in which its middle lies. Of a
        range within one step that one is meant. Raises UsageError.
        """
        first_ns, step_ns = first[0], source.interval_ns or max(1, first[1] - first[0])
        start, end = _resolved(self.start, source, first_ns), _resolved(self.end, source, first_ns)
        low, high = float("-inf") if start is None else start, float("inf") if end is None else end
        if low >= high:
            what = "is empty" if low == high else "ends before it starts"
            raise UsageError(" ".join(filter(None, ("--range", self.said, f"{what}."))), hint=_SAY)
        ends = [end if math.isinf(end) else math.ceil((end - first_ns) / step_ns - 0.5) for end in (low, high)]
        if ends[0] == ends[1]:
            ends[0] = ((low + high) / 2 - first_ns) // step_ns
            ends[1] = ends[0] + 1
        return first_ns + ends[0] * step_ns, first_ns + ends[1] * step_ns


class _Range(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.3
    name = "range"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> TimeRange:
        if isinstance(value, TimeRange):
            return value
        said = str(value).strip()
        start, dots, end = said.partition("..")
        try:
            found = TimeRange(_end(start), _end(end), said)
        except (ValueError, click.BadParameter):
            self.fail(f"{value!r} is no range: {_SAY}", param, ctx)
        if not dots or found == TimeRange():
            self.fail(f"{value!r} is no range: {_SAY}", param, ctx)
        return found


RANGE = _Range()


def _end(text: str) -> int | tuple[str, str] | None:
    if not text:
        return None
    clock = _CLOCK.fullmatch(text)
    if clock is None:
        return OFFSET.convert(text, None, None)
    date, time = clock[1] or "", clock[2]
    datetime.fromisoformat(f"{date or '2000-01-01'}T{time.partition('.')[0]}")  # raises ValueError
    return date, time


def _resolved(end: int | tuple[str, str] | None, source: Source, first_ns: int) -> float | None:
    if end is None:
        return None
    if isinstance(end, int):
        return first_ns + end
    began_unix_ns = source.unix_ns(first_ns)
    if began_unix_ns != began_unix_ns:
        raise UsageError("the recording doesn't know the time of day.", hint="--range 10s..20s counts from its start")
    date, time = end
    began = datetime.fromtimestamp(began_unix_ns // 1e9, timezone.utc)
    whole, _, fraction = time.partition(".")
    moment = datetime.fromisoformat(f"{date or began.date()}T{whole}").replace(tzinfo=timezone.utc)
    if not date and moment < began - timedelta(hours=12):
        moment += timedelta(days=1)  # a recording that goes on after midnight
    nanoseconds = int(fraction.ljust(9, "0")) if fraction else 0
    return first_ns + (int(moment.timestamp()) * 10**9 + nanoseconds - began_unix_ns)
