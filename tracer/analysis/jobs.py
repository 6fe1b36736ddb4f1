"""Which jobs and ranks a run had on its node, as ``jobs.members`` tells, and how they are called in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tracer.analysis.names import quoted
from tracer.analysis.rows import numbers, texts
from tracer.window import Window

__all__ = ["Jobs", "Member", "Party", "ranges", "ranks"]

_MOST = 4096
_MOST_PER_INTERVAL = 2048
_NUMBERS = ("pid", "began_ns", "used_ns", "ended", "rank", "local_rank", "world_size", "node")
_NAMES = ("job", "step", "pod", "namespace", "container", "comm", "cgroup")


@dataclass(frozen=True)
class Party:
    """What processes belong to together: a job's step, a pod or a container; "" and -1 where not known."""

    job: str = ""
    step: str = ""
    pod: str = ""
    namespace: str = ""
    container: str = ""
    world_size: int = -1
    node: int = -1

    @property
    def title(self) -> str:
        """How it is called in a sentence: ``job 48213``, ``pod train/llama-7``; "" of ranks of nobody knows what."""
        if self.job:
            return f"job {quoted(self.job)}"
        if self.pod:
            return f"pod {quoted(f'{self.namespace}/{self.pod}' if self.namespace else self.pod)}"
        return f"container {quoted(self.container)}" if self.container else ""

    def is_party_of(self, other: Party) -> bool:
        """Return whether another one is the same, or another step of the same job."""
        return self == other or bool(self.job) and self.job == other.job


@dataclass(frozen=True)
class Member:
    """A process of a party. Times are the node's monotonic clock: it began, was seen last, and whether it has ended.

    ``used_ns`` is the CPU time it had used by then; -1 where that was not recorded.
    """

    pid: int
    comm: str
    cgroup: str
    party: Party
    rank: int
    local_rank: int
    began_ns: int
    seen_ns: int
    ended: bool
    used_ns: int = -1

    @property
    def title(self) -> str:
        """How it is called: ``rank 37 of job 48213``, or what it belongs to where there are no ranks."""
        whose = self.party.title
        if self.rank < 0:
            return whose
        return f"rank {self.rank} of {whose}" if whose else f"rank {self.rank}"


class Jobs:
    """Members by process, in bounded memory. A number that was given to another process means the later one."""

    def __init__(self) -> None:
        self._members: dict[tuple[int, int], Member] = {}
        self._latest: dict[int, Member] = {}

    def __bool__(self) -> bool:
        return bool(self._members)

    def add(self, window: Window) -> None:
        """Take a window of ``jobs.members``. It may come from anyone: what it lacks is unknown."""
        rows = window.rows[:_MOST_PER_INTERVAL]
        if any(rows.dtype[name].kind not in "ui" for name in _NUMBERS if name in (rows.dtype.names or ())):
            return
        columns = [numbers(rows, name, -1).tolist() for name in _NUMBERS]
        for values, names in zip(
            zip(*columns, strict=True), zip(*(texts(rows, name) for name in _NAMES), strict=True), strict=True
        ):
            self._add(window.end_ns, dict(zip(_NUMBERS, map(int, values), strict=True)), names)

    def of(self, *pids: int) -> Member | None:
        """Return the first of some processes that belongs to a party."""
        return next((self._latest[pid] for pid in pids if pid in self._latest), None)

    def together(self, pid: int, other: int) -> str:
        """Return what two processes of one party are: ``ranks`` of it, or ``processes``; "" if that is not known."""
        one, two = self._latest.get(pid), self._latest.get(other)
        if one is None or two is None or not one.party.is_party_of(two.party):
            return ""
        return "ranks" if -1 not in (one.rank, two.rank) and one.rank != two.rank else "processes"

    def members(self) -> list[Member]:
        """Return all members, the oldest process first."""
        return sorted(self._members.values(), key=lambda one: (one.began_ns, one.pid))

    def at_work(self) -> list[int]:
        """Return the numbers of the processes that are ranks, or of a job: those whose time the node is there for."""
        return [pid for pid, one in self._latest.items() if one.rank >= 0 or one.party.job]

    def parties(self) -> dict[Party, list[Member]]:
        """Return the parties with their members, those with ranks first, then those with the most processes."""
        found: dict[Party, list[Member]] = {}
        for one in self.members():
            found.setdefault(one.party, []).append(one)
        return dict(sorted(found.items(), key=lambda item: (-len(ranks(item[1])), -len(item[1]))))

    def sentences(self, most: int) -> list[str]:
        """Return at most so many parties in words: ``ranks 32-39 of 64 of job 48213 (node 4 of it)``."""
        return [_told(party, members) for party, members in [*self.parties().items()][:most]]

    def _add(self, now_ns: int, numbers: dict[str, int], names: Sequence[str]) -> None:
        job, step, pod, namespace, container, comm, cgroup = names
        key = numbers["pid"], numbers["began_ns"]
        if key not in self._members and len(self._members) >= _MOST:
            return
        member = Member(
            pid=numbers["pid"],
            comm=comm,
            cgroup=cgroup,
            # Containers of one pod, and processes of one job in several, are one party.
            party=Party(
                job, step, pod, namespace, "" if job or pod else container, numbers["world_size"], numbers["node"]
            ),
            rank=numbers["rank"],
            local_rank=numbers["local_rank"],
            began_ns=numbers["began_ns"],
            seen_ns=now_ns,
            ended=numbers["ended"] == 1,
            used_ns=numbers["used_ns"],
        )
        self._members[key] = self._latest[member.pid] = member


def ranks(members: Iterable[Member]) -> list[int]:
    """Return the ranks of members, each once, in order."""
    return sorted({one.rank for one in members if one.rank >= 0})


def ranges(numbers: Sequence[int]) -> str:
    """Return ordered numbers as ``32-39, 41``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ", ".join("-".join(map(str, run)) for run in runs)


def _told(party: Party, members: Sequence[Member]) -> str:
    having = ranks(members)
    if not having:
        return f"{party.title} (pid {members[0].pid}{' and others' if len(members) > 1 else ''})"
    of = f" of {party.world_size}" if party.world_size > 0 else ""
    whose = f" of {party.title}" if party.title else ""
    step = f", step {quoted(party.step)}" if party.step else ""
    return f"rank{'s' if len(having) > 1 else ''} {ranges(having)}{of}{whose}{step}"
