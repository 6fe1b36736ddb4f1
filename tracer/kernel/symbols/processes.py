"""Functions of processes by address, asked for while the processes still run."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from tracer.kernel.symbols.dictionary import Symbol
from tracer.kernel.symbols.files import Files
from tracer.kernel.symbols.jit import JitMap
from tracer.kernel.symbols.mappings import ANONYMOUS, Mapping, Mappings

__all__ = ["NOWHERE", "Process", "Processes"]

#: An address in no executable memory.
NOWHERE: Symbol = (b"", b"[unknown]")
#: An address in anonymous memory that no perf map tells of.
_UNTOLD: Symbol = (ANONYMOUS, ANONYMOUS)

MAX_PROCESSES = 512
MAX_ADDRESSES = 1 << 14  # remembered per process
MAX_JIT_MAPS = 4

#: What tells a program image from the next one with the same pid: start time, and where code and stack begin.
Identity = tuple[bytes, bytes, bytes]


class Process:
    """One program image: from exec to exec or exit."""

    def __init__(self, pid: int, identity: Identity) -> None:
        self.identity = identity
        self.jit: JitMap | None = None
        self._pid = pid
        self._proc = f"/proc/{pid}"
        self._mappings = Mappings(b"")
        self._known: dict[int, Symbol] = {}

    def resolve(self, addresses: Iterable[int], files: Files) -> dict[int, Symbol]:
        """Return each address's module, function (or ``module+0xoffset``) and, if it has one, the file's build id."""
        wanted = set(addresses)
        new = [address for address in wanted if address not in self._known]
        if new:
            if any(self._mappings.find(address) is None for address in new):
                self._read_mappings()
            if len(self._known) + len(new) > MAX_ADDRESSES:
                self._known.clear()
                new = list(wanted)
            self._resolve(new, files)
        found = {address: self._known[address] for address in wanted}
        for address in new:
            if found[address] == _UNTOLD:  # the process may tell later what it has put there
                del self._known[address]
        return found

    def _read_mappings(self) -> None:
        with suppress(OSError):  # it just ended: what was known of it still holds
            self._mappings = Mappings(Path(self._proc, "maps").read_bytes())

    def _read_jit(self) -> None:
        with suppress(OSError):
            status = Path(self._proc, "status").read_bytes().splitlines()
            fields = {name: value.split() for name, _, value in (line.partition(b":") for line in status)}
            inner = int(fields.get(b"NSpid", [b"%d" % self._pid])[-1])
            self.jit = JitMap.of(self._proc, inner, int(fields[b"Uid"][1]), self.jit)

    def _resolve(self, addresses: list[int], files: Files) -> None:
        by_mapping: dict[Mapping | None, list[int]] = {}
        for address in addresses:
            by_mapping.setdefault(self._mappings.find(address), []).append(address)
        if any(mapping and mapping.may_be_made for mapping in by_mapping):
            self._read_jit()
        for mapping, inside in by_mapping.items():
            names, build_id = self._names(mapping, inside, files)
            for address, name in zip(inside, names, strict=True):
                self._known[address] = _symbol(mapping, address, name, build_id)

    def _names(self, mapping: Mapping | None, addresses: list[int], files: Files) -> tuple[list[bytes], bytes]:
        names, build_id = [b""] * len(addresses), b""
        if mapping and mapping.has_file:
            with suppress(OSError, ValueError):
                names, build_id = files.resolve(self._proc, mapping, addresses)
        if self.jit and mapping and mapping.may_be_made:
            names = [name or self.jit.resolve(address) for name, address in zip(names, addresses, strict=True)]
        return names, build_id


class Processes:
    """The processes seen last."""

    def __init__(self) -> None:
        self._processes: OrderedDict[int, Process] = OrderedDict()
        self._files = Files()

    def resolve(self, pid: int, addresses: Iterable[int]) -> dict[int, Symbol] | None:
        """Return module and function of each address of a process; None if it ended before anyone asked."""
        process = self._process(pid)
        return process.resolve(addresses, self._files) if process else None

    def _process(self, pid: int) -> Process | None:
        identity = _identity(pid)
        process = self._processes.get(pid)
        if identity and (process is None or process.identity != identity):
            process = self._processes[pid] = Process(pid, identity)
        if process:
            self._processes.move_to_end(pid)
            self._trim()
        return process

    def _trim(self) -> None:
        while len(self._processes) > MAX_PROCESSES:
            self._processes.popitem(last=False)
        with_jit = [process for process in self._processes.values() if process.jit]
        for process in with_jit[:-MAX_JIT_MAPS]:
            process.jit = None


def _identity(pid: int) -> Identity | None:
    """Return fields 22, 26 and 28 of /proc/PID/stat (starttime, startcode, startstack); source: proc(5)."""
    try:
        # Counted from behind the name, which may hold anything.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    if fields[0] in (b"Z", b"X"):
        return None
    return fields[19], fields[23], fields[25]


def _symbol(mapping: Mapping | None, address: int, name: bytes, build_id: bytes) -> Symbol:
    if mapping is None:
        return NOWHERE
    if not name:
        # Where anonymous memory lies says nothing, and would make a frame of every address.
        offset = b"+0x%x" % (address - mapping.start + mapping.offset) if mapping.path.startswith(b"/") else b""
        name = mapping.module + offset
    return (mapping.module, name, build_id) if build_id else (mapping.module, name)
