"""A second look at a suspect's recording, as ``summary`` reads it: which CPU, and who had it."""

from __future__ import annotations

from tracer.analysis.finding import Finding
from tracer.analysis.names import VECTORS, cpu_list
from tracer.analysis.summary import Summary
from tracer.analysis.verdict import judge
from tracer.compare.comparison import Detail, Suspect
from tracer.compare.metrics import METRICS, Series
from tracer.errors import RecordingError
from tracer.recording import RecordingReader

__all__ = ["look"]

# Where one CPU has this share of all the time, it is the one.
_MAIN_SHARE = 0.5
_JOBS = 2


def look(suspect: Suspect) -> Detail:
    """Read the suspect's recording again for what its first deviation leaves open."""
    series = suspect.deviations[0].series
    summary = Summary(suspect.node.source.interval_ns, suspect.node.source)
    try:
        with RecordingReader(suspect.node.path) as reader:
            for windows in reader:
                summary.add_interval(windows)
    except RecordingError:
        return Detail()  # a pipe can be read once
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
        throttled=values.get("cause") == "idle",
        rank=rank,
        jobs=jobs,
    )


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
