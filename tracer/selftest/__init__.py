"""Known-answer checks of every probe on this very node: one module per probe, walked, never listed.

Each has ``check(evidence)``, which yields ``Check`` values. What its probe needs to see is in ``_scenes``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pkgutil import iter_modules

from tracer.selftest._evidence import Check, Evidence

__all__ = ["Check", "Evidence", "all_checks"]

_Checks = Callable[[Evidence], Iterator[Check]]


def all_checks() -> dict[str, _Checks]:
    """Return the ``check`` function of every probe that has one, by the probe's name."""
    names = sorted(module.name for module in iter_modules(__path__) if not module.name.startswith("_"))
    return {name: import_module(f"{__name__}.{name}").check for name in names}
