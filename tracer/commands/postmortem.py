"""Say what happened to a node, from its black box.

The box is read while an agent writes it, after a reboot, or from a copy on any machine, without root.
"""

from __future__ import annotations

import shutil
import sys

import click

from tracer.commands._options import DURATION, pstore_option
from tracer.commands._streams import tell
from tracer.errors import RecordingError

GROUP = "Investigate"
ORDER = 4


@click.command()
@click.argument("path", required=False, metavar="[PATH]")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
@click.option("--last", "last_ns", type=DURATION, default="60s", show_default=True,
              help="How much of the end to summarize.")  # fmt: skip
@pstore_option
@click.pass_context
def postmortem(ctx: click.Context, path: str | None, as_json: bool, last_ns: int, pstore: tuple[str, ...]) -> None:
    """Say what happened to a node, from its black box.

    PATH is a black box, or a recording that was cut off; by default this machine's black box of the previous boot, else
    that of this one. Nothing on this machine is changed.

    \b
    foreshock postmortem                         after a reboot: what happened before
    foreshock postmortem cu39.fbx --pstore logs  a copy, with the kernel's saved log
    foreshock postmortem --json | jq .sentences
    """
    # Not at the top: `foreshock postmortem --help` needs no numpy.
    from tracer.analysis.verdict import judge
    from tracer.blackbox import DEFAULT_PATH
    from tracer.commands._story import latest_box, story_of
    from tracer.reports import json
    from tracer.reports.postmortem import as_dict, render
    from tracer.reports.terminal import wants_color

    story, damaged = story_of(path or latest_box(DEFAULT_PATH), last_ns, pstore)
    verdict = judge(story.summary)
    if as_json:
        click.echo(json.dumps(as_dict(story, verdict)))
    else:
        width = shutil.get_terminal_size((80, 24)).columns
        tell("\n".join(render(story, verdict, width=width, color=wants_color(sys.stdout))))
    if damaged:
        ctx.exit(RecordingError.exit_code)
