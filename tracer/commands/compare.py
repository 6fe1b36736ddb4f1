"""Say which node is the straggler, since when, why, and what is different there, from recordings of many nodes.

Offline, without root: every recording is read once, the suspects' twice.
"""

from __future__ import annotations

import shutil
import sys

import click

from tracer.errors import RecordingError

GROUP = "Investigate"
ORDER = 5

#: Suspects whose recordings are read again for the CPU and who had it.
_LOOKED_AT = 4
_LEAST_WINDOWS = 4


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE.fsk...")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
@click.pass_context
def compare(ctx: click.Context, files: tuple[str, ...], as_json: bool) -> None:
    """Say which node is the straggler, since when, why, and what is different there.

    Nodes are compared with each other and with their own beginning: best are recordings of the same time, of at least
    eight nodes that do the same work. Exits with 0 when no node deviates, with 1 when one does or many do together,
    with 4 when fewer than two recordings can be compared.

    \b
    srun foreshock record --for 10m -o /shared/%h.fsk
    foreshock compare /shared/*.fsk
    foreshock compare --json /shared/*.fsk | jq -r .verdict
    """
    # Not at the top: `foreshock compare --help` needs no numpy.
    from tracer.commands._progress import Progress
    from tracer.compare.comparison import compare as compared
    from tracer.compare.details import look
    from tracer.compare.reading import read_nodes
    from tracer.reports.comparison import as_dict, render
    from tracer.reports.json import dumps
    from tracer.reports.layout import plain_ascii
    from tracer.reports.terminal import shows_unicode, wants_color

    progress = Progress(enabled=True)
    nodes, unread = read_nodes(files, lambda done: progress.say(f"reading {done + 1} of {len(files)} recordings"))
    progress.say("comparing")
    comparison = compared(nodes)
    details = {suspect.label: look(suspect) for suspect in comparison.suspects[:_LOOKED_AT]}
    progress.end()
    skipped = [(one.path, one.why) for one in unread]
    _check(len(comparison.labels), comparison.grid.windows, [*skipped, *comparison.left_out])
    if as_json:
        click.echo(dumps(as_dict(comparison, details, skipped)))
    else:
        width = shutil.get_terminal_size((80, 24)).columns
        output = "\n".join(render(comparison, details, skipped, width=width, color=wants_color(sys.stdout)))
        click.echo(output if shows_unicode(sys.stdout) else plain_ascii(output))
    ctx.exit(1 if comparison.suspects or comparison.common else 0)


def _check(nodes: int, windows: int, left_out: list[tuple[str, str]]) -> None:
    """Raise RecordingError when there is nothing to compare; of what was left out the first is told."""
    if nodes < 2:
        path, why = left_out[0] if left_out else ("", "")
        hint = f"{path}: {why.rstrip('.')}" if path else "name the recordings of at least two nodes"
        raise RecordingError(f"{nodes} of {nodes + len(left_out)} recordings can be compared; it takes two.", hint=hint)
    if windows < _LEAST_WINDOWS:
        raise RecordingError(
            f"the recordings have {windows} windows in common; it takes {_LEAST_WINDOWS}.",
            hint="record longer, at the same time",
        )
