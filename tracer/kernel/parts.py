"""Which tracepoints of the probes this kernel lacks: what each adds is left out, the rest runs."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from tracer.kernel.checks import Check
from tracer.kernel.loader.btf import Btf
from tracer.probe import Probe, Tracepoint

__all__ = ["tracepoints_check"]


def tracepoints_check(probes: Iterable[Probe]) -> list[Check]:
    """Return one check that lists what is missing; none where the kernel's types can't be read."""
    try:
        btf = Btf.running_kernel()
    except (OSError, ValueError, struct.error):
        return []
    wanted: dict[str, list[str]] = {}
    for probe in probes:
        for hook in probe.hooks:
            if isinstance(hook, Tracepoint):
                wanted.setdefault(hook.name, []).append(probe.name)
    missing = {name: users for name, users in wanted.items() if btf.tracepoint(name.partition(":")[2]) is None}
    if not missing:
        return [Check("tracepoints", "ok", f"all {len(wanted)} that the probes know")]
    listed = ", ".join(f"{name} ({', '.join(users)})" for name, users in missing.items())
    # Nothing that an administrator could mend, short of another kernel.
    return [Check("tracepoints", "ok", f"{len(wanted)}, without {listed}: what these add is left out")]
