"""Collect an interval: every map once, every event, every source; windows out."""

from __future__ import annotations

import time
from collections.abc import Mapping
from importlib import import_module
from typing import Protocol

import numpy as np

from tracer.collect.snapshots import Snapshots
from tracer.collect.tables import TableRows
from tracer.kernel import cpus
from tracer.kernel.names import cut_names
from tracer.kernel.session import Session
from tracer.probe import Clock, Events, Loss, Probe, Table
from tracer.window import Window

__all__ = ["Collector", "Names"]

_Events = Mapping[tuple[str, str], tuple[np.ndarray, int]]
_Read = Mapping[str, tuple[np.ndarray, Mapping[str, int]]]


class Names(Protocol):
    """What only the node knows about ids in events."""

    def cgroup(self, cgroup_id: int) -> bytes: ...

    def cgroup_of(self, pid: int) -> bytes: ...


class _Polled(Protocol):
    def read(self, now_ns: int) -> _Read: ...

    def close(self) -> None: ...


class Collector:
    """Makes windows out of a session. The first call of ``collect`` covers the time since construction."""

    def __init__(self, session: Session, names: Names, settings: Mapping[str, object] | None = None) -> None:
        self._session = session
        self._names = names
        self._maps = {name: Snapshots(session.array(name), tables) for name, tables in _tabled(session).items()}
        self._tables = {
            (probe.name, table.name): TableRows(table, session.shapes[table.map], self._maps[table.map])
            for probe in session.probes
            for table in probe.tables
            if isinstance(table, Table) and table.map and not table.derive
        }
        self._polled = {probe.name: _polled(session, probe, dict(settings or {})) for probe in session.probes}
        self._nothing = {
            (probe.name, table.name): _empty(probe, table, names)
            for probe in session.probes
            for table in probe.tables
            if isinstance(table, Events)
        }
        self._counted = {probe.name: _mapped(probe) for probe in session.probes}
        self._lost = {name: [0] * len(losses) for name, losses in self._counted.items()}
        self._none_lost = {
            name: dict.fromkeys((loss.reason for loss in losses), 0) for name, losses in self._counted.items()
        }
        # The first snapshots and events are of the time before: half-attached programs see ends without beginnings.
        for _ in session.events():
            pass
        for snapshots in self._maps.values():
            snapshots.take()
        for polled in self._polled.values():
            if polled:
                polled.read(time.monotonic_ns())
        self._online = cpus.OnlineCpus()
        self._online_at_start = self._online_now = self._online.read()
        clocked = [any(isinstance(hook, Clock) for hook in probe.hooks) for probe in session.probes]
        self._clocked = {probe.name for probe, has in zip(session.probes, clocked, strict=True) if has}
        self._unclocked = 0
        for probe in session.probes:
            self._losses(probe)
        self._start_ns = time.monotonic_ns()

    def collect(self, *, complete: bool = False) -> list[Window]:
        """Return the windows of the interval that ends now, one per table of every probe.

        ``complete`` includes what is not read every time (skipped runs of programs, error counters of
        RDMA ports).
        """
        if complete:
            self._tell_readers("complete")
        for snapshots in self._maps.values():
            snapshots.take()
        self._online_at_start, self._online_now = self._online_now, self._online.read()
        self._unclocked = self._clock_newcomers() if self._clocked else 0
        if self._online_now - self._online_at_start and self._session.programs:
            self._session.programs.miss("CPUs came online")
        events = self._events()
        end_ns = time.monotonic_ns()
        windows = [window for probe in self._session.probes for window in self._windows(probe, events, end_ns)]
        self._start_ns = end_ns
        return windows

    def keep_up(self) -> None:
        """Let readers end what must not last a whole long interval (the kernel's accounting), and take what can't wait.

        Call it once a second.
        """
        self._tell_readers("pause")
        self._tell_readers("drain")

    def forget(self) -> None:
        """Let readers tell again what they tell once (names of stacks)."""
        self._tell_readers("forget")

    def close(self) -> None:
        """Close readers and sources; the session is the caller's."""
        self._online.close()
        for polled in self._polled.values():
            if polled:
                polled.close()

    def _tell_readers(self, what: str) -> None:
        for polled in self._polled.values():
            method = getattr(polled, what, None)
            if method:
                method()

    def _windows(self, probe: Probe, events: _Events, end_ns: int) -> list[Window]:
        polled = self._polled[probe.name]
        read = polled.read(end_ns) if polled else {}
        windows = [
            Window(probe.name, table, self._start_ns, end_ns, cut_names(rows), losses)
            for table, (rows, losses) in read.items()
        ]
        losses = self._losses(probe)
        for table in probe.tables:
            if isinstance(table, Table) and not table.map:
                continue  # a reader's or a source's, above
            # A probe's losses are told once, with its first table.
            windows.append(self._window(probe, table, events, end_ns, losses if table is probe.tables[0] else {}))
        return windows

    def _window(
        self,
        probe: Probe,
        table: Table | Events,
        events: _Events,
        end_ns: int,
        losses: Mapping[str, int],
    ) -> Window:
        if isinstance(table, Events):
            key = (probe.name, table.name)
            rows, untold = events.get(key) or (self._nothing[key], 0)
            losses = {**losses, "suppressed": losses.get("suppressed", 0) + untold} if table.rank else losses
            return Window(probe.name, table.name, self._start_ns, end_ns, cut_names(rows), losses)
        snapshots = self._maps[table.map]
        if table.derive:
            more: Mapping[str, int]
            rows, more = table.derive(snapshots.before, snapshots.after, snapshots.start_ns, snapshots.end_ns)
            losses = {**losses, **more, "stale": snapshots.stale}
            if table.by == ("cpu",):
                rows, offline = self._of_online(rows)
                losses["offline"] = offline
        else:
            rows = self._tables[probe.name, table.name].read()
            rows = table.named(rows, self._names) if table.named else rows
        return Window(probe.name, table.name, snapshots.start_ns, snapshots.end_ns, cut_names(rows), losses)

    def _of_online(self, rows: np.ndarray) -> tuple[np.ndarray, int]:
        """Return the rows of CPUs that were online at both ends, and how many others there were.

        What a table derives for a CPU adds up to the interval; one that is offline would be idle for all of it.
        """
        throughout = self._online_at_start & self._online_now
        online = [cpu in throughout for cpu in rows["cpu"].tolist()]
        return (rows, 0) if all(online) else (rows[online], online.count(False))

    def _clock_newcomers(self) -> int:
        """Give the CPUs that came online in this interval their clocks; return how many could not have them."""
        came = self._online_now - self._online_at_start
        traced = self._session.options.cpus
        if not came:
            return 0
        wanted = (came if traced is None else came & traced) - cpus.undisturbed()
        return sum(not self._session.add_clocks(cpu) for cpu in wanted)

    def _events(self) -> dict[tuple[str, str], tuple[np.ndarray, int]]:
        """Return each table's new rows, and how many events were not made into rows."""
        found = {}
        for probe, table, raw in self._session.events():
            told = _worst(raw, table.rank)
            rows = table.decode(told, self._names) if table.decode else told
            found[probe.name, table.name] = rows, len(raw) - len(told)
        return found

    def _losses(self, probe: Probe) -> Mapping[str, int]:
        """Return what the probe missed since the last call, by reason."""
        counted = self._counted[probe.name]
        totals = [self._maps[loss.map].total(loss.field) for loss in counted]
        if totals == self._lost[probe.name] and probe.name not in self._clocked:
            return self._none_lost[probe.name]
        losses: dict[str, int] = {}
        for loss, total, before in zip(counted, totals, self._lost[probe.name], strict=True):
            # The counters have 64 bits, and so has their sum: both may wrap.
            losses[loss.reason] = losses.get(loss.reason, 0) + ((total - before) & 0xFFFFFFFFFFFFFFFF)
        if probe.name in self._clocked:
            losses["unclocked"] = self._unclocked
        self._lost[probe.name] = totals
        return losses


#: Each is worth about 0.1 ms of decoding: a node with hundreds of CPUs in trouble must not cost us a core.
MOST_EVENTS = 64


def _worst(events: np.ndarray, rank: str) -> np.ndarray:
    """Return the events of the highest rank, in the order in which they came."""
    if not rank or len(events) <= MOST_EVENTS:
        return events
    chosen = np.argpartition(events[rank], -MOST_EVENTS)[-MOST_EVENTS:]
    return events[np.sort(chosen)]


def _empty(probe: Probe, table: Events, names: Names) -> np.ndarray:
    from tracer.layouts import layout

    none = np.zeros(0, dtype=layout(probe.name, table.layout))
    return table.decode(none, names) if table.decode else none


def _mapped(probe: Probe) -> list[Loss]:
    """Return the losses that are counted in maps."""
    return [loss for loss in probe.losses if loss.map]


def _tabled(session: Session) -> dict[str, list[Table]]:
    """Return the maps that tables or losses are read from, each with its tables."""
    maps: dict[str, list[Table]] = {loss.map: [] for probe in session.probes for loss in _mapped(probe)}
    for probe in session.probes:
        for table in probe.tables:
            if isinstance(table, Table) and table.map:
                maps.setdefault(table.map, []).append(table)
    return maps


def _polled(session: Session, probe: Probe, settings: dict[str, object]) -> _Polled | None:
    polled: _Polled | None = None
    if probe.source:
        polled = import_module(f"tracer.kernel.sources.{probe.source}").Source(settings)
    elif probe.reader:
        polled = import_module(f"tracer.kernel.readers.{probe.reader}").Reader(session, probe)
    return polled
