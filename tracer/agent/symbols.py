"""Names of kernel code for alerts: known before anything happens, and never looked up on an alert's way out."""

from __future__ import annotations

import time

import numpy as np

from tracer.kernel.symbols.kallsyms import KERNEL, UNKNOWN, Kallsyms

__all__ = ["Symbols"]

_READ_AGAIN_SECONDS = 60.0


class Symbols:
    """The kernel's symbols, read once; forked processes share them."""

    def __init__(self) -> None:
        self._kallsyms = Kallsyms.of_running_kernel()
        self._read_at = time.monotonic()
        self._unknown = False

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
        return name.decode(errors="replace"), "" if module == KERNEL else module.decode(errors="replace").strip("[]")

    def refresh(self) -> None:
        """Read them again if a name was missing: of a module loaded since. Takes 0.1 s, once a minute at most."""
        if self._unknown and not self.hidden and time.monotonic() > self._read_at + _READ_AGAIN_SECONDS:
            self._kallsyms, self._read_at = Kallsyms.of_running_kernel(), time.monotonic()
        self._unknown = False
