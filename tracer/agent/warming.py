"""Do everything once that an alert's way out takes, so that it is in memory and stays there; nothing gets out."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from tracer.agent.board import Board
from tracer.agent.outbox import Outbox
from tracer.alerts.alert import Condition, Countdown, Culprit, Severity, Subject
from tracer.alerts.engine import Engine, Identity
from tracer.alerts.rule import Rule, View
from tracer.sinks import DirectSink

__all__ = ["warm"]

#: How far ahead of now each round looks, in ns: in a minute everything is as stuck as it can be.
_AHEAD_NS = (0, 60_000_000_000, 120_000_000_000)


def warm(identity: Identity, sinks: Sequence[DirectSink], look: Callable[[int], View], rules: Sequence[Rule]) -> None:
    """Look ahead to when every CPU will seem stuck, and tell what is seen to ``sinks``, which lead nowhere meanwhile.

    ``look`` takes the time. Call it in the process that is to be warm, and before it has descriptors of its own that
    matter.
    """
    engine = Engine((*rules, _rule()), identity)
    outbox = Outbox(Board(), sinks)
    with contextlib.ExitStack() as stack:
        for sink in sinks:
            stack.enter_context(_leading_nowhere(sink.fileno()))
        for ahead_ns in _AHEAD_NS:
            view = _eventful(look(time.monotonic_ns() + ahead_ns))
            for alert in engine.judge(view):
                outbox.put(alert, view.now_ns)
            outbox.send(view.now_ns)


def _eventful(view: View) -> View:
    """Return the view with one row, of zeros, in every table that has none."""
    windows = {
        table: window if len(window.rows) else replace(window, rows=np.zeros(1, window.rows.dtype))
        for table, window in view.windows.items()
    }
    return replace(view, windows=windows)


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
