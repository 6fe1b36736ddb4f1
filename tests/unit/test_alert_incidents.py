"""One incident, one page, whichever rules see it and in whichever process."""

from __future__ import annotations

import numpy as np
from unit.alert_views import SECOND, filled, one, view

from tracer.agent.board import Board
from tracer.alerts.alert import Severity
from tracer.alerts.engine import Engine, Identity
from tracer.alerts.rules import rules
from tracer.layouts import layout
from tracer.probes.precursors import PROBE as PRECURSORS

NOW = 1000
RCU = {"rcupdate.rcu_cpu_stall_timeout": 21}
_TOLD = next(table for table in PRECURSORS.tables if table.name == "told")
REPORT = {"time_ns": (NOW + 16) * SECOND, "kind": b"rcu_stall", "name": b"rcu_preempt"}


def _told(*rows):
    return {"precursors.told": filled(_TOLD.decode(np.zeros(0, layout("precursors", _TOLD.layout)), None).dtype, rows)}


def _stall(age_s):
    return {"rcu.grace": one(begun_ns=int((NOW - 5) * SECOND), age_ns=int(age_s * SECOND))}


def test_a_stall_of_rcu_is_paged_once():
    board = Board()
    every = [rules()[name] for name in ("rcu-stall", "rcu-stall-warning")]
    agent = Engine(every, Identity("cu39", "b007", 0))
    sentinel = Engine(every[1:], Identity("cu39", "b007", 0, "sentinel 0"), paged=board.is_paged)
    heard = []
    for second in range(17):
        seen = view(NOW + second, _stall(5 + second) | _told(*([REPORT] if second == 16 else [])), settings=RCU)
        if second == 16:
            heard += sentinel.judge(view(NOW + second, _told(REPORT), settings=RCU))
        told = agent.judge(seen)
        board.put_pages(told, agent.firing, seen.now_ns + 3 * SECOND)
        heard += told
    assert [(alert.rule, alert.severity) for alert in heard] == [
        ("rcu-stall", Severity.WARNING),
        ("rcu-stall", Severity.PAGE),
        ("rcu-stall-warning", Severity.WARNING),
        ("rcu-stall-warning", Severity.WARNING),
    ]
    assert heard[2].id == heard[3].id


def test_the_sentinels_page_what_the_agent_does_not():
    sentinel = Engine([rules()["rcu-stall-warning"]], Identity("cu39", "b007", 0), paged=Board().is_paged)
    (alert,) = sentinel.judge(view(NOW + 16, _told(REPORT), settings=RCU))
    assert alert.severity is Severity.PAGE
