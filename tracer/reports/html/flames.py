"""Stacks by time: which task's which stack weighed how much in each bin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracer.analysis.gate import checked
from tracer.analysis.order import distinct
from tracer.analysis.rows import COMM, has, text
from tracer.analysis.stacks import Dictionary, Frame, Paths
from tracer.reports.html.blob import Blob
from tracer.reports.html.names import ALL, NO_STACK, PRUNED, Named, Names, function, task
from tracer.reports.html.tree import MOST_NODES, Tree, grown
from tracer.reports.html.wakers import LABEL, labels, waker
from tracer.reports.html.weights import BY_CPU_STEPS, Weights
from tracer.window import Window

__all__ = ["Flames", "Limits"]

_KEYS = (("comm", COMM), ("stack", "u8"))
#: By CPU there is more to tell apart, and less time for it.
_MOST_BY_CPU = 1 << 16


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

    ``state`` is the tasks' state that counts, if not all do. ``by_waker`` has who woke them enclose the tasks.
    """

    def __init__(
        self,
        scale: float,
        dictionary: Dictionary,
        hidden: Callable[[Frame], bool],
        state: bytes = b"",
        by_waker: bool = False,
    ) -> None:
        self._dictionary = dictionary
        self._hidden = hidden
        self._scale = scale
        self._state = state
        self._keys = (*_KEYS, ("waker", LABEL)) if by_waker else _KEYS
        self._weights = Weights(*self._keys)
        self._by_cpu = Weights(("cpu", "u4"), *self._keys, most=_MOST_BY_CPU, steps=BY_CPU_STEPS)

    def add(self, bin: int, window: Window) -> None:
        """Add a window of samples."""
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
        self._weights.add(bin, rows, **more)
        if not self._by_cpu.untold:
            self._by_cpu.add(bin, rows, **more)

    @property
    def _is_by_waker(self) -> bool:
        return len(self._keys) > len(_KEYS)

    def halve(self) -> None:
        self._weights.halve()
        self._by_cpu.halve()

    def packed(self, blob: Blob, limits: Limits) -> dict[str, Any] | None:
        """Return the tree, and ``bins``, ``leaves``, ``weights`` of what weighed in each bin; None without samples.

        ``by_cpu`` is the same with ``cpus``, in bins of its own; None where there is too much to tell apart.

        Beyond the limits, bins become longer, names are cut short, and the lightest stacks are ``untold``.
        """
        rows = self._weights.few(limits.weights)
        if not len(rows):
            return None
        by_cpu = self._by_cpu.few(limits.weights)
        columns = {name: np.concatenate([rows[name], by_cpu[name]]) for name, _ in self._keys}
        first, which = distinct(*columns.values())
        which, which_by_cpu = np.split(which, [len(rows)])
        weights = np.bincount(which, weights=rows["weight"].astype(np.float64), minlength=len(first))
        told = self._dictionary.paths(columns["stack"][first].tolist())
        starts, lengths = np.cumsum(told.lengths) - told.lengths, self._telling(told)
        # Where there is no stack, one frame says so.
        starts[lengths == 0] = len(told.numbers)
        lengths = np.maximum(lengths, 1)
        path = np.append(told.numbers, len(told.frames))
        inner = [*map(function, told.frames), NO_STACK]
        some_task, outer = distinct(columns["comm"][first])
        enclosing = [task(text(comm)) for comm in columns["comm"][first][some_task].tolist()]
        if self._is_by_waker:
            path, starts = _beginning_with(len(inner) + outer, path, starts, lengths)
            lengths, inner = lengths + 1, [*inner, *enclosing]
            some_waker, outer = distinct(columns["waker"][first])
            enclosing = [waker(label) for label in columns["waker"][first][some_waker].tolist()]
        tree = grown(outer, path, starts, lengths, weights, limits.nodes)
        names, nodes = _named(tree, inner, enclosing, limits.names)
        untold = self._weights.untold * self._scale
        return {
            "longer": self._weights.longer,
            "names": names.names,
            "modules": names.modules,
            "parents": blob.add(tree.parents),
            "nodes": blob.add(nodes),
            "bins": blob.add(rows["bin"]),
            "leaves": blob.add(tree.leaves[which].astype("<u4")),
            "weights": blob.add(rows["weight"] * self._scale),
            "by_cpu": self._by_cpu.packed(blob, by_cpu, tree.leaves[which_by_cpu], self._scale),
            "total": float(weights.sum()) * self._scale + untold,
            "pruned": tree.pruned * self._scale,
            "untold": untold,
            "unknown": float(weights[_unnamed(told)].sum()) * self._scale,
            "cut_names": names.cut,
            "unkept": self._dictionary.unkept,
        }

    def functions(self) -> dict[Frame, tuple[float, float]]:
        """Return each function's ns: its own, and with callees, where one counts once per stack."""
        rows = self._weights.rows()
        stacks, which = np.unique(rows["stack"], return_inverse=True)
        weights = np.bincount(which, rows["weight"].astype(np.float64), len(stacks)) * self._scale
        told = self._dictionary.paths(stacks.tolist())
        starts = np.cumsum(told.lengths) - told.lengths
        paths = zip(starts.tolist(), (starts + self._telling(told)).tolist(), weights.tolist(), strict=True)
        found: dict[Frame, tuple[float, float]] = {}
        for start, end, weight in paths:
            frames = [told.frames[number] for number in told.numbers[start:end].tolist()] or [NO_STACK[0]]
            for frame in set(frames):
                own, total = found.get(frame, (0.0, 0.0))
                found[frame] = (own + weight * (frame == frames[-1]), total + weight)
        return found

    def _telling(self, told: Paths) -> np.ndarray:
        """Return how many frames of each stack are shown: not the innermost ones that say nothing, but one at least."""
        stack = np.repeat(np.arange(len(told.lengths)), told.lengths)
        place = np.arange(len(stack)) - (np.cumsum(told.lengths) - told.lengths)[stack]
        shown = np.array([not self._hidden(frame) for frame in told.frames], bool)[told.numbers]
        lengths: np.ndarray = np.minimum(told.lengths, 1)
        np.maximum.at(lengths, stack[shown], place[shown] + 1)
        return lengths


def _beginning_with(
    firsts: np.ndarray, path: np.ndarray, starts: np.ndarray, lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the frames of all paths, each with one more outside, and where each begins."""
    begins = np.cumsum(lengths + 1) - lengths - 1
    which = np.repeat(np.arange(len(starts)), lengths + 1)
    place = np.arange(len(which)) - begins[which]
    return np.where(place > 0, path[starts[which] + np.maximum(place - 1, 0)], firsts[which]), begins


def _named(tree: Tree, inner: Sequence[Named], outer: Sequence[Named], most: int) -> tuple[Names, np.ndarray]:
    """Return the names of a tree's nodes, and each node's number of its name; ``outer`` are those below the root."""
    every = [*inner, *outer, PRUNED, ALL]
    one = np.where((tree.parents == 0) & (tree.frames >= 0), tree.frames + len(inner), tree.frames % len(every))
    first, which = distinct(one)
    names, numbers = Names(most), np.zeros(len(first), "<u4")
    # The heaviest come first: it is light ones whose names are cut where there is no room.
    for place in np.argsort(first).tolist():
        numbers[place] = names.number(*every[int(one[first[place]])])
    return names, numbers[which]


def _unnamed(told: Paths) -> np.ndarray:
    """Return of which stacks the innermost function has no name, or of which there are no frames."""
    # [unknown], [process ended], [anonymous]; module+0x…
    nameless = np.array([one.symbol.startswith("[") or "+0x" in one.symbol for one in told.frames] + [True])
    innermost = np.append(told.numbers, len(told.frames))[np.cumsum(told.lengths) - 1]
    return nameless[np.where(told.lengths > 0, innermost, len(told.frames))]


def _has_states(rows: np.ndarray) -> bool:
    return has(rows, "state") and rows.dtype["state"].kind == "S" and rows.dtype["state"].shape == ()
