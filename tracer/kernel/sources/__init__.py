"""Sources: what is polled once per interval instead of counted by a program of ours. One module per probe."""

from __future__ import annotations

from importlib import import_module

from tracer.probe import Probe

__all__ = ["refusal"]


def refusal(probe: Probe) -> str:
    """Return why the probe's source can't start in this process; "" if it can, and for a probe without one."""
    reason: str = import_module(f"{__name__}.{probe.source}").refusal() if probe.source else ""
    return reason
