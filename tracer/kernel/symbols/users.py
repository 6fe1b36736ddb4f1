"""The processes' part of stacks, asked for on a thread that may hang without hanging the collector.

/proc/PID/maps waits for a lock of that process, a file may lie on a server that is gone.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from tracer.kernel.cpus import in_host_pids
from tracer.kernel.patience import Patience
from tracer.kernel.symbols.dictionary import Part, Symbol
from tracer.kernel.symbols.processes import NOWHERE, Processes

__all__ = ["ENDED", "LATE", "UserStacks"]

#: In place of the frames of a process that ended first, or whose answer didn't come in time.
ENDED = Part(b"u", [(b"", b"[process ended]")])
#: In place of the frames of processes that go by other pids here.
FOREIGN = Part(b"u", [(b"", b"[another pid namespace]")])
LATE = Part(b"u", [(b"", b"[symbols late]")])

_PATIENCE_SECONDS = 0.5
_BUDGET_SECONDS = 1.0


class UserStacks:
    """Resolves stacks of one process at a time, within a time that all of one interval's share."""

    def __init__(self) -> None:
        self._processes = Processes()
        self._patience = Patience(self._answer, _PATIENCE_SECONDS)
        self._question: tuple[int, Sequence[bytes]] = (0, ())
        self._until = 0.0
        self._foreign = not in_host_pids()

    def begin(self) -> None:
        """Start an interval's share of time."""
        self._until = time.monotonic() + _BUDGET_SECONDS

    def parts(self, pid: int, stacks: Sequence[bytes]) -> list[Part]:
        """Return the frames of each stack, given as the bytes of its addresses."""
        if self._foreign:
            return [FOREIGN] * len(stacks)
        if time.monotonic() > self._until:
            return [LATE] * len(stacks)
        # The thread may still be busy with an earlier question: a tuple is replaced as a whole.
        self._question = pid, stacks
        answer = self._patience.ask()
        return [LATE] * len(stacks) if answer is None else answer

    def close(self) -> None:
        """End the thread."""
        self._patience.close()

    def _answer(self) -> list[Part]:
        pid, stacks = self._question
        addresses = [_calls(stack) for stack in stacks]
        symbols = self._processes.resolve(pid, {address for stack in addresses for address in stack})
        if symbols is None:
            return [ENDED] * len(stacks)
        return [Part(b"u", _frames(stack, symbols)) for stack in addresses]


def _calls(stack: bytes) -> list[int]:
    """Return where frames call from: what a stack holds is where they return to, maybe in the next function."""
    innermost, *outer = np.frombuffer(stack, dtype="u8").tolist()
    return [innermost, *(max(address - 1, 0) for address in outer)]


def _frames(stack: list[int], symbols: dict[int, Symbol]) -> list[Symbol]:
    """Return the frames, of consecutive unknown ones the first: without frame pointers they're accidents."""
    frames: list[Symbol] = []
    for address in stack:
        frame = symbols[address]
        if frame != NOWHERE or frames[-1:] != [NOWHERE]:
            frames.append(frame)
    return frames
