"""Trace this node into a recording, then say what stands out.

Everything that runs later (summary, top, reports) reads the recording: nothing is lost by recording first.
"""

from __future__ import annotations

import shutil

import click

from tracer.commands._early import start_early
from tracer.commands._failures import keeping
from tracer.commands._labels import labelled
from tracer.commands._options import DURATION, tracing_options
from tracer.commands._stopping import stopping
from tracer.errors import UsageError

GROUP = "Investigate"
ORDER = 1


@click.command()
@click.option("-o", "--output", default="foreshock-%h-%t.fsk", show_default=True, metavar="FILE.fsk",
              help="Where to; %h is the host's name, %t the UTC time.")  # fmt: skip
@click.option("--for", "duration", type=DURATION, help="How long, for example 30s; default: until Ctrl-C.")
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
@click.option("--quiet", is_flag=True, help="No progress and no summary; errors only.")
@click.option(
    "--job", metavar="ID", help="Only the processes of this Slurm or other job, or pod, where they can be told."
)
@click.option("--rank", type=click.IntRange(min=0), metavar="N", help="Only this rank.")
@click.option("--label", "labels", multiple=True, callback=labelled, metavar="NAME=VALUE",
              help="Kept with the recording, for compare --by; again for each.")  # fmt: skip
@tracing_options
@click.pass_context
def record(
    ctx: click.Context,
    output: str,
    duration: int | None,
    overwrite: bool,
    quiet: bool,
    job: str | None,
    rank: int | None,
    labels: dict[str, str],
    probes: str,
    deep: bool,
    interval: int,
    pid: int | None,
    cgroup: str | None,
    cpus: str | None,
) -> None:
    """Trace this node into a recording, then say what stands out.

    \b
    foreshock record --for 30s                   every light probe, 30 seconds
    foreshock record --deep --pid 4711           stacks of one process as well
    foreshock record --job 48213 --rank 37       what this rank lives through
    srun foreshock record -o /shared/%h-%t.fsk --label image=2026-11   one file per node
    """
    if output in ("-", ""):
        raise UsageError("a recording needs a file.", hint="-o FILE.fsk; the default names it after host and time")
    with stopping() as stop:
        start_early()
        # Not at the top: `foreshock record --help` needs neither numpy nor the kernel side.
        from tracer.collect.trace import Request, Trace
        from tracer.commands._progress import Progress
        from tracer.recording import RecordingWriter, expand_path

        path = expand_path(output)
        progress = Progress(enabled=not quiet)
        progress.say("attaching…")
        request = Request(probes, deep, interval, pid, cgroup, cpus, job, rank, labels)
        with Trace(request) as trace:
            header = trace.header()
            with RecordingWriter(path, header, overwrite=overwrite, stopped=stop.is_set) as writer:
                for note in trace.notes:
                    progress.note(note)
                for windows in trace.intervals(stop, duration):
                    writer.write(windows)
                    progress.interval(windows, duration)
                if trouble := trace.trouble():
                    progress.note(trouble)
        progress.end()
    if not quiet:
        from tracer.commands.summary import print_summary

        with keeping(path):
            code = print_summary(path, width=shutil.get_terminal_size((80, 24)).columns)
            click.echo(f"recording: {path}")
        ctx.exit(code)
