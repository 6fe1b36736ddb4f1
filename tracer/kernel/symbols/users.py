"""The processes' part of stacks, asked for on a thread that may hang without hanging the collector.

/proc/PID/maps waits for a lock of that process, a file may lie on a server that is gone.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np

from tracer import brackets
from tracer.kernel.cpus import in_host_pids
from tracer.kernel.patience import Patience
from tracer.kernel.sideband import EXEC
from tracer.kernel.symbols.dictionary import Part, Symbol
from tracer.kernel.symbols.history import UNKNOWN, History
from tracer.kernel.symbols.process import NOWHERE
from tracer.kernel.symbols.processes import Processes

__all__ = ["ENDED", "LATE", "UserStacks"]

#: In place of the frames of a process that ended first, or whose answer didn't come in time.
ENDED = Part(b"u", [(b"", brackets.PROCESS_ENDED.encode())])
#: In place of the frames of processes that go by other pids here.
FOREIGN = Part(b"u", [(b"", brackets.FOREIGN.encode())])
LATE = Part(b"u", [(b"", brackets.LATE.encode())])

#: A process, and when it began to be that program.
Program = tuple[int, int]

_PATIENCE_SECONDS = 0.5
_BUDGET_SECONDS = 1.0


class UserStacks:
    """Resolves stacks of one process at a time, within a time that all of one interval's share."""

    def __init__(self, history: History | None = None) -> None:
        self._history = history
        self._processes = Processes(history)
        self._patience = Patience(self._answer, _PATIENCE_SECONDS)
        self._question: tuple[Program, Sequence[bytes]] = (0, 0), ()
        self.ended = 0
        self._until = 0.0
        self._foreign = not in_host_pids()

    def begin(self) -> None:
        """Start an interval's share of time; ``ended`` counts its stacks of which nobody knows any more."""
        self._until = time.monotonic() + _BUDGET_SECONDS
        self.ended = 0
        if self._history:
            self._history.update()

    def program(self, pid: int, time_ns: int) -> Program:
        """Return which of its programs a process was then: stacks of different ones are asked for apart."""
        return pid, self._history.at(pid, time_ns) if self._history else 0

    def parts(self, wanted: Mapping[Program, Sequence[tuple[bytes, bytes]]]) -> dict[Program, list[Part]]:
        """Return the frames of each program's stacks, given as the bytes of their addresses and their thread's name.

        The name stands for the frames of a program that is not known any more.
        """
        addresses = {program: [stack for stack, _ in named] for program, named in wanted.items()}
        found = {program: self._asked(program, stacks) for program, stacks in addresses.items()}
        if self._history:
            # Who was asked may have been the next one already, or have ended, which its records are told by now.
            self._history.update()
            for program, stacks in addresses.items():
                ended = found[program][:1] == [ENDED] and program[1] != UNKNOWN
                if ended or not self._processes.confirm(*program):
                    found[program] = self._asked(program, stacks)
        for program, parts in found.items():
            if parts[:1] == [ENDED]:
                self.ended += len(parts)
                if why := self._why_another(program):
                    found[program] = [
                        Part(b"u", [(b"", b"%b%b]" % (why.encode(), comm))]) for _, comm in wanted[program]
                    ]
        return found

    def _why_another(self, program: Program) -> str:
        """Return what to call a program that can't be asked because its process is, or may be, another one."""
        if not self._history:
            return ""
        if program[1] == UNKNOWN:
            return brackets.UNRECORDED
        return brackets.BEFORE_EXEC if self._history.next(*program) == EXEC else ""

    def _asked(self, program: Program, stacks: Sequence[bytes]) -> list[Part]:
        if self._foreign:
            return [FOREIGN] * len(stacks)
        if time.monotonic() > self._until:
            return [LATE] * len(stacks)
        # The thread may still be busy with an earlier question: a tuple is replaced as a whole.
        self._question = program, stacks
        answer = self._patience.ask()
        return [LATE] * len(stacks) if answer is None else answer

    def close(self) -> None:
        """End the thread."""
        self._patience.close()

    def _answer(self) -> list[Part]:
        (pid, start_ns), stacks = self._question
        addresses = [_calls(stack) for stack in stacks]
        symbols = self._processes.resolve(pid, {address for stack in addresses for address in stack}, start_ns)
        if symbols is None:
            return [ENDED] * len(stacks)
        return [Part(b"u", _frames(stack, symbols)) for stack in addresses]


def _calls(stack: bytes) -> list[int]:
    """Return where frames call from: what a stack holds is where they return to, maybe in the next function."""
    innermost, *outer = np.frombuffer(stack, dtype="u8").tolist()
    return [innermost, *(max(address - 1, 0) for address in outer)]


def _frames(stack: list[int], symbols: dict[int, Symbol]) -> list[Symbol]:
    """Return the frames; of callers in no code, which without frame pointers are accidents, one of those in a row."""
    innermost, *outer = stack
    ran = symbols[innermost]
    # There the CPU was, whatever it is now; where an accident points to would only make different stacks of one.
    frames: list[Symbol] = [(b"", b"[unknown %#x]" % innermost) if ran == NOWHERE else ran]
    for address in outer:
        frame = symbols[address]
        if frame != NOWHERE or frames[-1:] != [NOWHERE]:
            frames.append(frame)
    return frames
