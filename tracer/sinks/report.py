"""Where a sink's own trouble is told."""

from __future__ import annotations

import sys

from tracer.escape import printable

__all__ = ["to_stderr"]


def to_stderr(line: str) -> None:
    """Print ``line``, made printable, on standard error."""
    print(f"foreshock: {printable(line)}", file=sys.stderr, flush=True)
