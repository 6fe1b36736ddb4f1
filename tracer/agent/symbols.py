"""Names of kernel code for alerts: known before anything happens, and never looked up on an alert's way out."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from tracer.kernel.memlock import give_back_memory
from tracer.kernel.symbols.kallsyms import KERNEL, UNKNOWN, Kallsyms

__all__ = ["Symbols"]

_READ_AGAIN_SECONDS = 60.0
_MODULES = "/proc/modules"
_MOST_ASKED = 1024


class Symbols:
    """The kernel's symbols; forked processes share what was read before."""

    def __init__(self) -> None:
        self._listed, self._loaded = "", frozenset[tuple[str, str]]()
        self._modules = self._read_modules()
        self._kallsyms = Kallsyms.of_running_kernel()
        self._again_at = 0.0
        self._unknown = False
        self._asked: set[int] = set()
        self._settled: set[int] = set()

    @property
    def hidden(self) -> bool:
        """The kernel shows no addresses (kernel.kptr_restrict), so that alerts have none of its names."""
        return self._kallsyms.hidden

    def symbol(self, address: int) -> tuple[str, str]:
        """Return ``(symbol, module)`` as ``View.symbol`` does; of what is not known yet, the address as a number."""
        found = self._kallsyms.resolve(np.array([address], dtype="u8"))[0]
        if found == UNKNOWN:
            self._unknown = True
            return f"{address:#x}", ""
        module, name = found
        if self._comes_and_goes(module) and address not in self._settled:
            self._unknown = True
            if len(self._asked) < _MOST_ASKED:
                self._asked.add(address)
            return f"{address:#x}", ""
        return name.decode(errors="replace"), "" if module == KERNEL else module.decode(errors="replace").strip("[]")

    def refresh(self) -> bool:
        """Read them again, which takes 0.1 s, if modules came or went; return whether they did.

        Also if a name was missing, once a minute at most: a BPF program's, for instance.
        """
        modules = self._read_modules()
        changed, self._modules = modules != self._modules, modules
        missing = self._unknown and not self.hidden and time.monotonic() >= self._again_at
        self._unknown = False
        if changed or missing:
            self._settled, self._asked = self._asked, set()
            self._kallsyms, self._again_at = Kallsyms.of_running_kernel(), time.monotonic() + _READ_AGAIN_SECONDS
            give_back_memory()  # 30 MB, which reading takes for a moment
        return changed

    def _comes_and_goes(self, module: bytes) -> bool:
        """Return whether this is code of which the kernel tells no end, and that others replace unseen.

        A name of theirs is right in a table that was read since the address was seen: the code was there already.
        """
        return module != KERNEL and not self._kallsyms.has_end(module)

    def _read_modules(self) -> frozenset[tuple[str, str]]:
        """Return names and addresses; how often they are used changes all the time. Source: proc_modules(5)."""
        listed = _listing()
        if listed != self._listed:
            fields = [line.split() for line in listed.splitlines()]
            self._listed, self._loaded = listed, frozenset((each[0], each[5]) for each in fields if len(each) > 5)
        return self._loaded


def _listing() -> str:
    # To its end, which is not one read: the kernel gives a page at a time.
    try:
        return Path(_MODULES).read_text(errors="replace")
    except OSError:
        return ""
