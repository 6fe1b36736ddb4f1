"""What people see of the agent itself: facts at the start, a sign of life, notes. Alerts are a sink's business."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator

import tracer
from tracer import units
from tracer.agent.agent import Agent
from tracer.agent.boxwatch import in_words
from tracer.agent.startup import aligned, detector_lines, sentinel_lines
from tracer.alerts.rule import View
from tracer.analysis.losses import missed
from tracer.escape import printable
from tracer.reports.layout import wrap
from tracer.sinks.descriptors import Outlet, reopened

__all__ = ["Screen"]

_QUIET_NS = 60_000_000_000


class Screen:
    """Facts and signs of life on standard output if ``foreground``, notes on standard error. It waits for no reader."""

    def __init__(self, foreground: bool) -> None:
        self._out = Outlet(reopened(1)) if foreground else None
        self._err = Outlet(reopened(2))
        self._began = False
        self._told = 0
        self._missed = 0
        self._said_ns = 0

    def note(self, text: str) -> None:
        """Say something about the agent itself."""
        self._err.write_now(f"foreshock: {printable(text)}\n".encode(errors="replace"))

    def interval(self, agent: Agent, view: View) -> None:
        """Show an interval's end: the first time what is watched, later a line when nothing was said for a minute."""
        self._missed += sum(sum(missed(window.probe, window.losses).values()) for window in view.windows.values())
        if not self._began:
            self._began = True
            self._lines(aligned(_facts(agent, view), _width()))
        elif agent.told != self._told:
            self._told, self._said_ns = agent.told, view.now_ns
        elif view.now_ns - self._said_ns >= _QUIET_NS:
            self._lines(wrap(_quiet(agent, self._missed), _width(), indent="  "))
        else:
            return
        self._said_ns, self._missed = view.now_ns, 0

    def _lines(self, lines: list[str]) -> None:
        if self._out:
            self._out.write_now("".join(f"{line}\n" for line in lines).encode(errors="replace"))


def _width() -> int:
    return shutil.get_terminal_size((80, 24)).columns


def _facts(agent: Agent, view: View) -> Iterator[tuple[str, str]]:
    host, kernel = os.uname().nodename, os.uname().release
    yield "node", f"{host}, Linux {kernel}, {os.cpu_count()} CPUs, foreshock {tracer.__version__}"
    yield "probes", ", ".join(probe.name for probe in agent.trace.probes)
    for note in agent.trace.notes:
        yield "", note
    shadow = f"; on trial, logged only: {', '.join(agent.orders.shadow)}" if agent.orders.shadow else ""
    fast = sum(rule.fast for rule in agent.rules)
    yield "rules", f"{len(agent.rules)}, {fast} of them in every sentinel{shadow}"
    for line in sentinel_lines(agent.crew.posts):
        yield "sentinels", line
    for line in detector_lines(view):
        yield "kernel", line
    if agent.symbols.hidden:
        yield "kernel", "shows no addresses (kernel.kptr_restrict): alerts name no functions"
    yield "alerts to", ", ".join(sink.name for sink in (*agent.direct, *agent.slow))
    if agent.stream:
        yield "", agent.stream.name
    yield "black box", ", ".join(agent.orders.blackbox) or "none (--blackbox PATH)"
    terms = agent.orders.closeup
    yield "state", str(agent.orders.state) if agent.orders.state else "not kept (--state FILE)"
    yield "close-ups", terms.in_words() if terms else "none (--closeup page)"


def _quiet(agent: Agent, lost: int) -> str:
    ready = sum(post.ready and not post.silent for post in agent.crew.posts)
    parts = [
        f"{len(agent.firing)} firing",
        f"{ready} of {len(agent.crew.posts)} sentinels at their posts",
        f"{lost} events not seen",
        f"{agent.desk.dropped + agent.crew.dropped} not delivered",
    ]
    parts += [f"black box {in_words(status)}" for status in (agent.recorder.status() if agent.recorder else ())]
    quiet = "nothing new" if agent.firing else "all quiet"
    return f"{units.moment(time.time_ns())}  {quiet}: {', '.join(parts)}"
