"""The deep probes for some seconds, in step with the agent's intervals, and what the agent saw meanwhile and before."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tracer.closeup.order import Order
from tracer.closeup.terms import Terms
from tracer.collect.header import describe
from tracer.collect.trace import Request, Trace
from tracer.errors import RecordingError, UnavailableError
from tracer.probes import all_probes
from tracer.recording import Frame, FrameDecoder, Kind, read_frame
from tracer.window import Window

__all__ = ["Seen", "look"]

#: Windows of stacks, kept until they are written; what comes after is left out.
_MOST_BYTES = 64 << 20
_PATIENCE_SECONDS = 15.0
_MOST_MESSAGE = 1 << 16


@dataclass(frozen=True)
class Seen:
    """A recording's header, the deep windows by interval, and the descriptor of the agent's frames, -1 for none."""

    header: dict[str, Any]
    deep: Sequence[Sequence[Window]]
    light: int = -1

    def light_intervals(self) -> Iterator[list[Window]]:
        """Yield the agent's intervals: each frame by itself, and only once."""
        if self.light < 0:
            return
        with open(self.light, "rb") as file:
            while True:
                try:
                    frame = read_frame(file.read)
                except RecordingError:
                    return
                if frame is None:
                    return
                yield _decoded(frame)


def look(channel: socket.socket, terms: Terms, order: Order, say: Callable[[Mapping[str, Any]], None]) -> Seen:
    """Trace, tell when it is over, and wait for the agent's part. Raises what attaching raises.

    ``say`` is told ``traced`` when the programs are detached. A message, whatever it is, ends the seconds early.
    """
    names = ",".join(probe.name for probe in terms.probes(order.probes))
    request = Request(names, interval_ns=order.interval_ns, insist=False)
    with Trace(request) as trace:
        header = trace.header()
        deep = list(_intervals(trace, channel, terms, order))
    say({"traced": True})
    return Seen(_completed(header, order), deep, _light(channel))


def _intervals(trace: Trace, channel: socket.socket, terms: Terms, order: Order) -> Iterator[list[Window]]:
    end_ns, size, waited = time.monotonic_ns() + terms.for_ns, 0, False
    while not waited and size < _MOST_BYTES and (now_ns := time.monotonic_ns()) < end_ns:
        # The agent's interval ends then: what both see is of the same seconds.
        next_ns = now_ns + order.interval_ns - (now_ns - order.due_ns) % order.interval_ns
        waited = trace.wait(lambda seconds: _disturbed(channel, seconds), (next_ns - now_ns) / 1e9)
        windows = trace.collect(complete=waited or next_ns >= end_ns)
        size += sum(window.rows.nbytes for window in windows)
        yield windows


def _disturbed(channel: socket.socket, seconds: float) -> bool:
    """Wait so long; return whether the agent has said something, or is gone."""
    return bool(select.select([channel], [], [], seconds)[0])


def _light(channel: socket.socket) -> int:
    """Return the descriptor that the agent sends, -1 if there is none. Raises UnavailableError when it is gone."""
    until = time.monotonic() + _PATIENCE_SECONDS
    while (left := until - time.monotonic()) > 0 and _disturbed(channel, left):
        data, descriptors, _, _ = socket.recv_fds(channel, _MOST_MESSAGE, 1, socket.MSG_CMSG_CLOEXEC)
        if not data:
            raise UnavailableError("the agent has ended.")
        if descriptors:
            return descriptors[0]
    return -1


def _completed(header: Mapping[str, Any], order: Order) -> dict[str, Any]:
    """Return the header of both: what the agent's tables hold is in it, too, and the agent is who records."""
    every = all_probes()
    own = describe([every[name] for name in order.probes if name in every])
    deep = [probe for probe in header["probes"] if probe["name"] not in order.probes]
    return {**header, "probes": [*own, *deep], "pid": order.pid}


def _decoded(frame: Frame) -> list[Window]:
    if frame.kind != Kind.WINDOWS:
        return []
    try:
        # Copied out of the frame: nothing of it is kept.
        return [replace(window, rows=window.rows.copy()) for window in FrameDecoder().windows(frame)]
    except RecordingError:
        return []
