"""Make one HTML file of a run: from what stands out to the guilty stack.

It opens anywhere, from a mail too: nothing in it comes from the network, and no name in it is more than text.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

import click

from tracer.commands._options import SIZE, refuse
from tracer.commands._redacting import redaction_options, redactor_of
from tracer.errors import RecordingError, UsageError

if TYPE_CHECKING:
    from tracer.commands._gathering import Gathered

GROUP = "Investigate"
ORDER = 3

_LEAST_BYTES = 1 << 20


@click.command()
@click.argument("file", metavar="FILE")
@click.option("-o", "--output", "path", metavar="OUT.html", help="Where to; default: the recording's name with .html.")
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
@click.option("--baseline", metavar="FILE2", help="Compare with this recording or black box.")
@click.option("--text", "as_text", is_flag=True, help="Text instead of HTML, on the terminal unless -o says where to.")
@click.option("--idle", is_flag=True, help="Show idle waits off the CPU, too; in the page it is a box to tick.")
@redaction_options
@click.option("--max-size", "most_bytes", type=SIZE, default="10MiB", show_default=True,
              help="Of the file; beyond, time and stacks lose detail, and it says so.")  # fmt: skip
@click.pass_context
def report(
    ctx: click.Context,
    file: str,
    path: str | None,
    overwrite: bool,
    baseline: str | None,
    as_text: bool,
    idle: bool,
    redact: bool,
    key_file: str | None,
    most_bytes: int,
) -> None:
    """Make one HTML file of a run: from what stands out to the guilty stack.

    Findings, latency by time, alerts, what each CPU did and flame graphs, all of any range of time, and what changed
    against another range or another recording. It needs nothing from the network. FILE is a recording ("-" is standard
    input) or a black box.

    \b
    foreshock report node17.fsk                  writes node17.html
    foreshock report cu39.fbx                    of a node that died, with the alerts that were told
    foreshock report node17.fsk -o bad.html      stacks are in it if it was recorded with --deep
    foreshock report today.fsk --baseline good.fsk       what is different today
    foreshock report node17.fsk --text | less
    foreshock report node17.fsk --redact         to hand on: names are hashes
    """
    if most_bytes < _LEAST_BYTES:
        raise UsageError(
            "--max-size is too small: there has to be room for data beside the page.", hint="--max-size 1MiB"
        )
    if file == baseline == "-":
        raise UsageError("standard input can't be both.", hint="name a file for one of them")
    if as_text:
        refuse(ctx, "with --text", "most_bytes")
        path = path or "-"
    elif path is None:
        if file == "-":
            raise UsageError("a report of standard input needs a name.", hint="-o report.html")
        path = f"{os.path.splitext(os.path.basename(file))[0]}.html"
    from tracer.commands._gathering import gather
    from tracer.commands._output import output, refuse_existing

    if path != "-":
        refuse_existing(path, overwrite, filter(None, (file, baseline)))
    redactor = redactor_of(redact, key_file)
    found = gather(file, redactor, idle=idle)
    before = gather(baseline, redactor, idle=idle) if baseline else None
    text = _as_text(found, before, to_terminal=path == "-") if as_text else _as_page(found, before, most_bytes)
    with output(path, overwrite=overwrite) as stream:
        stream.write(text.encode())
    if path != "-":
        from tracer.recording.paths import shown

        click.echo(f"report: {shown(path)}", err=True)
    for one in filter(None, (found, before)):
        if one.warning:
            from tracer.escape import printable

            click.echo(f"foreshock: warning: {printable(one.warning)}", err=True)
    ctx.exit(RecordingError.exit_code if found.damaged or (before and before.damaged) else 0)


def _as_page(found: Gathered, before: Gathered | None, most_bytes: int) -> str:
    from tracer.reports.html.page import page, room
    from tracer.reports.plain import settings

    left, beside = room(most_bytes), []
    if before:
        rows = settings(found.payload, before.payload)
        data = before.payload.text(
            left // 2, title=before.name, warning=before.warning, signs=before.signs, differences=rows
        )
        left -= len(data)
        beside.append(data)
    data = found.payload.text(left, title=found.name, warning=found.warning, signs=found.signs)
    return page(data, f"foreshock: {found.payload.source.host or found.name}", beside)


def _as_text(found: Gathered, before: Gathered | None, *, to_terminal: bool) -> str:
    from tracer.reports.layout import plain_ascii
    from tracer.reports.plain import Side, render
    from tracer.reports.terminal import shows_unicode, wants_color

    sides = [Side(one.payload, one.signs, one.name, one.warning) for one in (found, before) if one]
    width = shutil.get_terminal_size((80, 24)).columns if to_terminal else 80
    text = "\n".join(render(*sides, width=width, color=to_terminal and wants_color(sys.stdout))) + "\n"
    return text if not to_terminal or shows_unicode(sys.stdout) else plain_ascii(text)
