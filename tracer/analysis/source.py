"""Which node a run comes from, as its recording's header or the live session says."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tracer.analysis.jobs import Jobs
from tracer.analysis.names import own_task, task
from tracer.analysis.rows import has, text
from tracer.probe import Clock
from tracer.probes.oncpu import PROBE as ONCPU
from tracer.window import Window

__all__ = ["Source"]


#: A clock that is set every second for a quarter of an hour; what comes after is told by the last of these.
_MOST_STEPS = 1024

#: Filters by task: what a user asks for, and what stands for it on this node or is asked for itself.
_ASKED, _APPLIED = ("rank", "job"), ("pid", "cgroup")
#: Of a command line: more than any recorder writes.
_MOST_TEXTS, _LONGEST = 128, 256
#: Samples a second on each CPU, where a header doesn't say.
_SAMPLE_HZ = next(hook.hz for hook in ONCPU.hooks if isinstance(hook, Clock))


@dataclass(frozen=True)
class Source:
    """The fingerprint as far as it is known; empty text or NaN where it is not.

    ``clock_offset_ns`` turns the node's CLOCK_MONOTONIC into wall-clock time (UTC), as it was at the start;
    ``learn_clock`` tells when it was set. ``filters`` say what was traced
    only, ``refused`` which probes could not start and why, ``missing`` what the others had to do without. ``pid`` is
    the process that recorded, 0 when unknown. ``sample_hz`` is how often a second each CPU's stack was sampled.
    ``command`` is the command line that recorded, ``labels`` are those that the user gave, ``jobs`` what processes
    belong to, as far as windows of it were added.
    """

    host: str = ""
    kernel: str = ""
    architecture: str = ""
    boot_id: str = ""
    version: str = ""
    cpus: int = 0
    pid: int = 0
    interval_ns: int = 0
    clock_offset_ns: float = float("nan")
    sample_hz: float = _SAMPLE_HZ
    filters: tuple[tuple[str, str], ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    missing: tuple[tuple[str, str], ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    command: tuple[str, ...] = ()
    jobs: Jobs = field(default_factory=Jobs, compare=False)
    _steps: list[tuple[float, float]] = field(default_factory=list, compare=False)

    @classmethod
    def from_header(cls, header: Mapping[str, Any]) -> Source:
        """Read a recording's header, with the fingerprint in it or below ``fingerprint``.

        It may come from anyone: what has a wrong type counts as unknown.
        """
        node = _Map(header, header.get("fingerprint"))
        kernel = _Map(node.get("kernel"))
        return cls(
            host=node.text("host"),
            kernel=kernel.text("release") or node.text("kernel"),
            architecture=kernel.text("architecture") or node.text("architecture"),
            boot_id=kernel.text("boot_id") or node.text("boot_id"),
            version=node.text("version"),
            cpus=int(node.number("cpus", _Map(node.get("cpu")).number("cpus", 0))),
            pid=int(node.number("pid", 0)),
            interval_ns=max(0, int(node.number("interval_ns", 0))),
            clock_offset_ns=node.number("clock_offset_ns", _offset(_Map(node.get("clocks")))),
            sample_hz=_clock_hz(node.get("probes")),
            filters=_pairs(node.get("filters")),
            refused=_pairs(node.get("refused")),
            missing=_pairs(node.get("missing")),
            labels=_pairs(node.get("labels")),
            command=_texts(node.get("command")),
        )

    def unix_ns(self, monotonic_ns: float) -> float:
        """Return the wall-clock time of a moment of the node's monotonic clock; NaN when the offset isn't known."""
        latest = bisect_right(self._steps, (monotonic_ns, float("inf")))
        return monotonic_ns + (self._steps[latest - 1][1] if latest else self.clock_offset_ns)

    def learn_clock(self, window: Window) -> None:
        """Take a window of ``agent.clock``: a row says that the clock was set in it. Windows may come in any order."""
        # It is in every interval, nearly always empty, and may come from anyone.
        if not has(window.rows, "offset_ns") or window.rows["offset_ns"].dtype != "i8":
            return
        for offset_ns in window.rows["offset_ns"][:1].tolist():
            step = (float(window.start_ns), float(offset_ns))
            at = bisect_right(self._steps, step)
            if len(self._steps) < _MOST_STEPS and step not in self._steps[max(0, at - 1) : at]:
                self._steps.insert(at, step)

    @property
    def clock_sets(self) -> tuple[tuple[float, float], ...]:
        """When the wall clock was set, or the node resumed, and by how much it was put on: (monotonic ns, ns)."""
        before = [self.clock_offset_ns, *(offset for _, offset in self._steps)]
        return tuple((at, offset - old) for (at, offset), old in zip(self._steps, before, strict=False))

    @property
    def task_filters(self) -> tuple[tuple[str, str], ...]:
        """The filters that leave tasks out: what counts by task is then of some, what counts by CPU of all."""
        return tuple(one for one in self.filters if one[0] in (*_ASKED, *_APPLIED))

    @property
    def tasks_traced(self) -> tuple[str, ...]:
        """The tasks that were traced only, in words: ``pid 17``; ``rank 3 of job 77, pid 6425``."""
        given = dict(self.filters)
        applied = [f"{name} {given[name]}" for name in _APPLIED if name in given]
        asked = " of ".join(f"{name} {given[name]}" for name in _ASKED if name in given)
        if not asked:
            return tuple(applied)
        return (", ".join((asked, *applied)),)

    @property
    def traced(self) -> tuple[str, ...]:
        """All that was traced only, in words: tasks, then the other filters."""
        others = (f"{name} {value}" for name, value in self.filters if name not in (*_ASKED, *_APPLIED))
        return (*self.tasks_traced, *others)

    @property
    def asked(self) -> tuple[str, ...]:
        """The filters as they were asked for, the same on every node and in every run."""
        given = dict(self.filters)
        stands = _APPLIED if given.keys() & {*_ASKED} else ()
        return tuple(f"{name} {value}" for name, value in given.items() if name not in stands)

    def is_own(self, comm: str, *pids: int) -> bool:
        """Return whether a task is foreshock itself: by its thread's or process's id, or a name nobody else has."""
        return comm == "foreshock" or (self.pid > 0 and self.pid in pids)

    def task(self, comm: str, pid: int, tgid: int = 0) -> str:
        """Return how a task is called; foreshock's own say so, and those of a job whose they are."""
        if self.is_own(comm, pid, tgid):
            return own_task(pid)
        member = self.jobs.of(tgid, pid)
        return f"{task(comm, pid)} ({member.title})" if member else task(comm, pid)


class _Map:
    """Look up names in maps that may be anything else; the first map that has the name wins."""

    def __init__(self, *maps: object) -> None:
        self._maps = [one for one in maps if isinstance(one, Mapping)]

    def get(self, name: str) -> object:
        return next((one[name] for one in self._maps if name in one), None)

    def text(self, name: str) -> str:
        value = self.get(name)
        return text(value) if isinstance(value, (str, bytes)) else ""

    def number(self, name: str, default: float) -> float:
        value = self.get(name)
        # A list of CPUs counts by its length. NaN and infinity are no sizes.
        if isinstance(value, (list, tuple)):
            return len(value)
        usable = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 2**63
        return value if usable else default  # type: ignore[return-value]


def _clock_hz(probes: object) -> float:
    """Return the rate at which ``oncpu`` was sampled, as the header's list of probes has it."""
    for probe in probes if isinstance(probes, (list, tuple)) else ():
        found = _Map(probe)
        if found.text("name") == ONCPU.name and (hz := found.number("clock_hz", 0)) > 0:
            return hz
    return _SAMPLE_HZ


def _pairs(value: object) -> tuple[tuple[str, str], ...]:
    """Read a map of texts, or a list of (name, text)."""
    items = value.items() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ()
    found = [item for item in items if isinstance(item, (list, tuple)) and len(item) == 2]
    return tuple((str(name), str(what)) for name, what in found)


def _texts(value: object) -> tuple[str, ...]:
    """Read a list of texts, as long as the header's own are."""
    found = value[:_MOST_TEXTS] if isinstance(value, (list, tuple)) else ()
    return tuple(text(one)[:_LONGEST] for one in found if isinstance(one, (str, bytes)))


def _offset(clocks: _Map) -> float:
    """Wall clock minus monotonic clock, read at one moment."""
    return clocks.number("realtime_ns", float("nan")) - clocks.number("monotonic_ns", float("nan"))
