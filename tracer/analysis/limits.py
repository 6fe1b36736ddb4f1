"""What a probe's numbers are limited to, of what the user asked for: filters differ from probe to probe."""

from __future__ import annotations

from tracer.analysis.source import Source
from tracer.probes import all_probes

__all__ = ["limits"]


def limits(probe: str, source: Source) -> dict[str, str]:
    """Return the filters that ``probe`` applies, by name; those of a probe unknown here are none."""
    # Imported probes read their layouts: only where there is a filter.
    if not source.filters or probe not in all_probes():
        return {}
    declared = all_probes()[probe]
    able = {*declared.filters, *(["cpus"] if declared.hooks else [])}
    return {name: value for name, value in source.filters if name in able}
