"""What a sentinel sees: its own ring's events and what is open on each CPU, as the windows that rules know."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from tracer.agent.lookout import HISTORY_NS
from tracer.alerts.rule import Rule, View
from tracer.kernel.names import cut_names
from tracer.kernel.readers import overdue
from tracer.kernel.ring import Ring
from tracer.kernel.session import Session
from tracer.layouts import layout
from tracer.probe import Events, Probe
from tracer.window import Window

__all__ = ["OPEN", "Sight"]

_Key = tuple[str, str]
_Symbol = Callable[[int], tuple[str, str]]

#: Events stay in view for so long: of a stall that lasts, the next is told within it.
_IN_VIEW_NS = 1_000_000_000
#: What has not ended on each CPU.
OPEN = ("cpustall", "open")
#: Decoded per turn; where more CPUs are in trouble at once, what is open tells of the others.
_MOST_EVENTS = 64
#: Windows with events that are kept for rules that ask for earlier ones.
_MOST_EARLIER = 64


class _NoNames:
    """A sentinel asks /proc nothing: whoever is stuck may hold the lock that an answer needs."""

    def cgroup(self, cgroup_id: int) -> bytes:
        return b""

    def cgroup_of(self, pid: int) -> bytes:
        return b""


def _tables_seen(probes: Iterable[Probe]) -> dict[_Key, tuple[Probe, Events | None]]:
    """Return the tables that a sentinel has of ``probes``: events (as far as told to it), and what is open."""
    seen: dict[_Key, tuple[Probe, Events | None]] = {}
    for probe in probes:
        for table in probe.tables:
            if isinstance(table, Events):
                seen[probe.name, table.name] = (probe, table)
            elif (probe.name, table.name) == OPEN:
                seen[OPEN] = (probe, None)
    return seen


class Sight:
    """Turns one sentinel's ring and the live rows into views. ``rules`` say which tables are wanted."""

    def __init__(self, session: Session, ring: Ring, rules: Sequence[Rule], symbol: _Symbol) -> None:
        self._session = session
        self._ring = ring
        self._symbol = symbol
        wanted = {table for rule in rules for table in (*rule.needs, *rule.wants)}
        seen = {key: found for key, found in _tables_seen(session.probes).items() if key in wanted}
        self._none = {
            # Of one event that is none: decoding is warm then.
            key: _decoded(table, np.zeros(1, layout(probe.name, table.layout)))[:0]
            for key, (probe, table) in seen.items()
            if table
        }
        self._told: dict[_Key, list[tuple[int, np.ndarray]]] = {key: [] for key in self._none}
        asked = {table for rule in rules for table in rule.history}
        self._history: dict[_Key, deque[Window]] = {
            key: deque(maxlen=_MOST_EARLIER) for key in self._none if key in asked
        }
        self._overdue = overdue.Reader(session, seen[OPEN][0], tasks=False) if OPEN in seen else None

    def look(self, now_ns: int, settings: Mapping[str, str]) -> View:
        """Return what is seen now: events of the last second, and what is open."""
        for probe, table, raw in self._session.sorted(self._ring.read()):
            key = probe.name, table.name
            if key not in self._told or not len(raw):
                continue
            raw = raw[-_MOST_EVENTS:]
            if key in self._history:
                earlier = Window(*key, now_ns - _IN_VIEW_NS, now_ns, _decoded(table, raw))
                self._history[key].append(earlier)
            # What came while this process was held up may be over: who still is in trouble tells again.
            fresh = raw[raw["event"]["time_ns"] + np.uint64(_IN_VIEW_NS) > np.uint64(now_ns)]
            if len(fresh):
                self._told[key].append((int(fresh["event"]["time_ns"].max()), _decoded(table, fresh)))
        windows = {key: self._window(key, now_ns) for key in self._told}
        if self._overdue:
            rows, losses = self._overdue.read(now_ns)["open"]
            windows[OPEN] = Window(*OPEN, now_ns, now_ns, cut_names(rows), losses)
        history = {
            key: [window for window in earlier if window.end_ns > now_ns - HISTORY_NS]
            for key, earlier in self._history.items()
        }
        return View(now_ns, windows, settings, history, self._symbol)

    def due_ns(self, now_ns: int) -> int:
        """Return when a look may show at the earliest what one at ``now_ns`` did not, but for events."""
        return self._overdue.due_ns(now_ns) if self._overdue else now_ns

    def _window(self, key: _Key, now_ns: int) -> Window:
        told = self._told[key]
        while told and told[0][0] <= now_ns - _IN_VIEW_NS:
            told.pop(0)
        rows = np.concatenate([rows for _, rows in told]) if told else self._none[key]
        return Window(*key, now_ns - _IN_VIEW_NS, now_ns, rows)


def _decoded(table: Events, raw: np.ndarray) -> np.ndarray:
    return cut_names(table.decode(raw, _NoNames()) if table.decode else raw)
