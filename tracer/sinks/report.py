"""Where a sink's own trouble is told."""

from __future__ import annotations

import contextlib
from functools import cache

from tracer.escape import printable
from tracer.sinks.descriptors import Outlet, reopened

__all__ = ["to_stderr"]

_STDERR = 2


def to_stderr(line: str) -> None:
    """Print ``line``, made printable, on standard error; nowhere when that would block."""
    with contextlib.suppress(OSError):
        _stderr().write_now(f"foreshock: {printable(line)}\n".encode())


@cache
def _stderr() -> Outlet:
    return Outlet(reopened(_STDERR))
