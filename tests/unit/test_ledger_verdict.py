"""The ledger's verdicts as findings: of ranks and of what was asked for, each cause as itself, nobody else's."""

from __future__ import annotations

import numpy as np
import pytest
from unit.synthetic import Node, filled
from unit.test_ledger import ASKED, RANK, windows, with_ranks
from unit.test_verdict import waiting

from tracer.analysis.finding import Finding, Severity
from tracer.analysis.rules.ledger import stolen_time
from tracer.analysis.source import Source
from tracer.analysis.summary import Summary
from tracer.analysis.verdict import judge
from tracer.reports import json
from tracer.reports.sections.ledger import ledger
from tracer.window import Window

MS = 1_000_000
HOG = (b"task", 5, b"hog", b"/noisy")


def run(times: dict[str, float], taken: list[tuple], source: Source) -> Summary:
    """Return two intervals with one process, in ms."""
    made = Summary(source=source)
    for second in range(2):
        made.add_interval(windows(times, taken, second=second))
    return made


def found(times: dict[str, float], taken: list[tuple], source: Source | None = None) -> Finding | None:
    """Return what is found of a process that is a rank; None where nothing is."""
    findings = stolen_time(run(times, taken, source or with_ranks((RANK, 1, b"48213")))).findings
    assert len(findings) <= 1
    return findings[0] if findings else None


@pytest.mark.parametrize(
    ("rule", "topic", "times", "taken"),
    [
        ("quota", "self-throttled", {"throttled": 220}, []),
        ("neighbour", "noisy neighbour", {"waiting": 220}, [(*HOG, 220)]),
        ("both", "self-throttled, and noisy neighbours", {"throttled": 110, "waiting": 110}, [(*HOG, 110)]),
        ("own", "more threads than CPUs", {"waiting": 220}, [(b"own", RANK, b"rank", b"/job", 220)]),
        ("softirqs", "time lost to softirqs", {"softirq": 220}, [(b"softirq", 3, b"NET_RX", b"", 220)]),
        ("softirqs", "time lost to softirqs", {"waiting": 220, "wait_softirq": 220}, []),
        ("interrupts", "time lost to interrupts", {"hardirq": 220}, [(b"line", 30, b"eth0", b"", 220)]),
        ("memory", "time lost to want of memory", {"reclaim": 220}, []),
        ("several", "time lost to several", {"waiting": 220}, [(b"idle", 0, b"", b"", 220)]),
    ],
)
def test_a_rank_that_lost_a_fifth_stands_out_by_its_cause(rule, topic, times, taken):
    one = found({"running": 780, **times}, taken)
    assert (one.rule, one.topic, one.subject) == (f"ledger.{rule}", topic, "rank 1 of job 48213")
    assert one.what == "rank[37] (rank 1 of job 48213) lost 22 % of its time (normal: under 5 %)."
    assert one.severity is Severity.CRITICAL and one.value == pytest.approx(0.22)


def test_a_quota_and_a_neighbour_are_never_taken_for_each_other():
    quota, neighbour = found({"throttled": 220}, []), found({"waiting": 220}, [(*HOG, 220)])
    assert quota.who == "Who took it, in %: its own quota 22. Its own quota holds it back, not a neighbour."
    assert neighbour.who == "Who took it, in %: hog (in noisy) 22. A noisy neighbour: no quota holds it back."
    assert "cpu.max" in quota.next and "cpu.max" not in neighbour.next
    # No quota is denied that took a part.
    mixed = found({"throttled": 40, "waiting": 180}, [(*HOG, 180)])
    assert mixed.rule == "ledger.neighbour" and mixed.who.endswith("A noisy neighbour, more than its own quota.")


def test_it_is_a_finding_like_others_everywhere():
    summary = run({"running": 780, "throttled": 220}, [], with_ranks((RANK, 1, b"48213")))
    verdict = judge(summary)
    assert verdict.headline == "1 thing stands out in 2 s."
    assert verdict.things[0].rule == "ledger.quota"
    tree = json.as_dict(summary, verdict, summary.source)
    assert [one["rule"] for one in tree["verdict"]["findings"]] == ["ledger.quota"]
    assert tree["ledger"][0]["cause"] == "quota"


@pytest.mark.parametrize("times", [{"running": 960, "waiting": 40}, {"wall": 100, "waiting": 30}])
def test_little_is_normal_and_so_is_a_moment(times):
    outcome = stolen_time(run(times, [(*HOG, times["waiting"])], with_ranks((RANK, 1, b"48213"))))
    assert (outcome.findings, outcome.normal.question) == ((), "time taken from ranks")


def test_ranks_of_one_job_with_one_cause_are_one_finding():
    source = with_ranks((RANK, 1, b"48213"), (RANK + 1, 2, b"48213"), (RANK + 2, 0, b"99"))
    summary = Summary(source=source)
    times, _ = windows({"throttled": 220}, [])
    rows = np.concatenate([times.rows] * 3)
    rows["pid"] += np.arange(3, dtype="u4")
    rows["throttled_ns"][1] = 300 * MS
    summary.add_interval([Window("ledger", "time", times.start_ns, times.end_ns, rows)])
    ours, theirs = sorted(stolen_time(summary).findings, key=lambda one: one.subject)
    assert (ours.subject, theirs.subject) == ("rank 0 of job 99", "ranks 1-2 of job 48213")
    assert theirs.what.startswith("rank[38] (rank 2 of job 48213) lost 30 % of its time, 1 other of its job less")


def test_processes_of_no_job_have_no_verdict_unless_they_were_asked_for():
    times, taken = {"running": 200, "waiting": 800}, [(*HOG, 800)]
    for source in (Source(), with_ranks((99, 1, b"48213"))):
        summary = run(times, taken, source)
        assert stolen_time(summary).missing.startswith("whose time was taken: no rank, job")
        assert ledger(summary, source).notes[0] == "rank[37] lost 80 %: hog (in noisy) 80."
        assert json.as_dict(summary, judge(summary), source)["ledger"][0]["cause"] is None
    assert found(times, taken, ASKED).rule == "ledger.neighbour"
    assert found(times, taken, Source(filters=(("cgroup", "/job"),))).subject == "rank[37]"


def test_a_rank_that_could_run_and_does_not_is_found():
    one = found({"open_wait": 12_000}, [])
    assert (one.rule, one.topic, one.severity) == ("ledger.waits", "a rank that hangs", Severity.CRITICAL)
    assert one.what.startswith("rank[37] (rank 1 of job 48213) could run and had not for 12 s at the end")


def test_waits_for_a_quota_are_not_told_as_a_neighbours():
    """The log of stays says who had the CPU; that the waiting task was not allowed to run is known to the ledger."""
    wait = waiting(holder_comm=b"hog", holder_cgroup=b"/noisy", **filled(80 * MS, 0.9))
    told = {}
    for name, times in {"quota": {"throttled": 700}, "neighbour": {"waiting": 700}}.items():
        summary = Summary()
        summary.add_interval([*wait(Node()), *windows(times, [])])
        (told[name],) = (one for one in judge(summary).findings if one.rule == "runqueue.wait")
    assert "not a neighbour" in told["quota"].who and "noisy" not in told["quota"].who
    assert told["quota"].values["cause"] == "quota" and "cpu.max" in told["quota"].next
    assert told["neighbour"].values["cause"] == "hog" and "noisy neighbour" in told["neighbour"].who
