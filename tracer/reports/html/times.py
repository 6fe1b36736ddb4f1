"""Flame graphs of measured time, by what took it: their paths are few, and are no stacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tracer.analysis.gate import checked
from tracer.reports.html.blob import Blob
from tracer.reports.html.flames import Limits
from tracer.reports.html.weights import BY_CPU_STEPS, Weights
from tracer.window import Window

__all__ = ["Path", "Times", "Told"]

#: Names and what kind of thing they are (KINDS of web/src/picture.ts); what encloses comes first.
Path = tuple[tuple[str, str], ...]
#: Turns a window into paths, ns and CPUs of one row each.
Told = Callable[[Window], Iterator[tuple[Sequence[Path], np.ndarray, np.ndarray]]]

MOST_PATHS = 4096
_OTHERS: Path = (("[others: too many to tell apart]", "m"),)


class Times:
    """Nanoseconds by path, CPU and bin."""

    def __init__(self, told: Told) -> None:
        self._told = told
        self._paths: dict[Path, int] = {}
        self._weights = Weights(("path", "u4"))
        self._by_cpu = Weights(("cpu", "u4"), ("path", "u4"), steps=BY_CPU_STEPS)

    def add(self, bin: int, window: Window) -> None:
        """Add a window of a table that ``told`` knows."""
        window, why = checked(window)
        if why or not len(window.rows):
            return
        for paths, ns, cpus in self._told(window):
            used = np.flatnonzero(ns)
            rows = np.zeros(len(used), [("path", "u4"), ("weight", "u8")])
            rows["path"] = [self._number(paths[place]) for place in used.tolist()]
            rows["weight"] = ns[used]
            self._weights.add(bin, rows)
            self._by_cpu.add(bin, rows, cpu=cpus[used])

    def halve(self) -> None:
        self._weights.halve()
        self._by_cpu.halve()

    def packed(self, blob: Blob, limits: Limits) -> dict[str, Any] | None:
        """Return what ``Flames.packed`` does; None where nothing was measured."""
        rows = self._weights.few(limits.weights)
        if not len(rows):
            return None
        by_cpu = self._by_cpu.few(limits.weights)
        tree = _Tree()
        leaves = np.array([tree.leaf(path) for path in self._paths], "<u4")
        return {
            "longer": self._weights.longer,
            "names": [(name, kind, 0) for name, kind in tree.names],
            "modules": [""],
            "parents": blob.add(np.array(tree.parents, "<u4")),
            "nodes": blob.add(np.array(tree.nodes, "<u4")),
            "bins": blob.add(rows["bin"]),
            "leaves": blob.add(leaves[rows["path"]]),
            "weights": blob.add(rows["weight"].astype(np.float64)),
            "by_cpu": self._by_cpu.packed(blob, by_cpu, leaves[by_cpu["path"]], 1.0),
            "total": float(rows["weight"].sum()) + self._weights.untold,
            "pruned": 0,
            "untold": self._weights.untold,
            "unknown": 0,
            "cut_names": 0,
            "unkept": 0,
        }

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
