"""Who took, or lost, how much time on either side: tasks that held CPUs, softirq vectors, interrupt lines, cgroups."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Literal

from tracer.analysis.blame import Held
from tracer.analysis.cpus import cpu_times
from tracer.analysis.names import quoted, task
from tracer.analysis.rows import text
from tracer.compare.limits import EFFECT
from tracer.difference.changes import Changes
from tracer.difference.limits import LEAST_TIME
from tracer.difference.side import Side
from tracer.units import duration

__all__ = ["Party", "parties", "told"]

Kind = Literal["held", "waited", "ran"]
_EACH = 5  # of one kind
_SAYS: Mapping[Kind, str] = {
    "held": "in long waits alone, tasks waited {after} of every second for {name} to leave a CPU",
    "waited": "tasks of {name} waited {after} of every second for a CPU",
    "ran": "{name} took {after} of every second",
}


@dataclass(frozen=True)
class Party:
    """Seconds a second on either side: of a CPU's time, or of all tasks that wait together.

    ``kind``: ``held`` a CPU during long waits of others, ``waited`` for one, or ``ran``. ``name`` is quoted, not yet
    escaped, ``cgroup`` is neither. ``judged``: the change is beyond the noise; else there are too few events to say.
    """

    kind: Kind
    name: str
    before: float
    after: float
    judged: bool = False
    cgroup: str = ""

    @property
    def change(self) -> float:
        """How much more after than before."""
        return self.after - self.before


def parties(befores: Sequence[Side], after: Side, changes: Changes) -> tuple[Party, ...]:
    """Return who changed by a millisecond a second, and by 10 %, or more; of each kind the greatest changes first."""
    ran = [
        Party("ran", one.measure.title.removeprefix("time in "), one.before, one.after, True)
        for one in changes.every
        if one.measure.quantity == "time" and one.beyond(EFFECT)
    ]
    tasks = []
    if _shared("cpustate", befores, after):
        tasks = [Party("ran", "tasks, all together", fmean(map(_running, befores)), _running(after))]
    # What a side did not record did not take no time.
    told = {probe for probe in ("runqueue", "softirq") if _shared(probe, befores, after)}
    held = _beside(lambda side: _holders(side, told), befores, after, "held")
    waited = _beside(_waiting, befores, after, "waited") if _shared("runqueue_cgroup", befores, after) else []
    return tuple(one for kind in (held, ran, tasks, waited) for one in _greatest(kind))


def told(party: Party) -> str:
    """Return a sentence without its full stop: who, how much now, how much before."""
    said = _SAYS[party.kind].format(name=party.name, after=duration(party.after * 1e9))
    return f"{said} ({duration(party.before * 1e9)} before)"


def _shared(probe: str, befores: Sequence[Side], after: Side) -> bool:
    return all(one.summary.seen(probe) for one in (*befores, after))


@dataclass
class _Program:
    """A program's tasks: pids differ from one recording to the next."""

    seconds: float = 0.0
    pids: set[int] = field(default_factory=set)
    special: str = ""
    own: bool = False


_Key = tuple[str, str]  # comm and cgroup


def _beside(
    of: Callable[[Side], Mapping[_Key, _Program]], befores: Sequence[Side], side: Side, kind: Kind
) -> list[Party]:
    before, after = _typical([of(one) for one in befores]), of(side)
    found = []
    for key in {**before, **after}:
        old, new = before.get(key, _Program()), after.get(key, _Program())
        name = _name(key, new if new.seconds else old)
        found.append(Party(kind, name, old.seconds, new.seconds, cgroup=key[1] if key[0] else ""))
    return found


def _typical(sides: Sequence[Mapping[_Key, _Program]]) -> dict[_Key, _Program]:
    """Return each program with its mean over the sides."""
    found: dict[_Key, _Program] = {}
    for key, program in (item for side in sides for item in side.items()):
        one = found.setdefault(key, _Program(special=program.special, own=program.own))
        one.seconds += program.seconds / len(sides)
        one.pids |= program.pids
    return found


def _greatest(found: Iterable[Party]) -> list[Party]:
    changed = [
        one
        for one in found
        if abs(one.change) >= LEAST_TIME and max(one.before, one.after) >= EFFECT * min(one.before, one.after)
    ]
    return sorted(changed, key=lambda one: -abs(one.change))[:_EACH]


def _name(key: _Key, program: _Program) -> str:
    comm, cgroup = key
    if not comm:
        return quoted(cgroup)
    named = task(comm, min(program.pids)) if len(program.pids) == 1 else f"{len(program.pids)} tasks {quoted(comm)}"
    if program.own:
        named = f"foreshock itself ({named})"
    return f"{named} ({program.special})" if program.special else named


def _holders(side: Side, told: Container[str]) -> dict[_Key, _Program]:
    """Return who held CPUs during long waits of tasks, or of softirqs, whichever was longer, of the probes ``told``."""
    blame = side.summary.blame
    of_tasks, of_softirqs = (
        _summed(held.values() if probe in told else (), side.seconds)
        for probe, held in (("runqueue", blame.places), ("softirq", blame.vectors))
    )
    return {
        key: max(of_tasks.get(key, _Program()), of_softirqs.get(key, _Program()), key=lambda one: one.seconds)
        for key in {**of_tasks, **of_softirqs}
    }


def _summed(places: Iterable[Held], seconds: float) -> dict[_Key, _Program]:
    found: dict[_Key, _Program] = {}
    for held in places:
        for holder, ns in held.holders.items():
            one = found.setdefault((holder.comm, holder.cgroup), _Program())
            one.seconds += ns / 1e9 / seconds
            one.pids.add(holder.pid)
            one.special = one.special or held.special.get(holder.pid, "")
            one.own = one.own or holder.own
    return found


def _waiting(side: Side) -> dict[_Key, _Program]:
    """Return how long tasks of each cgroup waited, where that was recorded."""
    merged = side.summary.table("runqueue_cgroup", "wait")
    groups = merged.groups("cgroup") if merged else {}
    return {("", text(cgroup)): _Program(group.sum_ns / 1e9 / side.seconds) for (cgroup,), group in groups.items()}


def _running(side: Side) -> float:
    return sum(one.running * one.accounted_ns for one in cpu_times(side.summary).values()) / 1e9 / side.seconds
