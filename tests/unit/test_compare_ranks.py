"""What a job's ranks lost, compared between nodes: only theirs counts, and it says the cause and who it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from unit.test_jobs import members, row
from unit.test_ledger import MS, SECOND, TAKEN, TIME

from tracer.analysis.source import Source
from tracer.analysis.summary import Summary
from tracer.compare.comparison import Comparison, compare
from tracer.compare.intake import Intake
from tracer.compare.node import Node
from tracer.compare.robbed import taken
from tracer.reports.comparison import render
from tracer.window import Window

RANKS, OTHER = (100, 101), 7
SECONDS, SINCE, NODES = 24, 10, 10
FILE = np.dtype([*TIME.descr, ("file_ns", "u8")])
CPU = np.dtype([("cpu", "u4"), *((f"{name}_ns", "u8") for name in ("running", "idle", "softirq", "hardirq"))])


def ledger(second: int, random: np.random.Generator, lost: dict[str, float], of: tuple[int, ...]) -> Window:
    """One second of two ranks and another process, each waiting for 3 % of it; ``of`` lose ``lost`` ms as well."""
    rows = np.zeros(3, FILE)
    rows["pid"], rows["wall_ns"], rows["running_ns"] = (*RANKS, OTHER), SECOND, SECOND // 2
    rows["waiting_ns"] = random.normal(30, 3, 3) * MS
    for name, ms in lost.items():
        rows[f"{name}_ns"][np.isin(rows["pid"], of)] += np.uint64(ms * MS)
    return Window("ledger", "time", second * SECOND, (second + 1) * SECOND, rows)


def node(
    number: int,
    lost: dict[str, float] | None = None,
    of: tuple[int, ...] = RANKS[1:],
    hardirq: int = 10,
    job: bool = True,
    since: int = SINCE,
    missing: Sequence[int] = (),
) -> Node:
    """A node that loses time from ``since`` on, when interrupts take so many ms a second of its CPU."""
    random = np.random.default_rng(number)
    name = f"cu{number:02}"
    intake = Intake(Source(host=name, boot_id=name, interval_ns=SECOND, clock_offset_ns=0.0))
    for second in sorted({*range(SECONDS)}.difference(missing)):
        windows = [ledger(second, random, (lost or {}) if second >= since else {}, of)]
        # Told once, and not before what it is about.
        windows += [members(row(100, 0), row(101, 1))] if job and not second else []
        of_irqs = int(random.normal(hardirq if second >= since else 10, 0.3) * MS)
        windows.append(Window("cpustate", "time", 0, 0, np.array([(0, SECOND // 2, SECOND // 2, 0, of_irqs)], CPU)))
        intake.add([replace(one, start_ns=windows[0].start_ns, end_ns=windows[0].end_ns) for one in windows])
    return intake.node(f"{name}.fsk", {}, (), 1)


def among_others(ill: Node) -> Comparison:
    return compare([*(node(number) for number in range(NODES)), ill])


@pytest.mark.parametrize(
    ("lost", "cause", "share"),
    [
        # Of both ranks' time, of which one loses it.
        ({"throttled": 300}, "quota", 0.15),
        ({"waiting": 300}, "scheduler", 0.15),
        ({"disk": 100, "file": 200}, "storage", 0.15),
        ({"reclaim": 300}, "memory", 0.15),
        # Who waits while softirqs run has no other cause.
        ({"softirq": 100, "waiting": 200}, "softirq", 0.05),
        ({"wait_hardirq": 100, "waiting": 100}, "interrupts", 0.05),
    ],
)
def test_what_a_rank_lost_says_the_cause_since_when_and_how_much(lost: dict[str, float], cause: str, share: float):
    (suspect,) = among_others(node(99, lost)).suspects
    assert (suspect.label, suspect.cause) == ("cu99", cause)
    assert all(one.series.metric.startswith("ranks.") and one.deviation.begin == SINCE for one in suspect.deviations)
    (told,) = (one for one in suspect.deviations if one.series.cause == cause)
    assert told.value - told.median == pytest.approx(share, rel=0.1)


def test_what_others_on_the_node_lose_is_not_the_ranks():
    assert among_others(node(99, {"throttled": 300}, of=(OTHER,))).suspects == ()


@pytest.mark.parametrize("job", [True, False])
def test_what_the_ranks_do_not_feel_makes_no_straggler(job: bool):
    """The CPU has more interrupts, and by the accounts of the ranks, where there are any, they lose nothing to them."""
    found = compare([*(node(number, job=job) for number in range(NODES)), node(99, hardirq=40, job=job)])
    accused = found.unfelt if job else found.suspects
    assert [(one.label, one.deviations[0].series.metric) for one in accused] == [("cu99", "cpustate.hardirq")]
    assert len(found.suspects) + len(found.unfelt) == 1
    said = "\n".join(render(found, {}))
    assert said.startswith("no node deviates" if job else "node cu99 is the straggler")
    assert ("its ranks lost nothing to that" in " ".join(said.split())) == job


def test_a_recording_without_a_job_has_no_ranks():
    intake = Intake(Source(host="a", interval_ns=SECOND, clock_offset_ns=0.0))
    intake.add([ledger(0, np.random.default_rng(1), {"throttled": 300}, RANKS)])
    assert not [one for one in intake.node("a.fsk", {}, (), 1).series if one.metric.startswith("ranks.")]


def summary(*takers: tuple[bytes, bytes, float]) -> Summary:
    """One second of rank 1, of which tasks of these names and cgroups took so many ms."""
    made = Summary(source=Source())
    time = ledger(0, np.random.default_rng(1), {}, ())
    rows = [(RANKS[1], b"task", place, name, group, int(ms * MS)) for place, (name, group, ms) in enumerate(takers)]
    made.add_interval([members(row(101, 1)), time, Window("ledger", "taken", 0, SECOND, np.array(rows, TAKEN))])
    return made


def test_who_takes_as_much_on_other_nodes_is_not_who_is_named():
    usual = (b"kubelet", b"/kube", 200.0)
    peers = [summary(usual), summary(usual, (b"dd", b"/backup", 10.0)), summary(usual)]
    assert taken("scheduler", summary(usual, (b"dd", b"/backup", 150.0)), peers) == (
        "dd (in backup) took 15 % of the ranks' time, on its peers 0 %"
    )
    assert taken("scheduler", summary(usual), peers) == ""
    assert taken("quota", summary(usual, (b"dd", b"/backup", 150.0)), peers) == ""


def test_a_node_with_another_cpu_is_no_twin():
    twins = [replace(node(number), facts={"cpu / model": "EPYC 9654"}) for number in range(NODES)]
    guest = replace(node(99, {"throttled": 300}), facts={"cpu / model": "QEMU TCG CPU"})
    found = compare([*twins, guest])
    assert found.suspects == ()
    assert found.left_out == (("cu99.fsk", "its CPU is QEMU TCG CPU, most others' EPYC 9654"),)
    # A recording that doesn't say is compared.
    assert len(compare([*twins, replace(guest, facts={})]).suspects) == 1
