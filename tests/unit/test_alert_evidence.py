"""What was recorded because of an alert goes with every later message about it, through every sink, and is news."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import numpy as np
import pytest
from unit.agent_samples import an_alert
from unit.alert_views import SECOND, filled, view

from tracer.agent.board import Board
from tracer.alerts.alert import Condition, Evidence, Severity, State, Subject
from tracer.alerts.engine import Engine, Identity
from tracer.alerts.lines import json_line, people_lines
from tracer.alerts.logpatterns import conditions, found_in
from tracer.alerts.record import alert_from, alert_record
from tracer.alerts.rule import Rule
from tracer.blackbox.redact import Redactor
from tracer.blackbox.unnamed import unnamed_alert
from tracer.fleet.node import Node
from tracer.sinks.alertmanager import _annotations
from tracer.sinks.journald import _datagram
from tracer.window import Window

EVIDENCE = Evidence("/r/x.fsk", "/r/x.html", ("churn[7] on CPU in 9 of 10 samples (90 %), most in \x1b[2Jclear",))


def test_it_survives_the_way_out_and_back():
    alert = an_alert(evidence=EVIDENCE)
    assert alert_from(json.loads(json_line(alert))) == alert
    assert "evidence" not in alert_record(an_alert())


def test_people_and_pagers_see_path_and_stacks_and_no_escape():
    alert = an_alert(evidence=EVIDENCE)
    line = people_lines(alert)[2]
    assert line.strip().startswith("recorded: /r/x.html; churn[7] on CPU") and "\x1b" not in line
    assert len(people_lines(an_alert())) == 2
    assert _annotations(alert)["evidence"] == line.strip()
    assert b"FORESHOCK_REPORT=/r/x.html\n" in _datagram(alert) and b"FORESHOCK_EVIDENCE" in _datagram(alert)


@pytest.mark.parametrize("state", [State.FIRING, State.RESOLVED])
def test_it_is_news_to_sinks_and_to_the_receiver_once(state: State):
    board, node, now_ns = Board(), Node("cu39", "b007", 0, 0), time.monotonic_ns()
    plain = replace(an_alert(stack=("a", "b")), state=state)
    evident = replace(plain, evidence=EVIDENCE)
    board.mark_told(0, plain, now_ns)
    assert not board.is_told(0, evident, now_ns)
    board.mark_told(0, evident, now_ns)
    assert board.is_told(0, evident, now_ns) and board.is_told(0, plain, now_ns)
    assert board.is_told(0, replace(evident, condition=replace(plain.condition, culprit=None)), now_ns)
    assert node.news(plain, 0) and node.news(evident, 1)
    assert not node.news(evident, 2) and not node.news(plain, 3) and not node.news(evident, 4)


def test_later_messages_have_it_as_well():
    holds = [Condition(Subject("cpu", "3"), Severity.PAGE, "stuck", SECOND)]
    rule = Rule("stuck", "", "", "", lambda seen: iter(holds), (), keep_ns=0)
    engine = Engine([rule], Identity("cu39", "b007", 1000))
    (first,) = engine.judge(view(2, {}))
    attached = engine.attach(first.id, EVIDENCE, 2 * SECOND + 7)
    assert attached and attached.sequence == first.sequence + 1 and attached.evidence == EVIDENCE
    # It is a message of its own, of when it was told: not of the last judgement.
    assert (attached.at_ns, attached.unix_ns) == (2 * SECOND + 7, 2 * SECOND + 1007)
    restored = Engine([rule], Identity("cu39", "b007", 0))
    restored.restore(json.loads(json.dumps(engine.state())), 3 * SECOND)
    holds.clear()
    (over,) = restored.judge(view(4, {}))
    assert over.state is State.RESOLVED and over.evidence == EVIDENCE
    assert engine.attach("another", EVIDENCE, 5 * SECOND) is None


def test_it_does_not_leave_the_node_with_what_is_redacted():
    assert unnamed_alert(an_alert(evidence=EVIDENCE), Redactor(b"key")).evidence is None


def test_the_task_that_the_kernel_names_is_the_culprit():
    line = b"EXT4-fs error (device loop1): ext4_find_entry:1446: inode #2: comm a b: reading directory lblock 0"
    rows = filled(np.dtype([("time_ns", "u8"), ("count", "u4"), ("text", "S200")]), [{"text": line, "count": 1}])
    (condition,) = conditions(found_in(Window("kernellog", "lines", 0, 1, rows), "filesystem-error"))
    assert condition.summary == "ext4 on loop1 is damaged, found by ext4_find_entry"
    assert condition.culprit and condition.culprit.task == "a b"
