"""The stolen-time ledger: what each process lost of its time, and to whom, from the tables of the probe ``ledger``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tracer.analysis.merged import Group
from tracer.analysis.names import quoted
from tracer.analysis.rows import text
from tracer.analysis.source import Source
from tracer.analysis.summary import Summary
from tracer.probes.hardirq import VECTOR_NAMES
from tracer.units import duration, percent

__all__ = ["Account", "Cause", "Taken", "accounts", "sentence", "subject"]

Cause = Literal["quota", "neighbour", "own", "interrupts", "memory", "other"]

#: Below this share nobody needs to be told who it was.
_LEAST_LOST = 0.001
#: A cause is the cause if it took so much of what was lost, and that is worth a word.
_MAIN_SHARE, _LEAST_BLAMED = 0.5, 0.01
_MOST_NAMED = 3
_LONG_WAIT_NS = 1_000_000_000
_OTHERS = 0


@dataclass(frozen=True)
class Taken:
    """One who took time: ``what`` in words that may hold unescaped names from the node, ``cause`` its kind."""

    what: str
    cause: Cause
    ns: int


@dataclass(frozen=True)
class Account:
    """One process. ``times`` are the sums of ``ledger.time`` by column; ``taken`` is what was lost, largest first.

    Shares are of the wall time or, where several threads wanted to run at once, of the time they wanted to run. The
    account of pid 0 is that of all processes that are not told one by one.
    """

    pid: int
    comm: str
    cgroup: str
    threads: int
    times: Mapping[str, int]
    open_wait_ns: int
    taken: tuple[Taken, ...]

    @property
    def lost_ns(self) -> int:
        return sum(one.ns for one in self.taken)

    @property
    def base_ns(self) -> int:
        return max(self.times["wall_ns"], self.times["running_ns"] + self.lost_ns)

    @property
    def lost(self) -> float:
        return self.lost_ns / self.base_ns if self.base_ns else float("nan")

    @property
    def cause(self) -> Cause | None:
        """What took most of it: the quota of the process itself and a neighbour are opposites. None if nothing did."""
        sums: dict[Cause, int] = defaultdict(int)
        for one in self.taken:
            sums[one.cause] += one.ns
        main = max(sums, key=lambda cause: sums[cause], default=None)
        if main is None or main == "other" or self.lost < _LEAST_BLAMED:
            return None
        return main if sums[main] >= _MAIN_SHARE * self.lost_ns else None


def accounts(summary: Summary) -> list[Account]:
    """Return what is known of each process, those that lost most first, the others together last."""
    times, taken = summary.table("ledger", "time"), summary.table("ledger", "taken")
    if times is None:
        return []
    found: dict[int, list[tuple[tuple[Any, ...], int]]] = defaultdict(list)
    if taken:
        for key, group in taken.groups(*taken.shape.keys).items():
            found[int(key[0])].append((key[1:], group.sums["ns"]))
    made = [_account(int(pid), group, found[int(pid)]) for (pid,), group in times.groups("pid").items()]
    return sorted(made, key=lambda one: (one.pid == _OTHERS, -one.lost_ns, one.pid))


def subject(account: Account, source: Source) -> str:
    """Return what a process is called, with its rank and job where the recording knows them."""
    return "all others" if account.pid == _OTHERS else source.task(account.comm, account.pid, account.pid)


def sentence(account: Account, source: Source) -> str:
    """Say what a process lost and to whom: ``rank[37] lost 1.8 %: softirq NET_RX 0.9, kubelet 0.6``; "" if nothing."""
    parts = []
    if account.lost >= _LEAST_LOST:
        named = [f"{one.what} {_share(one.ns, account)}" for one in account.taken[:_MOST_NAMED]]
        rest = sum(one.ns for one in account.taken[_MOST_NAMED:])
        named += [f"others {_share(rest, account)}"] if rest >= _LEAST_LOST * account.base_ns else []
        parts.append(f"{subject(account, source)} lost {percent(account.lost)}: {', '.join(named)}.")
        parts += [_CAUSES[account.cause]] if account.cause in _CAUSES else []
    if account.open_wait_ns >= _LONG_WAIT_NS:
        who = "It" if parts else subject(account, source)
        parts.append(f"{who} had been waiting for a CPU for {duration(account.open_wait_ns)} at the end.")
    return " ".join(parts)


_CAUSES: dict[Cause | None, str] = {
    "quota": "Its own quota holds it back, not a neighbour.",
    "neighbour": "A noisy neighbour: no quota holds it back.",
    "own": "Its own threads are in each other's way.",
}


def _share(ns: int, account: Account) -> str:
    return percent(ns / account.base_ns).removesuffix(" %")


def _account(pid: int, group: Group, found: list[tuple[tuple[Any, ...], int]]) -> Account:
    cgroup = text(group.gauges.get("cgroup", b""))
    sums: dict[tuple[str, Cause], int] = defaultdict(int)
    for (kind, number, name, holder_cgroup), ns in found:
        sums[_named(text(kind), int(number), text(name), text(holder_cgroup), cgroup)] += ns
    for column, named in _OWN.items():
        sums[named] += group.sums[column]
    taken = [Taken(what, cause, ns) for (what, cause), ns in sums.items() if ns]
    taken.sort(key=lambda one: (-one.ns, one.what))
    numbers = {name: int(group.gauges.get(name, 0)) for name in ("threads", "open_wait_ns")}
    return Account(pid, text(group.gauges.get("comm", b"")), cgroup, taken=tuple(taken), times=group.sums, **numbers)


#: What needs no name of who it was, by the column of ``ledger.time``.
_OWN: dict[str, tuple[str, Cause]] = {
    "throttled_ns": ("its own quota", "quota"),
    "reclaim_ns": ("reclaiming memory", "memory"),
    "compaction_ns": ("compacting memory", "memory"),
    "wait_softirq_ns": ("softirqs while it waited", "interrupts"),
    "wait_hardirq_ns": ("interrupts while it waited", "interrupts"),
}


_NOBODY = {"idle": "CPUs that woke up", "rest": "others"}


def _named(kind: str, number: int, name: str, cgroup: str, own_cgroup: str) -> tuple[str, Cause]:
    """Return who took time, in words, and as what."""
    if kind == "task":
        # The last part of a cgroup's path names the service or the container.
        place = cgroup.rstrip("/").rpartition("/")[2] if cgroup != own_cgroup else ""
        return quoted(name) + (f" (in {quoted(place)})" if place else ""), "neighbour"
    if kind == "own":
        return "its other threads", "own"
    if kind == "softirq":
        return f"softirq {quoted(name)}", "interrupts"
    if kind == "line":
        return f"interrupt {quoted(name)}", "interrupts"
    if kind == "vector":
        return f"interrupt {VECTOR_NAMES.get(number, b'vector %d' % number).decode()}", "interrupts"
    return _NOBODY.get(kind, "not known whom"), "other"
