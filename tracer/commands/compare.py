"""Say which node is the straggler, since when, why, and what is different there, from recordings of many nodes.

Offline, without root: every recording is read once, the suspects' twice.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from tracer.commands._options import refuse
from tracer.commands._streams import aside
from tracer.errors import RecordingError, UndecidedError, UsageError
from tracer.units import many

if TYPE_CHECKING:
    from tracer.compare.node import Node

GROUP = "Investigate"
ORDER = 5

#: Suspects whose recordings are read again for the CPU and who had it.
_LOOKED_AT = 8
_PEERS = 3  # that are read again where a task is to blame
_LEAST_WINDOWS = 4


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE.fsk...")
@click.option("--by", metavar="KEY", help="Compare cohorts: kernel, driver, a label, any row of the fingerprint.")
@click.option("--reference", metavar="VALUE", help="The cohort of --by to compare with; default: the largest.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
@click.option("--html", "page", metavar="OUT.html", help="Also a page of the straggler beside its twins.")
@click.option("--overwrite", is_flag=True, help="Replace an existing page.")
@click.pass_context
def compare(
    ctx: click.Context,
    files: tuple[str, ...],
    by: str | None,
    reference: str | None,
    as_json: bool,
    page: str | None,
    overwrite: bool,
) -> None:
    """Say which node is the straggler, since when, why, and what is different there.

    Nodes are compared with each other and with their own beginning: best are recordings, or black boxes, of the same
    time, of at least eight nodes that do the same work. Exits with 0 when no node deviates, with 1 when one does or
    many do together, or a rank; with 4 when fewer than two recordings can be compared; with 7 when nobody deviates in
    what was recorded, and of some node more than a tenth is missing, a probe that most have, or the whole recording.

    With --by, cohorts of nodes are compared instead: how much slower are nodes with the new kernel, image or driver,
    how sure is that, and what would it cost on 1,000 nodes? Exits with 1 when a cohort differs.

    \b
    srun foreshock record --for 10m -o /shared/%h.fsk
    foreshock compare /shared/*.fsk
    foreshock compare --json /shared/*.fsk | jq -r .verdict
    foreshock compare --html cu39.html /shared/*.fsk      the straggler and three like it, for the browser
    foreshock compare --by kernel /shared/*.fsk
    foreshock compare --by image /shared/*.fsk        recorded with --label image=2026-11 and image=2026-12
    """
    # Not at the top: `foreshock compare --help` needs no numpy.
    from tracer.commands._output import refuse_existing
    from tracer.commands._progress import Progress
    from tracer.commands._run import count_run, open_run
    from tracer.compare.reading import read_nodes
    from tracer.recording.paths import shown

    if by is not None:
        refuse(ctx, "with --by", "page")
    else:
        refuse(ctx, "without --by", "reference")
    if page is None:
        refuse(ctx, "without --html", "overwrite")
    elif page == "-":
        raise UsageError("standard output has the text already.", hint="--html OUT.html")
    else:
        refuse_existing(page, overwrite, files)
    progress = Progress(enabled=True)
    nodes, unread = read_nodes(
        files,
        lambda done: progress.say(f"reading {done + 1} of {len(files)} recordings"),
        opening=open_run,
        counting=count_run,
    )
    progress.say("comparing")
    skipped = [(one.path, one.why) for one in unread]
    try:
        answer = _stragglers(nodes, skipped) if by is None else _cohorts(nodes, skipped, by, reference)
    finally:
        progress.end()
    _print(answer, as_json)
    if page is not None:
        label = answer.write(page, overwrite)
        aside(
            f"report: {shown(page)}" if label else "foreshock: no node deviates by itself: there is no page to write."
        )
    ctx.exit(answer.code)


class _Answer(NamedTuple):
    """``code`` is the exit code, ``tree`` the answer for programs, ``render(width, color)`` that for people.

    ``write(path, overwrite)`` writes the page of the node to look at and returns its label; "" where there is none.
    """

    code: int
    tree: dict[str, Any]
    render: Callable[[int, bool], list[str]]
    write: Callable[[str, bool], str] = lambda *_: ""


def _stragglers(nodes: Sequence[Node], skipped: Sequence[tuple[str, str]]) -> _Answer:
    from tracer.commands._run import open_run
    from tracer.compare.comparison import compare
    from tracer.compare.details import look
    from tracer.compare.twins import twins_of
    from tracer.reports.comparison import as_dict, render

    found = compare(nodes, [path for path, _ in skipped])
    _check(len(found.labels), found.grid.compared, [*skipped, *found.left_out])
    details = {
        suspect.label: look(suspect, [node for _, node in twins_of(found, suspect.label, _PEERS)], open_run)
        for suspect in found.suspects[:_LOOKED_AT]
    }

    def write(path: str, overwrite: bool) -> str:
        from tracer.commands._straggler import write_page

        return write_page(path, found, details, overwrite=overwrite)

    return _Answer(
        1 if found.deviates else UndecidedError.exit_code if found.reservations else 0,
        as_dict(found, details, skipped),
        lambda width, color: render(found, details, skipped, width=width, color=color),
        write,
    )


def _cohorts(nodes: Sequence[Node], skipped: Sequence[tuple[str, str]], by: str, reference: str | None) -> _Answer:
    from tracer.cohorts.rollout import compare_cohorts
    from tracer.cohorts.verdict import too_little
    from tracer.reports.cohorts import as_dict, render

    if len(nodes) < 2:
        _check(len(nodes), 0, [*skipped])
    found = compare_cohorts(nodes, by, reference)
    _check(len(found.grid.nodes), found.grid.compared, [*skipped, *found.left_out])
    if why := too_little(found):
        message, hint = why
        raise RecordingError(message, hint=hint)
    return _Answer(
        int(bool(found.told)),
        as_dict(found, skipped),
        lambda width, color: render(found, skipped, width=width, color=color),
    )


def _print(answer: _Answer, as_json: bool) -> None:
    from tracer.reports.json import dumps
    from tracer.reports.layout import plain_ascii
    from tracer.reports.terminal import shows_unicode, wants_color

    if as_json:
        click.echo(dumps(answer.tree))
        return
    width = shutil.get_terminal_size((80, 24)).columns
    output = "\n".join(answer.render(width, wants_color(sys.stdout)))
    click.echo(output if shows_unicode(sys.stdout) else plain_ascii(output))


def _check(nodes: int, windows: int, left_out: list[tuple[str, str]]) -> None:
    """Raise RecordingError when there is nothing to compare; of what was left out the first is told."""
    if nodes < 2:
        path, why = left_out[0] if left_out else ("", "")
        hint = f"{path}: {why.rstrip('.')}" if path else "name the recordings of at least two nodes"
        raise RecordingError(f"{nodes} of {nodes + len(left_out)} recordings can be compared; it takes two.", hint=hint)
    if windows < _LEAST_WINDOWS:
        raise RecordingError(
            f"the recordings have {many(windows, 'window')} in common, recorded by most; it takes {_LEAST_WINDOWS}.",
            hint="record longer, at the same time; on a node that is very busy intervals come late",
        )
