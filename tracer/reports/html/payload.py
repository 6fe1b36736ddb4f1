"""Gathers a recording, interval by interval, for the report, and packs it into as many bytes as a mail may have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tracer.analysis.rows import has
from tracer.analysis.shapes import SAMPLES
from tracer.analysis.source import Source
from tracer.analysis.stacks import Dictionary, Frame
from tracer.analysis.summary import Summary
from tracer.analysis.verdict import judge
from tracer.histogram import edges_ns
from tracer.reports.html.blob import Blob
from tracer.reports.html.facts import facts, findings, fingerprint, marks, quality, stack_quality
from tracer.reports.html.flames import Flames, Limits
from tracer.reports.html.grid import Grid
from tracer.reports.html.heat import Heat
from tracer.reports.html.lanes import Lanes
from tracer.reports.html.timekinds import interrupts, waits
from tracer.reports.html.timeline import Timeline
from tracer.reports.html.times import Times
from tracer.reports.jsonseries import series_entries
from tracer.reports.sections.stacks import is_scheduler
from tracer.reports.story import Sign
from tracer.units import duration, many
from tracer.window import Window

__all__ = ["SCHEMA", "Payload"]

SCHEMA = "foreshock.report/1"
#: Flame graphs: name, probe, title, the tasks' state, where it is of one only, and whether who woke them encloses them.
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
#: With fewer bins, or nodes of a flame graph, there is nothing to see.
_LEAST = 16
#: Numbers by CPU, line or device in the tables: the worst of each series.
_ENTRIES = 64


class Payload:
    """The data of one report, in bounded memory whatever the recording's length."""

    def __init__(self, header: Mapping[str, Any]) -> None:
        self.source = Source.from_header(header)
        self.summary = Summary(self.source.interval_ns, self.source)
        self.header = header
        self._timeline = Timeline(self.source.interval_ns)
        self._heat, self._lanes, self._measured_ns = Heat(), Lanes(), Grid((), "f8")
        probes: dict[str, tuple[float, Dictionary, Callable[[Frame], bool]]] = {
            "oncpu": (1e9 / self.source.sample_hz, self.summary.dictionary("oncpu"), _none),
            "offcpu": (1.0, self.summary.dictionary("offcpu"), is_scheduler),
        }
        self._flames = {name: Flames(*probes[probe], state, by_waker) for name, probe, _, state, by_waker in _FLAMES}
        self._times = {name: Times(told) for name, _, told, _ in _TIMES}
        self._timeline.layers += [
            self._heat,
            self._lanes,
            self._measured_ns,
            *self._flames.values(),
            *self._times.values(),
        ]

    def add_interval(self, windows: Sequence[Window]) -> None:
        """Add the windows of one interval."""
        if not windows:
            return
        before = self.summary.intervals.paused
        self.summary.add_interval(windows)
        if self.summary.intervals.paused > before:
            return  # it says nothing about latency
        start_ns, end_ns = min(one.start_ns for one in windows), max(one.end_ns for one in windows)
        bin = self._timeline.bin(start_ns, end_ns)
        self._measured_ns.add(bin, end_ns - start_ns)
        for window in windows:
            self._add(bin, window)

    def _add(self, bin: int, window: Window) -> None:
        name = (window.probe, window.table)
        if name == ("cpustate", "time"):
            self._lanes.add(bin, window)
        elif name in (("cpustall", "stalls"), ("cpustall", "open")):
            self._lanes.stalled.add(window)
        elif name in SAMPLES:
            for shown, probe, *_ in _FLAMES:
                if probe == window.probe:
                    self._flames[shown].add(bin, window)
        elif has(window.rows, "slots"):
            self._heat.add(bin, window)
        for shown, _, _, tables in _TIMES:
            if name in tables:
                self._times[shown].add(bin, window)

    def text(
        self,
        most_bytes: int,
        *,
        title: str = "",
        warning: str = "",
        signs: Sequence[Sign] = (),
        differences: Sequence[tuple[str, str, str]] = (),
        comparison: Mapping[str, Any] | None = None,
    ) -> str:
        """Return the data as text of at most ``most_bytes``; beyond, time and stacks lose detail, and it says so.

        ``differences`` are of a recording beside another one: (setting, the other's, its own); ``comparison`` is what
        made it the one to look at (``comparison_data``).
        """
        given = {"title": title, "differences": differences, "comparison": comparison}
        limits = Limits()
        while True:
            packed = self._packed(limits, warning, signs, given)
            if len(packed) <= most_bytes or limits.nodes < _LEAST:
                return packed
            limits = limits.halved()
            if self._timeline.bins > _LEAST:
                self._timeline.halve()

    def sample_ns(self, title: str) -> float:
        """Return what a sample of the stacks with this title stands for; 0 where time was measured."""
        sampled = {label for _, probe, label, *_ in _FLAMES if probe == "oncpu"}
        return 1e9 / self.source.sample_hz if title in sampled else 0.0

    def functions(self) -> dict[str, dict[Frame, tuple[float, float]]]:
        """Return each function's ns, its own and with callees, by what they are of (``On CPU``)."""
        found = {label: self._flames[name].functions() for name, _, label, _, by_waker in _FLAMES if not by_waker}
        return {label: functions for label, functions in found.items() if functions}

    def _packed(self, limits: Limits, warning: str, signs: Sequence[Sign], given: Mapping[str, Any]) -> str:
        blob, timeline, source = Blob(), self._timeline, self.source
        verdict = judge(self.summary)
        shown: list[dict[str, Any]] = [
            {"name": name, "probe": probe, "title": label, "sample_ns": self.sample_ns(label), **packed}
            for name, probe, label in (
                *(flame[:3] for flame in _FLAMES),
                *((name, "", label) for name, label, _, _ in _TIMES),
            )
            if (packed := (self._flames.get(name) or self._times[name]).packed(blob, limits))
        ]
        return blob.text(
            {
                "schema": SCHEMA,
                **given,
                "facts": facts(self.summary, source, self.header),
                "filtered": bool(source.filters),
                "fingerprint": fingerprint(self.header),
                "headline": verdict.headline,
                "severity": verdict.severity.name.lower() if verdict.things and verdict.severity else "",
                "findings": findings(self.summary, verdict),
                "normal": [(one.question, one.measured, one.limit) for one in verdict.normal],
                "missing": list(verdict.missing),
                "quality": [
                    *quality(self.summary, source, warning),
                    *(stack_quality(one, self.summary) for one in shown if one["name"] == one["probe"]),
                ],
                "time": {
                    "start_unix_ms": source.unix_ns(timeline.start_ns) / 1e6,
                    "start_ns": timeline.start_ns,
                    "bin_ns": timeline.bin_ns,
                    "bins": timeline.bins,
                    "measured_ns": blob.add(self._measured_ns.values[: timeline.bins]),
                },
                "edges": blob.add(edges_ns().astype("<f8")),
                "series": [*self._heat.packed(blob, timeline.bins, limits.cells)],
                "entries": self._entries(),
                "lanes": self._lanes.packed(blob, timeline),
                "marks": [*marks(self.summary, source, signs)],
                "flames": shown,
                "dropped": [*self._dropped(shown)],
            }
        )

    def _entries(self) -> list[dict[str, Any]]:
        """Return each series' numbers by CPU, vector, line or device: the worst first."""
        found = []
        for name, merged in sorted(self.summary.histograms().items()):
            entries = [one for one in series_entries(name, merged, self.source) if one["keys"]]
            entries.sort(key=lambda one: -one["max_s"])
            found += entries[:_ENTRIES]
        return found

    def _dropped(self, flames: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        """Yield what the file does not hold of the recording, a sentence each."""
        timeline = self._timeline
        if timeline.halvings:
            step, intervals = duration(timeline.bin_ns), many(2**timeline.halvings, "interval")
            yield f"Times are in steps of {step}, {intervals} of the recording each; marks are exact."
        for flame in flames:
            what, total = f"{flame['title']} stacks" if flame["probe"] else flame["title"], duration(flame["total"])
            if flame["longer"]:
                yield f"{what} are in steps of {duration(timeline.bin_ns << flame['longer'])}."
            if flame["pruned"]:
                yield f"{what}: {duration(flame['pruned'])} of {total} are in [pruned] frames."
            if flame["untold"]:
                yield f"{what}: {duration(flame['untold'])} of {total} are left out: too many different ones."
            if flame["cut_names"]:
                yield f"{what}: {many(flame['cut_names'], 'long name')} cut short."
            if flame["unkept"]:
                yield f"{what}: {many(flame['unkept'], 'stack or function')} had no room for their names."
        if self._heat.unkept:
            yield f"{many(self._heat.unkept, 'window')} of further series left out."
        if self._lanes.stalled.unkept:
            yield f"{many(self._lanes.stalled.unkept, 'account')} of further stalls left out."
        if self._lanes.unkept:
            yield f"{many(self._lanes.unkept, 'row')} of further CPUs left out."


def _none(frame: Frame) -> bool:
    return False
