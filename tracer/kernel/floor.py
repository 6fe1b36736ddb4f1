"""The least a BPF program can cost here: one that does nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from tracer.kernel.loader import syscalls

__all__ = ["accounting", "empty_program"]

# r0 = 0; exit
_NOTHING = bytes.fromhex("b700000000000000 9500000000000000")


@contextmanager
def empty_program() -> Iterator[int]:
    """Attach a program that does nothing to context switches; yield its descriptor. Raises OSError."""
    program = syscalls.load_program(syscalls.PROG_TYPE_RAW_TRACEPOINT, _NOTHING, "floor")
    try:
        link = syscalls.attach_raw_tracepoint(program, "sched_switch")
        try:
            yield program
        finally:
            os.close(link)
    finally:
        os.close(program)


@contextmanager
def accounting() -> Iterator[None]:
    """Have the kernel account for the run time of BPF programs. Raises OSError (before v5.8, or not root)."""
    stats = syscalls.enable_stats()
    try:
        yield
    finally:
        os.close(stats)
