"""Memory: what is left of it, who takes it, and how hard the kernel has to look for it.

``info`` and ``effort`` are read every interval, slabs only when slab memory has changed and at most every 10 s,
because counting them holds the allocator's locks; cgroups a few per second in turn. So ``growers`` tells of the
latest look, however long ago: ``over_ns`` says over what time something grew.

Overhead: nothing runs in the kernel. A read costs 0.11 ms with 21 cgroups and 0.24 ms with 320 (median, pinned, on a
virtual AMD EPYC), a look at 240 slab caches 0.45 ms more: at one read a second 0.14 to 0.29 ms a second.
Caveat: it is read four times a second at most: where intervals are shorter, most have no rows, and ``effort`` tells of
the time since the row before.
Caveat: a cgroup's memory includes its page cache and that of the groups below it.
Caveat: a column that this kernel does not count is absent.
Caveat: pages that a CPU keeps for itself (``count`` in /proc/zoneinfo) are neither ``free`` nor ``available``: up to
0.5 GB per CPU were seen on a 6.18 kernel with 24 GB. What a process takes may come from there.
"""

from __future__ import annotations

from tracer.probe import Column, Probe, Table

__all__ = ["PROBE"]

_INFO = (
    Column("total", "B", "all memory that the kernel manages"),
    Column("free", "B", "unused"),
    Column("available", "B", "what can be allocated without swapping, as the kernel estimates it"),
    Column("buffers", "B", "page cache of block devices"),
    Column("cached", "B", "page cache of files, shared memory included"),
    Column("swap_cached", "B", "in memory and in swap"),
    Column("swap_total", "B", "swap"),
    Column("swap_free", "B", "unused swap"),
    Column("dirty", "B", "to be written to disks"),
    Column("writeback", "B", "being written"),
    Column("anon", "B", "processes' own memory"),
    Column("shmem", "B", "shared memory and tmpfs"),
    Column("slab_reclaimable", "B", "the kernel's caches that can shrink"),
    Column("slab_unreclaimable", "B", "the kernel's objects"),
    Column("kernel_stack", "B", "kernel stacks"),
    Column("page_tables", "B", "page tables"),
    Column("vmalloc", "B", "the kernel's virtually mapped memory"),
    Column("percpu", "B", "the kernel's memory per CPU"),
    Column("hugetlb", "B", "reserved huge pages"),
    Column("unnamed", "B", "what none of these names: pages that drivers allocate, device memory"),
)
_EFFORT = (
    Column("some_ns", "ns", "time in which some task waited for memory (PSI)"),
    Column("full_ns", "ns", "time in which all tasks that were not idle did"),
    Column("allocation_stalls", "", "allocations that had to reclaim first, of the whole node"),
    Column("direct_scanned", "pages", "looked at by tasks that need memory, cgroups' limits included"),
    Column("direct_reclaimed", "pages", "freed by them"),
    Column("kswapd_scanned", "pages", "looked at in the background"),
    Column("throttled", "", "tasks made to wait for the background"),
    Column("compaction_stalls", "", "allocations that had to compact first"),
    Column("compaction_failures", "", "compactions in vain"),
    Column("swapped_out", "pages", "written to swap"),
    Column("oom_kills", "", "tasks killed for lack of memory, cgroups' limits included"),
)


PROBE = Probe(
    name="memory",
    summary="what memory is left, which slabs and cgroups take it, and how hard it is to get",
    tier="light",
    source="memory",
    tables=(
        Table("info", help="memory by use", gauges=tuple(column.name for column in _INFO), columns=_INFO),
        Table("effort", help="reclaim and kills", counters=tuple(column.name for column in _EFFORT), columns=_EFFORT),
        Table(
            "growers",
            help="the slabs and cgroups that grew most between the latest two looks at them",
            keys=("kind", "name"),
            gauges=("bytes", "grown", "over_ns"),
            columns=(
                Column("kind", "", "slab or cgroup"),
                Column("name", "", "of the slab cache, or the cgroup's path"),
                Column("bytes", "B", "its size"),
                Column("grown", "B", "by how much it grew"),
                Column("over_ns", "ns", "in what time"),
            ),
        ),
    ),
)
