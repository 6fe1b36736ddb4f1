"""A second look at a suspect's recording, as ``summary`` reads it: which CPU, and who had it."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from tracer.analysis.finding import Finding
from tracer.analysis.names import VECTORS, cpu_list
from tracer.analysis.summary import Summary
from tracer.analysis.verdict import judge
from tracer.compare.comparison import Detail, Suspect
from tracer.compare.metrics import METRICS, Series
from tracer.compare.node import Node
from tracer.errors import RecordingError
from tracer.recording import RecordingReader

__all__ = ["look"]

# Where one CPU has this share of all the time, it is the one.
_MAIN_SHARE = 0.5
# What peers have for so much of the time is nothing of the suspect's own.
_ALIKE = 0.5
_JOBS = 2


def look(suspect: Suspect, peers: Sequence[Node] = ()) -> Detail:
    """Read the suspect's recording again for what its first deviation leaves open.

    And those of ``peers``, where one task had the CPU: it may do so everywhere.
    """
    series = suspect.deviations[0].series
    summary = _read(suspect.node)
    if summary is None:
        return Detail()
    finding = next((one for one in judge(summary).things if _about(one, series)), None)
    rank, jobs = _rank(summary), ", ".join(summary.source.jobs.sentences(_JOBS))
    if finding is None:
        return Detail(cpus=_main_cpu(summary, series), rank=rank, jobs=jobs)
    values = finding.values
    # One task, and not one of many that had the CPU for a part of the time each.
    one = values.get("cause") == "hog"
    return Detail(
        cpus=finding.subject,
        who=finding.who,
        holder=str(values["holder_comm"]) if one else "",
        pid=int(str(values["holder_pid"])) if one else 0,
        usual=one and _is_usual(str(values["holder_comm"]), summary, peers),
        throttled=values.get("cause") == "idle",
        rank=rank,
        jobs=jobs,
    )


def _read(node: Node) -> Summary | None:
    """Return None of what can't be read again."""
    summary = Summary(node.source.interval_ns, node.source)
    try:
        with RecordingReader(node.path) as reader:
            for windows in reader:
                summary.add_interval(windows)
    except RecordingError:
        return None
    return summary


def _is_usual(comm: str, summary: Summary, peers: Sequence[Node]) -> bool:
    """Return whether tasks of that name had CPUs for others to wait on most peers, for about as long."""
    theirs = [_held(comm, one) for one in map(_read, peers) if one]
    return bool(theirs) and median(theirs) >= _ALIKE * _held(comm, summary)


def _held(comm: str, summary: Summary) -> float:
    """Return for how much of the time others waited for tasks of that name, in long waits."""
    blame = summary.blame
    places = (*blame.places.values(), *blame.vectors.values())
    held = sum(ns for one in places for holder, ns in one.holders.items() if holder.comm == comm)
    return held / max(1, summary.intervals.end_ns - summary.intervals.start_ns)


def _about(finding: Finding, series: Series) -> bool:
    same = finding.rule.split(".")[0] == METRICS[series.metric].table[0]
    return same and finding.values.get("vector", series.part) == series.part


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
