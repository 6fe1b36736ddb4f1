"""Which slab caches and which cgroups grow, found out in small steps."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import nlargest

from tracer.kernel.cgroups import hierarchy, subfolders
from tracer.kernel.kept import Kept
from tracer.kernel.textfiles import number
from tracer.units import SECOND

__all__ = ["CgroupGrowth", "Grown", "SlabGrowth"]

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
#: Caches and cgroups told at once, each.
MOST = 8


@dataclass(frozen=True)
class Grown:
    """One cache or cgroup: its size, and by how much it grew in what time."""

    name: bytes
    bytes: int
    grown: int
    over_ns: int


class SlabGrowth:
    """Sizes of slab caches, and what they grew by between looks.

    A look takes every cache's locks and, before v6.10, walks all its partial slabs under them. So it is taken once
    slab memory has changed by a 64th or after two minutes, at most every 10 s, and may cost a thousandth of one CPU.
    Source: slabinfo(5), get_slabinfo() in mm/slub.c.
    """

    _LEAST_NS, _MOST_NS, _CHANGE, _SHARE = 10 * SECOND, 120 * SECOND, 64, 1000

    def __init__(self, path: str = "/proc/slabinfo") -> None:
        self._file = Kept(path)
        self._sizes: dict[bytes, int] = {}
        self._looked_ns = self._next_ns = self._slab = 0
        self.grown: list[Grown] = []

    def look(self, now_ns: int, slab: int) -> None:
        """Renew ``grown`` if it is time to; ``slab``: slab memory in bytes, as /proc/meminfo has it."""
        changed = abs(slab - self._slab) * self._CHANGE >= self._slab
        if now_ns < self._next_ns or not (changed or now_ns - self._looked_ns >= self._MOST_NS):
            return
        began_ns = time.monotonic_ns()
        sizes = dict(_slabs(self._file.read() or b""))
        cost_ns = time.monotonic_ns() - began_ns
        before, over_ns = self._sizes, now_ns - self._looked_ns
        if before:
            grown = ((name, size, size - before.get(name, 0)) for name, size in sizes.items())
            most = nlargest(MOST, grown, key=lambda each: each[2])
            self.grown = [Grown(name, size, more, over_ns) for name, size, more in most if more > 0]
        self._sizes, self._slab, self._looked_ns = sizes, slab, now_ns
        self._next_ns = now_ns + max(self._LEAST_NS, cost_ns * self._SHARE)

    def close(self) -> None:
        self._file.close()


def _slabs(content: bytes) -> Iterator[tuple[bytes, int]]:
    for line in content.splitlines()[2:]:
        # From the right: a module may put blanks into a cache's name.
        name, *fields = line.rsplit(None, 15)
        if len(fields) == 15 and name:
            yield name, int(fields[13]) * int(fields[4]) * _PAGE_BYTES


class CgroupGrowth:
    """Memory of cgroups, a few per second in turn, and what they grew by from one turn to the next.

    A parent whose growth is nearly all one child's is left out. At most ``_GROUPS`` are looked at.
    """

    _GROUPS, _PER_SECOND, _TURN_NS = 512, 8, 10 * SECOND

    def __init__(self, proc: str = "/proc") -> None:
        is_v1, self._mount, self._root = hierarchy(b"memory", proc)
        self._file = b"/memory.usage_in_bytes" if is_v1 else b"/memory.current"
        self._turn: Iterator[tuple[bytes, int]] = iter(())
        self._began_ns = self._stepped_ns = 0
        self._before: dict[bytes, tuple[int, int]] = {}
        self._found: dict[bytes, tuple[int, int]] = {}
        self.grown: list[Grown] = []

    def step(self, now_ns: int) -> None:
        """Look at the next few groups; after the last of them, renew ``grown``."""
        seconds = min(max((now_ns - self._stepped_ns) / SECOND, 0.0), 4.0)
        self._stepped_ns = now_ns
        for _ in range(int(seconds * self._PER_SECOND)):
            name, size = next(self._turn, (None, 0))
            if name is None:
                self._end_turn(now_ns)
                return
            if size >= 0:
                self._found[name] = size, now_ns

    def _end_turn(self, now_ns: int) -> None:
        if now_ns - self._began_ns < self._TURN_NS:
            return
        if self._found:
            self.grown = _most_grown(self._before, self._found)
        self._before, self._found = self._found, {}
        self._began_ns, self._turn = now_ns, self._groups()

    def _groups(self) -> Iterator[tuple[bytes, int]]:
        """Yield each group's path and memory (-1: not told), parents first."""
        folders = [(self._mount, self._root)] if self._mount else []
        for at in range(self._GROUPS):
            if at >= len(folders):
                return
            folder, name = folders[at]
            size = number(os.fsdecode(folder + self._file))
            yield name or b"/", -1 if size is None else size
            try:
                # kernfs counts subdirectories in the links: a group without any needn't be listed, files and all.
                children = subfolders(folder) if os.stat(folder).st_nlink > 2 else []
            except OSError:
                continue  # removed while we look
            room = self._GROUPS - len(folders)
            folders += [(folder + b"/" + child, name.rstrip(b"/") + b"/" + child) for child in children[:room]]


def _most_grown(before: dict[bytes, tuple[int, int]], now: dict[bytes, tuple[int, int]]) -> list[Grown]:
    grown = {}
    for name, (size, at_ns) in now.items():
        earlier, earlier_ns = before.get(name, (size, 0))
        if size > earlier:
            grown[name] = Grown(name, size, size - earlier, at_ns - earlier_ns)
    parents = {name: name.rpartition(b"/")[0] or b"/" for name in grown if name != b"/"}
    told = {parent for name, parent in parents.items() if parent in grown and _is_most(grown[name], grown[parent])}
    return nlargest(MOST, (each for name, each in grown.items() if name not in told), key=lambda each: each.grown)


def _is_most(child: Grown, parent: Grown) -> bool:
    return child.grown >= 0.8 * parent.grown
