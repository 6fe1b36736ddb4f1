"""A report's flame graphs: of stacks on and off the CPU, and of measured time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tracer.analysis.frames import Frame
from tracer.analysis.idle import IdleTime
from tracer.analysis.shapes import SAMPLES
from tracer.analysis.source import Source
from tracer.analysis.stacks import Dictionary
from tracer.analysis.summary import Summary
from tracer.reports.html.blob import Blob
from tracer.reports.html.flames import Flames, Limits
from tracer.reports.html.timekinds import interrupts, waits
from tracer.reports.html.timeline import Timeline
from tracer.reports.html.times import Times
from tracer.reports.sections.stacks import is_scheduler
from tracer.window import Window

__all__ = ["Graphs"]

#: Flame graphs: name, probe, title, the tasks' state, where it is of one only, and whether who woke them encloses them.
#: Those of blocks in any state tell idle waits apart.
_FLAMES = (
    ("oncpu", "oncpu", "On CPU", b"", False),
    ("offcpu", "offcpu", "Off CPU", b"", False),
    ("blocked", "offcpu", "Off CPU, blocked (D)", b"D", False),
    ("wakers", "offcpu", "Off CPU, by waker", b"", True),
)
#: Flame graphs of measured time: name, title, and the tables that tell it.
_TIMES = (
    ("waits", "Waits for a CPU", waits, frozenset({("runqueue", "worst")})),
    ("interrupts", "Interrupts", interrupts, frozenset({("softirq", "run"), ("hardirq", "run")})),
)


class Graphs:
    """All flame graphs of one report. Names of functions, and what is idle, come from its ``summary``."""

    def __init__(self, source: Source, summary: Summary) -> None:
        self._source, self._summary = source, summary
        self._recorded: dict[str, tuple[int, int]] = {}
        probes: dict[str, tuple[float, Dictionary, Callable[[Frame], bool]]] = {
            "oncpu": (1e9 / source.sample_hz, summary.dictionary("oncpu"), _none),
            "offcpu": (1.0, summary.dictionary("offcpu"), is_scheduler),
        }
        self._flames = {
            name: Flames(*probes[probe], state, by_waker, source if probe == "offcpu" and not state else None)
            for name, probe, _, state, by_waker in _FLAMES
        }
        self._times = {name: Times(told) for name, _, told, _ in _TIMES}

    @property
    def layers(self) -> Sequence[Flames | Times]:
        """What lies over the time axis, one per graph."""
        return *self._flames.values(), *self._times.values()

    def add(self, bin: int, window: Window, axis: Timeline) -> None:
        """Add a window to those graphs that it tells of."""
        name = (window.probe, window.table)
        if name in SAMPLES:
            since_ns, until_ns = self._recorded.get(window.probe, (window.start_ns, window.end_ns))
            self._recorded[window.probe] = min(since_ns, window.start_ns), max(until_ns, window.end_ns)
            for graph, probe, *_ in _FLAMES:
                if probe == window.probe:
                    self._flames[graph].add(bin, window, axis)
        for graph, _, _, tables in _TIMES:
            if name in tables:
                self._times[graph].add(bin, window)

    def packed(self, blob: Blob, limits: Limits) -> list[dict[str, Any]]:
        """Return the graphs that hold anything, each within ``limits``, with their arrays in ``blob``."""
        named = [*(flame[:3] for flame in _FLAMES), *((name, "", title) for name, title, _, _ in _TIMES)]
        return [
            {
                "name": name,
                "probe": probe,
                "title": title,
                "sample_ns": self.sample_ns(title),
                "recorded_ns": self._recorded.get(probe),
                **packed,
            }
            for name, probe, title in named
            if (packed := (self._flames.get(name) or self._times[name]).packed(blob, limits))
        ]

    def sample_ns(self, title: str) -> float:
        """Return what a sample of the stacks with this title stands for; 0 where time was measured."""
        sampled = {label for _, probe, label, *_ in _FLAMES if probe == "oncpu"}
        return 1e9 / self._source.sample_hz if title in sampled else 0.0

    def functions(self) -> dict[str, dict[Frame, tuple[float, float]]]:
        """Return each function's ns, its own and with callees, by what they are of (``On CPU``)."""
        found = {
            label: self._flames[name].functions(idle=self._summary.idle)
            for name, _, label, _, by_waker in _FLAMES
            if not by_waker
        }
        return {label: functions for label, functions in found.items() if functions}

    def hidden(self, title: str) -> IdleTime | None:
        """Return what is left out of the functions with this title; None where nothing is."""
        told = {label for _, probe, label, state, _ in _FLAMES if probe == "offcpu" and not state}
        return None if title not in told or self._summary.idle else self._summary.stacks["offcpu"].idle()


def _none(frame: Frame) -> bool:
    return False
