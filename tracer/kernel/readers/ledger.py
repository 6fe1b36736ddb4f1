"""Where the time of each process went, and who took it: from threads' times and the counts of bpf/ledger.h."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.lib.recfunctions import repack_fields

from tracer.kernel import calls
from tracer.kernel.cgroups import CgroupNames
from tracer.kernel.cpus import in_host_pids
from tracer.kernel.halves import Halves
from tracer.kernel.longwaits import Interrupted, LongWaits
from tracer.kernel.session import Session
from tracer.kernel.sleepers import Sleepers
from tracer.kernel.slowed import Slowed
from tracer.kernel.takers import Takers
from tracer.kernel.threadtimes import PARTS, ThreadTimes
from tracer.layouts import constants
from tracer.probe import SOFTIRQS, Probe

__all__ = ["Reader"]

_KNOWN = constants("ledger")
#: Of a cgroup's path: what tells it from its siblings comes last.
_CGROUP_BYTES = 192
_TIMES = tuple(name for name in PARTS if name not in SOFTIRQS)
_TIME = np.dtype(
    [
        *(("pid", "u4"), ("comm", "S16"), ("cgroup", f"S{_CGROUP_BYTES}"), ("threads", "u4"), ("wall_ns", "u8")),
        *((name if name == "waits" else f"{name}_ns", "u8") for name in _TIMES),
        *(("open_wait_ns", "u8"), ("hot_ns", "u8"), ("slow_ns", "u8")),
    ]
)
_TAKEN = np.dtype(
    [
        *(("pid", "u4"), ("kind", "S8"), ("number", "u4"), ("name", "S16"), ("cgroup", f"S{_CGROUP_BYTES}")),
        ("ns", "u8"),
    ]
)
#: Of the processes told so many may be ranks of jobs, whatever they do.
_RANKS_SHARE = 0.75
#: What makes another process one of those told: its own time, and all that others took.
_WANTED = ("running", "waiting", "throttled", "softirq", "hardirq", "reclaim", "compaction")
_MOST_TAKEN = 1024
_KINDS = {
    _KNOWN["LEDGER_LINE"]: b"line",
    _KNOWN["LEDGER_VECTOR"]: b"vector",
}

_Taken = tuple[int, bytes, int, bytes, bytes]


class Reader:
    """Fills ``ledger.time`` and ``ledger.taken``."""

    def __init__(self, session: Session, probe: Probe) -> None:
        sizes = {**probe.settings, **session.options.constants}
        self._most = sizes["LEDGER_SUBJECTS"]
        foreign = not in_host_pids()
        self._cgroups = CgroupNames(foreign=foreign)
        calls.fill(session.array("ledger_calls"))
        cpus = session.array("ledger_cpus")
        self._long = LongWaits(cpus, session.array("ledger_blocks"), session.array("ledger_olds"))
        self._session = session
        self._threads = ThreadTimes(session.array("ledger_tasks"), cpus, proc=not foreign)
        group, self._only = (session.options.constants.get(name, 0) for name in ("FILTER_CGROUP", "FILTER_TGID"))
        self._sleepers = Sleepers(session.array("ledger_tasks"), self._cgroups, session.stack, group)
        halves = Halves(cpus, session.array("ledger_control"))
        counts = session.descriptor("ledger_counts")
        self._takers = Takers(halves, session.array("ledger_cells"), counts, sizes["LEDGER_KEYS"])
        self._cpus, self._cpus_before = cpus, cpus.copy()
        self._counted = [(loss.reason, loss.field.split(".")) for loss in probe.losses if loss.map]
        self._slowed = Slowed(range(len(cpus)))
        unseen = (() if self._slowed.sees_heat else ("hot_ns",)) + (() if self._slowed.sees_speed else ("slow_ns",))
        self._told = [name for name in _TIME.names or () if name not in unseen]
        self._before_ns = 0

    def read(self, now_ns: int) -> dict[str, tuple[np.ndarray, Mapping[str, int]]]:
        """Return both tables, of the time since the last read."""
        keys, counts, settled = self._takers.take()
        taken_ns, threads = self._threads.take()
        ranks = {pid for pid in self._session.ranks if self._only in (0, pid)}
        self._sleepers.give(ranks, set(threads["pid"].tolist()), taken_ns)
        long, interrupts, lost_ns = self._long.take(taken_ns)
        times, parts = self._processes(threads, taken_ns)
        told = set(times["pid"].tolist())
        _add_interrupts(times, interrupts)
        taken = Counter(dict(_softirqs(times["pid"].tolist(), parts)))
        for key, ns in self._holders(keys, counts, told):
            taken[key] += ns
        earlier_ns = lost_ns
        for one in interrupts:
            if one.softirq_ns:
                taken[_softirq(one.tgid if one.tgid in told else 0, one.vector)] += one.softirq_ns
        for share in long:
            earlier_ns += share.ns if share.holder < 0 else 0
            taken[self._holder(share.tgid, share.holder, share.comm, share.cgroup_id, told)] += share.ns
        untold = _pruned(taken)
        rows = np.array([(*key, ns) for key, ns in taken.items()], dtype=_TAKEN)
        self._before_ns = taken_ns
        losses = {"unsettled": int(not settled), "untold": untold, "earlier_ns": earlier_ns, **self._losses()}
        return {"time": (repack_fields(times[self._told]), losses), "taken": (rows, {})}

    def close(self) -> None:
        """Let go of the live rows."""
        self._cpus = self._cpus_before

    def _losses(self) -> dict[str, int]:
        """Return what the programs counted since the last time."""
        losses = {}
        after = self._cpus.copy()
        for reason, path in self._counted:
            old, new = self._cpus_before, after
            for name in path:
                old, new = old[name], new[name]
            losses[reason] = int((new - old).sum())
        self._cpus_before = after
        return losses

    def _processes(self, threads: np.ndarray, now_ns: int) -> tuple[np.ndarray, np.ndarray]:
        """Add threads up to processes, those beyond the most to one; return the rows and their parts."""
        # A process is named as its thread that did something last.
        threads = threads[np.argsort(threads["since_ns"])[::-1]]
        pids, first, whose = np.unique(threads["tgid"], return_index=True, return_inverse=True)
        parts = np.zeros((len(pids), len(PARTS)), "i8")
        np.add.at(parts, whose.reshape(-1), threads["parts"])
        rows = np.zeros(len(pids), _TIME)
        rows["pid"], rows["comm"] = pids, threads["comm"][first]
        np.add.at(rows["threads"], whose.reshape(-1), 1)
        np.add.at(rows["open_wait_ns"], whose.reshape(-1), threads["open_wait_ns"])
        running = threads["parts"][:, PARTS.index("running")]
        for name, share in zip(("hot_ns", "slow_ns"), self._slowed.take(now_ns), strict=True):
            # Where a thread ran last stands for the whole interval: those that matter are pinned.
            np.add.at(rows[name], whose.reshape(-1), (running * share[threads["cpu"]]).astype("u8"))
        began, ended = np.full(len(pids), now_ns, "u8"), np.zeros(len(pids), "u8")
        np.minimum.at(began, whose.reshape(-1), threads["first_ns"])
        np.maximum.at(ended, whose.reshape(-1), threads["last_ns"])
        rows["wall_ns"] = np.maximum(ended.astype("i8") - np.maximum(began, self._before_ns).astype("i8"), 0)
        weight = parts[:, [PARTS.index(name) for name in _WANTED]].sum(axis=1) + rows["open_wait_ns"].astype("i8")
        order = np.argsort(-weight, kind="stable")
        # One that hangs has neither run nor waited.
        ranked = order[np.isin(pids[order], [*self._session.ranks])][: int(_RANKS_SHARE * self._most)]
        order = np.concatenate([ranked, order[~np.isin(order, ranked)]])
        chosen, others = order[: self._most], order[self._most :]
        groups = threads["cgroup_id"][first]
        rows["cgroup"][chosen] = [self._cgroup(int(groups[place]), int(pids[place])) for place in chosen]
        if len(others):
            rows, parts = _with_others(rows, parts, chosen, others)
        else:
            rows, parts = rows[chosen], parts[chosen]
        for place, name in enumerate(PARTS):
            if name in _TIMES:
                rows[name if name == "waits" else f"{name}_ns"] = parts[:, place]
        return rows, parts

    def _holders(self, keys: np.ndarray, counts: np.ndarray, told: set[int]) -> Iterator[tuple[_Taken, int]]:
        columns = (keys["tgid"], keys["kind"], keys["what"], counts["ns"], counts["cgroup_id"], counts["comm"])
        for tgid, kind, what, ns, cgroup_id, name in zip(*(column.tolist() for column in columns), strict=True):
            if kind == _KNOWN["LEDGER_SOFTIRQ"]:
                yield _softirq(tgid if tgid in told else 0, what), ns
            elif kind in _KINDS:
                yield (tgid if tgid in told else 0, _KINDS[kind], what, name, b""), ns
            else:
                yield self._holder(tgid, what, name, cgroup_id, told), ns

    def _holder(self, tgid: int, holder: int, name: bytes, cgroup_id: int, told: set[int]) -> _Taken:
        """Return how a holder is told: 0 is the idle task, below that is nobody who is known."""
        pid = tgid if tgid in told else 0
        if holder <= 0:
            return pid, b"earlier" if holder else b"idle", 0, b"", b""
        return pid, b"own" if holder == tgid else b"task", holder, name, self._cgroup(cgroup_id, holder)

    def _cgroup(self, cgroup_id: int, member: int) -> bytes:
        path = self._cgroups.cgroup(cgroup_id, member)
        return path if len(path) <= _CGROUP_BYTES else b"..." + path[3 - _CGROUP_BYTES :]


def _softirq(pid: int, vector: int) -> _Taken:
    """Return how softirqs are told that had the CPU while a process waited for it."""
    return pid, b"wsoftirq", vector, SOFTIRQS[vector].encode(), b""


def _add_interrupts(times: np.ndarray, interrupts: Sequence[Interrupted]) -> None:
    """Add what interrupts had of long waits, which programs leave to the reader."""
    places = {pid: place for place, pid in enumerate(times["pid"].tolist())}
    for one in interrupts:
        place = places.get(one.tgid, places.get(0))
        if place is not None:
            times["wait_softirq_ns"][place] += one.softirq_ns
            times["wait_hardirq_ns"][place] += one.hardirq_ns


def _pruned(taken: Counter[_Taken]) -> int:
    """Add up what is beyond the most rows, and return how many were.

    Holders of one name and cgroup are told as the largest of them, where it has a row; the others as one per process.
    """
    ranked = taken.most_common()
    alike: dict[tuple[object, ...], _Taken] = {}
    for key, _ in ranked[:_MOST_TAKEN]:
        alike.setdefault((*key[:2], *key[3:]), key)
    rest = ranked[_MOST_TAKEN:]
    for key, ns in rest:
        del taken[key]
        taken[alike.get((*key[:2], *key[3:]), (key[0], b"rest", 0, b"", b""))] += ns
    return len(rest)


def _with_others(
    rows: np.ndarray, parts: np.ndarray, chosen: np.ndarray, others: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Put the others into one row, process 0; its wall time is the longest of theirs."""
    rest = np.zeros(1, _TIME)
    rest["comm"] = b"others"
    for name in ("threads", "open_wait_ns", "hot_ns", "slow_ns"):
        rest[name] = rows[name][others].sum()
    rest["wall_ns"] = rows["wall_ns"][others].max()
    return np.concatenate([rows[chosen], rest]), np.concatenate([parts[chosen], parts[others].sum(axis=0)[None]])


def _softirqs(pids: Sequence[int], parts: np.ndarray) -> Iterator[tuple[_Taken, int]]:
    for number, name in enumerate(SOFTIRQS):
        for pid, ns in zip(pids, parts[:, PARTS.index(name)].tolist(), strict=True):
            if ns:
                yield (pid, b"softirq", number, name.encode(), b""), ns
