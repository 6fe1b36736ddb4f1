"""The writer's process: takes frames from the queue and makes them durable, alone with the disk. Standard library only.

It may hang in the kernel for as long as the disk does. It holds nothing of the recorder's but the queue, and ends when
the other end of the pipe is gone, with everything on disk that was handed over.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from typing import Any

from tracer.blackbox.layout import Geometry
from tracer.blackbox.log import File, Log
from tracer.blackbox.queue import Message, Receiver
from tracer.blackbox.store import Claim, claim
from tracer.errors import OutputError

__all__ = ["main"]


def main() -> None:
    """Write the box that the first argument describes, as JSON; the answer on standard output is JSON, too."""
    # Its end comes with the pipe's; a signal to the whole group or service must not come first.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    order: dict[str, Any] = json.loads(sys.argv[2])
    geometry = Geometry(order["segment_bytes"], order["segments"])
    try:
        claimed = claim(order["path"], geometry, order["boot_id"], order["run"])
    except OutputError as error:
        _answer({"error": error.message, "hint": error.hint})
        return
    _answer({"notes": claimed.notes})
    _write(Receiver(order["memory_fd"], order["wake_fd"]), claimed, geometry, order)


def _answer(words: dict[str, Any]) -> None:
    # After some seconds nobody waits for it any more.
    with contextlib.suppress(BrokenPipeError):
        os.write(1, json.dumps(words).encode() + b"\n")
    # Whoever reads it waits for its end, and nothing else is ever said.
    null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    os.dup2(null, 1)
    os.close(null)


def _write(receiver: Receiver, claimed: Claim, geometry: Geometry, order: dict[str, Any]) -> None:
    log: Log | None = None
    durable = lost = 0
    for batch in receiver.batches():
        if log is None:
            # The first message is the recording's header.
            header = bytes(batch.pop(0).frame)
            log = Log(
                File(claimed.fd), geometry, header,
                run=order["run"], boot_id=order["boot_id"], at=claimed.position,
            )  # fmt: skip
        written, error = _append(log, batch)
        durable, lost = durable + written, lost + len(batch) - written
        receiver.say(serial=log.position.serial, durable=durable, lost=lost, **({"error": error} if error else {}))


def _append(log: Log, batch: list[Message]) -> tuple[int, int]:
    """Write a batch and wait for the disk once. Return how many are durable, and what the disk said."""
    written, refused = 0, 0
    for one in batch:
        try:
            log.append(one.frame, one.kind, one.dropped, one.monotonic_ns, one.unix_ns)
            written += 1
        except OSError as error:
            refused = error.errno or 5
    try:
        log.sync()
    except OSError as error:
        return 0, error.errno or 5
    return written, refused
