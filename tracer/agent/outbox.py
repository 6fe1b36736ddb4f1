"""What a process has to say to sinks that never block: said at once, and again at every turn until it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tracer.agent.board import Board
from tracer.alerts.alert import Alert, State
from tracer.sinks import DirectSink

__all__ = ["Outbox"]

#: Messages that wait, in all; the oldest gives way.
MOST_WAITING = 256


@dataclass(frozen=True)
class _Letter:
    due_ns: int
    place: int
    alert: Alert


class Outbox:
    """Direct sinks and what they have not taken yet.

    ``shared`` sinks are those that several processes write to: each gets an alert from one of them, and from another
    where that one is frozen; that it is over, from the last that sees it fire, or from whoever ``decides``. ``own``
    sinks get all. ``sent`` counts messages, ``dropped`` those that gave way.
    """

    def __init__(
        self, board: Board, shared: Sequence[DirectSink], own: Sequence[DirectSink] = (), *, decides: bool = False
    ) -> None:
        self._board = board
        self._decides = decides
        self._sinks = (*shared, *own)
        self._shared = len(shared)
        self._waiting: list[_Letter] = []
        self.sent = 0
        self.dropped = 0

    def put(self, alert: Alert, now_ns: int, later_ns: int = 0) -> None:
        """Have ``alert`` sent; to shared sinks ``later_ns`` from now, if no other process has done it by then."""
        for place in range(len(self._sinks)):
            due_ns = now_ns + (later_ns if place < self._shared else 0)
            self._waiting.append(_Letter(due_ns, place, alert))
        surplus = len(self._waiting) - MOST_WAITING
        if surplus > 0:
            del self._waiting[:surplus]
            self.dropped += surplus

    def send(self, now_ns: int) -> None:
        """Send what is due. What a sink does not take stays; then nothing overtakes it there."""
        kept: list[_Letter] = []
        stuck: set[int] = set()
        for letter in self._waiting:
            if letter.due_ns > now_ns or letter.place in stuck or not self._send(letter, now_ns):
                kept.append(letter)
                stuck.add(letter.place)
        self._waiting = kept

    @property
    def empty(self) -> bool:
        """Whether nothing waits."""
        return not self._waiting

    def due_ns(self, now_ns: int) -> int | None:
        """Return when the next letter is due that was not to be sent before; None if there is none."""
        return min((letter.due_ns for letter in self._waiting if letter.due_ns > now_ns), default=None)

    def late_ns(self, now_ns: int) -> dict[int, int]:
        """Return for how long what is due has waited, by the sink's place; without those that take what they get."""
        late: dict[int, int] = {}
        for letter in self._waiting:
            if letter.due_ns <= now_ns:
                late[letter.place] = max(late.get(letter.place, 0), now_ns - letter.due_ns)
        return late

    def _send(self, letter: _Letter, now_ns: int) -> bool:
        shared = letter.place < self._shared
        # Right before sending, marked after: whoever freezes in between loses nothing.
        if shared and (self._board.is_told(letter.place, letter.alert, now_ns) or self._goes_on(letter.alert, now_ns)):
            return True
        if not self._sinks[letter.place].send_now(letter.alert):
            return False
        self.sent += 1
        if shared:
            self._board.mark_told(letter.place, letter.alert, now_ns)
        return True

    def _goes_on(self, alert: Alert, now_ns: int) -> bool:
        return not self._decides and alert.state is State.RESOLVED and self._board.is_held(alert, now_ns)
