"""Functions of processes by address, asked for while the processes still run."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator

from tracer.kernel.sideband import EXEC, MAPPED
from tracer.kernel.symbols.dictionary import Symbol
from tracer.kernel.symbols.files import Files
from tracer.kernel.symbols.history import UNKNOWN, History
from tracer.kernel.symbols.mappings import Mappings
from tracer.kernel.symbols.process import Process, identity_of
from tracer.kernel.symbols.programs import Program

__all__ = ["Processes"]

MAX_PROCESSES = 512
MAX_JIT_MAPS = 4
_GENERATIONS = 8  # of processes that forked and are no other program


class Processes:
    """The programs seen last, with what ``history`` knows of those that can't be asked any more."""

    def __init__(self, history: History | None = None) -> None:
        self._processes: OrderedDict[tuple[int, int], Process] = OrderedDict()
        self._files = Files()
        self._history = history
        if history:
            history.witnesses.append(self._unchanged)

    def resolve(self, pid: int, addresses: Iterable[int], start_ns: int = 0) -> dict[int, Symbol] | None:
        """Return module and function of each address of a process; None if it ended before anyone asked.

        ``start_ns`` says which of the programs it has been, as ``History.at`` does. What is returned holds if
        ``confirm`` says so.
        """
        if start_ns == UNKNOWN:
            self._watch(pid)
            return None
        key = pid, start_ns
        living = self._living(key)
        if living:
            found = living.resolve(addresses, self._files)
            if living.identity == identity_of(pid):
                return found
            living.confirmed = False  # it ended, or is another program, and may have been already when it was asked
        past = self._past(key)
        return past.resolve(addresses, self._files) if past else None

    def confirm(self, pid: int, start_ns: int) -> bool:
        """Return whether who was asked was that program, by records until after that; else ask again."""
        process = self._processes.get((pid, start_ns))
        if self._history and process and process.identity and not process.confirmed:
            process.confirmed = self._history.is_latest(pid, start_ns)
            return process.confirmed
        return True

    def _unchanged(self) -> Iterator[tuple[int, int]]:
        for (pid, start_ns), process in list(self._processes.items()):
            if process.confirmed and process.identity and process.identity == identity_of(pid):
                yield pid, start_ns

    def _watch(self, pid: int) -> None:
        """Note which program a process is from now on: nobody knows for how long already."""
        assert self._history
        now_ns = time.monotonic_ns()
        identity = identity_of(pid)
        known = self._processes.get((pid, self._history.at(pid, now_ns)))
        if identity and (known is None or known.identity != identity):
            process = Process(pid, identity)
            process.confirmed = True
            self._kept((pid, now_ns), process)

    def _living(self, key: tuple[int, int]) -> Process | None:
        identity = identity_of(key[0]) if not self._history or self._history.is_latest(*key) else None
        process = self._processes.get(key)
        if process and process.confirmed and process.identity != identity:
            return None  # records will tell
        if identity and (process is None or process.identity != identity):
            process = Process(key[0], identity)
        return self._kept(key, process) if identity and process else None

    def _past(self, key: tuple[int, int]) -> Process | None:
        process = self._processes.get(key)
        if self._history and process and process.identity and not process.confirmed:
            process = None  # what it told may be the next one's
        if process:
            # Without a record of its end it may have ended long ago, and others have had its pid.
            if self._history and not self._history.is_recorded(*key):
                return None
            program = self._history.program(*key) if self._history else None
            process.end(program.mappings() if program else ())
        else:
            mappings = self._recorded(key)
            process = Process(key[0], mappings=mappings) if mappings else None
        return self._kept(key, process) if process else None

    def _recorded(self, key: tuple[int, int], until_ns: int | None = None, depth: int = 0) -> Mappings | None:
        """Return what a program had in memory, by records alone; None where those are not all."""
        program = self._history.program(*key) if self._history and depth < _GENERATIONS else None
        if not program or program.began == MAPPED:
            return None
        base = Mappings() if program.began == EXEC else self._inherited(program, depth)
        return None if base is None else base.overlaid(program.mappings(until_ns))

    def _inherited(self, program: Program, depth: int) -> Mappings | None:
        recorded = self._recorded(program.parent, program.start_ns, depth + 1)
        if recorded is not None:
            return recorded
        parent = self._living(program.parent) or self._processes.get(program.parent)
        if not parent or not self._history:
            return None
        found, since = parent.mappings(), self._history.program(*program.parent)
        if found.is_empty:
            return None  # it was gone before anyone asked
        return found.without(since.ranges_since(program.start_ns)) if since else found

    def _kept(self, key: tuple[int, int], process: Process) -> Process:
        self._processes[key] = process
        self._processes.move_to_end(key)
        self._trim()
        return process

    def _trim(self) -> None:
        while len(self._processes) > MAX_PROCESSES:
            self._processes.popitem(last=False)
        with_jit = [process for process in self._processes.values() if process.jit]
        for process in with_jit[:-MAX_JIT_MAPS]:
            process.jit = None
