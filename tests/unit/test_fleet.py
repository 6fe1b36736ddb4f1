"""What the receiver makes of what it is told, on a clock of the test's own: news, silence, and what is kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from unit.fleet_samples import SECOND, conversation
from unit.sink_samples import sample_alert

from tracer.alerts.alert import Culprit, Severity, State
from tracer.alerts.lines import people_lines
from tracer.errors import RecordingError
from tracer.fleet.complaints import Complaints
from tracer.fleet.deadman import RULE
from tracer.fleet.facts import facts_of
from tracer.fleet.intake import Intake, Interval
from tracer.fleet.node import Node
from tracer.fleet.roster import Roster
from tracer.recording import FrameDecoder
from tracer.recording.greeting import Hello
from tracer.window import Window

TICK = SECOND // 4


def hello(node="cu39", boot_id="b007", source="agent", interval_ns=SECOND, machine=""):
    return Hello(node, boot_id, source, interval_ns, machine=machine)


class Watch:
    """A roster with a clock that only ``run`` moves; ``told`` has (seconds, state, node)."""

    def __init__(self, most=100, keep_s=300, budget=1 << 30):
        self.roster = Roster(most, keep_s * SECOND, budget)
        self.now_ns, self.told, self.alerts = 1000 * SECOND, [], []

    def tell(self, alert):
        if alert is not None:
            self.alerts.append(alert)
            self.told.append((self.now_ns // SECOND - 1000, alert.state.value, alert.node))

    def run(self, seconds, *speakers, every_ns=SECOND):
        end_ns = self.now_ns + seconds * SECOND
        while self.now_ns < end_ns:
            self.now_ns += TICK
            if self.now_ns % every_ns == 0:
                for speaker in speakers:
                    self.tell(self.roster.speaks(speaker, self.now_ns))
            for alert in self.roster.tick(self.now_ns, TICK):
                self.tell(alert)

    def greet(self, speaker):
        self.tell(self.roster.greet(speaker, self.now_ns))
        return speaker


# The dead-man rule


def test_a_silent_node_is_reported_once_and_once_more_when_it_speaks():
    watch = Watch()
    agent = watch.greet(hello())
    watch.run(10, agent)
    assert watch.told == []
    watch.run(60)
    assert watch.told == [(13, "firing", "cu39")]
    watch.run(5, agent)
    assert watch.told[1:] == [(71, "resolved", "cu39")]
    first, second = watch.alerts
    assert (first.rule, first.severity, first.id) == (RULE, Severity.PAGE, second.id)
    assert second.sequence > first.sequence and "61 s" in second.condition.summary


def test_a_node_that_said_goodbye_may_be_silent():
    watch = Watch()
    agent = watch.greet(hello())
    watch.run(5, agent)
    watch.roster.goodbye(agent)
    watch.run(600)
    assert watch.told == []
    watch.greet(agent)
    watch.run(10)
    assert watch.told == [(608, "firing", "cu39")]


def test_a_goodbye_that_is_read_late_does_not_hide_who_is_back():
    watch = Watch()
    agent = watch.greet(hello())
    watch.greet(agent)
    watch.roster.goodbye(agent)
    watch.run(5, agent)
    watch.run(10)
    assert watch.told == [(8, "firing", "cu39")]


def test_an_agent_that_dies_is_missed_although_its_sentinels_speak():
    watch = Watch()
    speakers = [watch.greet(hello(source=source)) for source in ("agent", "sentinel 0", "sentinel 1")]
    watch.run(5, *speakers)
    watch.run(20, *speakers[1:])
    assert watch.told == [(8, "firing", "cu39")]
    assert (
        "its agent silent (still heard: sentinel 0, sentinel 1) for 3.25 s without a goodbye"
        in watch.alerts[0].condition.summary
    )
    watch.run(2, *speakers)
    assert watch.told[1:] == [(26, "resolved", "cu39")]


def test_where_no_agent_is_expected_any_process_counts():
    watch = Watch()
    speakers = [watch.greet(hello(source=source)) for source in ("agent", "sentinel 0", "sentinel 1")]
    watch.roster.goodbye(speakers[0])
    watch.run(20, speakers[2])
    assert watch.told == []
    watch.run(20)
    assert watch.told == [(23, "firing", "cu39")]


def test_two_machines_of_one_name_are_two_nodes():
    watch = Watch()
    first = watch.greet(hello(machine="aaaaaaaaaaaaaaaa"))
    second = watch.greet(hello(boot_id="b123", machine="bbbbbbbbbbbbbbbb"))
    watch.run(10, first, second)
    assert watch.told == [] and list(watch.roster.nodes) == ["cu39", "cu39 (bbbbbbbb)"]
    watch.run(10, first)
    assert watch.told == [(13, "firing", "cu39 (bbbbbbbb)")]
    node = watch.roster.node(second)
    assert node.news(sample_alert(), watch.now_ns).node == "cu39 (bbbbbbbb)"
    # After a reboot it is the same machine still.
    watch.greet(hello(boot_id="b124", machine="bbbbbbbbbbbbbbbb"))
    assert watch.told[-1][1:] == ("resolved", "cu39 (bbbbbbbb)") and len(watch.roster.nodes) == 2


def test_the_interval_is_the_nodes_own_but_a_second_at_least():
    watch = Watch()
    slow, fast = (
        watch.greet(hello("slow", interval_ns=10 * SECOND)),
        watch.greet(hello("fast", interval_ns=SECOND // 10)),
    )
    watch.run(40, slow, fast, every_ns=10 * SECOND)
    assert (13, "firing", "fast") in watch.told and not any(node == "slow" for _, _, node in watch.told)


def test_a_node_that_comes_back_with_another_boot_has_rebooted():
    watch = Watch()
    watch.run(5, watch.greet(hello()))
    watch.run(60)
    agent = watch.greet(hello(boot_id="b008"))
    assert watch.told[-1] == (65, "resolved", "cu39") and watch.alerts[-1].condition.summary.endswith("rebooted")
    watch.run(5, agent)
    watch.run(10)
    assert watch.told[-1] == (73, "firing", "cu39") and watch.alerts[-1].boot_id == "b008"


def test_a_receiver_that_was_held_up_itself_blames_nobody():
    watch = Watch()
    agents = [watch.greet(hello(f"cu{number}")) for number in range(50)]
    watch.run(5, *agents)
    watch.now_ns += 30 * SECOND  # SIGSTOP, or a frame that took long
    watch.run(2)
    assert watch.told == []
    watch.run(5, *agents)
    assert watch.told == []
    watch.run(10)
    assert len(watch.told) == 50


def test_a_thousand_that_fall_silent_at_once_are_told_bit_by_bit():
    watch = Watch(most=1000)
    for number in range(1000):
        watch.greet(hello(f"cu{number}"))
    watch.run(3)
    for _ in range(3):
        watch.now_ns += TICK
        assert len(list(watch.roster.tick(watch.now_ns, TICK))) == (20 if watch.now_ns > 1003 * SECOND else 0)
    watch.run(20)
    assert watch.roster.silences == 1000


def test_the_silence_is_told_with_the_last_words():
    watch = Watch()
    agent = watch.greet(hello())
    node = watch.roster.nodes["cu39"]
    intake = Intake("", None)
    for raw in conversation("0" * 16, None)[:5]:
        for message in intake.take(raw):
            if isinstance(message, Interval):
                watch.roster.keep(agent, message, watch.now_ns)
    watch.roster.dropped(agent, 7)
    node.news(sample_alert(), watch.now_ns)
    watch.run(10)
    (alert,) = watch.alerts
    text = people_lines(alert)[0]
    assert "silent for 3.25 s without a goodbye; last word at " in text
    assert "before that PAGE CPU 3 has been in the kernel for 5 s" in text and "busiest CPU " in text
    assert text.endswith("its streams had dropped 7")
    assert alert.condition.numbers["silent_s"] == 3.25
    assert 0 <= alert.condition.numbers["busiest_percent"] <= 100


# What is news


def news(*alerts):
    node = Node("cu39", "b007", 0, 0)
    return [node.news(alert, 0) is not None for alert in alerts]


def test_the_same_from_another_sentinel_is_no_news():
    told = [sample_alert(source=source) for source in ("sentinel 0", "sentinel 1", "agent")]
    assert news(*told) == [True, False, False]


def test_a_stack_a_severity_and_an_end_are_news_whoever_tells_them():
    bare = sample_alert(severity=Severity.WARNING, culprit=False, source="sentinel 0")
    stacked = sample_alert(severity=Severity.WARNING, source="agent")
    page = sample_alert(source="sentinel 1", culprit=False)
    over = sample_alert(state=State.RESOLVED, at_ns=120 * SECOND)
    assert news(bare, stacked, bare, page, page, over, over) == [True, True, False, True, False, True, False]


def test_a_countdown_that_is_taken_back_is_news_whoever_tells_it():
    counting = sample_alert(sequence=3)
    later = replace(counting, condition=replace(counting.condition, countdown=None), sequence=1)
    later = replace(later, source="sentinel 1")
    assert news(counting, later, replace(later, at_ns=counting.at_ns + 1)) == [True, False, True]


def test_what_is_told_again_is_told_by_one_of_them():
    again = [sample_alert(sequence=2, source=source) for source in ("sentinel 0", "sentinel 1")]
    assert news(sample_alert(), *again) == [True, True, False]


def test_a_late_word_does_not_open_again_what_is_over():
    over = sample_alert(state=State.RESOLVED, sequence=3, at_ns=120 * SECOND)
    late = sample_alert(sequence=4, at_ns=119 * SECOND)
    afresh = sample_alert(sequence=5, at_ns=130 * SECOND)
    assert news(sample_alert(), over, late, afresh) == [True, True, False, True]


def test_it_is_over_when_who_told_it_last_says_so_or_the_agent():
    node = Node("cu39", "b007", 0, 0)
    for source in ("agent", "sentinel 0", "sentinel 1"):
        node.greet(hello(source=source))

    def says(source, state=State.FIRING, at_s=100):
        return node.news(sample_alert(source=source, state=state, at_ns=at_s * SECOND), 0) is not None

    assert says("sentinel 0") and not says("sentinel 1")
    assert not says("sentinel 0", State.RESOLVED, 110)
    assert not says("agent", at_s=111) and not says("sentinel 1", State.RESOLVED, 112)
    assert says("agent", State.RESOLVED, 120)
    assert says("sentinel 1", at_s=130) and says("sentinel 1", State.RESOLVED, 140)
    assert says("sentinel 0", at_s=150)
    node.speakers["sentinel 0"].gone = True
    assert says("sentinel 1", State.RESOLVED, 160), "nobody else is left to say it"


def test_what_was_known_of_the_culprit_stays():
    node = Node("cu39", "b007", 0, 0)
    node.news(sample_alert(), 0)
    again = node.news(sample_alert(sequence=2, culprit=False), 0)
    assert again.condition.culprit == sample_alert().condition.culprit
    assert isinstance(again.condition.culprit, Culprit)


def test_alerts_known_by_id_are_bounded():
    node = Node("cu39", "b007", 0, 0)
    for number in range(5000):
        assert node.news(sample_alert(since_ns=number), 0)
    assert len(node._told) == 256 and len(node.last) == 8


# What is kept


def interval(size):
    return Interval(b"x" * size, FrameDecoder())


def test_intervals_are_kept_for_as_long_as_asked():
    watch = Watch(keep_s=10)
    agent = watch.greet(hello())
    for _ in range(60):
        watch.run(1, agent)
        watch.roster.keep(agent, interval(100), watch.now_ns)
    node = watch.roster.nodes["cu39"]
    assert len(node.kept) == 11 and watch.roster.size == node.size == sum(kept.size for kept in node.kept)


def test_memory_is_bounded_and_the_largest_gives_way():
    watch = Watch(budget=100_000)
    small, large = watch.greet(hello("small")), watch.greet(hello("large"))
    for _ in range(20):
        watch.roster.keep(small, interval(1000), watch.now_ns)
    for _ in range(100):
        watch.roster.keep(large, interval(10_000), watch.now_ns)
        assert watch.roster.size <= 100_000
    assert watch.roster.cut_ns == 0
    assert len(watch.roster.nodes["small"].kept) == 20 and len(watch.roster.nodes["large"].kept) >= 4


def test_one_interval_above_the_whole_budget_is_not_kept():
    watch = Watch(budget=1000)
    watch.roster.keep(watch.greet(hello()), interval(5000), watch.now_ns)
    assert watch.roster.size == 0


def test_nodes_are_bounded_and_only_the_dead_are_forgotten():
    watch = Watch(most=2)
    one, two = watch.greet(hello("one")), watch.greet(hello("two"))
    watch.run(2, one, two)
    with pytest.raises(RecordingError, match="2 nodes already"):
        watch.greet(hello("three"))
    watch.run(10, two)
    watch.greet(hello("three"))
    assert set(watch.roster.nodes) == {"two", "three"}


def test_processes_of_a_node_are_bounded():
    watch = Watch()
    for number in range(1000):
        watch.greet(hello(source=f"s{number}"))
    assert len(watch.roster.nodes["cu39"].speakers) == 64


# Facts


def long_waits(**columns):
    """Return rows of ``runqueue.worst``: rank7 waits, the longest holder is called hog."""
    rows = np.zeros(2, [("comm", "S16"), ("holder_comm", "S16"), *((name, "u8") for name in columns)])
    rows["comm"], rows["holder_comm"] = b"rank7", b"hog"
    for name, values in columns.items():
        rows[name] = values
    return rows


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"holder_ns": 3_000_000, "covered_ns": 3_900_000}, "rank7 behind hog on CPU 5"),
        ({"holder_ns": 1_500_000, "covered_ns": 1_500_000}, "rank7 on CPU 5"),  # the log hardly covers it
        ({"holder_ns": 1_000_000, "covered_ns": 4_000_000, "softirq_ns": 2_000_000}, "rank7 behind softirqs on CPU 5"),
        ({"holder_ns": 1_000_000, "covered_ns": 4_000_000, "idle_ns": 2_000_000}, "rank7 on CPU 5"),
        ({"holder_ns": 0, "covered_ns": 4_000_000}, "rank7 on CPU 5"),
    ],
)
def test_facts_blame_whom_the_summary_would(columns, said):
    rows = long_waits(cpu=5, wait_ns=[4_000_000, 1], **columns)
    assert facts_of([[Window("runqueue", "worst", 0, 1, rows)]]).texts == [f"worst wait 4 ms, {said}"]


def test_facts_name_the_busiest_cpu_and_the_worst_wait():
    time_rows = np.zeros(2, [(name, "u8") for name in ("cpu", "running_ns", "idle_ns", "softirq_ns", "hardirq_ns")])
    time_rows["cpu"] = [4, 5]
    time_rows["idle_ns"] = [50, 1]
    time_rows["softirq_ns"] = [50, 99]
    waits = long_waits(wait_ns=[5, 4_000_000], holder_ns=[5, 3_000_000], cpu=[1, 5])
    facts = facts_of([[Window("cpustate", "time", 0, 1, time_rows), Window("runqueue", "worst", 0, 1, waits)]])
    assert facts.texts == [
        "busiest CPU 5 at 99 %, most softirq on CPU 5, 99 %",
        "worst wait 4 ms, rank7 behind hog on CPU 5",
    ]
    assert facts.numbers["busiest_percent"] == pytest.approx(99) and facts.numbers["worst_wait_ms"] == 4


@pytest.mark.parametrize(
    "dtype",
    [
        [("cpu", "S4"), ("running_ns", "u8"), ("idle_ns", "u8"), ("softirq_ns", "u8"), ("hardirq_ns", "u8")],
        [("cpu", "u4", (3,)), ("running_ns", "u8"), ("idle_ns", "u8"), ("softirq_ns", "u8"), ("hardirq_ns", "u8")],
        [("cpu", "f8"), ("running_ns", "f8"), ("idle_ns", "f8"), ("softirq_ns", "f8"), ("hardirq_ns", "f8")],
        [("cpu", [("x", "u4")]), ("running_ns", "?")],
        [("wait_ns", "u8"), ("age_ns", "u8"), ("cpu", "u4"), ("comm", "u4"), ("holder_comm", "S4", (2,))],
    ],
)
def test_any_rows_will_do(dtype):
    for count in (0, 3):
        rows = np.frombuffer(b"\xff" * np.dtype(dtype).itemsize * count, dtype)
        for table in (("cpustate", "time"), ("cpustall", "open"), ("runqueue", "worst")):
            facts_of([[Window(*table, 0, 1, rows)]])


# Complaints


def test_a_flood_of_complaints_is_a_few_lines_and_a_count():
    said = []
    complaints = Complaints(said.append)
    for number in range(10_000):
        complaints.add("damaged", "x\x1b[2J\n", number * 1000)
    assert len(said) == 8 and all(line.isprintable() for line in said)
    complaints.add("other", "y", 10_000_000)
    complaints.add("damaged", "z", 60 * SECOND)
    assert said[-2:] == ["y", "z (9992 more like this)"] and complaints.total == 10_002
