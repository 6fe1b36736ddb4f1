"""What memory is left, who takes it and how hard it is to get, polled once per interval."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import numpy as np

from tracer.kernel.kept import Kept
from tracer.kernel.memory_growth import CgroupGrowth, SlabGrowth

__all__ = ["Source", "refusal"]

Read = tuple[np.ndarray, dict[str, int]]

# The column of each line of /proc/meminfo. Source: meminfo_proc_show() in fs/proc/meminfo.c.
_INFO = {
    b"MemTotal": "total",
    b"MemFree": "free",
    b"MemAvailable": "available",
    b"Buffers": "buffers",
    b"Cached": "cached",
    b"SwapCached": "swap_cached",
    b"SwapTotal": "swap_total",
    b"SwapFree": "swap_free",
    b"Dirty": "dirty",
    b"Writeback": "writeback",
    b"AnonPages": "anon",
    b"Shmem": "shmem",
    b"SReclaimable": "slab_reclaimable",
    b"SUnreclaim": "slab_unreclaimable",
    b"KernelStack": "kernel_stack",
    b"PageTables": "page_tables",
    b"VmallocUsed": "vmalloc",
    b"Percpu": "percpu",
    b"Hugetlb": "hugetlb",
}
# By the line's end before them, which takes a quarter of the time that "^" does.
_INFO_LINES = re.compile(rb"\n(%b): +(\d+) kB" % b"|".join(_INFO))
# These and MemFree add up to MemTotal, but for what nobody names. Stacks are vmalloc's; shared memory is Cached's.
_NAMED = "free buffers cached swap_cached anon slab_reclaimable slab_unreclaimable page_tables vmalloc percpu hugetlb"
# The column of each line of /proc/vmstat; allocstall is there once per zone. Source: vmstat_text in mm/vmstat.c.
_EFFORT = {
    b"pgscan_direct": "direct_scanned",
    b"pgsteal_direct": "direct_reclaimed",
    b"pgscan_kswapd": "kswapd_scanned",
    b"pgscan_direct_throttle": "throttled",
    b"compact_stall": "compaction_stalls",
    b"compact_fail": "compaction_failures",
    b"pswpout": "swapped_out",
    b"oom_kill": "oom_kills",
}
# A dozen of two hundred lines.
_EFFORT_LINES = re.compile(rb"\n(%b|allocstall_\w+) (\d+)" % b"|".join(_EFFORT))
#: A read costs about 0.1 ms: no more than so many, however short the intervals.
_LEAST_NS = 250_000_000
GROWER = np.dtype([("kind", "S8"), ("name", "S192"), ("bytes", "u8"), ("grown", "u8"), ("over_ns", "u8")])


def refusal() -> str:
    """Return why this source can't start: never, what is missing is absent."""
    return ""


class Source:
    """The tables ``memory.info``, ``memory.effort`` and ``memory.growers``. The first read is a beginning.

    Columns that this kernel does not count are absent. The loss ``reset`` counts counters that went back.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        del settings
        self._meminfo, self._vmstat = Kept("/proc/meminfo"), Kept("/proc/vmstat")
        self._pressure = Kept("/proc/pressure/memory")
        self._slabs, self._cgroups = SlabGrowth(), CgroupGrowth()
        self._before: dict[str, int] = {}
        self._due_ns = 0
        self._info = self._effort = _row({})

    def read(self, now_ns: int) -> dict[str, Read]:
        """Return ``{table: (rows, losses)}``; efforts are those since the last read."""
        reset = 0
        if now_ns >= self._due_ns:
            # Intervals are not exact: one that ends a little early is not skipped.
            self._due_ns = now_ns + _LEAST_NS * 9 // 10
            self._info, reset = self._look(now_ns), self._count()
            info, effort = self._info, self._effort
        else:
            info, effort = self._info[:0], self._effort[:0]
        return {"info": (info, {}), "effort": (effort, {"reset": reset}), "growers": (self._growers(), {})}

    def close(self) -> None:
        for file in (self._meminfo, self._vmstat, self._pressure, self._slabs):
            file.close()

    def _look(self, now_ns: int) -> np.ndarray:
        info = _info(self._meminfo.read() or b"")
        self._slabs.look(now_ns, info.get("slab_reclaimable", 0) + info.get("slab_unreclaimable", 0))
        self._cgroups.step(now_ns)
        return _row(info)

    def _count(self) -> int:
        """Renew the effort since the last count; return how many counters went back."""
        now = _pressure(self._pressure.read() or b"") | _effort(self._vmstat.read() or b"")
        before, self._before = self._before, now
        made = {name: total - before.get(name, total) for name, total in now.items()}
        self._effort = _row({name: max(number, 0) for name, number in made.items()})
        if not before:
            self._effort = self._effort[:0]
        return sum(number < 0 for number in made.values())

    def _growers(self) -> np.ndarray:
        kinds = ((b"slab", self._slabs.grown), (b"cgroup", self._cgroups.grown))
        rows = [
            (kind, _fitted(each.name), each.bytes, each.grown, each.over_ns) for kind, grown in kinds for each in grown
        ]
        return np.array(rows, GROWER)


def _row(values: dict[str, int]) -> np.ndarray:
    """Return one row with the columns that there are; no row if there are none."""
    dtype = _dtype(tuple(values))
    return np.array([tuple(values.values())], dtype) if values else np.zeros(0, dtype)


# The same object every time: making one, and comparing it with another, takes longer than a read.
@lru_cache
def _dtype(columns: tuple[str, ...]) -> np.dtype:
    return np.dtype([(name, "u8") for name in columns])


def _info(content: bytes) -> dict[str, int]:
    info = {_INFO[name]: int(amount) * 1024 for name, amount in _INFO_LINES.findall(b"\n" + content)}
    if "total" in info:
        info["unnamed"] = max(info["total"] - sum(info.get(name, 0) for name in _NAMED.split()), 0)
    return info


def _effort(content: bytes) -> dict[str, int]:
    effort: dict[str, int] = {}
    for name, amount in _EFFORT_LINES.findall(b"\n" + content):
        column = _EFFORT.get(name, "allocation_stalls")
        effort[column] = effort.get(column, 0) + int(amount)
    return effort


def _pressure(content: bytes) -> dict[str, int]:
    """Return PSI's total times. Source: psi_show() in kernel/sched/psi.c, ``some avg10=… total=MICROSECONDS``."""
    times = {}
    for line in content.splitlines():
        kind, total = line.partition(b" ")[0], line.rpartition(b"total=")[2]
        times[f"{kind.decode()}_ns"] = int(total) * 1000
    return times


def _fitted(name: bytes) -> bytes:
    """Shorten a name to the column's width, from the front: a path's end tells it from its siblings."""
    width = GROWER["name"].itemsize
    return name if len(name) <= width else b"..." + name[3 - width :]
