"""Who held the CPU while others waited, summed over all long waits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from tracer.analysis.events import Tally
from tracer.analysis.names import scheduling
from tracer.analysis.rows import has, numbers, texts
from tracer.analysis.source import Source

__all__ = ["Blame", "Cause", "Held", "Holder"]

Cause = Literal["own", "hog", "crew", "several", "crowd", "softirq", "hardirq", "idle", "unseen"]

# Half of the waited time makes one holder "the" cause. Interrupts need less: they are never the task's own business.
MAIN_SHARE = 0.5
INTERRUPT_SHARE = 0.3
IDLE_SHARE = 0.3
# More than any node has: 8192 CPUs are the most that Linux is built for.
MAX_CPUS = 8192
MAX_VECTORS = 4 * MAX_CPUS
MAX_SPECIAL = 256
MAX_TASKS = 4096
PRIO_UNKNOWN = 255  # holder_prio where it is not known
SOFTIRQ_DELAY = 1  # softirq.worst's kind of a late start; 2 is a long run


class Holder(NamedTuple):
    """The task that held a CPU the longest during a wait; ``own`` when it is foreshock itself."""

    comm: str
    pid: int
    cgroup: str
    own: bool = False


@dataclass
class Held:
    """What filled the waits of one CPU, in ns; ``holders`` is the longest holder of each wait.

    ``special`` says of holders, by pid, that they are real-time or deadline tasks, as far as recorded;
    ``longest_on`` is the CPU where the longest wait was spent.
    """

    waits: int = 0
    wait_ns: int = 0
    longest_ns: int = 0
    task_ns: int = 0
    softirq_ns: int = 0
    hardirq_ns: int = 0
    idle_ns: int = 0
    covered_ns: int = 0
    holder_ns: int = 0
    own_cgroup_ns: int = 0
    most_tasks: int = 0
    holders: Tally[Holder] = field(default_factory=lambda: Tally(keep=256))
    victims: Tally[tuple[str, str]] = field(default_factory=lambda: Tally(keep=256))
    waited_on: Tally[int] = field(default_factory=lambda: Tally(keep=1024))
    special: dict[int, str] = field(default_factory=dict)
    longest_on: int | None = None

    def add_holder(self, holder: Holder, ns: int, prio: int) -> None:
        """Add the longest holder of one wait, with its kernel priority."""
        if (special := scheduling(prio)) and len(self.special) < MAX_SPECIAL:
            self.special[holder.pid] = special
        self.holders.add(holder, ns)

    def share(self, ns: int) -> float:
        """Return ``ns`` as a share of all the time waited."""
        return min(1.0, ns / self.wait_ns) if self.wait_ns else 0.0

    def of_covered(self, ns: int) -> float:
        """Return ``ns`` as a share of the time that the CPU's log of stays covers."""
        return min(1.0, ns / self.covered_ns) if self.covered_ns else 0.0

    @property
    def top(self) -> tuple[Holder, float]:
        """The task that held the CPU longest over all waits, and its share of the waited time."""
        for holder, ns in self.holders.items():
            return holder, self.share(ns)
        return Holder("", 0, ""), 0.0

    @property
    def crew(self) -> tuple[str, str, int, float]:
        """The program (comm, cgroup) whose tasks together held the CPU longest, how many tasks, and their share."""
        sums: dict[tuple[str, str], list[int]] = {}
        for holder, ns in self.holders.items():
            sums.setdefault((holder.comm, holder.cgroup), []).append(ns)
        if not sums:
            return "", "", 0, 0.0
        (comm, cgroup), parts = max(sums.items(), key=lambda item: sum(item[1]))
        return comm, cgroup, len(parts), self.share(sum(parts))

    @property
    def own_share(self) -> float:
        """The share of the holders' time that was held by tasks of the victim's own cgroup."""
        return self.own_cgroup_ns / self.holder_ns if self.holder_ns else 0.0

    @property
    def cause(self) -> Cause:
        """What the waits were mostly about."""
        if self.share(self.hardirq_ns) >= INTERRUPT_SHARE:
            return "hardirq"
        if self.share(self.softirq_ns) >= INTERRUPT_SHARE:
            return "softirq"
        if self.share(self.idle_ns) >= IDLE_SHARE:
            return "idle"
        if self.share(self.covered_ns) < MAIN_SHARE:
            return "unseen"
        if self.top[1] >= MAIN_SHARE:
            return "own" if self.top[0].own else "hog"
        _, _, tasks, share = self.crew
        if tasks > 1 and share >= MAIN_SHARE:
            return "crew"
        # Each wait had its own main holder, as against many that took turns within one.
        return "several" if self.share(self.holder_ns) >= MAIN_SHARE else "crowd"


class Blame:
    """Sums over ``runqueue.worst`` and ``softirq.worst``.

    Attributes:
        cpus: long waits by the CPU on which the waiting task ran at last, as ``runqueue.wait`` counts it.
        places: the same waits by the CPU on which they were spent, which is the one that somebody held.
        vectors: late softirqs by (CPU, vector).
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self.cpus: dict[int, Held] = {}
        self.places: dict[int, Held] = {}
        self.vectors: dict[tuple[int, int], Held] = {}
        self._cgroups: dict[tuple[str, int], str] = {}

    def _cgroup_of(self, comm: str, pid: int, cgroup: str) -> str:
        """Return a task's cgroup, also where it had ended before that was looked up: it is still the same task."""
        if cgroup and len(self._cgroups) < MAX_TASKS:
            self._cgroups[comm, pid] = cgroup
        return cgroup or self._cgroups.get((comm, pid), "")

    def add_softirqs(self, rows: np.ndarray) -> None:
        """Add a window's late softirqs; long runs have no one to blame but their vector."""
        late = rows[numbers(rows, "kind") == SOFTIRQ_DELAY]
        columns = ("cpu", "vector", "duration_ns", "softirq_ns", "hardirq_ns", "pid")
        names = zip(texts(late, "comm"), texts(late, "cgroup"), strict=True)
        own = numbers(late, "holder_ns") if has(late, "holder_ns") else numbers(late, "duration_ns")
        prios = numbers(late, "holder_prio", PRIO_UNKNOWN)
        values = zip(*(numbers(late, column) for column in columns), own, prios, strict=True)
        for (cpu, vector, duration, softirq, hardirq, pid, ran, prio), (comm, cgroup) in zip(
            values, names, strict=True
        ):
            key = (int(cpu), int(vector))
            if key not in self.vectors and len(self.vectors) >= MAX_VECTORS:
                continue
            held = self.vectors.setdefault(key, Held())
            task_ns = max(0, int(duration) - int(softirq) - int(hardirq))
            held.waits += 1
            held.wait_ns += int(duration)
            held.longest_ns = max(held.longest_ns, int(duration))
            held.covered_ns += int(duration)
            held.softirq_ns += int(softirq)
            held.hardirq_ns += int(hardirq)
            if pid:
                held.task_ns += task_ns
                # The task with the most time, which need not be all of it.
                holder_ns = min(int(ran), task_ns)
                held.holder_ns += holder_ns
                cgroup = self._cgroup_of(comm, int(pid), cgroup)
                holder = Holder(comm, int(pid), cgroup, self._source.is_own(comm, int(pid)))
                held.add_holder(holder, holder_ns, int(prio))
            else:
                held.idle_ns += task_ns

    def add(self, rows: np.ndarray) -> None:
        """Add a window's long waits."""
        names = ("wait_ns", "task_ns", "softirq_ns", "hardirq_ns", "idle_ns", "covered_ns", "holder_ns")
        sums = {name: [int(value) for value in numbers(rows, name)] for name in names}
        cpus = [int(cpu) for cpu in numbers(rows, "cpu")]
        waited = [int(cpu) for cpu in numbers(rows, "waited_cpu")]
        holders = zip(*(texts(rows, name) for name in ("holder_comm", "holder_cgroup")), strict=True)
        pids = zip(*(numbers(rows, name) for name in ("holder_pid", "holder_tgid")), strict=True)
        victims = zip(texts(rows, "comm"), texts(rows, "cgroup"), strict=True)
        tasks, prios = numbers(rows, "holders"), numbers(rows, "holder_prio", PRIO_UNKNOWN)
        everyone = zip(holders, pids, victims, strict=True)
        for place, ((comm, cgroup), (pid, tgid), victim) in enumerate(everyone):
            one: dict[str, Any] = {name: values[place] for name, values in sums.items()}
            cgroup = self._cgroup_of(comm, int(pid), cgroup)
            holder = Holder(comm, int(pid), cgroup, self._source.is_own(comm, int(pid), int(tgid)))
            for cpu, known in ((cpus[place], self.cpus), (waited[place], self.places)):
                if cpu not in known and len(known) >= MAX_CPUS:
                    continue
                held = known.setdefault(cpu, Held())
                held.waits += 1
                for name, value in one.items():
                    setattr(held, name, getattr(held, name) + value)
                if one["wait_ns"] > held.longest_ns:
                    held.longest_ns, held.longest_on = one["wait_ns"], waited[place]
                held.most_tasks = max(held.most_tasks, int(tasks[place]))
                held.victims.add(victim, one["wait_ns"])
                held.waited_on.add(waited[place], one["wait_ns"])
                if one["holder_ns"]:
                    held.add_holder(holder, one["holder_ns"], int(prios[place]))
                    # Two tasks without a known cgroup, or both in the root, say nothing about who shares with whom.
                    if cgroup == victim[1] and cgroup not in ("", "/"):
                        held.own_cgroup_ns += one["holder_ns"]
