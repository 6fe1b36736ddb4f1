"""One file per family of rules; the folder is walked, not listed.

A module holds ``RULES``, a tuple of ``Rule`` values.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

from tracer.alerts.rule import Rule

__all__ = ["rules"]


@cache
def rules() -> dict[str, Rule]:
    """Return every rule by name. Raises ValueError when two have the same."""
    found: dict[str, Rule] = {}
    for module in sorted(info.name for info in pkgutil.iter_modules(__path__)):
        for rule in import_module(f"{__name__}.{module}").RULES:
            if found.setdefault(rule.name, rule) is not rule:
                raise ValueError(f"two rules are called {rule.name}")
    return found
