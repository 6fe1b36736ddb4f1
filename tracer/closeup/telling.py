"""What a close-up says first: who was blocked, held a CPU or ran, in lines for which a page on the phone has room."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from tracer.alerts.alert import Alert
from tracer.analysis.blame import MAIN_SHARE
from tracer.analysis.frames import Frame
from tracer.analysis.rows import has, text
from tracer.analysis.source import Source
from tracer.analysis.stacks import MAX_STACKS, HeavyStack, Stacks
from tracer.analysis.thresholds import RUNQUEUE_WORST_NS
from tracer.units import clip, duration, percent
from tracer.window import Window

__all__ = ["Strongest"]

_MOST = 3  # processes of each kind
_FRAMES = 8
_FUNCTION = 60  # characters of one
_SCHEDULER = ("schedule", "__schedule")
_NAMED = re.compile(r"(.*)\[(\d+)\]", re.S)
_OWN = "foreshock"
#: Of the time that was looked at: who was blocked for less of it is no news.
_BLOCKED = 0.01
_WAITS = ("wait_ns", "waited_cpu", "comm", "pid", "holder_ns", "holder_comm", "holder_pid")


class Strongest:
    """Takes a close-up's intervals and has lines, a process each, with the stack that weighs most; names as they are.

    The alert's own task comes first: blocked (state D), on the CPU, waiting for somebody. Then who was blocked, who
    had a CPU that somebody waited long for, who ran. Idle waits say nothing, and all daemons sleep: of others only
    state D counts. Foreshock itself is left out. ``header`` is the recording's.
    """

    def __init__(self, alert: Alert, header: Mapping[str, Any]) -> None:
        self._began_ns, self._named = alert.began_ns, _named(alert)
        self._source = source = Source.from_header(header)
        self._on_cpu, self._blocked, self._own_on, self._own_blocked = Stacks(), Stacks(), Stacks(), Stacks()
        self._own_asleep = Stacks(source)
        self._looked_ns = 0
        self._wait: np.void | None = None

    def add(self, windows: Sequence[Window]) -> None:
        """Add an interval's windows, the agent's or the deep ones."""
        for window in windows:
            if window.probe == "oncpu":
                _take(self._on_cpu, window)
                _take(self._own_on, window, self._named)
            elif window.probe == "offcpu":
                self._looked_ns += (window.end_ns - window.start_ns) * (window.table == "samples")
                _take(self._blocked, window, _uninterruptible)
                _take(self._own_blocked, window, lambda rows: self._named(rows) & _uninterruptible(rows))
                _take(self._own_asleep, window, lambda rows: self._named(rows) & ~_uninterruptible(rows))
            elif (window.probe, window.table) == ("runqueue", "worst") and window.end_ns > self._began_ns:
                self._note_worst(window.rows)
            elif window.probe == "jobs":
                self._source.jobs.add(window)

    def lines(self) -> tuple[str, ...]:
        """Return the lines, what hurts most first."""
        samples = partial(_samples, self._on_cpu.total)
        least_ns = _BLOCKED * self._looked_ns
        own = [*_lines(self._own_blocked, 1, _blocked, least_ns), *_lines(self._own_on, 1, samples)]
        own += _lines(self._own_asleep, 1, _asleep)
        blocked = _lines(self._blocked, _MOST, _blocked, least_ns)
        return tuple(dict.fromkeys([*own, *blocked, *self._held(), *_lines(self._on_cpu, _MOST, samples)]))

    def _note_worst(self, rows: np.ndarray) -> None:
        if not all(has(rows, name) for name in _WAITS):
            return
        # Who had less of it is no cause.
        rows = rows[rows["holder_ns"] >= MAIN_SHARE * rows["wait_ns"]]
        if not len(rows):
            return
        worst = rows[np.argmax(rows["wait_ns"])]
        if self._wait is None or worst["wait_ns"] > self._wait["wait_ns"]:
            self._wait = worst.copy()

    def _held(self) -> Iterator[str]:
        """Yield who had the CPU in the longest wait since the alert began, if that is beyond what is normal."""
        wait = self._wait
        if wait is None or wait["wait_ns"] < RUNQUEUE_WORST_NS:
            return
        holder, waiter = (f"{text(wait[f'{of}comm'])}[{wait[f'{of}pid']}]" for of in ("holder_", ""))
        if not holder.startswith(_OWN):
            share = percent(min(1.0, float(wait["holder_ns"]) / float(wait["wait_ns"])))
            waited = duration(int(wait["wait_ns"]))
            yield f"{holder} had CPU {wait['waited_cpu']} for {share} of the {waited} that {waiter} waited for it"


def _take(stacks: Stacks, window: Window, wanted: Callable[[np.ndarray], np.ndarray] | None = None) -> None:
    if window.table != "samples":
        stacks.learn(window.rows)
    else:
        stacks.add(window.rows if wanted is None else window.rows[wanted(window.rows)])


def _uninterruptible(rows: np.ndarray) -> np.ndarray:
    return rows["state"] == b"D" if has(rows, "state") else np.zeros(len(rows), bool)


def _named(alert: Alert) -> Callable[[np.ndarray], np.ndarray]:
    """Return what tells which rows are of the task that the alert names, by its number where that is known."""
    culprit, subject = alert.condition.culprit, alert.condition.subject
    name = culprit.task if culprit and culprit.task else subject.name if subject.kind == "task" else ""
    numbered = _NAMED.fullmatch(name)
    if numbered:
        tid = int(numbered[2])
        return lambda rows: (rows["tid"] == tid) | (rows["pid"] == tid)
    comm = name.encode("utf-8", "surrogateescape")
    return lambda rows: (rows["comm"] == comm) & bool(comm)


def _lines(stacks: Stacks, most: int, said: Callable[[float], str], least: float = 0.0) -> Iterator[str]:
    """Yield a line for each of the processes that weigh most, ``least`` or more."""
    processes: dict[int, list[HeavyStack]] = {}
    for one in stacks.heaviest(MAX_STACKS):
        if one.weight and not one.comm.startswith(_OWN):
            processes.setdefault(one.pid, []).append(one)
    weights = {pid: sum(one.weight for one in found) for pid, found in processes.items()}
    for pid in sorted(weights, key=lambda pid: -weights[pid])[:most]:
        heaviest = processes[pid][0]
        if weights[pid] >= least:
            yield f"{heaviest.comm}[{pid}] {said(weights[pid])}, most in {_told(heaviest.frames)}"


def _told(frames: Sequence[Frame]) -> str:
    inner = [frame for frame in reversed(frames) if not (frame.kernel and frame.symbol in _SCHEDULER)]
    told = " < ".join(clip(frame.symbol or frame.module or "?", _FUNCTION) for frame in inner[:_FRAMES])
    return f"{told or 'an unknown stack'}{' < …' if len(inner) > _FRAMES else ''}"


def _samples(total: float, weight: float) -> str:
    return f"on CPU in {weight:.0f} of {total:.0f} samples ({percent(weight / total)})"


def _blocked(weight: float) -> str:
    return f"blocked (state D) for {duration(weight)}"


def _asleep(weight: float) -> str:
    return f"off CPU for {duration(weight)}"
