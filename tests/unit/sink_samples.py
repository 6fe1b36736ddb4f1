"""Alerts for the tests of those who deliver and receive them."""

from __future__ import annotations

import time

from tracer.alerts.alert import Alert, Condition, Countdown, Culprit, Severity, State, Subject, alert_id

SECOND = 1_000_000_000
#: Names as an attacker would choose them: terminal commands, line ends, bytes that are no UTF-8, reversed text.
HOSTILE = "\x1b[2J\x9b31m\r\nPAGE fake\x7f\u202e\udcff\0"


def sample_alert(
    *,
    node: str = "cu39",
    boot_id: str = "b007",
    state: State = State.FIRING,
    severity: Severity = Severity.PAGE,
    sequence: int = 1,
    stack: tuple[str, ...] = ("spin", "run_timer_softirq", "handle_softirqs", "irq_exit_rcu", "asm_timer"),
    since_ns: int = 95 * SECOND,
    at_ns: int = 100 * SECOND,
    name: str = "3",
    task: str = "kworker/3:1[812]",
    source: str = "agent",
    shadow: bool = False,
    culprit: bool = True,
) -> Alert:
    """Return an alert about a stuck CPU, 5 s into it and 16 s before the panic."""
    subject = Subject("cpu", name)
    return Alert(
        id=alert_id(boot_id, "soft-lockup", subject, since_ns),
        rule="soft-lockup",
        title="CPU stuck in the kernel",
        state=state,
        condition=Condition(
            subject,
            severity,
            f"CPU {name} has been in the kernel for 5 s",
            since_ns,
            {"stalled_s": 5.0},
            Culprit(task, "softirq TIMER", stack, "badmod") if culprit else None,
            Countdown("soft lockup detector", at_ns + 16 * SECOND, True, "kernel.softlockup_panic=1"),
        ),
        next="move jobs away; see what badmod does",
        node=node,
        boot_id=boot_id,
        sequence=sequence,
        began_ns=since_ns,
        at_ns=at_ns,
        unix_ns=time.time_ns(),
        source=source,
        shadow=shadow,
        quality={"ring": 2},
    )


def hostile_alert() -> Alert:
    """Return an alert all of whose names are hostile."""
    return sample_alert(node=HOSTILE, name=HOSTILE, task=HOSTILE, stack=(HOSTILE,))
