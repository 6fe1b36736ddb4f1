"""A receiver in a thread of its own, and frames as nodes send them."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from unit.sink_samples import sample_alert

from tracer.alerts.record import alert_record
from tracer.fleet.connection import Connection
from tracer.fleet.receiver import TICK_NS, Limits, Receiver
from tracer.recording import FrameEncoder, read_recording
from tracer.recording.frames import Kind, pack_frame
from tracer.recording.greeting import Hello

DEMO = Path(__file__).parent.parent.parent / "tracer" / "sample" / "demo.fsk"
SECOND = 1_000_000_000


@cache
def demo():
    """Return the recording that comes with foreshock."""
    return read_recording(DEMO)


def conversation(nonce: str, token: str | None, *, node: str = "cu39", intervals: int = 3, tables=None) -> list[bytes]:
    """Return what a node sends, frame by frame: who it is, its header, intervals of the demo, an alert, goodbye.

    ``tables``: only these of the intervals.
    """
    encoder = FrameEncoder()
    frames = [Hello(node, "b007", "agent", SECOND).packed(nonce, token), encoder.header(demo().header)]
    for windows in demo().intervals[:intervals]:
        frames.append(encoder.windows([w for w in windows if tables is None or (w.probe, w.table) in tables]))
    frames += [pack_frame(Kind.ALERT, alert_record(sample_alert())), pack_frame(Kind.BEAT, {"dropped": 3})]
    return [*frames, encoder.end()]


class Served:
    """A receiver that listens; ``alerts`` and ``said`` are what it told."""

    def __init__(self, limits: Limits | None = None, token: str | None = None, tls=None) -> None:
        self.alerts, self.said = [], []
        self.receiver = Receiver(limits or Limits(), token, tls, self.alerts.append, self.said.append)
        self.port = 0

    @property
    def spec(self) -> str:
        return f"stream:127.0.0.1:{self.port}"

    async def run(self, up: threading.Event, stop: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: self.said.append(f"EXCEPTION {context}"))
        server = await loop.create_server(lambda: Connection(self.receiver), "127.0.0.1", self.port)
        self.port = server.sockets[0].getsockname()[1]
        up.set()
        while not stop.is_set():
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(stop.wait(), TICK_NS / 1e9)
            self.receiver.tick()
        server.close()
        self.receiver.close()
        await asyncio.sleep(0.01)


@contextlib.contextmanager
def served(served: Served) -> Iterator[Served]:
    """Run it in a thread."""
    up, loop, stop = threading.Event(), asyncio.new_event_loop(), asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(served.run(up, stop)), daemon=True)
    thread.start()
    assert up.wait(5)
    try:
        yield served
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(5)
        loop.close()
    assert not [line for line in served.said if line.startswith("EXCEPTION")]
