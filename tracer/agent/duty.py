"""The life of a sentinel, from the fork on: where it runs, what it keeps, what it gives up."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tracer.agent.board import Board
from tracer.agent.outbox import Outbox
from tracer.agent.sentinel import Sentinel
from tracer.agent.sight import Sight
from tracer.agent.warming import warm
from tracer.agent.wire import Wire
from tracer.alerts.engine import Engine, Identity
from tracer.alerts.rule import Rule
from tracer.kernel import forking, privilege
from tracer.kernel.clock import offset_ns
from tracer.kernel.memlock import lock_memory
from tracer.kernel.realtime import real_time
from tracer.kernel.session import Session
from tracer.sinks import DirectSink

if TYPE_CHECKING:
    from tracer.agent.streaming import Streaming

__all__ = ["Duty", "open_stream", "rehearse", "serve"]

#: Without the first, memory would be refused at the limit once it is locked; the second is for the stream's token.
_KEPT = ("ipc_lock", "dac_read_search")


@dataclass(frozen=True)
class Duty:
    """What every sentinel has to do.

    ``rules`` are the fast ones, ``shadow`` the names of those on trial. ``sinks`` are open, and shared with the agent.
    ``stream`` is a specification for ``open_sink`` or "": each opens its own. ``state`` is what an ``Engine`` had
    before.
    """

    identity: Identity
    rules: tuple[Rule, ...]
    symbol: Callable[[int], tuple[str, str]]
    shadow: frozenset[str] = frozenset()
    sinks: tuple[DirectSink, ...] = ()
    stream: str = ""
    interval_ns: int = 1_000_000_000
    state: Mapping[str, Any] = field(default_factory=dict)


def rehearse(session: Session, duty: Duty, board: Board) -> None:
    """Do once what every sentinel will do, before they are forked: what that brings along, they share."""
    ring = session.sentinel_ring(0)
    sight = Sight(session, ring, duty.rules, duty.symbol)
    warm(
        replace(duty.identity, boot_id="rehearsal"), (), lambda now_ns: sight.look(now_ns, board.settings()), duty.rules
    )
    ring.close()


def open_stream(spec: str, identity: Identity, interval_ns: int) -> Streaming:
    """Return a process's own stream. Imported here, for it brings TLS along; by the agent, before it forks."""
    from tracer.agent.streaming import Streaming

    return Streaming(spec, identity, interval_ns)


def serve(number: int, cpu: int, wire: Wire, session: Session, duty: Duty, board: Board) -> None:
    """Be a sentinel until the agent is gone; called in the forked process."""
    os.sched_setaffinity(0, {cpu})
    ring = session.sentinel_ring(number)
    kept = [ring.descriptor, wire.fileno(), *(sink.fileno() for sink in duty.sinks)]
    # Above all the programs', which have to end with the agent; and whatever else it has open.
    forking.close_all_but(kept)
    # One that is forked later than the first may find the clock set meanwhile.
    identity = replace(duty.identity, source=f"sentinel {number}", clock_offset_ns=offset_ns()[0])
    sight = Sight(session, ring, duty.rules, duty.symbol)
    warm(
        replace(identity, boot_id="rehearsal"),
        (*duty.sinks, wire),
        lambda now_ns: sight.look(now_ns, board.settings()),
        duty.rules,
    )
    lacks = [lack for lack in (lock_memory(), real_time()) if lack]
    privilege.keep_only(_KEPT)
    # Its thread has this process's priority: one that waited behind others with the interpreter in hand would stop us.
    stream = open_stream(duty.stream, identity, duty.interval_ns) if duty.stream else None
    engine = Engine(duty.rules, identity, shadow=duty.shadow, paged=board.is_paged)
    if duty.state:
        engine.restore(duty.state, time.monotonic_ns())
    outbox = Outbox(board, duty.sinks, (wire, *([stream] if stream else [])))
    wire.say("ready", lacks)
    sentinel = Sentinel(number, sight, engine, board, outbox, wakes=[ring.descriptor], wire=wire, stream=stream)
    if sentinel.run() and stream:
        stream.close()
