"""The kernel's part of stacks, without the tracer's own frames."""

from __future__ import annotations

import time
import weakref

import numpy as np

from tracer.kernel.symbols.dictionary import Part
from tracer.kernel.symbols.kallsyms import KERNEL, UNKNOWN, Kallsyms, Symbol

__all__ = ["KernelStacks", "without_tracer"]

_MAX_PARTS = 1 << 14
_READ_AGAIN_SECONDS = 60.0
#: Symbols that somebody else here has read so lately need not be read again: that takes 0.1 s, and they 6 MB.
_NEW_SECONDS = 5.0
_REACH = 1 << 31  # its code and that of modules lie no further apart: calls reach no further

# What lies between a tracepoint and the program that takes the stack.
_OWN = (b"bpf_prog_", b"bpf_trace_run", b"__bpf_trace_", b"__bpf_prog_", b"__traceiter_", b"bpf_trampoline_")
_OWN_DEPTH = 8


class KernelStacks:
    """Resolves stacks; /proc/kallsyms is read with the first one, and again when a frame is in something newer."""

    def __init__(self) -> None:
        self._symbols: Kallsyms | None = None
        self._read_at = 0.0
        self._start: int | None = None
        self._parts: dict[bytes, Part] = {}

    @property
    def hidden(self) -> bool:
        """The kernel does not show its addresses, so that every frame is unknown."""
        return self._symbols is not None and self._symbols.hidden

    def part(self, addresses: bytes) -> Part:
        """Return the frames of a stack, given as the bytes of its addresses."""
        part = self._parts.get(addresses)
        if part is None:
            if len(self._parts) >= _MAX_PARTS:
                self._parts.clear()
            part = self._parts[addresses] = Part(b"k", without_tracer(self._resolve(addresses)))
        return part

    def _resolve(self, addresses: bytes) -> list[Symbol]:
        calls = np.frombuffer(addresses, dtype="u8").copy()
        # Outer addresses are where frames return to, which may already be the next function.
        calls[1:] -= np.uint64(1)
        found = self._look_up(calls)
        if UNKNOWN in found and time.monotonic() > self._read_at + _READ_AGAIN_SECONDS:
            self._symbols = None
            found = self._look_up(calls)
        pairs = zip(found, calls.tolist(), strict=True)
        return [self._unknown(address) if symbol == UNKNOWN else symbol for symbol, address in pairs]

    def _look_up(self, calls: np.ndarray) -> list[Symbol]:
        if self._symbols is None:
            self._symbols, self._read_at = _newest()
            self._start = self._symbols.start
        return self._symbols.resolve(calls)

    def _unknown(self, address: int) -> Symbol:
        # From the kernel's beginning on: where that is has to stay secret, and a report is mailed.
        offset = -1 if self._start is None else address - self._start
        return (KERNEL, b"[unknown kernel+%#x]" % offset) if 0 <= offset < _REACH else UNKNOWN


_read: weakref.WeakKeyDictionary[Kallsyms, float] = weakref.WeakKeyDictionary()


def _newest() -> tuple[Kallsyms, float]:
    """Return the kernel's symbols and when they were read: those in use here, or new ones."""
    now = time.monotonic()
    for symbols, read_at in _read.items():
        if now < read_at + _NEW_SECONDS:
            return symbols, read_at
    symbols = Kallsyms.of_running_kernel()
    _read[symbols] = now
    return symbols, now


def without_tracer(symbols: list[Symbol]) -> list[Symbol]:
    """Cut the innermost frames that are the tracer's, known by the last of them: a program itself may have no name."""
    own = [place for place, (_, name) in enumerate(symbols[:_OWN_DEPTH]) if name.startswith(_OWN)]
    return symbols[own[-1] + 1 :] if own else symbols
