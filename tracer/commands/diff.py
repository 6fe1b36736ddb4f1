"""Say what got slower from one recording to another, or between two times of one, beyond the noise, and who did it.

Offline, without root: every recording is read once, in bounded memory.
"""

from __future__ import annotations

import re
import shutil
import sys
from typing import Any

import click

from tracer.commands._range import RANGE, TimeRange
from tracer.errors import LimitPassedError, UsageError

GROUP = "Investigate"
ORDER = 6


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
@click.argument("files", nargs=-1, required=True, metavar="BEFORE.fsk [AFTER.fsk]")
@click.option("--range", "times", type=RANGE, multiple=True, metavar="A..B",
              help="Only from A to B: 10s..20s from the start, or 02:11:05..02:11:20 UTC. Twice for one file: before, "
              "then after; of two files once for both, or twice.")  # fmt: skip
@click.option("--fail-over", "limit", type=_Percent(), metavar="N%",
              help="Exit with 6 when anything is slower by more than that, beyond the noise.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
def diff(files: tuple[str, ...], times: tuple[TimeRange, ...], limit: float | None, as_json: bool) -> None:
    """Say what got slower from one recording to another, beyond the noise of their own windows, and who did it.

    Best are recordings of the same work, of some minutes each: half a minute tells great changes only. "-" is standard
    input. Exits with 0 whatever changed, unless --fail-over makes it a gate; with 4 when there is too little data to
    tell.

    \b
    foreshock diff before.fsk after.fsk
    foreshock diff --range 14:02:00..14:05:00 --range 14:10..14:12 node17.fsk
    foreshock diff --fail-over 5% old.fsk new.fsk || echo not to be rolled out
    """
    _check(files, times)
    # Not at the top: `foreshock diff --help` needs no numpy.
    from tracer.commands._progress import Progress
    from tracer.difference.difference import difference
    from tracer.difference.reading import read_sides
    from tracer.difference.verdict import failure
    from tracer.reports.difference import as_dict, render
    from tracer.reports.json import dumps
    from tracer.reports.layout import plain_ascii
    from tracer.reports.terminal import shows_unicode, wants_color

    progress = Progress(enabled=True)
    try:
        before, after = read_sides(files, [time.monotonic_ns for time in times], progress.say)
    finally:
        progress.end()
    found = difference(before, after, None if limit is None else 1 + limit)
    if as_json:
        click.echo(dumps(as_dict(found)))
    else:
        width = shutil.get_terminal_size((80, 24)).columns
        output = "\n".join(render(found, width=width, color=wants_color(sys.stdout)))
        click.echo(output if shows_unicode(sys.stdout) else plain_ascii(output))
    if found.failing:
        raise LimitPassedError(failure(found), hint="the numbers, and who took the time, are on standard output")


def _check(files: tuple[str, ...], times: tuple[TimeRange, ...]) -> None:
    if len(files) > 2:
        raise UsageError(f"{len(files)} recordings are too many for a difference.", hint="foreshock compare takes many")
    if len(files) == 1 and len(times) != 2:
        raise UsageError(
            "one recording needs two ranges to differ.",
            hint="name another recording, or --range 10s..60s --range 90s..120s",
        )
    if len(times) > 2:
        raise UsageError(f"{len(times)} ranges are too many for a difference.", hint="give two: before and after")
    if files == ("-", "-"):
        raise UsageError("standard input is one recording.", hint="save the other to a file first")
