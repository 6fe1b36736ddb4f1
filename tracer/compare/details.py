"""A second look at a suspect's recording, as ``summary`` reads it: which CPU, and who had it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from statistics import median

from tracer.analysis.finding import Finding
from tracer.analysis.names import VECTORS, cpu_list
from tracer.analysis.summary import Summary
from tracer.analysis.verdict import judge
from tracer.compare.metrics import METRICS, Series
from tracer.compare.node import Node
from tracer.compare.robbed import taken
from tracer.compare.suspect import Detail, Suspect
from tracer.errors import RecordingError
from tracer.recording import RecordingReader, Run

__all__ = ["look"]

# Where one CPU has this share of all the time, it is the one.
_MAIN_SHARE = 0.5
# What peers have for so much of the time is nothing of the suspect's own.
_ALIKE = 0.5
_JOBS = 2
_ACTORS = ("hog", "own", "crew")
#: What is held against peers by a task's name (of a crew the greatest, whose name all have), and by its kind.
_TASKS, _INTERRUPTS = ("hog", "crew"), ("softirq", "hardirq")


def look(suspect: Suspect, peers: Sequence[Node] = (), opening: Callable[..., Run] = RecordingReader) -> Detail:
    """Read the suspect's recording again for what its first deviation leaves open.

    And those of ``peers``, where somebody took the CPU, or the ranks' time: it may do so everywhere.
    ``opening``: see ``read_nodes``.
    """
    series = suspect.deviations[0].series
    summary = _read(opening, suspect.node)
    if summary is None:
        return Detail()
    rank, jobs = _rank(summary), ", ".join(summary.source.jobs.sentences(_JOBS))
    if METRICS[series.metric].of_ranks:
        ours = _read(opening, suspect.node, suspect.within_ns) or summary
        theirs = [one for one in map(partial(_read, opening), peers) if one]
        lost = next((one.next for one in judge(summary).things if one.rule.startswith("ledger.")), "")
        return Detail(rank=rank, jobs=jobs, taken=taken(suspect.cause, ours, theirs), next=lost)
    finding = next((one for one in judge(summary).things if _about(one, series)), None)
    if finding is None:
        return Detail(cpus=_main_cpu(summary, series), rank=rank, jobs=jobs)
    values = finding.values
    # One task, and not one of many that had the CPU for a part of the time each.
    cause, comm = values.get("cause"), str(values.get("holder_comm", ""))
    one = cause == "hog"
    usual = _is_usual(cause, comm, summary, [found for found in map(partial(_read, opening), peers) if found])
    return Detail(
        cpus=finding.subject,
        who=finding.who,
        holder=comm if one else "",
        pid=int(str(values["holder_pid"])) if one else 0,
        usual=usual,
        throttled=cause == "idle",
        rank=rank,
        jobs=jobs,
        # To do something about what all have would change nothing.
        next="" if usual else finding.next,
    )


def _read(opening: Callable[..., Run], node: Node, within_ns: tuple[int, int] | None = None) -> Summary | None:
    """Return all of a recording, or what ends in a part of its time; None of what can't be read again."""
    summary = Summary(node.source.interval_ns, node.source)
    try:
        with opening(node.path) as reader:
            for windows in reader:
                if within_ns is None or within_ns[0] < node.source.unix_ns(windows[0].end_ns) <= within_ns[1]:
                    summary.add_interval(windows)
    except RecordingError:
        return None
    return summary


def _is_usual(cause: object, comm: str, summary: Summary, peers: Sequence[Summary]) -> bool:
    """Return whether what had the CPUs for others to wait has them on most peers as well, for about as long."""
    if cause not in (*_TASKS, *_INTERRUPTS):
        return False
    theirs = [_held(cause, comm, one) for one in peers]
    return bool(theirs) and median(theirs) >= _ALIKE * _held(cause, comm, summary)


def _held(cause: object, comm: str, summary: Summary) -> float:
    """Return for how much of the time others waited for tasks of that name, or for interrupts, in long waits."""
    blame = summary.blame
    places = (*blame.places.values(), *blame.vectors.values())
    if cause in _TASKS:
        held = sum(ns for one in places for holder, ns in one.holders.items() if holder.comm == comm)
    else:
        held = sum(one.softirq_ns if cause == "softirq" else one.hardirq_ns for one in places)
    return held / max(1, summary.intervals.end_ns - summary.intervals.start_ns)


def _about(finding: Finding, series: Series) -> bool:
    same = finding.rule.split(".")[0] == METRICS[series.metric].table[0]
    # Whoever holds a CPU holds all of its softirqs up, of whichever kind they are judged by.
    held = finding.rule == series.metric == "softirq.delay" and finding.values.get("cause") in _ACTORS
    return same and (held or finding.values.get("vector", series.part) == series.part)


def _rank(summary: Summary) -> str:
    """Return the rank that lost most of what is known of long waits, if it is one."""
    worst, lost = summary.events("runqueue", "worst"), dict[str, int]()
    for event in worst.events if worst else ():
        member = summary.source.jobs.of(int(event.get("tgid", 0)), int(event.get("pid", 0)))
        if member and member.rank >= 0:
            lost[member.title] = lost.get(member.title, 0) + int(event.get("wait_ns", 0))
    most = max(lost, key=lambda rank: lost[rank], default="")
    return most if most and lost[most] >= _MAIN_SHARE * sum(lost.values()) else ""


def _main_cpu(summary: Summary, series: Series) -> str:
    """Return the CPU on which most of the series' time was spent, if there is such a one of several."""
    merged = summary.table(*METRICS[series.metric].table)
    if merged is None or "cpu" not in merged.shape.keys:
        return ""
    only = {"vector": VECTORS.index(series.part)} if series.part in VECTORS else {}
    spent = {int(cpu): group.sum_ns for (cpu,), group in merged.groups("cpu", **only).items()}
    total = sum(spent.values())
    most = max(spent, key=lambda cpu: spent[cpu], default=-1)
    return cpu_list([most]) if len(spent) > 2 and total and spent[most] > _MAIN_SHARE * total else ""
