"""Which probes run: what the user named must, what ``auto`` picks may."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tracer.errors import UsageError
from tracer.kernel.job import ordered
from tracer.probe import Probe
from tracer.probes import all_probes, find_probe

__all__ = ["Choice", "choose"]

#: Recorded with everything else: what foreshock costs, and whose job it was, belongs to every result.
_ALWAYS = ("agent", "jobs")


@dataclass
class Choice:
    """Probes in the order in which their handlers run, and the names the user insisted on.

    ``left_out`` are probes that ``auto`` dropped, with the reason.
    """

    probes: list[Probe]
    named: set[str]
    left_out: dict[str, str] = field(default_factory=dict)


def choose(names: str, *, deep: bool, filters: Iterable[str]) -> Choice:
    """Read ``--probes``: names and aliases between commas, ``auto`` for the light ones; ``deep`` adds the deep ones.

    ``filters`` are the filters in use, of "pid", "cgroup", "cpus". Raises UsageError for an unknown name and for a
    named probe that can't apply a filter.
    """
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if not wanted:
        raise UsageError(
            "--probes names no probe.", hint="foreshock probes lists them; --probes auto takes the usual ones"
        )
    named = [find_probe(name) for name in wanted if name != "auto"]
    chosen = dict.fromkeys(probe.name for probe in named)
    tiers = {"light": "auto" in wanted, "deep": deep}
    chosen.update(dict.fromkeys(probe.name for probe in all_probes().values() if tiers[probe.tier]))
    left_out: dict[str, str] = {}
    insisted = {probe.name for probe in named}
    for name in [*chosen]:
        reason = _objection(all_probes()[name], filters)
        if reason and name in insisted:
            raise UsageError(f"{name} {reason}.", hint="leave the filter or the probe out")
        if reason:
            left_out[name] = reason
            del chosen[name]
    every = all_probes()
    probes = ordered((every[name] for name in (*chosen, *_ALWAYS)), every)
    for probe in probes:
        left_out.pop(probe.name, None)  # another one needs it: it runs, unfiltered
    return Choice(probes, insisted, left_out)


_REASONS = {
    "pid": "can't be limited to a process: what it counts belongs to no task",
    "cgroup": "can't be limited to a cgroup: what it counts belongs to no task",
    "cpus": "can't be limited to CPUs: its counters are the whole node's",
}


def _objection(probe: Probe, filters: Iterable[str]) -> str:
    """Return why a probe can't apply a filter; "" if it can apply all of them."""
    for name in filters:
        able = bool(probe.hooks) if name == "cpus" else name in probe.filters
        if not able and probe.name not in _ALWAYS:
            return _REASONS[name]
    return ""
