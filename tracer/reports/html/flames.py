"""Stacks by time: which task's which stack weighed how much in each bin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracer.analysis.frames import Frame
from tracer.analysis.gate import checked
from tracer.analysis.idle import WHOSE, idle_kinds, stack_kinds, whose
from tracer.analysis.order import distinct
from tracer.analysis.rows import COMM, has, text
from tracer.analysis.source import Source
from tracer.analysis.stacks import Dictionary
from tracer.analysis.still import are_still, part_ns
from tracer.reports.html.blob import Blob
from tracer.reports.html.keys import Keys
from tracer.reports.html.names import NO_STACK, function, named, task, unnamed_frames
from tracer.reports.html.paths import beginning_with, shown_lengths
from tracer.reports.html.timeline import Timeline
from tracer.reports.html.tree import MOST_NODES, grown
from tracer.reports.html.wakers import LABEL, labels, waker
from tracer.reports.html.weights import BY_CPU_STEPS, NOTHING, Weights
from tracer.window import Window

__all__ = ["Flames", "Limits"]

_MOST_UNNAMED = 20
#: An idle wait's frames are worth keeping as those of another one with a part of its time.
_IDLE_WEIGHS = 1000
_KEYS = (("comm", COMM), ("stack", "u8"))
#: Tasks' stacks, and those of each CPU, of which there are more, and for which there is less time.
_MOST, _MOST_BY_CPU = 1 << 17, 1 << 16
#: Of blocks that went on at the end: all their parts.
_MOST_PIECES = 1 << 16


@dataclass(frozen=True)
class Limits:
    """Of one flame graph: nodes of its tree, weights by bin and stack, bytes of names. Of all series: cells by CPU."""

    nodes: int = MOST_NODES
    weights: int = 200_000
    names: int = 1_000_000
    cells: int = 400_000

    def halved(self) -> Limits:
        """Return limits of half the size."""
        return Limits(self.nodes // 2, self.weights // 2, self.names // 2, self.cells // 2)


class Flames:
    """The stacks of one probe, each without the innermost frames that are ``hidden``. ``scale`` turns weights into ns.

    ``state`` is the tasks' state that counts, if not all do. ``by_waker`` has who woke them enclose the tasks. Where
    there is a ``source``, which says whose they are, idle waits are told apart.
    """

    def __init__(
        self,
        scale: float,
        dictionary: Dictionary,
        hidden: Callable[[Frame], bool],
        state: bytes = b"",
        by_waker: bool = False,
        source: Source | None = None,
    ) -> None:
        self._dictionary = dictionary
        self._hidden = hidden
        self._scale = scale
        self._state = state
        self._source = source
        self._is_by_waker = by_waker
        columns = (*_KEYS, *([("waker", LABEL)] if by_waker else []), *([WHOSE] if source else []))
        self._keys, self._weights = Keys(*columns, most=_MOST), Weights()
        self._keys_by_cpu = Keys(("cpu", "u4"), *columns, most=_MOST_BY_CPU)
        #: None where there is too much to tell apart.
        self._by_cpu: Weights | None = Weights(_MOST_BY_CPU, BY_CPU_STEPS)

    def add(self, bin: int, window: Window, axis: Timeline) -> None:
        """Add a window of samples. Blocks that went on at the end have a part in each bin of ``axis``."""
        window, why = checked(window)
        rows = window.rows
        if self._state:
            rows = rows[rows["state"] == self._state] if _has_states(rows) else rows[:0]
        if why or not len(rows):
            return
        more: dict[str, np.ndarray] = {}
        if self._is_by_waker:
            who = labels(rows)
            if who is None:
                return  # recorded before anybody noted it
            more["waker"] = who
        if self._source:
            more["whose"] = whose(rows, self._source)
        if self._keys.full:
            self._forget_lightest()
        numbers = self._keys.numbers(rows, **more)
        by_cpu = self._keys_by_cpu.numbers(rows, **more) if self._by_cpu else numbers
        weights, still = rows["weight"], are_still(rows)
        self._weigh(bin, numbers[~still], by_cpu[~still], weights[~still])
        if not still.any():
            return
        # Those from before the recording are many, and the same all through it: they need none of the others' pieces.
        for kind in (b"o", b"a"):
            some = np.flatnonzero(still & (rows["waker_kind"] == kind))
            longest_ns, most = int(weights[some].max(initial=0)), _MOST_PIECES // max(1, len(some))
            for piece, *ends in axis.pieces(longest_ns, window.end_ns, most):
                self._weigh(piece, numbers[some], by_cpu[some], part_ns(weights[some], window.end_ns, *ends))

    def _weigh(self, bin: int, numbers: np.ndarray, by_cpu: np.ndarray, weights: np.ndarray) -> None:
        self._weights.add(bin, numbers, weights)
        if self._by_cpu:
            self._by_cpu.add(bin, by_cpu, weights)
            if self._by_cpu.untold:
                self._by_cpu = None

    def _forget_lightest(self) -> None:
        """Make room for as many again."""
        lightest_first = np.argsort(self._weights.totals(len(self._keys)), kind="stable")
        heaviest = np.sort(lightest_first[len(self._keys) // 2 :])
        self._weights.keep(heaviest)
        self._keys.keep(heaviest)
        self._by_cpu = None

    def halve(self) -> None:
        self._weights.halve()
        if self._by_cpu:
            self._by_cpu.halve()

    def packed(self, blob: Blob, limits: Limits) -> dict[str, Any] | None:
        """Return the tree, and ``bins``, ``leaves``, ``weights`` of what weighed in each bin; None without samples.

        ``by_cpu`` is the same with ``cpus``, in bins of its own; None where there is too much to tell apart. ``idle``
        is the kind of idle wait of each weight, numbers of ``analysis.idle.NAMES``. What of the rest is ``pruned`` and
        ``unnamed`` is told ``without_idle``, in ns.

        Beyond the limits, bins become longer, names are cut short, and the lightest stacks are ``untold``.
        """
        rows = self._weights.few(limits.weights)
        if not len(rows.numbers):
            return None
        by_cpu, keys_by_cpu = NOTHING, self._keys_by_cpu.rows()
        if self._by_cpu:
            by_cpu = self._by_cpu.few(limits.weights)
        numbers_by_cpu = self._keys.numbers(keys_by_cpu.take(by_cpu.numbers))
        used = np.flatnonzero(np.bincount(np.append(rows.numbers, numbers_by_cpu)))
        keys, which = self._keys.rows().take(used), np.searchsorted(used, rows.numbers)
        weights = np.bincount(which, rows.weights.astype(np.float64), len(used))
        told = self._dictionary.paths(keys["stack"].tolist())
        idle = idle_kinds(stack_kinds(told), keys["whose"]) if self._source else np.zeros(len(keys), "u1")
        starts, lengths = np.cumsum(told.lengths) - told.lengths, shown_lengths(told, self._hidden)
        # Where there is no stack, one frame says so.
        starts[lengths == 0] = len(told.numbers)
        lengths = np.maximum(lengths, 1)
        path = np.append(told.numbers, len(told.frames))
        inner = [*map(function, told.frames), NO_STACK]
        some_task, outer = distinct(keys["comm"])
        enclosing = [task(text(comm)) for comm in keys["comm"][some_task].tolist()]
        if self._is_by_waker:
            path, starts = beginning_with(len(inner) + outer, path, starts, lengths)
            lengths, inner = lengths + 1, [*inner, *enclosing]
            some_waker, outer = distinct(keys["waker"])
            enclosing = [waker(label) for label in keys["waker"][some_waker].tolist()]
        # Where there is no room for all, what is shown first has it.
        tree = grown(outer, path, starts, lengths, np.where(idle, weights / _IDLE_WEIGHS, weights), limits.nodes)
        names, nodes = named(tree, inner, enclosing, limits.names)
        untold = self._weights.untold * self._scale
        awake = np.where(idle, 0.0, weights) * self._scale
        unnamed = unnamed_frames(told, awake)
        told_by_cpu = None
        if self._by_cpu:
            which_by_cpu, cpus = np.searchsorted(used, numbers_by_cpu), keys_by_cpu["cpu"].take(by_cpu.numbers)
            told_by_cpu = self._by_cpu.packed(blob, by_cpu, cpus, tree.leaves[which_by_cpu], self._scale)
            if told_by_cpu:
                told_by_cpu["idle"] = blob.add(idle[which_by_cpu])
        return {
            "longer": self._weights.longer,
            "names": names.names,
            "modules": names.modules,
            "parents": blob.add(tree.parents),
            "nodes": blob.add(nodes),
            "bins": blob.add(rows.bins),
            "leaves": blob.add(tree.leaves[which].astype("<u4")),
            "weights": blob.add(rows.weights * self._scale),
            "idle": blob.add(idle[which]),
            "by_cpu": told_by_cpu,
            "total": float(weights.sum()) * self._scale + untold,
            "pruned": float(weights[tree.cut].sum()) * self._scale,
            "untold": untold,
            "without_idle": {
                "total": float(awake.sum()) + untold,
                "pruned": float(awake[tree.cut].sum()),
                "unnamed": sum(ns for _, _, ns in unnamed),
            },
            "unnamed": unnamed[:_MOST_UNNAMED],
            "cut_names": names.cut,
            "unkept": self._dictionary.unkept,
        }

    def functions(self, *, idle: bool = False) -> dict[Frame, tuple[float, float]]:
        """Return each function's ns: its own, and with callees, where one counts once per stack; not of idle waits."""
        rows, weighed = self._keys.rows(), self._weights.totals(len(self._keys))
        used = weighed > 0
        if self._source and not idle:
            used &= self._dictionary.idle_kinds(rows) == 0
        stacks, which = np.unique(rows["stack"][used], return_inverse=True)
        weights = np.bincount(which, weighed[used], len(stacks)) * self._scale
        told = self._dictionary.paths(stacks.tolist())
        shown = [frame._replace(build_id="") for frame in told.frames]  # after an update a function is still the same
        starts = np.cumsum(told.lengths) - told.lengths
        ends = starts + shown_lengths(told, self._hidden)
        paths = zip(starts.tolist(), ends.tolist(), weights.tolist(), strict=True)
        found: dict[Frame, tuple[float, float]] = {}
        for start, end, weight in paths:
            frames = [shown[number] for number in told.numbers[start:end].tolist()] or [NO_STACK[0]]
            for frame in set(frames):
                own, total = found.get(frame, (0.0, 0.0))
                found[frame] = (own + weight * (frame == frames[-1]), total + weight)
        return found


def _has_states(rows: np.ndarray) -> bool:
    return has(rows, "state") and rows.dtype["state"].kind == "S" and rows.dtype["state"].shape == ()
