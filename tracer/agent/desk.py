"""Where the agent's alerts go out: to direct sinks, slow sinks, the stream and the black box, each once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from tracer import units
from tracer.agent.board import Board
from tracer.agent.outbox import MOST_WAITING, Outbox
from tracer.alerts.alert import Alert, State
from tracer.sinks import Courier, DirectSink, Sink

if TYPE_CHECKING:
    from tracer.agent.streaming import Streaming

__all__ = ["Desk"]

#: Stands for all that only the agent has, on the board where the shared sinks have places of their own.
_OWN = 255
#: So long a sink may take nothing before that is said.
_PATIENCE_NS = 2_000_000_000


class _Recorder(Protocol):
    def alert(self, alert: Alert) -> None: ...


class Desk:
    """Delivers what the agent judged itself and what sentinels told; what a sink has had already stays away from it.

    Alerts of rules on trial go to all; sinks that people or pagers read leave them out themselves.

    Construct it when the sentinels are forked: it starts a thread for each of ``slow``. ``told`` counts news.
    """

    def __init__(
        self,
        board: Board,
        direct: Sequence[DirectSink],
        slow: Sequence[Sink],
        report: Callable[[str], None],
        *,
        stream: Streaming | None = None,
        recorder: _Recorder | None = None,
    ) -> None:
        self._board = board
        self._direct = direct
        self._outbox = Outbox(board, direct, [stream] if stream else [], decides=True)
        self._couriers = [Courier(sink, report) for sink in slow]
        self._recorder = recorder
        self._stuck_since_ns: dict[int, int] = {}
        self.told = 0

    def resume(self, firing: Iterable[Alert]) -> None:
        """Go on with what an earlier process has told: where an alert ends that nobody repeats."""
        for courier in self._couriers:
            for alert in firing if courier.repeats else ():
                courier.send(alert)

    def forward(self, alert: Alert, later_ns: int) -> None:
        """Deliver what a sentinel told, unless it says that something is over which another process sees go on."""
        if alert.state is not State.RESOLVED or not self._board.is_held(alert, time.monotonic_ns()):
            self.deliver(alert, later_ns)

    def deliver(self, alert: Alert, later_ns: int = 0) -> None:
        """Deliver; to sinks that the sentinels have, too, only if none of them has done it ``later_ns`` from now."""
        now_ns = time.monotonic_ns()
        self._outbox.put(alert, now_ns, later_ns)
        if self._board.is_told(_OWN, alert, now_ns):
            return
        self._board.mark_told(_OWN, alert, now_ns)
        self.told += 1
        if self._recorder:
            self._recorder.alert(alert)
        for courier in self._couriers:
            courier.send(alert)

    def send(self) -> float | None:
        """Send what is due; return in how many seconds more will be, None if nothing will."""
        now_ns = time.monotonic_ns()
        self._outbox.send(now_ns)
        due_ns = self._outbox.due_ns(now_ns)
        return None if due_ns is None else (due_ns - now_ns) / 1e9

    @property
    def dropped(self) -> int:
        """Alerts that no sink took in time."""
        return self._outbox.dropped + sum(courier.dropped + courier.failed for courier in self._couriers)

    def troubles(self) -> Iterator[str]:
        """Yield what to say of direct sinks: which has begun to take nothing, and why, and which works again."""
        now_ns = time.monotonic_ns()
        late = self._outbox.late_ns(now_ns)
        for place, sink in enumerate(self._direct):
            since_ns = self._stuck_since_ns.get(place)
            if since_ns is None and late.get(place, 0) >= _PATIENCE_NS:
                self._stuck_since_ns[place] = now_ns - late[place]
                why = sink.trouble or "its reader does not read"
                yield f"{sink.name} takes no alerts: {why}; they wait, {MOST_WAITING} at most"
            elif since_ns is not None and place not in late:
                del self._stuck_since_ns[place]
                yield f"{sink.name} takes alerts again, after {units.duration(now_ns - since_ns)}"

    def close(self) -> None:
        """Send what is left and close everything."""
        self._outbox.send(time.monotonic_ns() + 10**10)
        for courier in self._couriers:
            courier.close()
        for sink in self._direct:
            sink.close()
