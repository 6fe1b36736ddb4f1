"""Write a recording for other viewers: flame graphs, profilers, spreadsheets.

Stacks as folded, speedscope or pprof, every table as JSON or CSV; without root, in bounded memory.
"""

from __future__ import annotations

import sys
from typing import Any

import click

from tracer.commands._exporting import OF_STACKS, TABLES, pieces, say, write_folder
from tracer.commands._options import refuse
from tracer.commands._range import RANGE, TimeRange
from tracer.commands._redacting import redaction_options, redactor_of, without_names
from tracer.commands._selecting import Intervals, checked_series, cpu_set, near
from tracer.errors import RecordingError, UsageError

GROUP = "Investigate"
ORDER = 6

_FORMATS = (*OF_STACKS, *TABLES)


class _Format(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.3
    name = "format"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in _FORMATS:
            suggestion = near(str(value), _FORMATS)
            self.fail(f"{value!r} is no format{suggestion}: choose from {', '.join(_FORMATS)}", param, ctx)
        return str(value)


@click.command()
@click.argument("file", metavar="FILE.fsk")
@click.option(
    "--format", "form", type=_Format(), required=True, metavar=f"[{'|'.join(_FORMATS)}]", help="What to write."
)
@click.option("-o", "--output", "path", metavar="OUT",
              help="Where to; default: standard output. Of csv with several tables, a new folder.")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
@click.option("--range", "time", type=RANGE, metavar="A..B",
              help="Only the intervals from A to B: 10s..20s from the start, or 02:11:05..02:11:20 UTC.")  # fmt: skip
@click.option("--pid", type=click.IntRange(min=1), metavar="PID", help="Only this process, all its threads.")
@click.option("--cpus", metavar="LIST", help="Only these CPUs, for example 0-3,8.")
@click.option("--series", metavar="A,B", help="Only these probes or tables, for example offcpu or softirq.delay.")
@click.option("--idle", is_flag=True, help="Of stacks off the CPU, those of idle waits, too.")
@redaction_options
@click.pass_context
def export(
    ctx: click.Context,
    file: str,
    form: str,
    path: str | None,
    overwrite: bool,
    time: TimeRange | None,
    pid: int | None,
    cpus: str | None,
    series: str | None,
    idle: bool,
    redact: bool,
    key_file: str | None,
) -> None:
    """Write a recording for other viewers: flame graphs, profilers, spreadsheets.

    Stacks (folded, speedscope, pprof) come from the deep probes: record with --deep. Times are in nanoseconds. Off the
    CPU, waits of threads that have nothing to do are left out, and it says how much that is. "-" is standard input.
    docs/reports.md describes each format.

    \b
    foreshock export node17.fsk --format folded | flamegraph.pl --countname ns > node17.svg
    foreshock export node17.fsk --format speedscope --range 40s..45s -o bad.speedscope.json
    foreshock export node17.fsk --format csv --series softirq.delay > delays.csv
    """
    if form not in OF_STACKS:
        refuse(ctx, f"with --format {form}, which holds everything", "idle")
    from tracer.analysis.shapes import SAMPLES, STACKS
    from tracer.analysis.source import Source
    from tracer.commands._output import output, refuse_existing
    from tracer.recording import RecordingReader
    from tracer.reports.export.selection import Selection

    # A range may count from an interval's start that has none of these.
    tables = {*SAMPLES, *STACKS, ("jobs", "members")} if form in OF_STACKS and time is None else None
    with RecordingReader(file, tables) as reader:
        names = checked_series(series, reader.header)
        redactor = redactor_of(redact, key_file)
        header, intervals = without_names(reader, redactor)
        source = Source.from_header(header)
        selection = Selection(pid=pid, cpus=cpu_set(cpus, source.cpus), series=names)
        parts = Intervals(intervals, source, time, selection)
        if form == "csv" and not _is_table(names):
            if path is None or path == "-":
                hint = "-o FOLDER writes a file per table; --series softirq.delay writes one table"
                raise UsageError("csv has several tables, and needs a folder.", hint=hint)
            write_folder(path, parts, source)
        else:
            if path not in (None, "-"):
                refuse_existing(path or "", overwrite, [file])
            elif form == "pprof" and sys.stdout.isatty():
                raise UsageError("pprof is not for a terminal.", hint="-o profile.pb.gz")
            written = pieces(form, parts, source, header, "recording" if redactor else file, idle)
            first = next(written)  # what is wrong with the recording is found out before there is a file
            with output(path, overwrite=overwrite) as stream:
                stream.write(first)
                stream.writelines(written)
        if reader.warning:
            say(f"warning: {reader.warning}")
        ctx.exit(RecordingError.exit_code if reader.damage else 0)


def _is_table(names: frozenset[str]) -> bool:
    return len(names) == 1 and "." in next(iter(names))
