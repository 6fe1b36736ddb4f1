"""Names of kernel code for alerts: known before anything happens, and never looked up on an alert's way out.

The agent reads them, again when modules came or went; its sentinels have them by shared memory in the same moment.
"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import numpy as np

from tracer.agent.latest import Latest
from tracer.kernel.memlock import give_back_memory
from tracer.kernel.symbols.kallsyms import KERNEL, UNKNOWN, Kallsyms, Symbol

__all__ = ["Symbols"]

#: A module may be stuck from its first moment on: the first alert comes a second later.
_LOOK_SECONDS = 0.4
_CLOSE_SECONDS = 1.0
_READ_AGAIN_SECONDS = 60.0
_MODULES = "/proc/modules"
_TIME_BYTES = 8
_MOST_ASKED = 1024
#: Room for the names of modules to come: many times what is there at the start.
_ROOM = 4


class Symbols:
    """The kernel's symbols. Processes that are forked later have what ``refresh`` reads in the process that forked."""

    def __init__(self) -> None:
        self._listed, self._loaded = "", frozenset[tuple[str, str]]()
        self._modules = self._read_modules()
        now = _now()
        self._latest = Latest(_ROOM * len(now))
        self._latest.write(now)
        self._number, self._read_ns = 0, 0
        self._asked: dict[int, int] = {}
        self._kallsyms = self._newest()
        self._again_at = 0.0
        self._unknown = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="symbols", daemon=True)

    @property
    def hidden(self) -> bool:
        """The kernel shows no addresses (kernel.kptr_restrict), so that alerts have none of its names."""
        return self._kallsyms.hidden

    def keep(self) -> None:
        """Refresh them from now on, by a thread of its own, until ``close``."""
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(_CLOSE_SECONDS)

    def symbol(self, address: int) -> tuple[str, str]:
        """Return ``(symbol, module)`` as ``View.symbol`` does; of what is not known yet, the address as a number."""
        found = self._find(address)
        if found == UNKNOWN or not self._is_right(address, found[0]):
            self._unknown = True
            return f"{address:#x}", ""
        module, name = found
        return name.decode(errors="replace"), "" if module == KERNEL else module.decode(errors="replace").strip("[]")

    def refresh(self) -> None:
        """Read them again, which takes 0.1 s, if modules came or went.

        Also if a name was missing, once a minute at most: a BPF program's, for instance.
        """
        modules = self._read_modules()
        changed, self._modules = modules != self._modules, modules
        missing = self._unknown and not self.hidden and time.monotonic() >= self._again_at
        self._unknown = False
        if changed or missing:
            self._latest.write(_now())
            self._again_at = time.monotonic() + _READ_AGAIN_SECONDS
            give_back_memory()  # 30 MB, which reading takes for a moment

    def _keep(self) -> None:
        while not self._stop.wait(_LOOK_SECONDS):
            self.refresh()

    def _find(self, address: int) -> Symbol:
        while True:
            if self._latest.number != self._number:
                self._kallsyms = self._newest()
            found = self._kallsyms.resolve(np.array([address], dtype="u8"))[0]
            if self._latest.number == self._number:
                return found

    def _newest(self) -> Kallsyms:
        self._number, data = self._latest.read()
        # What was asked before the table before this is asked again: other code may be there.
        self._asked = {address: asked_ns for address, asked_ns in self._asked.items() if asked_ns >= self._read_ns}
        self._read_ns = int(np.frombuffer(data, "u8", 1)[0])
        return Kallsyms.of_packed(data[_TIME_BYTES:])

    def _is_right(self, address: int, module: bytes) -> bool:
        """Return whether a name of this module's is right: not so of code that others may have replaced unseen.

        The kernel tells no end of such code (BPF programs). A table that was read since the address was seen has it:
        the code was there already.
        """
        if module == KERNEL or self._kallsyms.has_end(module):
            return True
        if len(self._asked) < _MOST_ASKED:
            self._asked.setdefault(address, time.monotonic_ns())
        return address in self._asked and self._asked[address] < self._read_ns

    def _read_modules(self) -> frozenset[tuple[str, str]]:
        """Return names and addresses; how often they are used changes all the time. Source: proc_modules(5)."""
        listed = _listing()
        if listed != self._listed:
            fields = [line.split() for line in listed.splitlines()]
            self._listed, self._loaded = listed, frozenset((each[0], each[5]) for each in fields if len(each) > 5)
        return self._loaded


def _now() -> bytes:
    """Return all symbols, packed, and before them when they were read: CLOCK_MONOTONIC ns."""
    began_ns = time.monotonic_ns()
    return began_ns.to_bytes(_TIME_BYTES, sys.byteorder) + Kallsyms.of_running_kernel().packed()


def _listing() -> str:
    # To its end, which is not one read: the kernel gives a page at a time.
    try:
        return Path(_MODULES).read_text(errors="replace")
    except OSError:
        return ""
