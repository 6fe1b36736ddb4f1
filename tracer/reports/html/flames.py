"""Stacks by time: which task's which stack weighed how much in each bin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracer.analysis.gate import checked
from tracer.analysis.rows import has, text
from tracer.analysis.stacks import Dictionary, Frame
from tracer.analysis.sums import MOST_KEYS, Sums
from tracer.reports.html.blob import Blob
from tracer.reports.html.names import NO_STACK, Names
from tracer.reports.html.tree import MOST_NODES, grown
from tracer.window import Window

__all__ = ["Flames", "Limits", "Shown"]

Shown = Callable[[Sequence[Frame]], Sequence[Frame]]

_KEYS = np.dtype([("bin", "u4"), ("comm", "S16"), ("stack", "u8")])
#: While they are gathered: beyond, bins become longer before anything is left out.
_MOST_KEYS = MOST_KEYS // 2


@dataclass(frozen=True)
class Limits:
    """Of one flame graph: nodes of its tree, weights by bin and stack, bytes of names."""

    nodes: int = MOST_NODES
    weights: int = 200_000
    names: int = 1_000_000


class Flames:
    """The stacks of one probe, each as ``shown`` makes it. ``scale`` turns weights into ns.

    ``state`` is the tasks' state that counts, if not all do.
    """

    def __init__(
        self,
        scale: float,
        dictionary: Dictionary,
        shown: Shown,
        state: bytes = b"",
    ) -> None:
        self._dictionary = dictionary
        self._shown = shown
        self._scale = scale
        self._state = state
        self._sums = Sums(_KEYS, ("weight",))
        self._longer = 0  # bins are 2**longer of the others' bins

    def learn(self, window: Window) -> None:
        """Take in a window of what stacks and frames are."""
        window, why = checked(window)
        if not why:
            self._dictionary.learn(window.rows)

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
        keys: dict[tuple[bytes, int], int] = {}
        pairs = zip(rows["comm"].tolist(), rows["stack"].tolist(), strict=True)
        which = np.array([keys.setdefault(pair, len(keys)) for pair in pairs])
        totals = np.bincount(which, weights=rows["weight"].astype(np.float64))
        # The heaviest first: where a tree has no room, it is for the light ones.
        order = np.argsort(-totals, kind="stable")
        stacks = [*keys]
        tree = grown((self._path(*stacks[one]) for one in order.tolist()), totals[order], limits.nodes)
        leaves = np.empty(len(keys), np.int64)
        leaves[order] = tree.leaves
        names = Names(limits.names)
        nodes = [names.number(*one) for one in zip(tree.frames, (tree.parents == 0).tolist(), strict=True)]
        untold = self._sums.other["weight"] * self._scale
        return {
            "longer": self._longer,
            "names": names.names,
            "modules": names.modules,
            "parents": blob.add(tree.parents.astype("<u4")),
            "nodes": blob.add(np.array(nodes, "<u4")),
            "bins": blob.add(rows["bin"]),
            "leaves": blob.add(leaves[which].astype("<u4")),
            "weights": blob.add(rows["weight"] * self._scale),
            "total": float(totals.sum()) * self._scale + untold,
            "pruned": tree.pruned * self._scale,
            "untold": untold,
            "unknown": float(totals[[self._is_unknown(stack) for _, stack in stacks]].sum()) * self._scale,
            "cut_names": names.cut,
            "unkept": self._dictionary.unkept,
        }

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
        return rows[np.argsort(rows["bin"], kind="stable")]

    def _path(self, comm: bytes, stack: int) -> Sequence[Frame]:
        return (Frame(False, "", text(comm) or "?"), *(self._shown(self._dictionary.frames(stack)) or (NO_STACK,)))

    def _is_unknown(self, stack: int) -> bool:
        frame = self._dictionary.innermost(stack)
        # [unknown], [process ended], [anonymous]; module+0x…
        return frame is None or frame.symbol.startswith("[") or "+0x" in frame.symbol


def _has_states(rows: np.ndarray) -> bool:
    return has(rows, "state") and rows.dtype["state"].kind == "S" and rows.dtype["state"].shape == ()
