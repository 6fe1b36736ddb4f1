"""Get the loader going before this process has imported what it needs itself: that takes as long."""

from __future__ import annotations

import contextlib

from tracer.errors import UnavailableError

__all__ = ["start_early"]


def start_early() -> None:
    """Start the loader child, if there is one to be had; whoever attaches says what is missing."""
    from tracer.kernel import child, privilege
    from tracer.kernel.interpreter import find_interpreter

    with contextlib.suppress(UnavailableError):
        if privilege.may_trace():
            child.start_early(find_interpreter())
