"""Gathers a recording, interval by interval, for the report, and packs it into as many bytes as a mail may have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tracer.alerts.alert import Alert
from tracer.alerts.record import occasion
from tracer.analysis.idle import NAMES
from tracer.analysis.intervals import span
from tracer.analysis.rows import has
from tracer.analysis.source import Source
from tracer.analysis.summary import Summary
from tracer.histogram import edges_ns
from tracer.reports.html.blob import Blob
from tracer.reports.html.events import findings, marks
from tracer.reports.html.facts import facts, fingerprint
from tracer.reports.html.flames import Limits
from tracer.reports.html.graphs import Graphs
from tracer.reports.html.grid import Grid
from tracer.reports.html.heat import Heat
from tracer.reports.html.lanes import Lanes
from tracer.reports.html.quality import dropped, quality, stack_quality
from tracer.reports.html.timeline import Timeline
from tracer.reports.jsonseries import series_entries
from tracer.reports.occasion import judged, with_sign
from tracer.reports.story import Sign
from tracer.window import Window

__all__ = ["SCHEMA", "Payload"]

SCHEMA = "foreshock.report/1"
#: With fewer bins, or nodes of a flame graph, there is nothing to see.
_LEAST = 16
#: Numbers by CPU, line or device in the tables: the worst of each series.
_ENTRIES = 64


class Payload:
    """The data of one report, in bounded memory whatever the recording's length; of idle waits, too, where ``idle``.

    ``told`` is the alert that stands first where none had it recorded.
    """

    def __init__(self, header: Mapping[str, Any], idle: bool = False, told: Alert | None = None) -> None:
        self.source = Source.from_header(header)
        self.summary = Summary(self.source.interval_ns, self.source, idle)
        self.header = header
        self.alert, self.told = occasion(header), told
        self._timeline = Timeline(self.source.interval_ns)
        self._heat, self._lanes, self._measured_ns = Heat(), Lanes(), Grid((), "f8")
        self.graphs = Graphs(self.source, self.summary)
        self._timeline.layers += [self._heat, self._lanes, self._measured_ns, *self.graphs.layers]

    def add_interval(self, windows: Sequence[Window]) -> None:
        """Add the windows of one interval."""
        if not windows:
            return
        before = self.summary.intervals.paused
        self.summary.add_interval(windows)
        if self.summary.intervals.paused > before:
            return  # it says nothing about latency
        start_ns, end_ns = span(windows)
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
        elif has(window.rows, "slots"):
            self._heat.add(bin, window)
        self.graphs.add(bin, window, self._timeline)

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

    def _packed(self, limits: Limits, warning: str, signs: Sequence[Sign], given: Mapping[str, Any]) -> str:
        blob, timeline, source = Blob(), self._timeline, self.source
        verdict = judged(self.summary, self.alert, self.told)
        shown = self.graphs.packed(blob, limits)
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
                "marks": [*marks(self.summary, source, with_sign(signs, self.alert))],
                "idle_kinds": NAMES,
                "idle_shown": self.summary.idle,
                "flames": shown,
                "dropped": [*dropped(shown, timeline, self._heat, self._lanes)],
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
