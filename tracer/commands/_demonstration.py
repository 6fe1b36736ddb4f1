"""The demo's run: loads of known kinds at known times, traced into a recording, each told as it begins."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np

from tracer import histogram
from tracer.collect.trace import Request, Trace
from tracer.commands._progress import Progress
from tracer.commands._stopping import stopping
from tracer.commands._streams import aside
from tracer.errors import UnavailableError
from tracer.escape import printable
from tracer.recording import RecordingWriter
from tracer.reports.layout import wrap
from tracer.units import count, duration
from tracer.window import Window
from tracer.workloads import Places, places
from tracer.workloads.hog import Hog
from tracer.workloads.packets import Packets
from tracer.workloads.pipes import Pipes
from tracer.workloads.victim import Victim

__all__ = ["demonstrate"]

_ROUNDS, _PACKETS = 2000, 3000  # a second: seen in every table, and a few percent of a CPU
#: Long enough to stand out, with room for others in between: the node stays usable, and no watchdog is near.
_BURST, _REST = 0.4, 0.1
#: The hog's part of the run.
_FROM, _TO = 0.3, 0.7


@dataclass(frozen=True)
class _Phase:
    """From ``at`` seconds on: what is told, each on a line, and what begins."""

    at: float
    texts: Sequence[str]
    begin: Callable[[], None]


def demonstrate(path: str, duration_ns: int, *, overwrite: bool) -> int:
    """Trace this node under the demo's loads into ``path``; return the number of intervals recorded.

    Raises UnavailableError where the scheduler's probes can't run.
    """
    progress = Progress(enabled=True)
    where, seconds = places(), duration_ns / 1e9
    with stopping() as stop, ExitStack() as stack:
        phases = _phases(stack, where, seconds)
        # Not on the hog's CPU: we would come late ourselves. This process ends with the demo.
        os.sched_setaffinity(0, where.free)
        progress.say("attaching…")
        trace = stack.enter_context(Trace(Request()))
        header = trace.header()
        # This recording is made to be shown around.
        header["fingerprint"].get("kernel", {}).pop("command_line", None)
        for name in ("cpustate", "runqueue"):
            if name in header["refused"]:
                raise UnavailableError(f"{name}: {header['refused'][name]}.", hint="foreshock doctor")
        writer = stack.enter_context(RecordingWriter(path, header, overwrite=overwrite))
        _tell(progress, "demo: ", f"tracing this node for {seconds:g} s")
        intervals = 0
        _begin(phases, trace, progress)
        for windows in trace.intervals(stop, duration_ns):
            writer.write(windows)
            intervals += 1
            _begin(phases, trace, progress)
            progress.say(_live(windows, trace, seconds))
        progress.end()
        _tell(progress, _at(trace), "ended early" if stop.is_set() else "done")
        aside("")
    if not intervals:
        os.unlink(path)
    return intervals


def _phases(stack: ExitStack, where: Places, seconds: float) -> list[_Phase]:
    """Start every load, asleep until its phase, and return the phases in order."""
    bursts = max(2, int(seconds * (_TO - _FROM) / (_BURST + _REST)))
    hog = stack.enter_context(Hog(where.busy, bursts=bursts, burst=_BURST, rest=_REST))
    others = [
        Victim(where.busy, seconds),
        Pipes(int(_ROUNDS * seconds), per_second=_ROUNDS),
        Packets(int(_PACKETS * seconds), per_second=_PACKETS),
    ]
    for load in others:
        stack.enter_context(load)
    usual = (
        f"{count(2 * _ROUNDS)} context switches/s between two processes,",
        f"{count(_PACKETS)} packets/s between two network namespaces of our own,",
        f"a task on CPU {where.busy} that sleeps 1 ms at a time",
    )

    def begin_others() -> None:
        for load in others:
            load.go()

    return [
        _Phase(0, usual, begin_others),
        _Phase(seconds * _FROM, [f"and a hog: pid {hog.pid} takes CPU {where.busy} for 400 ms at a time"], hog.go),
        _Phase(seconds * _TO, ["without the hog again"], lambda: None),
    ]


def _begin(phases: list[_Phase], trace: Trace, progress: Progress) -> None:
    """Begin the phases that are due."""
    while phases and _elapsed(trace) >= phases[0].at - 0.5:
        phase = phases.pop(0)
        _tell(progress, _at(trace), *phase.texts)
        phase.begin()


def _at(trace: Trace) -> str:
    return f"demo: {_elapsed(trace):2.0f} s  "


def _elapsed(trace: Trace) -> float:
    return (time.monotonic_ns() - trace.began_ns) / 1e9


def _tell(progress: Progress, first: str, *texts: str) -> None:
    """Say each text on lines of its own, as wide as the terminal, behind ``first`` and below it."""
    progress.end()
    width, indent = shutil.get_terminal_size().columns, " " * len(first)
    for text in texts:
        for line in wrap(text, width, first, indent):
            aside(line)
        first = indent


def _live(windows: Sequence[Window], trace: Trace, seconds: float) -> str:
    """Return the line that shows the last interval while the next one runs."""
    tables = {(window.probe, window.table): window.rows for window in windows}
    waits = tables[("runqueue", "wait")]
    number = int(histogram.count(waits["slots"]).sum()) if len(waits) else 0
    return f"      {_elapsed(trace):2.0f} s of {seconds:g} s: {count(number)} waits for a CPU{_worst(tables)}"


def _worst(tables: dict[tuple[str, str], np.ndarray]) -> str:
    worst = tables[("runqueue", "worst")]
    if not len(worst):
        return ""
    longest = worst[int(worst["wait_ns"].argmax())]
    return f", the longest {duration(int(longest['wait_ns']))} behind {printable(bytes(longest['holder_comm']))}"
