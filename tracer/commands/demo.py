"""Watch foreshock find the cause of a slow node, which it makes slow itself.

Twenty seconds of this node: context switches, packets, and for a while a task that takes one CPU for itself.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracer.commands._failures import complain, keeping
from tracer.commands._options import DURATION, refuse
from tracer.commands._streams import aside
from tracer.errors import UnavailableError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

GROUP = "Verify"
ORDER = 4

_LEAST_NS = 5_000_000_000


@click.command()
@click.option("-o", "--output", default="foreshock-demo-%h-%t.fsk", show_default=True, metavar="FILE.fsk",
              help="Where to; %h is the host's name, %t the UTC time.")  # fmt: skip
@click.option("--for", "duration", type=DURATION, default="20s", show_default=True, help="How long, 5s at least.")
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
@click.option("--replay", is_flag=True, help="Only show the recording of the demo that comes with foreshock.")
@click.pass_context
def demo(ctx: click.Context, output: str, duration: int, overwrite: bool, replay: bool) -> None:
    """Watch foreshock find the cause of a slow node, which it makes slow itself.

    Traces this node while small processes of its own switch back and forth, send packets between two network
    namespaces, and one of them, called hog, takes a CPU for itself. Then says what stood out. Where it can't
    trace, it shows a recording of the same that comes with foreshock.

    \b
    foreshock demo              20 seconds, as root
    foreshock demo --replay     what it looks like, on any machine
    """
    if duration < _LEAST_NS:
        raise UsageError("--for: the demo takes 5 seconds at least.", hint="foreshock demo --for 10s")
    if replay:
        refuse(ctx, "with --replay", "output", "duration", "overwrite")
        ctx.exit(_show(sample()))
    from tracer.commands._demonstration import demonstrate
    from tracer.recording import expand_path

    path = _writable(expand_path(output), output)
    try:
        intervals = demonstrate(path, duration, overwrite=overwrite)
    except UnavailableError as error:
        _say_unavailable(error)
        ctx.exit(_show(sample()))
    if not intervals:
        raise KeyboardInterrupt  # stopped before there was anything to see
    with keeping(path):
        code = _show(path)
    ctx.exit(code)


def sample() -> str:
    """Return the path of the demo's recording that comes with foreshock.

    Made by ``foreshock demo -o tracer/sample/demo.fsk --overwrite``.
    """
    import tracer

    return str(Path(tracer.__file__).parent / "sample" / "demo.fsk")


def _show(path: str) -> int:
    """Print what a recording says and how to go on from it. Return the exit code."""
    from tracer.commands.summary import print_summary

    code = print_summary(path, width=shutil.get_terminal_size((80, 24)).columns)
    if code == 0:
        for line in _ways_on(path):
            click.echo(line)
    return code


def _ways_on(path: str) -> Sequence[str]:
    from tracer.recording.paths import shown

    foreshock = _own_command()
    return (
        "",
        f"This recording is {shown(path)}",
        f"  {foreshock} top {shown(path)}",
        "      steps through it, second by second",
        f"  {foreshock} record --for 30s",
        "      traces a node as it is, as root",
    )


def _own_command() -> str:
    """Return how to call foreshock from here: `make demo` installs it into a folder that isn't on the path."""
    import os
    import sys

    if shutil.which("foreshock"):
        return "foreshock"
    beside = os.path.join(os.path.dirname(sys.executable), "foreshock")
    return os.path.relpath(beside) if os.access(beside, os.X_OK) else "python3 -m tracer"


def _writable(path: str, template: str) -> str:
    """Return ``path``, in the folder for temporary files if it names none and this folder can't be written."""
    import os
    import tempfile

    if os.path.dirname(template) or os.access(".", os.W_OK):
        return path
    try:
        return os.path.join(tempfile.gettempdir(), path)
    except FileNotFoundError:
        return path  # everything is read-only: whoever writes says so


def _say_unavailable(error: UnavailableError) -> None:
    import os

    root = os.geteuid() == 0
    reason = error.message.rstrip(".") if root else "this needs root"
    complain("can't trace here", f"{reason}.", error.hint if root else "")
    aside("What follows is a recording of this demo that comes with foreshock.\n")
