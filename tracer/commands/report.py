"""Make one HTML file of a recording: from what stands out to the guilty stack.

It opens anywhere, from a mail too: nothing in it comes from the network, and no name in it is more than text.
"""

from __future__ import annotations

import os

import click

from tracer.commands._options import SIZE
from tracer.errors import RecordingError, UsageError

GROUP = "Investigate"
ORDER = 3

_LEAST_BYTES = 1 << 20


@click.command()
@click.argument("file", metavar="FILE.fsk")
@click.option("-o", "--output", "path", metavar="OUT.html", help="Where to; default: the recording's name with .html.")
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
@click.option("--max-size", "most_bytes", type=SIZE, default="10MiB", show_default=True,
              help="Of the file; beyond, time and stacks lose detail, and it says so.")  # fmt: skip
@click.pass_context
def report(ctx: click.Context, file: str, path: str | None, overwrite: bool, most_bytes: int) -> None:
    """Make one HTML file of a recording: from what stands out to the guilty stack.

    Findings, latency by time, alerts, what each CPU did and flame graphs, all of any range of time. It needs nothing
    from the network. "-" is standard input.

    \b
    foreshock report node17.fsk                  writes node17.html
    foreshock report node17.fsk -o bad.html      stacks are in it if it was recorded with --deep
    """
    if most_bytes < _LEAST_BYTES:
        raise UsageError("--max-size is too small: the page itself takes half a megabyte.", hint="--max-size 1MiB")
    if path is None:
        if file == "-":
            raise UsageError("a report of standard input needs a name.", hint="-o report.html")
        path = f"{os.path.splitext(os.path.basename(file))[0]}.html"
    from tracer.commands._alerts import ReplayedAlerts
    from tracer.commands._output import output, refuse_existing
    from tracer.recording import RecordingReader
    from tracer.reports.html.page import page, room
    from tracer.reports.html.payload import Payload
    from tracer.reports.story import signs_of

    if path != "-":
        refuse_existing(path, overwrite)
    with RecordingReader(file) as reader:
        payload = Payload(reader.header)
        alerts = ReplayedAlerts(payload.source)
        for windows in reader:
            payload.add_interval(windows)
            alerts.add_interval(windows)
    signs, _ = signs_of(alerts.alerts)
    name = "standard input" if file == "-" else os.path.basename(file)
    data = payload.text(room(most_bytes), title=name, warning=reader.warning, signs=signs)
    with output(path, overwrite=overwrite) as stream:
        stream.write(page(data, f"foreshock: {payload.source.host or name}").encode())
    if path != "-":
        from tracer.recording.paths import shown

        click.echo(f"report: {shown(path)}", err=True)
    if reader.warning:
        from tracer.escape import printable

        click.echo(f"foreshock: warning: {printable(reader.warning)}", err=True)
    ctx.exit(RecordingError.exit_code if reader.damage or payload.summary.damaged else 0)
