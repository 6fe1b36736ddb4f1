"""Flame graphs of measured time, by what took it: their paths are few, and are no stacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tracer import brackets
from tracer.analysis.gate import checked
from tracer.reports.html.blob import Blob
from tracer.reports.html.flames import Limits
from tracer.reports.html.lanes import MOST_CPUS
from tracer.reports.html.weights import BY_CPU_STEPS, Weights
from tracer.window import Window

__all__ = ["Path", "Times", "Told"]

#: Names and what kind of thing they are (KINDS of web/src/picture.ts); what encloses comes first.
Path = tuple[tuple[str, str], ...]
#: Turns a window into paths, ns and CPUs of one row each.
Told = Callable[[Window], Iterator[tuple[Sequence[Path], np.ndarray, np.ndarray]]]

MOST_PATHS = 4096
_MOST_KNOWN = 8
_OTHERS: Path = ((brackets.OTHERS, "m"),)


class Times:
    """Nanoseconds by path, CPU and bin."""

    def __init__(self, told: Told) -> None:
        self._told = told
        self._paths: dict[Path, int] = {}
        self._known: dict[int, tuple[Sequence[Path], np.ndarray]] = {}
        self._weights, self._by_cpu = Weights(), Weights(steps=BY_CPU_STEPS)

    def add(self, bin: int, window: Window) -> None:
        """Add a window of a table that ``told`` knows."""
        window, why = checked(window)
        if why or not len(window.rows):
            return
        for paths, ns, cpus in self._told(window):
            used = np.flatnonzero(ns)
            numbers = self._numbers(paths, used)
            ns, cpus = ns[used], cpus[used].astype(np.int64)
            self._weights.add(bin, numbers, ns)
            by_cpu = np.where((cpus >= 0) & (cpus < MOST_CPUS), numbers * MOST_CPUS + cpus, -1)
            self._by_cpu.add(bin, by_cpu, ns)

    def halve(self) -> None:
        self._weights.halve()
        self._by_cpu.halve()

    def packed(self, blob: Blob, limits: Limits) -> dict[str, Any] | None:
        """Return what ``Flames.packed`` does; None where nothing was measured."""
        rows = self._weights.few(limits.weights)
        if not len(rows.numbers):
            return None
        by_cpu = self._by_cpu.few(limits.weights)
        paths, cpus = np.divmod(by_cpu.numbers, MOST_CPUS)
        tree = _Tree()
        leaves = np.array([tree.leaf(path) for path in self._paths], "<u4")
        return {
            "longer": self._weights.longer,
            "names": [(name, kind, 0) for name, kind in tree.names],
            "modules": [""],
            "parents": blob.add(np.array(tree.parents, "<u4")),
            "nodes": blob.add(np.array(tree.nodes, "<u4")),
            "bins": blob.add(rows.bins),
            "leaves": blob.add(leaves[rows.numbers]),
            "weights": blob.add(rows.weights.astype(np.float64)),
            "idle": None,
            "by_cpu": self._by_cpu.packed(blob, by_cpu, cpus, leaves[paths], 1.0),
            "total": float(rows.weights.sum()) + self._weights.untold,
            "pruned": 0,
            "untold": self._weights.untold,
            "unknown": 0,
            "cut_names": 0,
            "unkept": 0,
        }

    def _numbers(self, paths: Sequence[Path], used: np.ndarray) -> np.ndarray:
        """Return the numbers of the ``used`` ones of paths, which may be the very ones of the interval before."""
        known, numbers = self._known.get(id(paths), (None, np.zeros(0, np.int64)))
        if known is not paths:
            if len(self._known) == _MOST_KNOWN:
                self._known.clear()
            numbers = np.full(len(paths), -1)
            self._known[id(paths)] = paths, numbers
        for place in used[numbers[used] < 0].tolist():
            numbers[place] = self._number(paths[place])
        found: np.ndarray = numbers[used]
        return found

    def _number(self, path: Path) -> int:
        if path not in self._paths and len(self._paths) >= MOST_PATHS:
            path = _OTHERS
        return self._paths.setdefault(path, len(self._paths))


class _Tree:
    """Nodes of paths; parents come before their children."""

    def __init__(self) -> None:
        self.parents, self.nodes = [0], [0]
        self.names: list[tuple[str, str]] = [("all", "m")]
        self._numbers: dict[tuple[str, str], int] = {}
        self._children: dict[tuple[int, int], int] = {}

    def leaf(self, path: Path) -> int:
        node = 0
        for name in path:
            number = self._numbers.setdefault(name, len(self._numbers) + 1)
            if number == len(self.names):
                self.names.append(name)
            if (node, number) not in self._children:
                self._children[node, number] = len(self.parents)
                self.parents.append(node)
                self.nodes.append(number)
            node = self._children[node, number]
        return node
