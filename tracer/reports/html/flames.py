"""Stacks by time: which task's which stack weighed how much in each bin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracer.analysis.gate import checked
from tracer.analysis.rows import text
from tracer.analysis.shapes import SAMPLES, STACKS
from tracer.analysis.stacks import Dictionary, Frame
from tracer.analysis.sums import MOST_KEYS, Sums
from tracer.reports.html.blob import Blob
from tracer.reports.html.tree import MOST_NODES, PRUNED, grown
from tracer.window import Window

__all__ = ["Flames", "Limits"]

_KEYS = np.dtype([("bin", "u4"), ("comm", "S16"), ("stack", "u8")])
#: While they are gathered: beyond, bins become longer before anything is left out.
_MOST_KEYS = MOST_KEYS // 2
_NO_STACK = Frame(False, "", "[no stack]")
#: Ways in which a frame's name says that there is none.
_UNKNOWN = ("[unknown", "+0x")


@dataclass(frozen=True)
class Limits:
    """Of one flame graph: nodes of its tree, weights by bin and stack, bytes of names."""

    nodes: int = MOST_NODES
    weights: int = 200_000
    names: int = 1_000_000


class Flames:
    """The stacks of one probe. ``scale`` turns their weight into ns."""

    def __init__(self, scale: float) -> None:
        self.dictionary = Dictionary()
        self._scale = scale
        self._sums = Sums(_KEYS, ("weight",))
        self._longer = 0  # bins are 2**longer of the others' bins

    def add(self, bin: int, window: Window) -> None:
        """Add a window of samples, or of what stacks and frames are."""
        window, why = checked(window)
        if why:
            return
        if (window.probe, window.table) in STACKS:
            self.dictionary.learn(window.rows)
        elif (window.probe, window.table) in SAMPLES:
            self._sums.add(window.rows, bin=bin >> self._longer)
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
        names = _Names(limits.names)
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
            "unkept": self.dictionary.unkept,
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
        return (Frame(False, "", text(comm) or "?"), *(self.dictionary.frames(stack) or (_NO_STACK,)))

    def _is_unknown(self, stack: int) -> bool:
        frames = self.dictionary.frames(stack)
        return not frames or any(mark in frames[-1].symbol for mark in _UNKNOWN)


class _Names:
    """Gives numbers to frames: ``names`` are (name, kind, module's number); kinds are task, kernel, user, made up."""

    _CUT = 60

    def __init__(self, most: int) -> None:
        self.names: list[tuple[str, str, int]] = []
        self.modules: list[str] = []
        self.cut = 0
        self._left = most
        self._numbers: dict[tuple[str, str, str], int] = {}
        self._modules: dict[str, int] = {}

    def number(self, frame: Frame, task: bool) -> int:
        kind = _kind(frame, task)
        module = self._short(frame.module)
        key = (self._short(frame.symbol or frame.module or "?"), kind, module)
        if key not in self._numbers:
            self._numbers[key] = len(self.names)
            self.names.append((key[0], kind, self._module(module)))
            self._left -= len(key[0])
        return self._numbers[key]

    def _module(self, module: str) -> int:
        if module not in self._modules:
            self._modules[module] = len(self.modules)
            self.modules.append(module)
            self._left -= len(module)
        return self._modules[module]

    def _short(self, name: str) -> str:
        if self._left > 0 or len(name) <= self._CUT:
            return name
        self.cut += 1
        return f"{name[: self._CUT]}…"


def _kind(frame: Frame, task: bool) -> str:
    if frame is PRUNED or frame is _NO_STACK:
        return "m"
    return "t" if task else "k" if frame.kernel else "u"
