"""The kernel's functions by address, from /proc/kallsyms.

Sorted addresses, and all names in one block of bytes: 120,000 symbols take 6 MB.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tracer import brackets

__all__ = ["KERNEL", "Kallsyms", "Symbol"]

#: Module and function, e.g. ``(b"[kernel]", b"schedule")``.
Symbol = tuple[bytes, bytes]

KERNEL = brackets.KERNEL.encode()
UNKNOWN: Symbol = (KERNEL, brackets.UNKNOWN.encode())

# "ffffffff81000000 T _text\n", a module's with a tab and its name in brackets behind.
_DIGITS = 16
_NAME = _DIGITS + 3
_TEXT = np.zeros(256, dtype=bool)
_TEXT[[*b"tTwW"]] = True

#: With its module. Source: KSYM_NAME_LEN and MODULE_NAME_LEN.
_LONGEST_NAME = 1024
_HEAD = 4 * 8

# No function is longer: what lies further behind a symbol is code without one (e.g. a BPF program, by sysctl).
_LONGEST = 1 << 18


class Kallsyms:
    """Symbols of one moment; modules and BPF programs loaded later aren't in it.

    ``hidden`` says that the kernel shows no addresses (kernel.kptr_restrict), so that nothing is found.
    ``modules`` is /proc/modules as it is: what lies behind a module is another's, loaded later.
    """

    def __init__(self, text: bytes, modules: bytes = b"") -> None:
        self._addresses, self._starts, names, self.hidden = _parse(text)
        self._names: bytes | memoryview = names
        self._ends = _module_ends(modules)

    @classmethod
    def of_running_kernel(cls, path: Path = Path("/proc/kallsyms"), modules: Path = Path("/proc/modules")) -> Kallsyms:
        """Read the files; takes about 0.1 s. Without permission the symbols are hidden."""
        return cls(_read(path), _read(modules))

    @classmethod
    def of_packed(cls, data: memoryview) -> Kallsyms:
        """Return what ``packed`` made, without copying it: ``data`` has to stay as it is."""
        count, names, ends, hidden = (int(each) for each in np.frombuffer(data, "u8", 4))
        starts_at = _HEAD + 8 * count
        names_at = starts_at + 4 * count
        made = cls(b"")
        made._addresses = np.frombuffer(data, np.uint64, count, _HEAD)
        made._starts = np.frombuffer(data, np.uint32, count, starts_at)
        made._names, made.hidden = data[names_at : names_at + names], bool(hidden)
        lines = bytes(data[names_at + names : names_at + names + ends]).splitlines()
        made._ends = {name: int(end) for name, end in (line.rsplit(maxsplit=1) for line in lines)}
        return made

    def packed(self) -> bytes:
        """Return everything as one block of bytes, for other processes."""
        ends = b"".join(b"%b %d\n" % each for each in self._ends.items())
        head = np.array([len(self), len(self._names), len(ends), self.hidden], "u8")
        return b"".join((head.tobytes(), self._addresses.tobytes(), self._starts.tobytes(), self._names, ends))

    def __len__(self) -> int:
        return len(self._addresses)

    @property
    def size_bytes(self) -> int:
        """Memory the symbols take."""
        return self._addresses.nbytes + self._starts.nbytes + len(self._names)

    @property
    def start(self) -> int | None:
        """Where the kernel's own code begins, which moves with each boot; None where it isn't told."""
        place = bytes(self._names).find(b"\n_text\n") + 1
        found = self._addresses[self._starts == place]
        return int(found[0]) if place and len(found) else None

    def has_end(self, module: bytes) -> bool:
        """Return whether it is known where a module's code ends; not so of BPF programs (``[bpf]``) and trampolines."""
        return module in self._ends

    def resolve(self, addresses: npt.NDArray[np.uint64]) -> list[Symbol]:
        """Return the module and the function of each address, ``UNKNOWN`` where there is none."""
        places = np.searchsorted(self._addresses, addresses, side="right") - 1
        return [self._symbol(int(place), int(address)) for place, address in zip(places, addresses, strict=True)]

    def _symbol(self, place: int, address: int) -> Symbol:
        if place < 0 or address - int(self._addresses[place]) >= _LONGEST:
            return UNKNOWN
        start = int(self._starts[place])
        line = bytes(self._names[start : start + _LONGEST_NAME]).partition(b"\n")[0]
        name, _, module = line.partition(b"\t")
        # A module's initialisation lies elsewhere, and may run right now.
        if module and int(self._addresses[place]) < self._ends.get(module, 0) <= address:
            return UNKNOWN
        return module or KERNEL, name


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _module_ends(modules: bytes) -> Mapping[bytes, int]:
    """Return where each module ends, by its name as kallsyms has it. Source: proc_modules(5): size and address."""
    lines = [line.split() for line in modules.splitlines()]
    return {b"[%s]" % line[0]: int(line[1]) + int(line[5], 16) for line in lines if len(line) > 5}


def _parse(text: bytes) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32], bytes, bool]:
    """Return sorted addresses, where their names start, the names (each ends with a newline), and if all were zero.

    All lines at once: one by one they would take half a second and 60 MB.
    """
    if text and not text.endswith(b"\n"):
        text += b"\n"
    data: npt.NDArray[np.uint8] = np.frombuffer(text, dtype=np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    begins = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
    whole = ends - begins > _NAME
    begins, ends = begins[whole], ends[whole]
    chosen = _TEXT[data[begins + _DIGITS + 1]]
    begins, ends = begins[chosen], ends[chosen]
    addresses = np.zeros(len(begins), dtype=np.uint64)
    for place in range(_DIGITS):
        digit = data[begins + place].astype(np.uint64)
        addresses = addresses << np.uint64(4) | np.where(digit > ord("9"), digit - np.uint64(87), digit - np.uint64(48))
    shown = addresses > 0
    if not shown.any():
        return addresses[:0], np.zeros(0, dtype=np.uint32), b"", True
    begins, ends, addresses = begins[shown], ends[shown], addresses[shown]
    # +1 where a name begins, -1 behind its newline: the running sum marks the names.
    marks = np.zeros(len(data) + 1, dtype=np.int8)
    marks[begins + _NAME] += 1
    marks[ends + 1] -= 1
    names = data[np.cumsum(marks[:-1], dtype=np.int8) > 0].tobytes()
    lengths = ends + 1 - (begins + _NAME)
    starts = (np.cumsum(lengths) - lengths).astype(np.uint32)
    order = np.argsort(addresses, kind="stable")
    # Of several names of one address the last: aliases come first (srso_alias_untrain_ret, _stext, _text).
    return addresses[order], starts[order], names, False
