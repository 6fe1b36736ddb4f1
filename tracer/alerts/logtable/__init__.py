"""The lines of the kernel's log that alert rules know: one entry each, with meaning and next step.

One file per family, with a tuple ``PATTERNS``; the folder is walked, not listed. Formats are those of Linux 5.10 to
7.x and of the vendors' drivers; tests/unit/log_samples.txt has a real line for every entry.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

from tracer.alerts.logpattern import LogPattern

__all__ = ["patterns"]


@cache
def patterns() -> tuple[LogPattern, ...]:
    """Return every pattern; of several that match a line, the first of a rule counts."""
    modules = sorted(info.name for info in pkgutil.iter_modules(__path__) if not info.name.startswith("_"))
    return tuple(pattern for name in modules for pattern in import_module(f"{__name__}.{name}").PATTERNS)
