"""Do everything once that an alert's way out takes, so that it is in memory and stays there; nothing gets out."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import time
from collections.abc import Callable, Iterator, Sequence

from tracer.agent.board import Board
from tracer.agent.outbox import Outbox
from tracer.alerts.alert import Condition, Countdown, Culprit, Severity, Subject
from tracer.alerts.engine import Engine, Identity
from tracer.alerts.rule import Rule, View
from tracer.sinks import DirectSink

__all__ = ["warm"]

_ROUNDS = 3
_TABLE = ("cpustall", "open")


def warm(identity: Identity, sinks: Sequence[DirectSink], look: Callable[[], View], rules: Sequence[Rule]) -> None:
    """Look and judge as ever, then tell an alert that isn't one to ``sinks``, which lead nowhere meanwhile.

    Call it in the process that is to be warm, and before it has descriptors of its own that matter.
    """
    engine = Engine(rules, identity)
    outbox = Outbox(Board(), sinks)
    rehearsed = Engine([_rule()], identity)
    with contextlib.ExitStack() as stack:
        for sink in sinks:
            stack.enter_context(_leading_nowhere(sink.fileno()))
        for _ in range(_ROUNDS):
            view = look()
            engine.judge(view)
            windows = {_TABLE: view.windows[_TABLE]} if _TABLE in view.windows else view.windows
            for alert in rehearsed.judge(View(view.now_ns, windows, view.settings, symbol=view.symbol)):
                outbox.put(alert, view.now_ns)
            outbox.send(time.monotonic_ns())


def _rule() -> Rule:
    def judge(view: View) -> Iterator[Condition]:
        symbol, module = view.symbol(0xFFFFFFFF81000000)
        yield Condition(
            Subject("cpu", str(view.now_ns)),
            Severity.PAGE,
            "a rehearsal",
            view.now_ns,
            {"stalled_s": 1.5},
            Culprit("rehearsal[1]", "softirq TIMER", (symbol,) * 8, module),
            Countdown("rehearsal", view.now_ns + 1, True, ", ".join(f"{k}={v}" for k, v in view.settings.items())),
        )

    return Rule("rehearsal", "rehearsal", "", "nothing", judge, ())


@contextlib.contextmanager
def _leading_nowhere(descriptor: int) -> Iterator[None]:
    """Have a descriptor of this process lead to nobody; a copy that another process has still leads where it did."""
    if descriptor < 0:
        yield
        return
    before = os.dup(descriptor)
    ends: tuple[socket.socket, ...] = ()
    if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
        with socket.socket(fileno=os.dup(descriptor)) as kind:
            ends = socket.socketpair(socket.AF_UNIX, kind.type)
        os.dup2(ends[0].fileno(), descriptor)
    else:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, descriptor)
        os.close(null)
    try:
        yield
    finally:
        os.dup2(before, descriptor)
        os.close(before)
        for end in ends:
            end.close()
