"""The verdict names what stands out and who did it, says when nothing does, and what it could not see."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from unit.deep_samples import deep_windows
from unit.synthetic import (
    MS,
    NET_RX,
    NET_TX,
    SECOND,
    TIMER,
    WORST_SOFTIRQ,
    WORST_WAIT,
    Node,
    crowd_interval,
    filled,
    histogram,
    hog_interval,
)
from unit.synthetic import events as rows_of

from tracer.analysis.finding import Finding, Severity
from tracer.analysis.losses import missed
from tracer.analysis.rules.quality import _share
from tracer.analysis.source import Source
from tracer.analysis.summary import Summary
from tracer.analysis.verdict import RULES, Verdict, judge
from tracer.probes import all_probes
from tracer.window import Window

Ill = Callable[[Node], Sequence[Window]]


def run(ill: Ill | None = None, intervals: int = 10, cpus: int = 8) -> Verdict:
    """Judge a node that is ill every third interval."""
    node, summary = Node(cpus), Summary(SECOND)
    for number in range(intervals):
        summary.add_interval(ill(node) if ill and number % 3 == 1 else node.interval())
    return judge(summary)


def only(verdict: Verdict, rule: str) -> Finding:
    found = [finding for finding in verdict.findings if finding.rule == rule]
    assert len(found) == 1, [finding.rule for finding in verdict.findings]
    return found[0]


def waiting(**how: object) -> Ill:
    """CPU 3 has waits of 80 ms, filled as ``how`` says."""
    row = {"cpu": 3, "waited_cpu": 3, "pid": 50, "comm": b"victim", "cgroup": b"/job", "holder_pid": 60}
    row |= {"holder_comm": b"other", "holder_cgroup": b"/job", "holders": 3, **how}
    return lambda node: node.interval(waits={3: [80 * MS] * 30}, worst=[row])


def test_nothing_stands_out_on_a_healthy_node():
    verdict = run()
    assert verdict.findings == ()
    assert verdict.headline == "Nothing stands out in 10 s."
    assert {one.question for one in verdict.normal} >= {"run-queue wait", "softirq delay", "device drops"}
    assert [sentence.partition(": ")[0] for sentence in verdict.missing] == [
        "whose time was taken",
        "RDMA ports",
        "whether the kernel shows every context switch",
    ]


def test_names_the_hog_its_cgroup_and_its_victims():
    finding = only(run(hog_interval), "runqueue.wait")
    assert finding.severity is Severity.CRITICAL
    assert finding.what.startswith("CPU 1: ") and "at worst 949 ms" in finding.what and "worst < 50 ms" in finding.what
    assert "hog[1234] (cgroup /system.slice/backup.service) held the CPU for 93 %" in finding.who
    assert "noisy neighbour" in finding.who and "python3, nccl-proxy" in finding.who
    assert "hog[1234]" in finding.next
    assert finding.values["holder_pid"] == 1234


def test_the_same_hog_explains_late_softirqs():
    finding = only(run(hog_interval), "softirq.delay")
    assert "NET_RX" in finding.what and "hog[1234]" in finding.who


def test_a_crowd_is_not_blamed_on_one_of_it():
    finding = only(run(crowd_interval), "runqueue.wait")
    assert "crowd" in finding.who and "up to 12" in finding.who and "11 %" in finding.who
    assert finding.values["cause"] == "crowd"


def test_many_tasks_of_one_program_are_named_by_it():
    rows = [
        {
            "cpu": 3,
            "waited_cpu": 3,
            "comm": b"victim",
            "cgroup": b"/job",
            "holder_pid": 60 + n,
            "holder_comm": b"stress",
        }
        | {"holder_cgroup": b"/x", "holders": 4, **filled(80 * MS, 0.3 if n else 0.28, task=0.99)}
        for n in range(4)
    ]
    verdict = run(lambda node: node.interval(waits={3: [80 * MS] * 30}, worst=rows))
    assert only(verdict, "runqueue.wait").values["cause"] == "crowd"
    rows = [row | filled(80 * MS, 0.6) | {"holder_pid": 60 + n} for n, row in enumerate(rows)]
    verdict = run(lambda node: node.interval(waits={3: [80 * MS] * 30}, worst=rows))
    assert "4 tasks called stress" in only(verdict, "runqueue.wait").who


def test_hogs_that_take_turns_are_no_crowd():
    rows = [
        {"cpu": 3, "waited_cpu": 3, "comm": b"victim", "holder_pid": 60 + n, "holder_comm": f"hog{n}".encode()}
        | {"holders": 3, **filled(80 * MS, 0.9)}
        for n in range(4)
    ]
    finding = only(run(lambda node: node.interval(waits={3: [80 * MS] * 30}, worst=rows)), "runqueue.wait")
    assert finding.values["cause"] == "several" and "hog0[60] 22 %" in finding.who


def test_a_job_that_slows_itself_is_no_noisy_neighbour():
    assert "slows itself" in only(run(waiting(**filled(80 * MS, 0.9))), "runqueue.wait").who


@pytest.mark.parametrize(
    ("how", "cause", "said"),
    [
        (filled(80 * MS, 0.2, soft=0.7), "softirq", "Softirqs took 70 %"),
        (filled(80 * MS, 0.2) | {"hardirq_ns": 60 * MS}, "hardirq", "Hard interrupts took 75 %"),
        (filled(80 * MS, 0.1, idle=0.8), "idle", "idle for 80 %"),
        (filled(80 * MS, 0.1) | {"covered_ns": 10 * MS}, "unseen", "not known"),
    ],
)
def test_waits_that_no_task_caused(how, cause, said):
    finding = only(run(waiting(**how)), "runqueue.wait")
    assert finding.values["cause"] == cause
    assert said in finding.who


def test_a_log_that_covers_little_blames_nobody_for_the_rest():
    little = filled(4500 * MS, 0) | {"covered_ns": 4 * MS}
    finding = only(run(waiting(**little | {"holder_ns": 3 * MS, "task_ns": 4 * MS})), "runqueue.wait")
    assert (
        "Only 0.089 % of the worst waits is covered by the CPU's log of stays; of that, other[60] had 75 %;"
        in finding.who
    )
    # It was busy as far as is known: nobody took the CPU from the machine.
    assert "busy" in finding.next and "steal" not in finding.next
    finding = only(run(waiting(**little | {"idle_ns": 3 * MS})), "runqueue.wait")
    assert "of that, the idle task had 75 %" in finding.who and "steal" in finding.next
    finding = only(run(waiting(**little | {"covered_ns": 0})), "runqueue.wait")
    assert "log of stays; who held it" in finding.who and "steal" not in finding.next


def test_the_longest_wait_names_its_cpu_where_most_of_the_waiting_was_elsewhere():
    rows = [
        {"cpu": 3, "waited_cpu": cpu, "holder_pid": 60, "holder_comm": b"hog", **filled(length * MS, 0.9)}
        for cpu, length in ((5, 80), (5, 81), (5, 82), (4, 95))
    ]
    finding = only(run(lambda node: node.interval(waits={3: [80 * MS] * 30 + [95 * MS]}, worst=rows)), "runqueue.wait")
    assert finding.subject == "CPU 5" and "at worst 95 ms on CPU 4, until the task was moved to CPU 3 (" in finding.what
    finding = only(run(lambda node: node.interval(waits={3: [82 * MS] * 30}, worst=rows[:3])), "runqueue.wait")
    assert finding.subject == "CPU 5" and "at worst 82 ms, until the task was moved to CPU 3 (" in finding.what


def test_waits_without_recorded_events_blame_nobody():
    finding = only(run(lambda node: node.interval(waits={3: [80 * MS] * 30})), "runqueue.wait")
    assert "not recorded" in finding.who


def test_samples_help_where_the_log_names_nobody():
    samples = np.array([(3, 60, b"spin", 90), (3, 61, b"other", 10)], "u4,u4,S16,u8")
    samples.dtype.names = ("cpu", "pid", "comm", "weight")
    node, summary = Node(), Summary(SECOND)
    windows = waiting(**filled(80 * MS, 0.1) | {"covered_ns": 10 * MS})(node)
    summary.add_interval([*windows, Window("oncpu", "samples", node.now - SECOND, node.now, samples)])
    assert "By samples, CPU 3 ran spin[60] 90 %, other[61] 10 %." in only(judge(summary), "runqueue.wait").who


def test_a_task_that_was_moved_is_said_to_have_waited_elsewhere():
    finding = only(run(waiting(waited_cpu=5, **filled(80 * MS, 0.9))), "runqueue.wait")
    assert finding.subject == "CPU 5" and "waits that ended on CPU 3, wherever they began;" in finding.what
    assert "on CPU 5; tasks that were moved ran on CPU 3 at last." in finding.who


def test_cpus_with_the_same_story_are_one_finding():
    row = {"pid": 50, "comm": b"victim", "holder_pid": 60, "holder_comm": b"hog", **filled(80 * MS, 0.9)}
    ill = [row | {"cpu": cpu, "waited_cpu": cpu} for cpu in (2, 3, 6)]
    finding = only(
        run(lambda node: node.interval(waits={cpu: [80 * MS] * 9 for cpu in (2, 3, 6)}, worst=ill)), "runqueue.wait"
    )
    assert finding.subject == "CPUs 2-3,6"


def test_a_paused_machine_is_said_and_its_latencies_are_not_blamed():
    verdict = run(lambda node: node.interval(length=43 * SECOND, quiet=True, waits={3: [42 * SECOND]}), intervals=4)
    assert [finding.rule for finding in verdict.findings] == ["quality.paused"]
    assert "stood still" in verdict.findings[0].what and "43 s instead of 1 s" in verdict.findings[0].what


def test_softirq_and_interrupt_load():
    verdict = run(lambda node: node.interval(busy={4: (0.1, 0.8, 0.05)}), intervals=2)
    finding = only(verdict, "cpu.interrupts")
    assert finding.subject == "CPU 4" and "normal: under 30 %" in finding.what


def test_saturation_alone_is_a_note():
    verdict = run(lambda node: node.interval(busy={0: (0.98, 0.01, 0.005)}), intervals=2, cpus=1)
    assert verdict.severity is None or verdict.severity is Severity.NOTE


def lines(values: dict[tuple[object, ...], object], **extra: int) -> Ill:
    rows = histogram([("cpu", "u4"), ("irq", "i4"), ("name", "S32")], values, **extra)
    return lambda node: [
        *(window for window in node.interval() if window.probe != "hardirq"),
        Window("hardirq", "run", node.now - SECOND, node.now, rows),
    ]


def test_an_interrupt_storm_is_found_by_its_share_of_a_cpu():
    verdict = run(lines({(5, 7, b"acpi"): np.full(16_000, 50_000)}, none_count=0, none_ns=0), intervals=2)
    finding = only(verdict, "hardirq.storm")
    assert "CPU 5: irq 7 (acpi)" in finding.what and "40 %" in finding.what


def test_interrupts_that_nobody_handles():
    verdict = run(lines({(5, 9, b"ehci"): [900] * 10}, none_count=4000, none_ns=4_000_000), intervals=2)
    finding = only(verdict, "hardirq.unhandled")
    assert "spurious" in finding.who


def test_device_drops_errors_and_flaps():
    bad = {"rx_missed": 5000, "rx_packets": 500_000}
    verdict = run(lambda node: node.interval(links={b"eth1": bad, b"eth2": {"carrier_changes": 2}}))
    drops, flap = only(verdict, "netdev.drops"), only(verdict, "netdev.flap")
    assert drops.subject == "eth1" and "rx_missed" in drops.who and "its CPU came too late" in drops.who
    assert flap.severity is Severity.CRITICAL and "eth2" in flap.what


def test_unwanted_frames_are_only_noted():
    unwanted = {"rx_dropped": 5000, "rx_packets": 500_000}
    assert only(run(lambda node: node.interval(links={b"eth1": unwanted})), "netdev.drops").severity is Severity.NOTE


def test_a_stall_is_critical_and_first():
    stall = {"duration_ns": 4 * SECOND, "cpu": 6, "context": b"softirq", "pid": 99, "comm": b"kworker/6:1"}

    def ill(node: Node) -> Sequence[Window]:
        return node.interval(stalls=[stall], links={b"eth1": {"rx_missed": 5000}})

    first = run(ill).findings[0]
    assert first.rule == "cpustall.stall" and "CPU 6: no progress for 4 s, in softirq" in first.what
    assert "kworker/6:1[99]" in first.who


def test_a_stall_that_is_told_again_is_one_stall():
    node, summary = Node(), Summary(SECOND)
    for seconds in (1, 2, 3):
        stall = {"since_ns": 77, "duration_ns": seconds * SECOND, "cpu": 6, "context": b"softirq NET_RX", "evidence": 1}
        summary.add_interval(node.interval(stalls=[stall]))
    finding = only(judge(summary), "cpustall.stall")
    assert "no progress for 3 s, in softirq NET_RX" in finding.what
    assert summary.events("cpustall", "stalls").count == 1


def test_what_another_cpu_saw_and_who_starves():
    still = [
        {"cpu": 2, "kind": b"heartbeat", "age_ns": 9 * SECOND, "pid": 5, "comm": b"spin"},
        {"cpu": 4, "kind": b"runnable", "age_ns": 12 * SECOND, "pid": 71, "comm": b"kubelet"},
    ]
    verdict = run(lambda node: node.interval(still=still))
    assert "CPU 2: no interrupt was taken for 9 s, and not over" in only(verdict, "cpustall.open").what
    assert "kubelet[71] was runnable for 12 s" in only(verdict, "cpustall.starving").what


def test_a_stall_that_delayed_the_tracer_is_not_taken_for_a_pause():
    stall = {"since_ns": 7, "duration_ns": 9 * SECOND, "cpu": 0, "context": b"hard interrupt", "evidence": 2}
    verdict = run(lambda node: node.interval(length=10 * SECOND, quiet=True, stalls=[stall]), intervals=4)
    assert verdict.findings[0].rule == "cpustall.stall"
    assert not any(finding.rule == "quality.paused" for finding in verdict.findings)


def test_clocks_that_came_late_in_a_pause_are_no_stalls():
    stall = {"since_ns": 7, "duration_ns": 42 * SECOND, "cpu": 0, "evidence": 32}
    verdict = run(lambda node: node.interval(length=43 * SECOND, quiet=True, stalls=[stall]), intervals=4)
    assert [finding.rule for finding in verdict.findings] == ["quality.paused"]


def test_a_pause_hides_no_stall_of_another_interval():
    node, summary = Node(), Summary(SECOND)
    real = {"since_ns": 3, "duration_ns": 5 * SECOND, "cpu": 1, "evidence": 32}
    still = [{"cpu": 2, "kind": b"heartbeat", "age_ns": 9 * SECOND, "pid": 5, "comm": b"spin"}]
    for _ in range(4):
        summary.add_interval(node.interval(stalls=[real], still=still))
    late = {"since_ns": 7, "duration_ns": 42 * SECOND, "cpu": 0, "evidence": 32}
    still = [{"cpu": 3, "kind": b"heartbeat", "age_ns": 42 * SECOND}]
    summary.add_interval(node.interval(length=43 * SECOND, quiet=True, stalls=[late], still=still))
    verdict = judge(summary)
    assert only(verdict, "quality.paused")
    assert only(verdict, "cpustall.stall").subject == "CPU 1"
    assert only(verdict, "cpustall.open").subject == "CPU 2"


@pytest.mark.parametrize("driver", [b"veth", b"bridge", b"tun", b"vxlan", b"802.1Q VLAN Support"])
def test_the_carrier_of_a_virtual_device_is_no_cable(driver):
    assert run(lambda node: node.interval(links={b"v0": {"driver": driver, "carrier_changes": 2}})).findings == ()


def test_a_bond_without_carrier_points_to_its_members():
    links = {b"bond0": {"driver": b"bonding", "carrier_changes": 2}}
    finding = only(run(lambda node: node.interval(links=links)), "netdev.flap")
    assert finding.severity is Severity.NOTE and "member" in finding.next and "cable" not in finding.next


def test_losses_limit_what_the_numbers_mean():
    verdict = run(lambda node: node.interval(losses={"collided": 900}))
    assert "collided" in only(verdict, "quality.losses").what


def test_suppressed_events_are_no_losses():
    assert run(lambda node: node.interval(losses={"suppressed": 90_000})).findings == ()


@pytest.mark.parametrize("probe", all_probes())
def test_what_a_probe_declares_harmless_is_not_missing_and_everything_else_is(probe):
    declared = {loss.reason: loss.harmless for loss in all_probes()[probe].losses}
    assert missed(probe, dict.fromkeys(declared, 3)) == {reason: 3 for reason, fine in declared.items() if not fine}
    assert missed(probe, {"unheard of": 3, "not at all": 0}) == {"unheard of": 3}


def test_works_that_were_never_queued_are_not_missing():
    summary = Summary(SECOND)
    summary.add_interval(Node().interval())
    summary.losses.add("workqueue", {"unqueued": 9000})
    assert judge(summary).findings == ()


def test_losses_are_compared_with_what_they_are_losses_of():
    summary = Summary(SECOND)
    summary.add_interval(Node().interval(only=["softirq", "napi", "hardirq"]))
    for probe, reasons in (("softirq", {"unraised": 15}), ("napi", {"collided": 7}), ("hardirq", {"folded": 9000})):
        summary.losses.add(probe, reasons)
    delays = summary.table("softirq", "delay").total().statistics.count
    assert _share(summary, "softirq") == pytest.approx(15 / (delays + 15))
    assert _share(summary, "napi") == pytest.approx(7 / 8007)
    assert _share(summary, "hardirq") == 0


def test_a_holder_without_a_known_cgroup_is_no_neighbour():
    finding = only(run(waiting(**filled(80 * MS, 0.9), holder_cgroup=b"")), "runqueue.wait")
    assert "other[60]" in finding.who and "neighbour" not in finding.who


def test_a_late_softirq_blames_its_holder_for_its_own_time_only():
    row = {"kind": 1, "duration_ns": 40 * MS, "cpu": 1, "vector": NET_RX, "pid": 9, "comm": b"one"}
    late = {(1, NET_RX): [40 * MS] * 3}
    for own, cause in ((30 * MS, "hog"), (4 * MS, "crowd")):
        events = [row | {"holder_ns": own}]
        verdict = run(lambda node, events=events: node.interval(late=late, late_events=events))
        assert only(verdict, "softirq.delay").values["cause"] == cause


def test_whoever_holds_a_cpu_is_one_story_however_many_kinds_of_softirqs_wait():
    row = {"kind": 1, "cpu": 1, "pid": 9, "comm": b"one"}
    events = [
        row | {"vector": number, "duration_ns": ms * MS, "holder_ns": ms * MS}
        for number, ms in ((NET_RX, 30), (TIMER, 40))
    ]
    late = {(1, NET_RX): [30 * MS], (1, TIMER): [40 * MS] * 3}
    finding = only(run(lambda node: node.interval(late=late, late_events=events)), "softirq.delay")
    assert finding.what.startswith("CPU 1: NET_RX and TIMER softirqs started late, at worst 40 ms")
    assert finding.topic == "late NET_RX and TIMER softirqs" and finding.values["vectors"] == ["NET_RX", "TIMER"]
    assert finding.values["max_s"] == pytest.approx(0.04, rel=0.1) and finding.who.count("one[9]") == 1


def test_stacks_say_what_the_holder_was_doing():
    row = {"kind": 1, "duration_ns": 40 * MS, "cpu": 1, "vector": NET_RX, "pid": 60, "comm": b"hog"}
    ill = {"late": {(1, NET_RX): [40 * MS] * 3}, "late_events": [row | {"holder_ns": 40 * MS}]}
    node = Node()
    without = only(judged(node.interval(**ill)), "softirq.delay")
    assert "By samples" not in without.who and "record --deep" in without.next
    finding = only(judged([*node.interval(**ill), *deep_windows(0)]), "softirq.delay")
    assert finding.who.endswith("By samples it was in spin for 100 % of its time, called by main.")
    assert "record --deep" not in finding.next and "stacks" in finding.next


def test_stacks_say_what_the_holder_of_waiting_tasks_was_doing():
    ill = waiting(**filled(80 * MS, 0.9), holder_comm=b"hog")(Node())
    without, finding = (only(judged(windows), "runqueue.wait") for windows in (ill, [*ill, *deep_windows(0)]))
    assert "By samples" not in without.who and "record --deep" in without.next
    assert "By samples it was in spin for 100 % of its time, called by main." in finding.who
    assert "record --deep" not in finding.next and "stacks" in finding.next


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ({}, "none of 49 samples a second hit it: record longer, or sample it more often: perf record -F 999 -g -t 62"),
        (
            {"filters": {"pid": "60"}},
            "stacks were taken of pid 60 only: foreshock record --deep without that shows all",
        ),
    ],
)
def test_a_holder_without_samples_in_a_recording_with_stacks_is_not_told_to_be_recorded_so(header, said):
    row = {"kind": 1, "duration_ns": 40 * MS, "cpu": 1, "vector": NET_RX, "pid": 62, "comm": b"short"}
    ill = {"late": {(1, NET_RX): [40 * MS] * 3}, "late_events": [row | {"holder_ns": 40 * MS}]}
    summary = Summary(SECOND, Source.from_header(header))
    summary.add_interval([*Node().interval(**ill), *deep_windows(0)])
    finding = only(judge(summary), "softirq.delay")
    assert "short[62]" in finding.who and finding.next == f"move, pin or throttle short[62]; {said}"


def test_a_long_softirq_leads_to_the_stacks_that_there_are():
    run = Window("softirq", "run", 0, SECOND, histogram([("cpu", "u4"), ("vector", "u4")], {(0, NET_RX): [90 * MS]}))
    ill = [*Node().interval(only=["cpustate"]), run]
    without, finding = (only(judged(windows), "softirq.run") for windows in (ill, [*ill, *deep_windows(0)]))
    assert without.next == "foreshock record --deep shows which function of which driver"
    assert finding.next.startswith("the stacks on the CPU show which function of which driver")


def test_a_long_softirq_does_not_deny_hard_interrupts():
    rows = histogram([("cpu", "u4"), ("vector", "u4")], {(0, NET_RX): [90 * MS]})
    summary = Summary(SECOND)
    summary.add(Window("softirq", "run", 0, SECOND, rows))
    assert "hard interrupts" in only(judge(summary), "softirq.run").who


def test_what_was_not_recorded_is_said_never_zero():
    verdict = run(lambda node: node.interval(only=["netdev"]), intervals=1)
    summary = Summary()
    summary.add_interval(Node().interval(only=["netdev"]))
    verdict = judge(summary)
    assert any("runqueue was not recorded" in one for one in verdict.missing)
    assert [one.question for one in verdict.normal] == ["device drops", "intervals"]


def test_an_empty_recording():
    verdict = judge(Summary())
    assert verdict.headline == "Nothing was recorded: there is no interval to judge."
    assert verdict.findings == verdict.normal == ()


def test_every_finding_has_number_threshold_next_step_and_a_place_in_the_docs(checkout):
    text = (checkout / "docs" / "reading.md").read_text()
    anchors = {line[3:].lower().replace(" ", "-") for line in text.splitlines() if line.startswith("## ")}
    busy = {4: (0.1, 0.8, 0.05)}
    everything = [
        run(hog_interval),
        run(crowd_interval),
        run(lambda node: node.interval(busy=busy, links={b"e": {"rx_missed": 5000, "carrier_changes": 1}})),
        run(lambda node: node.interval(late={(0, NET_RX): [40 * MS]}, losses={"collided": 900})),
        run(lines({(5, 9, b"ehci"): [9 * MS] * 100}, none_count=4000, none_ns=4_000_000)),
    ]
    for finding in (finding for verdict in everything for finding in verdict.findings):
        assert any(character.isdigit() for character in finding.what), finding
        assert "normal" in finding.what or "said" in finding.what, finding
        assert finding.next and finding.anchor in anchors, finding


def judged(*intervals: Sequence[Window], source: Source | None = None) -> Verdict:
    summary = Summary(SECOND, source)
    for windows in intervals:
        summary.add_interval(windows)
    return judge(summary)


@pytest.mark.parametrize(
    "windows",
    [
        Node().interval(),
        Node().interval(quiet=True),
        hog_interval(Node()),
        Node().interval(only=["netdev"]),
        Node().interval(losses={"collided": 900}),
        [Window("softirq", "run", 0, SECOND, histogram([("cpu", "u4"), ("vector", "u4")], {}))],
        [Window("hardirq", "run", 0, SECOND, histogram([("cpu", "u4"), ("irq", "u4"), ("name", "S8")], {}))],
        [Window("netdev", "rdma", 0, SECOND, np.zeros(0, [("device", "S8"), ("port", "u4")]))],
    ],
)
def test_every_question_has_exactly_one_answer(windows):
    summary = Summary(SECOND)
    summary.add_interval(windows)
    for rule in RULES:
        found = rule(summary)
        assert [bool(found.findings), found.normal is not None, bool(found.missing)].count(True) == 1, rule.__name__


def test_what_is_found_normal_lies_within_the_limit_beside_it():
    few = {(0, NET_TX): [4 * MS] * 9}
    drops = {b"eth1": {"rx_packets": 100, "rx_missed": 5}}
    verdict = judged(Node().interval(quiet=True, late=few, links=drops, losses={"unmatched": 15}))
    found = {one.question: one.measured for one in verdict.normal}
    assert verdict.findings == ()
    # Too few values for a quantile, too few packets and events for a share.
    assert found["run-queue wait"].startswith("p99 –") and found["softirq delay"].startswith("p99 –, worst ≤ 4")
    assert found["device drops"].startswith("5 packets") and found["lost events"].startswith("15 events")
    assert verdict.normal and "late" in next(one.limit for one in verdict.normal if one.question == "intervals")


def test_a_p99_in_the_bucket_of_the_limit_is_about_the_limit():
    values = {0: [5_050_000] * 300}
    verdict = judged(Node().interval(quiet=True, waits=values))
    assert next(one.measured for one in verdict.normal if one.question == "run-queue wait").startswith("p99 about 5 ms")


def test_a_finding_of_few_waits_tells_no_p99():
    finding = only(judged(Node().interval(quiet=True, waits={0: [264 * MS]})), "runqueue.wait")
    assert "p99" not in finding.what.partition("normal:")[0] and "(of 11 waits; normal: p99 < 5 ms" in finding.what
    assert finding.values["p99_s"] != finding.values["p99_s"], "NaN"


def test_one_late_interval_of_many_is_said_in_the_table():
    node = Node()
    verdict = judged(*(node.interval(length=(2 if number == 5 else 1) * SECOND) for number in range(10)))
    assert next(one.measured for one in verdict.normal if one.question == "intervals") == "1 of 10 read late"


def test_the_headline_counts_what_stands_out_and_notes_but_no_caveats():
    losses = {"collided": 900}
    assert judged(Node().interval(losses=losses)).headline == "Nothing stands out in 1 s."
    verdict = judged(Node(cpus=1).interval(busy={0: (0.98, 0.01, 0.005)}, losses=losses, waits={0: [80 * MS]}))
    assert verdict.headline == "1 thing stands out in 1 s; 1 note."
    assert [one.rule for one in verdict.things] == ["runqueue.wait", "cpu.saturated"]
    assert [one.rule for one in verdict.caveats] == ["quality.losses"]


def test_losses_of_several_probes_are_one_caveat():
    summary = Summary(SECOND)
    summary.add_interval(Node().interval(losses={"collided": 900}))
    summary.losses.add("softirq", {"unraised": 700})
    finding = only(judge(summary), "quality.losses")
    assert "runqueue 7" in finding.what and "(collided 900)" in finding.what and "(unraised 700)" in finding.what


def test_lost_records_of_programs_are_names_that_are_missing_and_no_events():
    summary = Summary(SECOND)
    summary.add_interval(Node().interval())
    summary.losses.add("oncpu", {"programs": 0, "ended": 3})
    assert judge(summary).caveats == ()
    for probe in ("oncpu", "offcpu"):
        summary.losses.add(probe, {"programs": 4487})
    (finding,) = judge(summary).caveats
    assert finding.what.startswith("Names are missing: 4\u202f487 records") and "(offcpu, oncpu;" in finding.what
    summary.losses.add("softirq", {"unraised": 7000})
    assert {one.rule for one in judge(summary).caveats} == {"quality.losses", "quality.records"}
    assert "programs" not in only(judge(summary), "quality.losses").what


def moved(shares: dict[tuple[int, int], int]) -> Ill:
    """Long waits behind one hog: (waited on, ran on at last) and how many."""
    row = {"pid": 50, "comm": b"victim", "holder_pid": 60, "holder_comm": b"hog", **filled(80 * MS, 0.9)}
    worst = [
        row | {"waited_cpu": waited, "cpu": ran} for (waited, ran), number in shares.items() for _ in range(number)
    ]
    waits = {ran: [80 * MS] * 9 for _, ran in shares}
    return lambda node: node.interval(waits=waits, worst=worst)


def test_waits_are_told_where_they_were_spent():
    finding = only(run(moved({(1, 1): 6, (1, 0): 3})), "runqueue.wait")
    assert finding.subject == "CPU 1" and finding.what.startswith("CPU 1: ")
    assert re.search(r"p99 ≤ .* waits that ended on CPU [01], wherever they began;", finding.what)
    assert "All of this waiting was on CPU 1; tasks that were moved ran on CPU 0 at last." in finding.who
    finding = only(run(moved({(1, 1): 6, (0, 0): 3, (0, 1): 1})), "runqueue.wait")
    assert finding.subject == "CPU 1"
    assert "60 % of this waiting was on CPU 1, the rest on CPU 0; tasks that were moved ran on CPU 1" in finding.who
    finding = only(run(moved({(1, 1): 6, (4, 4): 5, (5, 5): 4})), "runqueue.wait")
    assert finding.subject == "CPUs 1,4-5" and "40 % of this waiting was on CPU 1, the rest on CPUs 4-5." in finding.who


def test_who_held_the_cpu_that_was_waited_for_is_named_wherever_the_waiting_ended():
    victim = {"pid": 50, "comm": b"victim"}
    hog = victim | {"waited_cpu": 1, "holder_pid": 60, "holder_comm": b"hog", **filled(80 * MS, 0.9)}
    crowd = victim | {"waited_cpu": 0, "cpu": 0, "holder_pid": 70, "holder_comm": b"other", **filled(60 * MS, 0.1)}
    worst = [hog | {"cpu": 0}, hog | {"cpu": 1}, hog | {"cpu": 0}, crowd, crowd]
    finding = only(
        run(lambda node: node.interval(waits={0: [80 * MS] * 4, 1: [80 * MS]}, worst=worst)), "runqueue.wait"
    )
    assert finding.subject == "CPU 1" and "hog[60] held the CPU for 90 % of the worst waits" in finding.who


def test_a_task_that_ended_before_its_cgroup_was_looked_up_is_the_same_task():
    hog = {"cpu": 1, "waited_cpu": 1, "pid": 50, "comm": b"victim", "holder_pid": 60, "holder_comm": b"hog"}
    rows = [hog | {"holder_cgroup": cgroup} | filled(80 * MS, 0.9) for cgroup in (b"/job", b"")]
    finding = only(run(lambda node: node.interval(waits={1: [80 * MS] * 2}, worst=rows)), "runqueue.wait")
    assert finding.values["cause"] == "hog" and "hog[60] (cgroup /job) held the CPU for 90 %" in finding.who


@pytest.mark.parametrize("source", [Source(), Source(pid=900)])
def test_foreshock_is_never_just_a_hog(source):
    own = {"holder_comm": b"foreshock"} if not source.pid else {"holder_comm": b"python3", "holder_tgid": 900}
    how = own | filled(80 * MS, 0.9)
    finding = only(judged(waiting(**how)(Node()), source=source), "runqueue.wait")
    assert finding.values["cause"] == "own"
    assert "foreshock itself (pid 60) held the CPU for 90 % of the worst waits: that is its own cost." in finding.who
    assert "--interval" in finding.next and "pin" not in finding.next


@pytest.mark.parametrize(
    ("prio", "said"), [(49, "real-time, priority 50"), (-1, "deadline task"), (120, ""), (255, "")]
)
def test_a_real_time_holder_is_called_one(prio, said):
    node, dtype = Node(), np.dtype([*WORST_WAIT.descr, ("holder_prio", "i4")])
    row = {"cpu": 3, "waited_cpu": 3, "pid": 50, "comm": b"victim", "holder_pid": 60, "holder_comm": b"other"}
    rows = rows_of(dtype, row | filled(80 * MS, 0.9) | {"holder_prio": prio})
    windows = [one for one in node.interval(waits={3: [80 * MS] * 30}) if one.table != "worst"]
    verdict = judged([*windows, Window("runqueue", "worst", windows[0].start_ns, node.now, rows)])
    finding = only(verdict, "runqueue.wait")
    assert f"other[60] ({said}) held" in finding.who if said else "other[60] held" in finding.who
    assert ("chrt" in finding.next) == bool(said)


def test_a_late_softirq_names_vector_source_and_holder():
    finding = only(run(hog_interval), "softirq.delay")
    assert finding.what.startswith("CPU 1: NET_RX softirqs started late")
    assert "Polled on CPU 1: eth0 (NAPI 8194) 100 %." in finding.who and "hog[1234]" in finding.who


@pytest.mark.parametrize(("prio", "said"), [(49, "real-time, priority 50"), (120, "")])
def test_a_real_time_task_that_held_a_softirq_up_is_called_one(prio, said):
    node, dtype = Node(), np.dtype([*WORST_SOFTIRQ.descr, ("holder_prio", "i4")])
    row = {"kind": 1, "duration_ns": 40 * MS, "cpu": 1, "vector": NET_RX, "pid": 60, "comm": b"other"}
    rows = rows_of(dtype, row | {"holder_ns": 40 * MS, "holder_prio": prio})
    late = node.interval(late={(1, NET_RX): [40 * MS]})
    windows = [one for one in late if (one.probe, one.table) != ("softirq", "worst")]
    verdict = judged([*windows, Window("softirq", "worst", windows[0].start_ns, node.now, rows)])
    finding = only(verdict, "softirq.delay")
    assert f"other[60] ({said}) held" in finding.who if said else "other[60] held" in finding.who
    assert finding.values["holder_scheduling"] == said and ("chrt" in finding.next) == bool(said)


def test_a_softirq_late_on_an_idle_cpu_was_not_throttled():
    row = {"kind": 1, "duration_ns": 40 * MS, "cpu": 1, "vector": NET_RX, "pid": 0}
    finding = only(run(lambda node: node.interval(late={(1, NET_RX): [40 * MS]}, late_events=[row])), "softirq.delay")
    assert "idle for 100 %" in finding.who and "throttled" not in finding.who + finding.next


def test_a_gap_between_polls_names_who_kept_the_cpu():
    node = Node()
    keys = [("cpu", "u4"), ("device", "S16"), ("napi_id", "u4"), ("budget", "u4")]
    rows = histogram(keys, {(1, b"eth0", 8194, 64): [90 * MS]}, polls=2000, work=9400, full=4)
    windows = [one for one in hog_interval(node) if one.probe != "napi"]
    verdict = judged([*windows, Window("napi", "poll", windows[0].start_ns, node.now, rows)])
    assert "hog[1234]" in only(verdict, "napi.gap").who


def test_a_filtered_run_compares_no_tasks_with_all_cpus():
    source = Source(filters=(("pid", "50"),))
    node = Node()
    windows = [*waiting(**filled(80 * MS, 0.9))(node)]
    busy = node.interval(busy={3: (0.98, 0.01, 0.005)}, only=["cpustate"])
    verdict = judged([one for one in windows if one.probe == "runqueue"], busy, source=source)
    assert "other[60]" not in only(verdict, "cpu.saturated").who
    assert "hard interrupts: can't be limited to a process (pid 50)" in verdict.missing


def test_a_probe_that_could_not_start_is_why_its_question_is_open():
    source = Source(refused=(("napi", "no tracepoint"),))
    verdict = judged(Node().interval(only=["netdev"]), source=source)
    assert "whether network polling keeps up: napi could not start: no tracepoint" in verdict.missing


def test_quotes_in_names_cannot_end_the_quotation():
    finding = only(run(waiting(**filled(80 * MS, 0.9), holder_comm=b'a" b\\')), "runqueue.wait")
    assert '"a\\" b\\\\"[60]' in finding.who
