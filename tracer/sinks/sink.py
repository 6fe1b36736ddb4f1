"""What a sink is. Direct ones never block, and the sentinels write to them; others live behind a ``Courier``."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from tracer.alerts.alert import Alert
from tracer.errors import OutputError

__all__ = ["DirectSink", "Refused", "Repeating", "Sink"]


class Refused(OutputError):
    """The receiver says that it will never take this alert: trying again is of no use."""


class Sink(Protocol):
    """One place that alerts go to. ``name`` is for messages and has no secrets: ``"webhook https://hooks.example"``."""

    name: str

    def send(self, alert: Alert) -> None:
        """Deliver, waiting a bounded time where it has to. Raises OutputError; Refused when that is for good."""

    def close(self) -> None:
        """Release what is open; sending ends."""


@runtime_checkable
class DirectSink(Sink, Protocol):
    """A sink whose descriptor is open beforehand and that never blocks: for whoever must not wait.

    ``trouble``: the kernel's word on why it could not be written to the last time; "" when it could, or is only slow.
    """

    trouble: str

    def fileno(self) -> int:
        """Return the descriptor that is written to; -1 while there is none."""

    def send_now(self, alert: Alert) -> bool:
        """Deliver at once; False, never an error, when that would block or fails."""


@runtime_checkable
class Repeating(Sink, Protocol):
    """A sink that has to be told again what still fires: its Courier calls ``repeat`` every ``repeat_seconds``."""

    repeat_seconds: float

    def repeat(self) -> None:
        """Tell again what still fires. Raises OutputError."""
