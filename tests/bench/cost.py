"""Cost per kernel event and slowdown, against the distribution's runqlat, softirqs and hardirqs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

from .machine import folder, run, say, shown
from .objects import empty_program, program, statistics
from .results import Check, Section, table
from .sides import foreshock, tools

__all__ = ["measure"]

COST_TARGET = 0.3
SLOWDOWN_TARGET = 0.4

_PINGPONGS = 150_000
_BEST_OF = 8


def _pingpong(rounds: int = _PINGPONGS) -> float:
    return run("pingpong", rounds)


def _softirqs() -> float:
    return run("softirqs", 300_000)


def _hardirqs() -> float:
    file = folder() / "blocks"
    if not file.exists():
        file.write_bytes(os.urandom(1 << 24))
        os.sync()
    return run("hardirqs", 10_000, file)


@dataclass(frozen=True)
class _Job:
    """One question that both sides answer, and the work on which they are compared."""

    name: str
    theirs: Sequence[Sequence[str]]
    ours: str
    workloads: Sequence[Callable[[], float]]
    #: The kernel events that the question is about: cost is told per one of these.
    events: Sequence[str]
    #: How the names of those programs of ours begin that do what theirs do; "" for all of them.
    same: str = ""


_JOBS = (
    _Job("runqlat", [["runqlat"]], "runqueue", [_pingpong], ["sched_switch"]),
    _Job("softirqs -d", [["softirqs", "-d"]], "softirq", [_softirqs], ["softirq_entry"], "on_softirq_e"),
    _Job("softirqs", [["softirqs"]], "softirq", [_softirqs], ["softirq_entry"], "on_softirq_e"),
    _Job("hardirqs -d", [["hardirqs", "-d"]], "hardirq", [_hardirqs], ["irq_handler_entry"], "on_irq_handler_"),
    _Job(
        "all three",
        [["runqlat"], ["softirqs", "-d"], ["hardirqs", "-d"]],
        "runqueue,softirq,hardirq",
        [_pingpong, _softirqs, _hardirqs],
        ["sched_switch", "softirq_entry", "irq_handler_entry"],
    ),
)


@dataclass
class _Runs:
    """What repeated runs of one side gave."""

    cost_ns: list[float] = field(default_factory=list)
    #: of the programs that do the same job
    same_ns: list[float] = field(default_factory=list)
    #: program: (net ns in all, runs in all)
    programs: dict[str, tuple[float, int]] = field(default_factory=dict)
    events: int = 0
    #: runs of the programs that do the same job
    same_runs: int = 0
    floors_ns: list[float] = field(default_factory=list)


def measure(rounds: int) -> Section:
    """Run every comparison ``rounds`` times, both sides by turns."""
    section = Section("Cost per kernel event, and slowdown")
    section.blocks.append(
        "Both sides run as a user would run them, the distribution's programs unchanged, one output per second, by "
        f"turns, {rounds} times each; figures are medians (lowest–highest). Cost is the kernel's own run time "
        "(`bpf_stats`) of every program a side attached, less that of an empty program measured in the same run, "
        "divided by the number of events the question is about: context switches, softirqs, interrupts. "
        "foreshock's programs do more than is compared: buckets eight times finer, the time of each CPU split "
        "by what it did, the longest waits one by one with their cause."
    )
    summary, details, floors = [], [], []
    clock_ns = median(_clock_ns() for _ in range(rounds))
    for job in _JOBS:
        theirs, ours = _compare(job, rounds)
        floors += theirs.floors_ns + ours.floors_ns
        ratio, all_ratio = (median(cost) / median(theirs.cost_ns) for cost in (ours.same_ns, ours.cost_ns))
        what = f"cost per event, {job.ours} / {job.name}"
        section.checks.append(Check(what, f"{ratio:.2f}×", f"≤ {COST_TARGET}×", ratio <= COST_TARGET))
        row = [job.name, job.ours.replace(",", ", "), shown(theirs.cost_ns), shown(ours.same_ns), f"{ratio:.2f}×"]
        # What no program that takes the time can do without.
        clock_ratio = clock_ns * ours.same_runs / ours.events / median(theirs.cost_ns)
        summary.append([*row, f"{clock_ratio:.2f}×", shown(ours.cost_ns), f"{all_ratio:.2f}×"])
        for side, runs in (("theirs", theirs), ("foreshock", ours)):
            details += [
                (job.name, side, name, f"{net / max(count, 1):.0f}", f"{count / runs.events:.2f}")
                for name, (net, count) in sorted(runs.programs.items(), key=lambda item: -item[1][0])
                if count / runs.events > 0.005
            ]
    section.blocks += [
        table(
            ("theirs", "foreshock's", "theirs, ns", "same job, ns", "ratio", "clock alone", "all ours, ns", "ratio"),
            summary,
        ),
        "“Same job” are the programs at the tracepoints where theirs are: theirs do not see when softirqs are raised, "
        "and foreshock's softirq and hardirq probes also follow what the CPU does otherwise, to keep the times apart. "
        f"An empty program takes {median(floors):.0f} ns, which is taken off; one that only reads the clock, as every "
        f"program here has to, takes {clock_ns:.0f} ns more: “clock alone” is the ratio that programs doing nothing "
        "else at the same tracepoints would have.",
        "Program by program, those that ran at least once in 200 events:",
        table(("question", "side", "program", "ns per run, net", "runs per event"), details),
    ]
    _slowdown(section, rounds)
    return section


def _clock_ns() -> float:
    """Measure what reading the clock adds to an empty program."""
    with empty_program("sched_switch") as empty, empty_program("sched_switch", clock=True) as clock, statistics():
        _pingpong()
        costs = [program(number).run_ns / program(number).runs for number in (empty, clock)]
    return costs[1] - costs[0]


def _compare(job: _Job, rounds: int) -> tuple[_Runs, _Runs]:
    theirs, ours = _Runs(), _Runs()
    for number in range(rounds):
        for runs, side, same in ((theirs, tools(job.theirs), ""), (ours, foreshock(job.ours), job.same)):
            with side as programs:
                _one(job, programs, runs, same)
        say(f"cost: {job.name}, {number + 1} of {rounds}: {theirs.cost_ns[-1]:.0f} and {ours.cost_ns[-1]:.0f} ns")
    return theirs, ours


def _one(job: _Job, programs: Sequence[int], runs: _Runs, same: str) -> None:
    """Run the workloads once with statistics on, and add up what the programs cost; ``same``: see ``_Job``."""
    with contextlib.ExitStack() as stack:
        empty = [stack.enter_context(empty_program(event)) for event in job.events]
        stack.enter_context(statistics())
        before = {number: program(number) for number in (*programs, *empty)}
        for workload in job.workloads:
            workload()
        after = {number: program(number) for number in (*programs, *empty)}
    spent = {number: after[number].run_ns - before[number].run_ns for number in before}
    count = {number: after[number].runs - before[number].runs for number in before}
    floor_ns = sum(spent[number] for number in empty) / sum(count[number] for number in empty)
    events = sum(count[number] for number in empty)
    net = {number: spent[number] - floor_ns * count[number] for number in programs}
    runs.cost_ns.append(sum(net.values()) / events)
    alike = [number for number in programs if after[number].name.startswith(same)]
    runs.same_ns.append(sum(net[number] for number in alike) / events)
    runs.same_runs += sum(count[number] for number in alike)
    runs.floors_ns.append(floor_ns)
    runs.events += events
    for number in programs:
        name = after[number].name
        before_ns, before_count = runs.programs.get(name, (0.0, 0))
        runs.programs[name] = (before_ns + net[number], before_count + count[number])


@contextlib.contextmanager
def _nothing() -> Iterator[list[int]]:
    yield []


_SLOWDOWNS = (
    ("runqlat", [["runqlat"]], "runqueue"),
    ("runqlat, softirqs -d, hardirqs -d", [["runqlat"], ["softirqs", "-d"], ["hardirqs", "-d"]], "auto"),
)


def _slowdown(section: Section, rounds: int) -> None:
    rows = []
    for name, theirs, ours in _SLOWDOWNS:
        took: dict[str, list[float]] = {"nothing": [], "theirs": [], "foreshock": []}
        for number in range(rounds):
            for side, running in (("nothing", _nothing()), ("theirs", tools(theirs)), ("foreshock", foreshock(ours))):
                with running:
                    took[side].append(min(_pingpong(60_000) for _ in range(_BEST_OF)))
            latest = ", ".join(f"{side} {values[-1]:.0f}" for side, values in took.items())
            say(f"slowdown: {name}, {number + 1} of {rounds}: {latest} ns per round trip")
        base = median(took["nothing"])
        added = {side: median(took[side]) - base for side in ("theirs", "foreshock")}
        ratio = added["foreshock"] / added["theirs"]
        label = "all light probes" if ours == "auto" else ours
        check = Check(
            f"ping-pong slowdown, {label} / {name}", f"{ratio:.2f}×", f"≤ {SLOWDOWN_TARGET}×", ratio <= SLOWDOWN_TARGET
        )
        section.checks.append(check)
        times = [shown(took[side], "{:.0f}") for side in took]
        slower = [f"{100 * added[side] / base:+.0f} %" for side in added]
        rows.append([f"{name} against {label}", *times, *slower, f"{ratio:.2f}×"])
    section.blocks += [
        "How much a pipe ping-pong pinned to one CPU slows down (two switches and two wake-ups per round trip; ns per "
        f"round trip, the best of {_BEST_OF} in each run, `bpf_stats` off). This includes what the kernel takes to "
        "call a program, which `bpf_stats` leaves out:",
        table(("", "nothing", "theirs", "foreshock", "theirs slow by", "foreshock by", "ratio"), rows),
    ]
