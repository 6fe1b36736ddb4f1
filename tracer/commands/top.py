"""Watch this node live, or step through a recording.

Per CPU: waits for it, softirqs, interrupts; whose time was taken by whom (--deep); the worst waits with who held the
CPU; devices; what foreshock costs.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from tracer.commands._early import start_early
from tracer.commands._options import TRACING, refuse, tracing_options
from tracer.commands._streams import tell
from tracer.errors import RecordingError, UsageError

if TYPE_CHECKING:
    from tracer.collect.trace import Request
    from tracer.reports.state import TopState
    from tracer.reports.terminal import Terminal

GROUP = "Investigate"
ORDER = 3


@click.command()
@click.argument("file", required=False, metavar="[FILE.fsk]")
@click.option("--once", is_flag=True, help="Print one interval and end: for scripts and small terminals.")
@click.option("--json", "as_json", is_flag=True, help="With --once: as one JSON object.")
@tracing_options
@click.pass_context
def top(
    ctx: click.Context,
    file: str | None,
    once: bool,
    as_json: bool,
    probes: str,
    deep: bool,
    interval: int,
    pid: int | None,
    cgroup: str | None,
    cpus: str | None,
) -> None:
    """Watch this node live, or step through a recording.

    \b
    foreshock top                    live; q ends, space pauses, s sorts
    foreshock top node17.fsk         a recording; arrows step through it
    foreshock top --once --json      one second, for a script
    """
    if as_json and not once:
        raise UsageError("--json needs --once.", hint="foreshock top --once --json")
    if not once and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("top needs a terminal.", hint="--once prints one interval; --once --json is for programs")
    if file is not None:
        refuse(ctx, "with a recording", *TRACING)
        _show_recording(file, once, as_json)
        return
    start_early()
    from tracer.collect.trace import Request

    _show_live(Request(probes, deep, interval, pid, cgroup, cpus), once, as_json)


def _show_live(request: Request, once: bool, as_json: bool) -> None:
    from tracer.analysis.source import Source
    from tracer.collect.trace import Trace
    from tracer.reports.state import TopState
    from tracer.reports.terminal import Terminal

    with Trace(request) as trace:
        state = TopState(source=Source.from_header(trace.header()), message="; ".join(trace.notes))
        if once:
            trace.wait(time.sleep, trace.seconds_left())
            state.push(trace.collect())
            _print(state, as_json)
            return
        with Terminal() as terminal:
            _draw(terminal, state)
            while (key := trace.wait(terminal.key, trace.seconds_left())) != "q":
                if not trace.seconds_left():
                    windows = trace.collect()  # also when paused: an interval must not grow while we look
                    if not state.paused:
                        state.push(windows)
                _common_key(state, key)
                _draw(terminal, state)


def _show_recording(path: str, once: bool, as_json: bool) -> None:
    from tracer.commands._replay import Replay
    from tracer.reports.state import TopState
    from tracer.reports.terminal import Terminal

    with Replay(path) as replay:
        state = TopState(source=replay.source)
        if once:
            state.show(replay.last())
            state.position, state.message = f"{replay.known} of {replay.known}", replay.message
            _print(state, as_json)
            if replay.damaged:
                raise SystemExit(RecordingError.exit_code)  # the message is part of what was printed
            return
        with Terminal() as terminal:
            position, due = 1, time.monotonic()
            state.paused = True
            while True:
                state.show(replay.until(position))
                position = min(position, replay.known)
                state.position = f"{position} of {replay.known}{'' if replay.complete else '+'}"
                state.message = replay.message
                _draw(terminal, state)
                key = terminal.key(3600.0 if state.paused else max(0.0, due - time.monotonic()))
                if key == "q":
                    return
                due = max(due, time.monotonic()) + (0.0 if key else 1.0)
                _common_key(state, key)
                position = max(1, position + _step(key, state.paused, replay.known))


def _step(key: str, paused: bool, known: int) -> int:
    """Return by how many intervals a key, or none within a second of playing, moves."""
    steps = {"left": -1, "right": 1, "up": -10, "down": 10, "page up": -60, "page down": 60, "home": -known}
    if not key:
        return 0 if paused else 1
    return (1 << 40) if key == "end" else steps.get(key, 0)


def _common_key(state: TopState, key: str) -> None:
    if key == " ":
        state.paused = not state.paused
    elif key == "s":
        state.next_sort()


def _draw(terminal: Terminal, state: TopState) -> None:
    from tracer.reports.terminal import wants_color
    from tracer.reports.top import render

    width, height = terminal.size()
    terminal.draw(render(state, width, height, wants_color(sys.stdout)))


def _print(state: TopState, as_json: bool) -> None:
    from tracer.reports.json import dumps
    from tracer.reports.top import snapshot

    if as_json:
        click.echo(dumps(state.as_dict()))
        return
    import shutil

    columns, lines = shutil.get_terminal_size((80, 24))
    for line in snapshot(state, max(columns, 40), max(lines - 1, 24)):
        tell(line)
