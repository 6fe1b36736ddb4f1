"""A sentinel: one small process on one CPU that sees a stall elsewhere and says so, whatever becomes of the others.

It waits for nothing but its own ring and its own clock: no disk, no lock, no other process.
"""

from __future__ import annotations

import contextlib
import gc
import select
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tracer.agent.board import Board
from tracer.agent.outbox import Outbox
from tracer.agent.sight import Sight
from tracer.agent.wire import Wire
from tracer.alerts.engine import Engine
from tracer.kernel.clock import Offset

if TYPE_CHECKING:
    from tracer.agent.streaming import Streaming

__all__ = ["Sentinel"]

#: It looks by itself so often while something goes on. A stall is due for its first alert 1 s after its start, by the
#: kernel's record, which the kernel's clock writes within 0.2 s of the start.
TURN_NS = 200_000_000
#: In quiet times, when nothing could be due earlier.
QUIET_NS = 500_000_000
#: And never more often than this, however many events come: they are looked at together.
_GAP_NS = 15_000_000
#: The second sentinel gives the first so long to tell whom both would tell.
STAGGER_NS = 20_000_000
_TIDY_NS = 60_000_000_000
#: A turn that comes so late says that this CPU was held up, or the whole machine paused: then everything looks stuck
#: that has only not run yet, and the next turn judges.
_LATE_NS = 1_000_000_000


class Sentinel:
    """Judges what ``sight`` shows with an engine of its own and sends through ``outbox``.

    ``wakes`` are descriptors that begin a turn at once: its ring. ``wire`` leads to the agent, and ends with it.
    """

    def __init__(
        self,
        number: int,
        sight: Sight,
        engine: Engine,
        board: Board,
        outbox: Outbox,
        *,
        wakes: Iterable[int],
        wire: Wire,
        stream: Streaming | None = None,
    ) -> None:
        self._sight = sight
        self._engine = engine
        self._board = board
        self._outbox = outbox
        self._number = number
        self._life = board.sentinels[number : number + 1]
        self._later_ns = number * STAGGER_NS
        self._wire = wire
        self._stream = stream
        self._epoll = select.epoll()
        for descriptor in wakes:
            self._epoll.register(descriptor, select.EPOLLIN)
        self._epoll.register(wire.fileno(), select.EPOLLIN)
        self._broken: set[str] = set()
        self._offset = Offset()
        self._turned_ns = self._turn_at_ns = self._tidy_at_ns = 0

    def run(self) -> bool:
        """Go on until the agent is gone; return whether it said goodbye."""
        while self._wait():
            self.turn(time.monotonic_ns())
        self.turn(time.monotonic_ns())
        with contextlib.suppress(EOFError):
            return any(kind == "bye" for kind, _ in self._wire.received())
        return False

    def close(self) -> None:
        """Give back what it waits with."""
        self._epoll.close()

    def turn(self, now_ns: int) -> None:
        """Look, judge, send; note that this happened."""
        late = bool(self._turn_at_ns) and now_ns - self._turn_at_ns > _LATE_NS
        self._turned_ns, self._turn_at_ns = now_ns, now_ns + TURN_NS
        if late:
            self._life["late"] += 1
        elif self._judge(now_ns) and self._outbox.empty:
            self._turn_at_ns = now_ns + min(max(self._sight.due_ns(now_ns) - now_ns, _GAP_NS), QUIET_NS)
        self._outbox.send(time.monotonic_ns())
        self._life["told"], self._life["dropped"] = self._outbox.sent, self._outbox.dropped
        self._life["beat_ns"] = now_ns
        if self._stream:
            self._stream.beat(now_ns)
        if now_ns >= self._tidy_at_ns:
            # What was there before the start is frozen, so that this takes microseconds.
            self._tidy_at_ns = now_ns + _TIDY_NS
            gc.collect()

    def _judge(self, now_ns: int) -> bool:
        """Look and judge; return whether there was nothing to see."""
        view = self._sight.look(now_ns, self._board.settings())
        if self._engine.idle and not any(len(window.rows) for window in view.windows.values()):
            return True
        for moved_ns in self._offset.moved():
            self._engine.tell_time(moved_ns)
        told = self._engine.judge(view)
        self._board.hold(self._number, told, self._engine.firing, now_ns + _LATE_NS)
        for alert in told:
            self._outbox.put(alert, now_ns, self._later_ns)
        self._complain()
        return False

    def _complain(self) -> None:
        for name in self._engine.broken.keys() - self._broken:
            self._broken.add(name)
            self._wire.say("note", f"rule {name} fails: {self._engine.broken[name]}")

    def _wait(self) -> bool:
        """Wait for an event, for what is due later, or for the next turn; return False when the agent is gone."""
        now_ns = time.monotonic_ns()
        until_ns = min(self._turn_at_ns, self._outbox.due_ns(now_ns) or self._turn_at_ns)
        ready = self._epoll.poll(max(0, until_ns - now_ns) / 1e9)
        if any(descriptor == self._wire.fileno() for descriptor, _ in ready):
            return False
        # A storm of events is taken in gulps.
        rest_ns = self._turned_ns + _GAP_NS - time.monotonic_ns()
        if ready and rest_ns > 0:
            time.sleep(rest_ns / 1e9)
        return True
