"""The stolen-time ledger: what each process lost of its time, and to whom, from the tables of the probe ``ledger``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

from tracer.analysis import thresholds
from tracer.analysis.jobs import Jobs
from tracer.analysis.limits import limits
from tracer.analysis.merged import Group
from tracer.analysis.rows import text
from tracer.analysis.sleeps import asleep
from tracer.analysis.source import Source
from tracer.analysis.summary import Summary
from tracer.analysis.taken import OTHERS, OWN, TOGETHER, WAITED, Cause, Taken, named
from tracer.units import duration, percent

__all__ = ["Account", "accounts", "sentence", "subject", "takers", "throttled", "verdict"]

#: Below this share nobody needs to be told who it was.
_LEAST_LOST = 0.001
#: A cause is the cause if it took so much of what was lost, and that is worth a word.
_MAIN_SHARE, _BOTH_SHARE, _LEAST_BLAMED = 0.5, 0.33, 0.01
_MOST_NAMED = 3
#: Running throttled for heat is worth a word from so much of the time on.
_LEAST_HOT = 0.01
_OTHERS = 0


@dataclass(frozen=True)
class Account:
    """One process. ``times`` are the sums of ``ledger.time`` by column; ``taken`` is what was lost, largest first.

    Shares are of the wall time or, where several threads wanted to run at once, of the time they wanted to run. The
    account of pid 0 is that of all processes that are not told one by one. ``judged`` are those whose loss is anybody's
    business: the node's jobs, and what a filter asked for.
    """

    pid: int
    comm: str
    cgroup: str
    threads: int
    times: Mapping[str, int]
    open_wait_ns: int
    taken: tuple[Taken, ...]
    judged: bool

    @property
    def lost_ns(self) -> int:
        return sum(one.ns for one in self.taken)

    @property
    def base_ns(self) -> int:
        return max(self.times["wall_ns"], self.times["running_ns"] - self.times["slow_ns"] + self.lost_ns)

    @property
    def lost(self) -> float:
        return self.lost_ns / self.base_ns if self.base_ns else float("nan")

    @property
    def cause(self) -> Cause | None:
        """What took most of it: the quota of the process itself and a neighbour are opposites, ``both`` may be true.

        None if nothing did, and of one that is not judged.
        """
        if not self.judged:
            return None
        sums: dict[Cause, int] = defaultdict(int)
        for one in self.taken:
            sums[one.cause] += one.ns
        main = max(sums, key=lambda cause: sums[cause], default=None)
        if main is None or main == "other" or self.lost < _LEAST_BLAMED:
            return None
        opposites = sums["quota"], sums["neighbour"]
        if min(opposites) >= _BOTH_SHARE * self.lost_ns and sum(opposites) >= _MAIN_SHARE * self.lost_ns:
            return "both"
        return main if sums[main] >= _MAIN_SHARE * self.lost_ns else None


def accounts(summary: Summary, source: Source) -> list[Account]:
    """Return what is known of each process, those that lost most first, the others together last."""
    times, taken = summary.table("ledger", "time"), summary.table("ledger", "taken")
    if times is None:
        return []
    found: dict[int, list[tuple[tuple[Any, ...], int]]] = defaultdict(list)
    if taken:
        for key, group in taken.groups(*taken.shape.keys).items():
            found[int(key[0])].append((key[1:], group.sums["ns"]))
    judged = _judged(source)
    made = [
        _account(int(pid), group, found[int(pid)], source.jobs, judged is None or int(pid) in judged)
        for (pid,), group in times.groups("pid").items()
    ]
    return sorted(made, key=lambda one: (one.pid == _OTHERS, -one.lost_ns, one.pid))


def throttled(summary: Summary) -> set[str]:
    """Return the cgroups whose processes waited for their quota more than for others."""
    times = summary.table("ledger", "time")
    groups = times.groups("pid").values() if times else ()
    return {
        text(group.gauges.get("cgroup", b""))
        for group in groups
        if group.sums["throttled_ns"] > group.sums["waiting_ns"]
    }


def _judged(source: Source) -> Set[int] | None:
    """Return the processes that a verdict is due to: ranks and jobs, where there are none pods and containers.

    None is all of them: of those that a filter left.
    """
    if limits("ledger", source).keys() & {"pid", "cgroup"}:
        return None
    return {*source.jobs.at_work()} or {one.pid for one in source.jobs.members()}


def subject(account: Account, source: Source) -> str:
    """Return what a process is called, with its rank and job where the recording knows them."""
    return "all others" if account.pid == _OTHERS else source.task(account.comm, account.pid, account.pid)


def takers(account: Account) -> str:
    """Return who took most of it, with shares in percent: ``softirq NET_RX 0.9, kubelet 0.6``; "" if nothing."""
    if not account.lost >= _LEAST_LOST:
        return ""
    most = [one for one in account.taken if one.what != OTHERS][:_MOST_NAMED]
    rest = account.lost_ns - sum(one.ns for one in most)
    more = [f"{OTHERS} {_share(rest, account)}"] if rest >= _LEAST_LOST * account.base_ns else []
    return ", ".join([f"{one.what} {_share(one.ns, account)}" for one in most] + more)


def sentence(account: Account, source: Source) -> str:
    """Say what a process lost and to whom: ``rank[37] lost 1.8 %: softirq NET_RX 0.9, kubelet 0.6``; "" if nothing.

    Of one that belongs to a job, what it slept for, too.
    """
    parts = []
    if taken := takers(account):
        parts.append(f"{subject(account, source)} lost {percent(account.lost)}: {taken}.")
        parts += filter(None, [verdict(account)])
    if account.times["hot_ns"] >= _LEAST_HOT * account.base_ns > 0:
        hot = percent(account.times["hot_ns"] / account.base_ns)
        who = "It" if parts else subject(account, source)
        parts.append(f"{who} ran {hot} of the time on CPUs that were throttled for heat.")
    if source.jobs.of(account.pid) and (slept := asleep(account.times, account.lost_ns, account.threads)):
        parts.append(slept if parts else f"{subject(account, source)}: {slept}")
    if account.open_wait_ns >= thresholds.LEDGER_WAIT_NS:
        who = "It" if parts else subject(account, source)
        parts.append(f"{who} had been waiting for a CPU for {duration(account.open_wait_ns)} at the end.")
    return " ".join(parts)


_CAUSES: dict[Cause | None, str] = {
    "quota": "Its own quota holds it back, not a neighbour.",
    "neighbour": "A noisy neighbour: no quota holds it back.",
    "both": "Its own quota holds it back, and so do neighbours.",
    "overcommitted": "Overcommitted: the job's own {} share a CPU.",
    "own": "Its own threads are in each other's way.",
}


def verdict(account: Account) -> str:
    """Say whether a quota, neighbours or its own job is to blame; "" where it is none of them, or not judged."""
    if account.cause not in _CAUSES:
        return ""
    if account.cause == "neighbour" and account.times["throttled_ns"]:
        return "A noisy neighbour, more than its own quota."
    most = next((one.what for one in account.taken if one.cause == account.cause), "")
    return _CAUSES[account.cause].format("ranks" if most == TOGETHER["ranks"] else "processes")


def _share(ns: int, account: Account) -> str:
    return percent(ns / account.base_ns).removesuffix(" %")


def _account(pid: int, group: Group, found: list[tuple[tuple[Any, ...], int]], jobs: Jobs, judged: bool) -> Account:
    cgroup = text(group.gauges.get("cgroup", b""))
    sums: dict[tuple[str, Cause], int] = defaultdict(int)
    for (kind, number, name, holder_cgroup), ns in found:
        what, cause = named(text(kind), int(number), text(name), text(holder_cgroup), cgroup)
        if cause == "neighbour" and (together := jobs.together(pid, int(number))):
            what, cause = TOGETHER[together], "overcommitted"
        sums[what, cause] += ns
    # What is told by vector is part of one column.
    told = {"wait_softirq_ns": sum(ns for (kind, *_), ns in found if text(kind) == WAITED)}
    for column, own in OWN.items():
        sums[own] += max(group.sums[column] - told.get(column, 0), 0)
    taken = [Taken(what, cause, ns) for (what, cause), ns in sums.items() if ns]
    taken.sort(key=lambda one: (-one.ns, one.what))
    numbers = {name: int(group.gauges.get(name, 0)) for name in ("threads", "open_wait_ns")}
    comm = text(group.gauges.get("comm", b""))
    return Account(pid, comm, cgroup, taken=tuple(taken), times=group.sums, judged=judged and pid != _OTHERS, **numbers)
