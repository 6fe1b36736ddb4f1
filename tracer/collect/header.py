"""What a recording says about itself before the first interval."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import tracer
from tracer.escape import printable
from tracer.kernel import cpus
from tracer.kernel.clock import offset_ns
from tracer.kernel.fingerprint import read_fingerprint
from tracer.kernel.session import Session
from tracer.probe import Clock, Probe

__all__ = ["command_line", "describe", "recording_header"]

_MOST_ARGUMENTS, _LONGEST = 64, 200
#: A sink's address may be all it takes to send there.
_SECRET = re.compile(r"(\w://)(?:[^/@\s]*@)?([^/?#\s]*)\S*")


def recording_header(
    session: Session,
    interval_ns: int,
    filters: Mapping[str, str],
    labels: Mapping[str, str],
    restricted: Mapping[str, object],
) -> dict[str, Any]:
    """Return the header: who recorded what where, as plain values. ``restricted`` as in ``read_fingerprint``."""
    fingerprint = read_fingerprint(restricted=restricted)
    kernel = fingerprint.get("kernel")
    boot_id = kernel.get("boot_id", "") if isinstance(kernel, dict) else ""
    return {
        "tool": "foreshock",
        "version": tracer.__version__,
        # The kernel tells pids of the host: in another namespace ours would be somebody else's.
        "pid": os.getpid() if cpus.in_host_pids() else 0,
        "host": os.uname().nodename,
        "kernel": os.uname().release,
        "architecture": os.uname().machine,
        "boot_id": boot_id,
        "command": command_line(sys.argv),
        "cpus": session.options.cpu_count,
        "interval_ns": interval_ns,
        "clock_offset_ns": offset_ns()[0],
        "filters": dict(filters),
        "labels": dict(labels),
        "probes": describe(session.probes),
        "refused": dict(session.refused),
        "missing": [list(item) for item in session.missing],
        "fingerprint": fingerprint,
    }


def command_line(arguments: Sequence[str]) -> list[str]:
    """Return what was typed, without our own path: 64 arguments of 200 printable characters at most.

    Of URLs the scheme and the host remain.
    """
    shown = [_SECRET.sub(r"\1\2/…", printable(one)) for one in arguments[1 : _MOST_ARGUMENTS + 1]]
    cut = ["…"] if len(arguments) > _MOST_ARGUMENTS + 1 else []
    return ["foreshock", *(f"{one[:_LONGEST]}…" if len(one) > _LONGEST else one for one in shown), *cut]


def describe(probes: Sequence[Probe]) -> list[dict[str, Any]]:
    """Return the probes' declarations as plain values: what each table holds, in which units."""
    return [
        {
            "name": probe.name,
            "summary": probe.summary,
            "tier": probe.tier,
            "settings": dict(probe.settings),
            **_clock(probe),
            "tables": [
                {
                    "name": table.name,
                    "help": table.help,
                    "columns": [[column.name, column.unit, column.help] for column in table.columns],
                }
                for table in probe.tables
            ],
        }
        for probe in probes
    ]


def _clock(probe: Probe) -> dict[str, int]:
    """Return how often a second a probe samples, if it does."""
    return next(({"clock_hz": hook.hz} for hook in probe.hooks if isinstance(hook, Clock)), {})
