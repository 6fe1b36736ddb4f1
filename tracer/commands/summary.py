"""Say what stands out in recordings, then show the numbers.

Reads each file once, in bounded memory, without root: a recording of a week on any machine.
"""

from __future__ import annotations

import shutil
import sys

import click

from tracer.errors import ForeshockError, RecordingError

GROUP = "Investigate"
ORDER = 2


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE.fsk...")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per file and line, for programs.")
@click.option("--idle", is_flag=True, help="Of stacks off the CPU, those of idle waits, too.")
@click.pass_context
def summary(ctx: click.Context, files: tuple[str, ...], as_json: bool, idle: bool) -> None:
    """Say what stands out in recordings, then show the numbers.

    Several files, recordings or black boxes, are shown one after the other; one that can't be read doesn't hide the
    others. "-" is standard input.

    \b
    foreshock summary node17.fsk                 verdict and tables
    foreshock summary --json *.fsk | jq .verdict.headline
    """
    worst = 0
    for number, path in enumerate(files):
        if number and not as_json:
            click.echo()
        width = shutil.get_terminal_size((80, 24)).columns
        worst = max(worst, print_summary(path, as_json=as_json, width=width, idle=idle))
    ctx.exit(worst)


def print_summary(path: str, *, as_json: bool = False, width: int = 80, idle: bool = False) -> int:
    """Print what the recording at ``path`` says, or why it can't be read. Return the exit code."""
    from tracer.commands._failures import complain
    from tracer.reports.json import dumps

    try:
        output, damaged = _render(path, as_json, width, idle)
    except ForeshockError as error:
        if as_json:
            click.echo(dumps({"file": path, "error": error.message, "hint": error.hint}))
        complain("error", error.message, error.hint)
        return error.exit_code
    click.echo(output)
    return RecordingError.exit_code if damaged else 0


def _render(path: str, as_json: bool, width: int, idle: bool) -> tuple[str, bool]:
    """Return what to print, and whether the recording is damaged."""
    # Not at the top: `foreshock summary --help` needs no numpy.
    from tracer.analysis.source import Source
    from tracer.analysis.summary import Summary
    from tracer.analysis.verdict import judge
    from tracer.commands._run import open_run
    from tracer.reports import json, text
    from tracer.reports.layout import plain_ascii
    from tracer.reports.terminal import shows_unicode, wants_color

    with open_run(path) as reader:
        source = Source.from_header(reader.header)
        found = Summary(source.interval_ns, source, idle)
        for windows in reader:
            found.add_interval(windows)
    verdict, damaged = judge(found), bool(reader.damage) or found.damaged
    if as_json:
        tree = {"file": path, **json.as_dict(found, verdict, source), "warning": reader.warning}
        return json.dumps(tree), damaged
    lines = text.render(
        found, verdict, source, title=path, warning=reader.warning, width=width, color=wants_color(sys.stdout)
    )
    output = "\n".join(lines)
    return (output if shows_unicode(sys.stdout) else plain_ascii(output)), damaged
