"""The writer's process: takes frames from the queue and makes them durable, alone with the disk. Standard library only.

It may hang in the kernel for as long as the disk does. It holds nothing of the recorder's but the queue, and ends when
the other end of the pipe is gone, with everything on disk that was handed over. Where there is more than one CPU it
has a second hand on other CPUs, a process of its own, for when its own CPU is the one that is stuck.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tracer.blackbox.layout import Geometry
from tracer.blackbox.log import File, Log
from tracer.blackbox.queue import HANDS, Message, Receiver, State
from tracer.blackbox.store import Claim, claim
from tracer.errors import OutputError
from tracer.kernel.memlock import lock_memory
from tracer.kernel.processes import own_name, take_priority

__all__ = ["main"]


def main() -> None:
    """Write the box that the first argument describes, as JSON; the answer on standard output is JSON, too."""
    # Its end comes with the pipe's; a signal to the whole group or service must not come first.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    order: dict[str, Any] = json.loads(sys.argv[2])
    geometry = Geometry(order["segment_bytes"], order["segments"])
    cpus = sorted(os.sched_getaffinity(0))
    hands = min(HANDS, len(cpus))
    try:
        claimed = claim(order["path"], geometry, order["boot_id"], order["run"], hands)
    except OutputError as error:
        _answer({"error": error.message, "hint": error.hint})
        return
    _answer({"notes": claimed.notes})
    parent = os.getpid()
    helper = os.fork() if hands > 1 else -1
    hand = int(helper == 0)
    os.sched_setaffinity(0, cpus[hand::hands])
    # Neither a node without memory nor one without a free CPU may keep it from its work, as far as that is allowed.
    own_name("foreshock")
    lock_memory()
    take_priority()
    is_alone = (lambda: os.getppid() != parent) if hand else (lambda: helper > 0 and _has_ended(helper))
    _write(Receiver(order["memory_fd"], order["wake_fd"], hand), claimed, geometry, order, hand, is_alone)
    if helper > 0:
        # The box is free when both have let go of it.
        with contextlib.suppress(ChildProcessError):
            os.waitpid(helper, 0)


def _has_ended(helper: int) -> bool:
    try:
        return os.waitpid(helper, os.WNOHANG) != (0, 0)
    except ChildProcessError:
        return True  # seen before


def _answer(words: dict[str, Any]) -> None:
    # After some seconds nobody waits for it any more.
    with contextlib.suppress(BrokenPipeError):
        os.write(1, json.dumps(words).encode() + b"\n")
    # Whoever reads it waits for its end, and nothing else is ever said.
    null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    os.dup2(null, 1)
    os.close(null)


def _write(
    receiver: Receiver,
    claimed: Claim,
    geometry: Geometry,
    order: dict[str, Any],
    hand: int,
    is_alone: Callable[[], bool],
) -> None:
    at, run, boot_id = claimed.positions[hand], order["run"], order["boot_id"]
    log = Log(File(claimed.fd), geometry, receiver.header, run=run, boot_id=boot_id, at=at)
    state = State()
    # Of two hands one alone would go unnoticed: it ends, and two others are started.
    for batch in receiver.batches(is_alone):
        written, error = _append(log, batch)
        state = state.plus(State(0, written, len(batch) - written))
        state = replace(state, serial=at.serial, error=error or state.error)
        receiver.say(state)


def _append(log: Log, batch: list[Message]) -> tuple[int, int]:
    """Write a batch and wait for the disk once. Return how many are durable, and what the disk said."""
    written, refused = 0, 0
    for one in batch:
        try:
            log.append(one.frame, one.note)
            written += 1
        except OSError as error:
            refused = error.errno or 5
    try:
        log.sync()
    except OSError as error:
        return 0, error.errno or 5
    return written, refused
