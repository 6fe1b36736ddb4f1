"""Stacks by time: which task's which stack weighed how much in each bin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracer.analysis.gate import checked
from tracer.analysis.order import distinct, order
from tracer.analysis.rows import COMM, has, text
from tracer.analysis.stacks import Dictionary, Frame, Paths
from tracer.analysis.sums import MOST_KEYS, Sums
from tracer.reports.html.blob import Blob
from tracer.reports.html.names import ALL, NO_STACK, PRUNED, Names
from tracer.reports.html.tree import MOST_NODES, Tree, grown
from tracer.window import Window

__all__ = ["Flames", "Limits"]

_KEYS = np.dtype([("bin", "u4"), ("comm", COMM), ("stack", "u8")])
#: While they are gathered: beyond, bins become longer before anything is left out.
_MOST_KEYS = MOST_KEYS // 2


@dataclass(frozen=True)
class Limits:
    """Of one flame graph: nodes of its tree, weights by bin and stack, bytes of names."""

    nodes: int = MOST_NODES
    weights: int = 200_000
    names: int = 1_000_000


class Flames:
    """The stacks of one probe, each without the innermost frames that are ``hidden``. ``scale`` turns weights into ns.

    ``state`` is the tasks' state that counts, if not all do.
    """

    def __init__(
        self,
        scale: float,
        dictionary: Dictionary,
        hidden: Callable[[Frame], bool],
        state: bytes = b"",
    ) -> None:
        self._dictionary = dictionary
        self._hidden = hidden
        self._scale = scale
        self._state = state
        self._sums = Sums(_KEYS, ("weight",))
        self._longer = 0  # bins are 2**longer of the others' bins

    def add(self, bin: int, window: Window) -> None:
        """Add a window of samples."""
        window, why = checked(window)
        rows = window.rows
        if self._state:
            rows = rows[rows["state"] == self._state] if _has_states(rows) else rows[:0]
        if why or not len(rows):
            return
        self._sums.add(rows, bin=bin >> self._longer)
        if len(self._sums) > _MOST_KEYS and bin >> self._longer:
            self._lengthen()
            self._longer += 1

    def halve(self) -> None:
        if self._longer:
            self._longer -= 1
        else:
            self._lengthen()

    def _lengthen(self) -> None:
        rows, other = self._sums.rows(), self._sums.other
        self._sums = Sums(_KEYS, ("weight",))
        self._sums.other = other
        self._sums.add(rows, bin=rows["bin"] >> 1)

    def packed(self, blob: Blob, limits: Limits) -> dict[str, Any] | None:
        """Return the tree, and ``bins``, ``leaves``, ``weights`` of what weighed in each bin; None without samples.

        Beyond the limits, bins become longer, names are cut short, and the lightest stacks are ``untold``.
        """
        rows = self._few(limits.weights)
        if not len(rows):
            return None
        first, which = distinct(rows["comm"], rows["stack"])
        weights = np.bincount(which, weights=rows["weight"].astype(np.float64))
        some_task, task = distinct(rows["comm"][first])
        told = self._dictionary.paths(rows["stack"][first].tolist())
        starts, lengths = np.cumsum(told.lengths) - told.lengths, self._telling(told)
        # Where there is no stack, one frame says so.
        starts[lengths == 0] = len(told.numbers)
        path = np.append(told.numbers, len(told.frames))
        tree = grown(task, path, starts, np.maximum(lengths, 1), weights, limits.nodes)
        tasks = [Frame(False, "", text(comm) or "?") for comm in rows["comm"][first][some_task].tolist()]
        names, nodes = _named(tree, [*told.frames, NO_STACK], tasks, limits.names)
        untold = self._sums.other["weight"] * self._scale
        return {
            "longer": self._longer,
            "names": names.names,
            "modules": names.modules,
            "parents": blob.add(tree.parents),
            "nodes": blob.add(nodes),
            "bins": blob.add(rows["bin"]),
            "leaves": blob.add(tree.leaves[which].astype("<u4")),
            "weights": blob.add(rows["weight"] * self._scale),
            "total": float(weights.sum()) * self._scale + untold,
            "pruned": tree.pruned * self._scale,
            "untold": untold,
            "unknown": float(weights[_unnamed(told)].sum()) * self._scale,
            "cut_names": names.cut,
            "unkept": self._dictionary.unkept,
        }

    def functions(self) -> dict[Frame, tuple[float, float]]:
        """Return each function's ns: its own, and with callees, where one counts once per stack."""
        rows = self._sums.rows()
        stacks, which = np.unique(rows["stack"], return_inverse=True)
        weights = np.bincount(which, rows["weight"].astype(np.float64), len(stacks)) * self._scale
        told = self._dictionary.paths(stacks.tolist())
        starts = np.cumsum(told.lengths) - told.lengths
        paths = zip(starts.tolist(), (starts + self._telling(told)).tolist(), weights.tolist(), strict=True)
        found: dict[Frame, tuple[float, float]] = {}
        for start, end, weight in paths:
            frames = [told.frames[number] for number in told.numbers[start:end].tolist()] or [NO_STACK]
            for frame in set(frames):
                own, total = found.get(frame, (0.0, 0.0))
                found[frame] = (own + weight * (frame == frames[-1]), total + weight)
        return found

    def _few(self, most: int) -> np.ndarray:
        """Return at most ``most`` rows, ordered by bin."""
        while len(self._sums.rows()) > most and self._sums.rows()["bin"].any():
            self._lengthen()
            self._longer += 1
        if len(self._sums.rows()) > most:
            rows, other = self._sums.rows(), self._sums.other
            self._sums = Sums(_KEYS, ("weight",), most)
            self._sums.other = other
            self._sums.add(rows)
        rows = self._sums.rows()
        return rows.take(order(rows["bin"]))

    def _telling(self, told: Paths) -> np.ndarray:
        """Return how many frames of each stack are shown: not the innermost ones that say nothing, but one at least."""
        stack = np.repeat(np.arange(len(told.lengths)), told.lengths)
        place = np.arange(len(stack)) - (np.cumsum(told.lengths) - told.lengths)[stack]
        shown = np.array([not self._hidden(frame) for frame in told.frames], bool)[told.numbers]
        lengths: np.ndarray = np.minimum(told.lengths, 1)
        np.maximum.at(lengths, stack[shown], place[shown] + 1)
        return lengths


def _named(tree: Tree, frames: Sequence[Frame], tasks: Sequence[Frame], most: int) -> tuple[Names, np.ndarray]:
    """Return the names of a tree's nodes, and each node's number of its name."""
    every = [*frames, *tasks, PRUNED, ALL]
    one = np.where((tree.parents == 0) & (tree.frames >= 0), tree.frames + len(frames), tree.frames % len(every))
    first, which = distinct(one)
    names, numbers = Names(most), np.zeros(len(first), "<u4")
    # The heaviest come first: it is light ones whose names are cut where there is no room.
    for place in np.argsort(first).tolist():
        number = int(one[first[place]])
        numbers[place] = names.number(every[number], number >= len(frames))
    return names, numbers[which]


def _unnamed(told: Paths) -> np.ndarray:
    """Return of which stacks the innermost function has no name, or of which there are no frames."""
    # [unknown], [process ended], [anonymous]; module+0x…
    nameless = np.array([one.symbol.startswith("[") or "+0x" in one.symbol for one in told.frames] + [True])
    innermost = np.append(told.numbers, len(told.frames))[np.cumsum(told.lengths) - 1]
    return nameless[np.where(told.lengths > 0, innermost, len(told.frames))]


def _has_states(rows: np.ndarray) -> bool:
    return has(rows, "state") and rows.dtype["state"].kind == "S" and rows.dtype["state"].shape == ()
