"""One program: functions by address, asked for while it runs, or found by what it is known to have had in memory."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from tracer import brackets
from tracer.kernel.symbols.dictionary import Symbol
from tracer.kernel.symbols.files import Files
from tracer.kernel.symbols.jit import JitMap
from tracer.kernel.symbols.mappings import ANONYMOUS, Mapping, Mappings

__all__ = ["NOWHERE", "Process", "identity_of"]

#: An address in no executable memory.
NOWHERE: Symbol = (b"", brackets.UNKNOWN.encode())
#: An address in anonymous memory that no perf map tells of.
_UNTOLD: Symbol = (ANONYMOUS, ANONYMOUS)

MAX_ADDRESSES = 1 << 14  # remembered per process
_LONGEST = 128  # of a file's name: what stands behind it is not to be cut off

#: What tells a program from the next one with the same pid: start time, where code, data and stack lie.
Identity = tuple[bytes, ...]
_PAST: Identity = ()


class Process:
    """One program: from exec to exec or exit. Of one of the past only ``mappings`` are known, and are not asked for."""

    def __init__(self, pid: int, identity: Identity = _PAST, mappings: Mappings | None = None) -> None:
        self.identity = identity
        #: Whether it was sure to be the program meant when it was asked who it is.
        self.confirmed = False
        self.jit: JitMap | None = None
        self._pid = pid
        self._proc = f"/proc/{pid}" if identity != _PAST else ""
        self._mappings = mappings or Mappings()
        self._known: dict[int, Symbol] = {}

    def resolve(self, addresses: Iterable[int], files: Files) -> dict[int, Symbol]:
        """Return each address's module, function or ``[unknown module+0x…]``, and the file's build id if it has one."""
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

    def mappings(self) -> Mappings:
        """Return what it has in memory; of one that is gone or another program, what was known of it: maybe nothing."""
        self._read_mappings()
        return self._mappings

    def end(self, later: Iterable[Mapping]) -> None:
        """Note that it has ended, or is another program now; ``later`` is what it had mapped meanwhile."""
        if self.identity != _PAST:
            self.identity, self._proc = _PAST, ""
            self._mappings = self._mappings.overlaid(later)

    def _read_mappings(self) -> None:
        with suppress(OSError):  # it just ended: what was known of it still holds
            if not self._proc:
                return
            found = Mappings.parse(Path(self._proc, "maps").read_bytes())
            # Of a zombie they are empty, after an exec the next program's: what was known still holds then, too.
            if self.identity == identity_of(self._pid):
                self._mappings = found

    def _read_jit(self) -> None:
        with suppress(OSError):
            if not self._proc:
                return
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
        names, build_id = [b""] * len(addresses), mapping.build_id if mapping else b""
        if mapping and mapping.has_file:
            with suppress(OSError, ValueError):
                names, build_id = files.resolve(self._proc, mapping, addresses)
        if self.jit and mapping and mapping.may_be_made:
            names = [name or self.jit.resolve(address) for name, address in zip(names, addresses, strict=True)]
        return names, build_id


def identity_of(pid: int) -> Identity | None:
    """Return fields 22, 26 to 28 and 45 to 47 of /proc/PID/stat; None of a process that is gone. Source: proc(5).

    starttime, startcode, endcode, startstack, start_data, end_data, start_brk.
    """
    try:
        # Counted from behind the name, which may hold anything.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    if fields[0] in (b"Z", b"X"):
        return None
    return (fields[19], *fields[23:26], *fields[42:45])


def _symbol(mapping: Mapping | None, address: int, name: bytes, build_id: bytes) -> Symbol:
    if mapping is None:
        return NOWHERE
    if not name:
        # Where anonymous memory lies says nothing, and would make a frame of every address.
        name = mapping.module
        if mapping.path.startswith(b"/"):
            name = b"[unknown %b+%#x]" % (name[:_LONGEST], address - mapping.start + mapping.offset)
    return (mapping.module, name, build_id) if build_id else (mapping.module, name)
