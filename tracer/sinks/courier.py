"""A thread that carries alerts to a slow sink, so that whoever has them never waits for it."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

from tracer import units
from tracer.alerts.alert import Alert
from tracer.errors import ForeshockError
from tracer.sinks.report import to_stderr
from tracer.sinks.sink import Refused, Repeating, Sink

__all__ = ["Courier"]

_MOST = 256
_PATIENCE = 120.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0


class Courier:
    """Carries alerts to ``sink``, which it owns; itself a sink whose ``send`` never blocks.

    At most ``most`` alerts wait; the oldest gives way. A failed one is tried again with growing pauses, for
    ``patience`` seconds. ``report`` gets one line when the sink begins to fail, and one when it works again.

    Attributes:
        dropped: alerts that gave way.
        failed: alerts given up.
    """

    def __init__(
        self,
        sink: Sink,
        report: Callable[[str], None] = to_stderr,
        *,
        most: int = _MOST,
        patience: float = _PATIENCE,
        first_pause: float = _FIRST_PAUSE,
    ) -> None:
        self.name = sink.name
        self.dropped = 0
        self.failed = 0
        self._sink = sink
        self._report = report
        self._most = most
        self._patience = patience
        self._first_pause = first_pause
        # Putting and taking without waiting never waits for the thread, wherever that stands.
        self._alerts: queue.SimpleQueue[Alert | None] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._failing_since_ns = 0
        self._thread = threading.Thread(target=self._run, name="courier", daemon=True)
        self._thread.start()

    @property
    def repeats(self) -> bool:
        """Whether the sink has to be told again what still fires."""
        return isinstance(self._sink, Repeating)

    def send(self, alert: Alert) -> None:
        """Hand ``alert`` over, at once."""
        if self._alerts.qsize() >= self._most:
            try:
                self._alerts.get_nowait()
                self.dropped += 1
            except queue.Empty:
                pass  # the thread was faster
        self._alerts.put(alert)

    def close(self, seconds: float = 2.0) -> None:
        """Deliver what waits, for at most ``seconds``; the rest is given up."""
        self._alerts.put(None)
        self._thread.join(seconds)
        self._closing.set()

    def _run(self) -> None:
        due = time.monotonic() + self._sink.repeat_seconds if isinstance(self._sink, Repeating) else None
        while True:
            try:
                alert = self._alerts.get(timeout=None if due is None else max(0.0, due - time.monotonic()))
            except queue.Empty:
                due = self._repeat()
                continue
            if alert is None:
                break
            if not self._deliver(alert):
                self.failed += 1
        self._sink.close()

    def _repeat(self) -> float | None:
        if not isinstance(self._sink, Repeating):
            return None
        self._attempt(self._sink.repeat)
        return time.monotonic() + self._sink.repeat_seconds

    def _deliver(self, alert: Alert) -> bool:
        give_up, pause = time.monotonic() + self._patience, self._first_pause
        while (error := self._attempt(lambda: self._sink.send(alert))) is not None:
            if isinstance(error, Refused) or time.monotonic() + pause > give_up or self._closing.wait(pause):
                return False
            pause = min(2 * pause, _LONGEST_PAUSE)
        return True

    def _attempt(self, action: Callable[[], None]) -> ForeshockError | None:
        """Do it, and say when it begins to fail and when it works again: not once per alert."""
        try:
            action()
        except ForeshockError as error:
            if not self._failing_since_ns:
                self._failing_since_ns = time.monotonic_ns()
                hint = f" ({error.hint})" if error.hint else ""
                then = "given up" if isinstance(error, Refused) else "alerts wait and are tried again"
                self._report(f"{self.name}: {error.message.rstrip('.')}{hint}; {then}")
            return error
        if self._failing_since_ns:
            lasted = units.duration(time.monotonic_ns() - self._failing_since_ns)
            self._failing_since_ns = 0
            lost = units.many(self.failed + self.dropped, "alert")
            self._report(f"{self.name}: works again after {lasted}; {lost} lost since the start")
        return None
