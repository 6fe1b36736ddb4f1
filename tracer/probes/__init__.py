"""The probes: one module each, with a value ``PROBE``. The package is walked, never listed."""

from __future__ import annotations

import difflib
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from tracer.errors import UsageError
from tracer.probe import Probe

__all__ = ["all_probes", "find_probe"]


@cache
def all_probes() -> dict[str, Probe]:
    """Return every probe by name, sorted by name."""
    names = sorted(module.name for module in iter_modules(__path__) if not module.name.startswith("_"))
    return {name: _declared(name) for name in names}


def find_probe(name: str) -> Probe:
    """Return the probe called ``name`` or known by that alias.

    Raises UsageError when there is none; it suggests the nearest name.
    """
    probes = all_probes()
    by_alias = {alias: probe for probe in probes.values() for alias in probe.aliases}
    found = probes.get(name) or by_alias.get(name)
    if found is not None:
        return found
    near = difflib.get_close_matches(name, [*probes, *by_alias], n=1)
    question = f"; did you mean '{near[0]}'?" if near else ""
    raise UsageError(f"unknown probe '{name}'{question}", hint="foreshock probes lists them")


def _declared(name: str) -> Probe:
    probe = import_module(f"{__name__}.{name}").PROBE
    # The name leads to the C sources and the test as well: one that differs would be found half-way.
    if not isinstance(probe, Probe) or probe.name != name:
        raise TypeError(f"tracer/probes/{name}.py: PROBE must be a Probe named '{name}'")
    return probe
