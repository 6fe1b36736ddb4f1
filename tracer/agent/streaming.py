"""A process's own stream to the receiver, as a direct sink that never refuses: what can't be sent yet, it keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tracer.alerts.alert import Alert
from tracer.alerts.engine import Identity
from tracer.errors import OutputError
from tracer.sinks import open_sink
from tracer.sinks.stream import Stream
from tracer.window import Window

__all__ = ["Streaming"]


class Streaming:
    """Opens the stream that ``spec`` names, in the background. Raises UsageError when it can't be read."""

    trouble = ""

    def __init__(self, spec: str, identity: Identity, interval_ns: int) -> None:
        stream = open_sink(spec, identity, interval_ns=interval_ns)
        assert isinstance(stream, Stream)
        self.name = stream.name
        self._stream = stream
        self._interval_ns = interval_ns
        self._beat_at_ns = 0

    @property
    def connected(self) -> bool:
        """Whether there is a connection now."""
        return self._stream.fileno() >= 0

    @property
    def dropped(self) -> int:
        """Windows and alerts that no connection took in time."""
        return self._stream.dropped

    def fileno(self) -> int:
        """Return the connection's descriptor; -1 while there is none."""
        return self._stream.fileno()

    def send_now(self, alert: Alert) -> bool:
        """Send at once or as soon as it can: True in either case, for it is not to be given again."""
        self._stream.send_now(alert)
        return True

    def send(self, alert: Alert) -> None:
        """Send as ``send_now`` does."""
        self.send_now(alert)

    def introduce(self, header: Mapping[str, Any]) -> None:
        """Tell the receiver what windows will look like."""
        self._stream.introduce(header)

    def send_windows(self, windows: Sequence[Window]) -> None:
        """Send one interval; one that does not go through is counted in ``dropped``."""
        try:
            self._stream.send_windows(windows)
        except OutputError:
            self._stream.dropped += 1

    def beat(self, now_ns: int) -> None:
        """Give a sign of life once an interval, and send what waits."""
        if now_ns >= self._beat_at_ns:
            self._beat_at_ns = now_ns + self._interval_ns
            self._stream.beat()

    def close(self) -> None:
        """Say goodbye."""
        self._stream.close()
