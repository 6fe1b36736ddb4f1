"""The functions of a flame graph, each once, and no more of their names than there is room for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tracer import brackets
from tracer.analysis.frames import Frame, Paths
from tracer.analysis.order import distinct
from tracer.reports.html.tree import Tree

__all__ = ["ALL", "NO_STACK", "PRUNED", "Named", "Names", "function", "named", "task", "unnamed_frames"]

#: A frame and what kind of thing it is: KINDS of web/src/picture.ts.
Named = tuple[Frame, str]

ALL: Named = (Frame(False, "", "all"), "m")
NO_STACK: Named = (Frame(False, "", brackets.NO_STACK), "m")
PRUNED: Named = (Frame(False, "", brackets.PRUNED), "m")
_NO_CODE = "no mapped code"


def function(frame: Frame) -> Named:
    """Return a frame of a stack with its kind: the kernel or a program."""
    return frame, "k" if frame.kernel else "u"


def task(name: str, kind: str = "t") -> Named:
    """Return a frame of what has no functions: a task, or who woke it."""
    return Frame(False, "", name or "?"), kind


class Names:
    """Gives numbers to frames: ``names`` are (name, kind, module's number)."""

    _CUT = 60

    def __init__(self, most: int) -> None:
        self.names: list[tuple[str, str, int]] = []
        self.modules: list[str] = []
        self.cut = 0
        self._left = most
        self._numbers: dict[tuple[str, str, str], int] = {}
        self._modules: dict[str, int] = {}

    def number(self, frame: Frame, kind: str) -> int:
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


def named(tree: Tree, inner: Sequence[Named], outer: Sequence[Named], most: int) -> tuple[Names, np.ndarray]:
    """Return the names of a tree's nodes, and each node's number of its name; ``outer`` are those below the root."""
    every = [*inner, *outer, PRUNED, ALL]
    one = np.where((tree.parents == 0) & (tree.frames >= 0), tree.frames + len(inner), tree.frames % len(every))
    first, which = distinct(one)
    names, numbers = Names(most), np.zeros(len(first), "<u4")
    # The heaviest come first: it is light ones whose names are cut where there is no room.
    for place in np.argsort(first).tolist():
        numbers[place] = names.number(*every[int(one[first[place]])])
    return names, numbers[which]


def unnamed_frames(told: Paths, weights_ns: np.ndarray) -> list[tuple[str, int, float]]:
    """Return what has no name by where it is: how many frames, how much time in those that are innermost."""
    frames = [*told.frames, NO_STACK[0]]
    innermost = np.append(told.numbers, len(told.frames))[np.cumsum(told.lengths) - 1]
    own_ns = np.bincount(np.where(told.lengths > 0, innermost, len(told.frames)), weights_ns, len(frames))
    found: dict[str, tuple[int, float]] = {}
    for frame, ns in zip(frames, own_ns.tolist(), strict=True):
        if frame.is_unnamed and (frame is not NO_STACK[0] or ns):
            where = frame.module or (_NO_CODE if frame.symbol.startswith(brackets.UNKNOWN[:-1]) else frame.symbol)
            number, total = found.get(where, (0, 0.0))
            found[where] = number + 1, total + ns
    return sorted(((where, *one) for where, one in found.items()), key=lambda one: -one[2])
