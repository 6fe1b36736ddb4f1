"""What each probe's handlers add to a program that runs anyway, by the kernel's own accounting of BPF programs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median

from tracer.errors import UnavailableError
from tracer.kernel import cpus
from tracer.kernel.cgroups import CgroupNames
from tracer.kernel.floor import accounting, empty_program
from tracer.kernel.job import Options, ordered
from tracer.kernel.loader.syscalls import program_costs
from tracer.kernel.session import Session, attach
from tracer.probe import Clock, Probe
from tracer.probes import all_probes
from tracer.workloads import places
from tracer.workloads.packets import Packets
from tracer.workloads.pipes import Pipes

__all__ = ["Availability", "Cost", "available", "measure"]

_Costs = dict[str, tuple[int, int, int]]
#: A program and the probes whose handlers run in it, in their order.
_Place = tuple[str, tuple[str, ...]]

_ROUNDS, _PACKETS = 4000, 2000  # a second
_SLICES, _SLICE_SECONDS = 5, 0.05
_LEAST_RUNS = 4  # in a slice; the median of fewer says nothing


@dataclass(frozen=True)
class Availability:
    """Which probes can't run here and why, and what others have to do without."""

    refused: Mapping[str, str]
    missing: Mapping[str, str]


@dataclass(frozen=True)
class Cost:
    """What a probe adds to each event it handles, on average, and how many of them were seen."""

    ns: float
    events: int


def available() -> Availability:
    """Attach everything once. Raises UnavailableError when nothing can run at all."""
    every = all_probes()
    with attach(ordered(every.values(), every), _options()) as session:
        missing: dict[str, list[str]] = {}
        for name, reason in session.missing:
            missing.setdefault(name, []).append(reason)
        return Availability(dict(session.refused), {name: "; ".join(reasons) for name, reasons in missing.items()})


def measure(probes: Sequence[Probe], say: Callable[[str], None], until: float) -> dict[str, Cost]:
    """Return the cost of each of ``probes`` that saw events, all of them able to run here.

    Under a small load: switches on one CPU, packets over loopback. What can't begin ``until`` then (by
    time.monotonic()) is left out. Raises UnavailableError when the kernel doesn't account for the run time of programs.
    """
    where = places()
    lasting = max(0.0, until - time.monotonic()) + 5
    found: dict[_Place, tuple[float, int]] = {}
    with ExitStack() as stack:
        try:
            stack.enter_context(accounting())
        except OSError as error:
            raise UnavailableError(f"the kernel doesn't account for BPF programs: {error.strerror}.") from None
        loads = (
            Pipes(int(_ROUNDS * lasting), cpu=where.busy, per_second=_ROUNDS),
            Packets(int(_PACKETS * lasting), per_second=_PACKETS, loopback=True),
        )
        for load in loads:
            stack.enter_context(load)
            load.go()
        floor_ns = _floor()
        for group in _groups(probes):
            if time.monotonic() > until:
                break
            say(f"measuring {', '.join(probe.name for probe in group)}…")
            with attach(ordered(group, all_probes()), _options()) as session:
                found.update(_measured(session))
    costs = ((probe.name, _added(probe.name, found, floor_ns)) for probe in probes)
    return {name: cost for name, cost in costs if cost is not None}


def _options() -> Options:
    clock = [cpu for cpu in cpus.online() if cpu not in cpus.undisturbed()]
    return Options(cpus.possible_count(), clock, constants=CgroupNames().constants)


def _groups(probes: Sequence[Probe]) -> list[list[Probe]]:
    """Put probes together that require the same others and share no attach point: each is as if it were alone.

    What others build on comes first, the deep ones last, should the time be too short for all.
    """
    groups: list[list[Probe]] = []
    for probe in sorted(probes, key=lambda probe: (len(probe.requires), probe.tier == "deep")):
        for group in groups:
            same = set(group[0].requires) == set(probe.requires)
            if same and not _events(probe) & set().union(*map(_events, group)):
                group.append(probe)
                break
        else:
            groups.append([probe])
    return groups


def _events(probe: Probe) -> set[str]:
    return {f"{hook.event}{hook.hz if isinstance(hook, Clock) else ''}" for hook in probe.hooks}


def _measured(session: Session) -> Iterator[tuple[_Place, tuple[float, int]]]:
    """Yield each program with its time per run, the median over slices of time, and the number of runs."""
    snapshots = [session.costs()]
    for _ in range(_SLICES):
        time.sleep(_SLICE_SECONDS)
        snapshots.append(session.costs())
    for program in snapshots[0]:
        each, runs = _per_run(snapshots, program)
        if each is not None:
            yield (program, tuple(session.handlers(program))), (each, runs)


def _floor() -> float:
    try:
        with empty_program() as program:
            snapshots: list[_Costs] = [{"floor": program_costs(program)}]
            for _ in range(_SLICES):
                time.sleep(_SLICE_SECONDS)
                snapshots.append({"floor": program_costs(program)})
    except OSError as error:
        raise UnavailableError(f"an empty program can't be attached: {error.strerror}.") from None
    return _per_run(snapshots, "floor")[0] or 0.0


def _per_run(snapshots: Sequence[_Costs], program: str) -> tuple[float | None, int]:
    slices = []
    for before, after in zip(snapshots, snapshots[1:], strict=False):
        run_ns, runs = (after[program][place] - before[program][place] for place in (0, 1))
        if runs >= _LEAST_RUNS:
            slices.append(run_ns / runs)
    return (median(slices) if slices else None), snapshots[-1][program][1] - snapshots[0][program][1]


def _added(name: str, found: Mapping[_Place, tuple[float, int]], floor_ns: float) -> Cost | None:
    """Return what ``name`` adds where it is the last handler: the others' time without it is known or the floor."""
    total_ns, events = 0.0, 0
    for (program, handlers), (each, runs) in found.items():
        if handlers[-1] != name:
            continue
        before = found.get((program, handlers[:-1])) if handlers[:-1] else (floor_ns, 0)
        if before is not None:
            total_ns += max(0.0, each - before[0]) * runs
            events += runs
    return Cost(total_ns / events, events) if events else None
