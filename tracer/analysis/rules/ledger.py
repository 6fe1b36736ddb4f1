"""What did ranks and jobs lose of their time, and to whom: their own quota, a neighbour, each other, interrupts?"""

from __future__ import annotations

from tracer.analysis import thresholds
from tracer.analysis.finding import Finding, Outcome, Severity, missing, outcome
from tracer.analysis.jobs import Party, ranges, ranks
from tracer.analysis.ledger import Account, accounts, subject, takers, verdict
from tracer.analysis.rules.unasked import not_recorded
from tracer.analysis.summary import Summary
from tracer.units import duration, many, percent

__all__ = ["stolen_time"]

_QUESTION = "whose time was taken"
_LIMIT = f"under {percent(thresholds.LEDGER_LOST)}"
_WAIT_LIMIT = f"under {duration(thresholds.LEDGER_WAIT_NS)}"
_NOBODY = "no rank, job, pod or container is known (probe jobs), and no filter names a process (--pid, --cgroup)"

#: By the cause: its topic, and what to do.
_TOLD = {
    "quota": ("self-throttled", "raise cpu.max (a pod's CPU limit), or run fewer threads"),
    "neighbour": (
        "noisy neighbour",
        "move who took it, or give the job CPUs of its own (cpuset) or a larger cpu.weight",
    ),
    "both": ("self-throttled, and noisy neighbours", "raise cpu.max, and give the job CPUs of its own (cpuset)"),
    "overcommitted": ("overcommitted by its own job", "run fewer ranks here, or give each a CPU set of its own"),
    "own": ("more threads than CPUs", "run fewer threads (OMP_NUM_THREADS, data loaders), or give it more CPUs"),
    "softirqs": ("time lost to softirqs", "see softirqs and devices below; steer packets to other CPUs (RSS, RPS)"),
    "interrupts": ("time lost to interrupts", "see interrupt lines below; spread or move those lines (affinity)"),
    "memory": ("time lost to want of memory", "give its cgroup more memory (memory.high, memory.max), or use less"),
    "frequency": ("lowered frequency", "see governor, power limits and temperatures"),
    "several": ("time lost to several", "see the ledger below: none took most of it"),
}


def stolen_time(summary: Summary) -> Outcome:
    """Judge ``ledger.time`` and ``ledger.taken``; what ranks of one job lost to one cause is one finding."""
    if summary.table("ledger", "time") is None:
        return not_recorded(_QUESTION, "ledger", summary)
    judged = [one for one in accounts(summary, summary.source) if one.judged]
    if not judged:
        return missing(f"{_QUESTION}: {_NOBODY}")
    stories: dict[tuple[Party | int, str], list[Account]] = {}
    for one in judged:
        if one.lost > thresholds.LEDGER_LOST and one.lost_ns >= thresholds.LEDGER_LEAST_NS:
            member = summary.source.jobs.of(one.pid)
            stories.setdefault((member.party if member else one.pid, _cause(one)), []).append(one)
    findings = [_lost(cause, members, summary) for (_, cause), members in stories.items()]
    findings += [_waits(one, summary) for one in judged if one.open_wait_ns > thresholds.LEDGER_WAIT_NS]
    most = max((one.lost for one in judged if one.lost == one.lost), default=0.0)
    return outcome(findings, "time taken from ranks", f"at most {percent(most)}", _LIMIT)


def _cause(account: Account) -> str:
    if account.cause != "interrupts":
        return account.cause or "several"
    taken = {name: account.times[name] for name in ("softirq_ns", "wait_softirq_ns", "hardirq_ns", "wait_hardirq_ns")}
    softirqs = taken["softirq_ns"] + taken["wait_softirq_ns"]
    return "softirqs" if 2 * softirqs >= sum(taken.values()) else "interrupts"


def _lost(cause: str, members: list[Account], summary: Summary) -> Finding:
    worst = max(members, key=lambda one: one.lost)
    topic, do = _TOLD[cause]
    name = subject(worst, summary.source)
    others = f", {many(len(members) - 1, 'other')} of its job less" if len(members) > 1 else ""
    return Finding(
        rule=f"ledger.{cause}",
        topic=topic,
        severity=Severity.CRITICAL if worst.lost > thresholds.LEDGER_CRITICAL else Severity.WARNING,
        subject=_subject(members, summary),
        what=f"{name} lost {percent(worst.lost)} of its time{others} (normal: {_LIMIT}).",
        who=" ".join(filter(None, (f"Who took it, in %: {takers(worst)}.", verdict(worst)))),
        next=do,
        anchor="ledger",
        value=worst.lost,
        threshold=thresholds.LEDGER_LOST,
        unit="1",
        values={
            "pids": [one.pid for one in members],
            "cause": worst.cause,
            "lost": {one.pid: one.lost for one in members},
            "taken": {one.what: one.ns / worst.base_ns for one in worst.taken},
        },
    )


def _waits(account: Account, summary: Summary) -> Finding:
    name = subject(account, summary.source)
    return Finding(
        rule="ledger.waits",
        topic="a rank that hangs",
        severity=Severity.CRITICAL,
        subject=_subject([account], summary),
        what=(f"{name} could run and had not for {duration(account.open_wait_ns)} at the end (normal: {_WAIT_LIMIT})."),
        who="Who has its CPU is known when a wait ends: see the run queue, or a cpu.max that is used up.",
        next="look for real-time tasks on its CPUs, and for nr_throttled in its cgroup's cpu.stat",
        anchor="ledger",
        value=account.open_wait_ns / 1e9,
        threshold=thresholds.LEDGER_WAIT_NS / 1e9,
        unit="s",
        values={"pids": [account.pid]},
    )


def _subject(members: list[Account], summary: Summary) -> str:
    """Return ranks with their job where they are known, else the process."""
    known = [member for one in members if (member := summary.source.jobs.of(one.pid))]
    having, party = ranks(known), known[0].party.title if known else ""
    if not having:
        return party or subject(members[0], summary.source)
    whose = f" of {party}" if party else ""
    return f"rank{'s' if len(having) > 1 else ''} {ranges(having)}{whose}"
