"""Make one HTML file of a run: from what stands out to the guilty stack.

It opens anywhere, from a mail too: nothing in it comes from the network, and no name in it is more than text.
"""

from __future__ import annotations

import os

import click

from tracer.commands._failures import complain
from tracer.commands._options import SIZE
from tracer.commands._streams import aside
from tracer.errors import RecordingError, UsageError

GROUP = "Investigate"
ORDER = 3

_LEAST_BYTES = 1 << 20


@click.command()
@click.argument("file", metavar="FILE")
@click.option("-o", "--output", "path", metavar="OUT.html", help="Where to; default: the recording's name with .html.")
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
@click.option("--max-size", "most_bytes", type=SIZE, default="10MiB", show_default=True,
              help="Of the file; beyond, time and stacks lose detail, and it says so.")  # fmt: skip
@click.pass_context
def report(ctx: click.Context, file: str, path: str | None, overwrite: bool, most_bytes: int) -> None:
    """Make one HTML file of a run: from what stands out to the guilty stack.

    Findings, latency by time, alerts, what each CPU did and flame graphs, all of any range of time. It needs nothing
    from the network. FILE is a recording ("-" is standard input) or a black box.

    \b
    foreshock report node17.fsk                  writes node17.html
    foreshock report cu39.fbx                    of a node that died, with the alerts that were told
    foreshock report node17.fsk -o bad.html      stacks are in it if it was recorded with --deep
    """
    if most_bytes < _LEAST_BYTES:
        raise UsageError("--max-size is too small: the page itself takes half a megabyte.", hint="--max-size 1MiB")
    if path is None:
        if file == "-":
            raise UsageError("a report of standard input needs a name.", hint="-o report.html")
        path = f"{os.path.splitext(os.path.basename(file))[0]}.html"
    from tracer.commands._gathering import gather
    from tracer.commands._output import output, refuse_existing
    from tracer.reports.html.page import page, room

    if path != "-":
        refuse_existing(path, overwrite)
    found = gather(file)
    name = "standard input" if file == "-" else os.path.basename(file)
    data = found.payload.text(room(most_bytes), title=name, warning=found.warning, signs=found.signs)
    with output(path, overwrite=overwrite) as stream:
        stream.write(page(data, f"foreshock: {found.payload.source.host or name}").encode())
    if path != "-":
        from tracer.recording.paths import shown

        aside(f"report: {shown(path)}")
    if found.warning:
        complain("warning", found.warning)
    ctx.exit(RecordingError.exit_code if found.damaged else 0)
