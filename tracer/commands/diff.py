"""Say what got slower from one recording to another, or between two times of one, beyond the noise, and who did it.

Offline, without root: every recording is read once, in bounded memory.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Sequence
from typing import Any

import click

from tracer.commands._range import RANGE, TimeRange
from tracer.errors import LimitPassedError, UndecidedError, UsageError

GROUP = "Investigate"
ORDER = 6
#: Recordings, or ranges: each before is kept with all that was seen in it.
_MOST = 32


class _Percent(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.3
    name = "percent"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        match = re.fullmatch(r"(\d{1,4}(?:\.\d{1,3})?) ?%", str(value).strip(), re.ASCII)
        if match is None or not float(match[1]):
            self.fail(f"{value!r} is no limit: say for example 5%", param, ctx)
        return float(match[1]) / 100


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="BEFORE.fsk... AFTER.fsk")
@click.option("--range", "times", type=RANGE, multiple=True, metavar="A..B",
              help="Only from A to B: 10s..20s from the start, or 02:11:05..02:11:20 UTC. Of one file twice or more: "
              "before, and at last after; of several files once for all, or as often as there are files.")  # fmt: skip
@click.option("--fail-over", "limit", type=_Percent(), metavar="N%",
              help="Exit with 6 when anything is slower by more than that, beyond the noise; with 7 when that "
              "can't be told.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
def diff(files: tuple[str, ...], times: tuple[TimeRange, ...], limit: float | None, as_json: bool) -> None:
    """Say what got slower from one recording to another, beyond the noise of their own windows, and who did it.

    Best are recordings of the same work, of some minutes each: half a minute tells great changes only. The last one is
    after; several before tell how far two times of the same are apart, and a gate needs them, three or more. Black
    boxes will do as well; "-" is standard input. Exits with 0 whatever changed, unless --fail-over makes it a gate;
    with 4 when there is too little data to tell.

    \b
    foreshock diff before.fsk after.fsk
    foreshock diff --range 14:02:00..14:05:00 --range 14:10..14:12 node17.fsk
    foreshock diff --fail-over 5% old1.fsk old2.fsk old3.fsk new.fsk || echo not to be rolled out
    """
    _check(files, times)
    # Not at the top: `foreshock diff --help` needs no numpy.
    from tracer.commands._progress import Progress
    from tracer.commands._run import open_run
    from tracer.difference.difference import difference
    from tracer.difference.reading import read_part, read_sides
    from tracer.difference.side import Side, Span
    from tracer.difference.verdict import doubt, failure
    from tracer.reports.difference import as_dict, render
    from tracer.reports.json import dumps
    from tracer.reports.layout import plain_ascii
    from tracer.reports.terminal import shows_unicode, wants_color

    progress = Progress(enabled=True)
    try:
        befores, after = read_sides(files, [time.monotonic_ns for time in times], progress.say, open_run)
    finally:
        progress.end()

    def reading(side: Side, spans: Sequence[Span]) -> Side | None:
        return None if side.node.path == "-" else read_part(side, spans, open_run)

    found = difference(befores, after, None if limit is None else 1 + limit, reading)
    if as_json:
        click.echo(dumps(as_dict(found)))
    else:
        width = shutil.get_terminal_size((80, 24)).columns
        output = "\n".join(render(found, width=width, color=wants_color(sys.stdout)))
        click.echo(output if shows_unicode(sys.stdout) else plain_ascii(output))
    if found.failing:
        raise LimitPassedError(failure(found), hint="the numbers, and who took the time, are on standard output")
    if found.doubtful or found.lacking:
        more = "name more recordings of before, three or more of a minute or more: BEFORE BEFORE BEFORE AFTER"
        again = "record again, both sides with the same probes and for long enough; --range leaves parts out"
        raise UndecidedError(doubt(found), hint=again if found.lacking else more)


def _check(files: tuple[str, ...], times: tuple[TimeRange, ...]) -> None:
    if len(files) > _MOST:
        raise UsageError(f"{len(files)} recordings are too many for a difference.", hint="foreshock compare takes many")
    if len(files) == 1 and not 2 <= len(times) <= _MOST:
        raise UsageError(
            "one recording needs two ranges to differ.",
            hint="name another recording, or --range 10s..60s --range 90s..120s",
        )
    if len(files) > 1 and len(times) not in (0, 1, len(files)):
        raise UsageError(
            f"there are {len(files)} recordings and {len(times)} ranges.", hint="give one for all, or one for each"
        )
    if files.count("-") > 1:
        raise UsageError("standard input is one recording.", hint="save the other to a file first")
