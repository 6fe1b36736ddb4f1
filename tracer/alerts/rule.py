"""What a rule is, and what it sees: arrays in, conditions out, no I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tracer.alerts.alert import Condition
from tracer.units import SECOND
from tracer.window import Window

__all__ = ["Rule", "View"]

_LIMITS = re.compile(r"\bSeverity: (.*?)(?=\n\s*\n|\sCountdown: |\Z)", re.DOTALL)


def _unnamed(address: int) -> tuple[str, str]:
    return f"{address:#x}", ""


def _is_over(view: View, before: Condition) -> Condition | None:
    return None


@dataclass(frozen=True)
class View:
    """What is known of a node at one moment.

    Attributes:
        now_ns: when, CLOCK_MONOTONIC ns of the node.
        windows: the latest window of each ``(probe, table)``.
        settings: the kernel's own settings, by the name of the sysctl or module parameter
            (``"kernel.softlockup_panic"``), as text; one that this kernel lacks is absent.
        history: earlier windows, oldest first and the latest last, of the tables that rules ask for.
        symbol: a kernel address's ``(symbol, module)``; the module is "" for the core kernel.
    """

    now_ns: int
    windows: Mapping[tuple[str, str], Window]
    settings: Mapping[str, str] = field(default_factory=dict)
    history: Mapping[tuple[str, str], Sequence[Window]] = field(default_factory=dict)
    symbol: Callable[[int], tuple[str, str]] = _unnamed

    def rows(self, probe: str, table: str) -> np.ndarray:
        """Return the rows of the latest window of a table the rule ``needs``."""
        return self.windows[probe, table].rows

    def number(self, setting: str, default: int) -> int:
        """Return a setting as a number; ``default`` where this kernel lacks it or says something else."""
        try:
            return int(self.settings[setting])
        except (KeyError, ValueError):
            return default


@dataclass(frozen=True)
class Rule:
    """One thing worth telling.

    Attributes:
        name: stable, for programs and settings: ``"soft-lockup"``.
        title: the same in a few plain words.
        help: what it means, and where its thresholds come from; docs/alerts.md is made of these.
        next: what to do, one sentence.
        judge: the conditions that hold; it must be a pure function of the view.
        goes_on: hysteresis: of a condition that fires and that ``judge`` does not find, what it is now; None if it is
            over. It must be a pure function as well.
        needs: the tables it can't judge without.
        wants: tables that it uses where they are.
        history: tables of which it wants earlier windows; small ones only.
        echoes: rules that tell of the same incident: while one of them pages about the same subject, this one warns.
        fast: runs in the sentinels, several times a second, on what the kernel side tells at once; it must find
            nothing where its tables are empty, and is not asked then.
        for_ns: it has to hold for so long before anybody is told. 0 where the kernel side has waited already.
        keep_ns: it has to be gone for so long before it is resolved.
            What merely happened, and nothing ends, is over then as well.
        again_ns: it is told again so often while it lasts.
    """

    name: str
    title: str
    help: str
    next: str
    judge: Callable[[View], Iterable[Condition]]
    needs: tuple[tuple[str, str], ...]
    wants: tuple[tuple[str, str], ...] = ()
    history: tuple[tuple[str, str], ...] = ()
    goes_on: Callable[[View, Condition], Condition | None] = _is_over
    echoes: tuple[str, ...] = ()
    fast: bool = False
    for_ns: int = 0
    keep_ns: int = 10 * SECOND
    again_ns: int = 300 * SECOND

    @property
    def limits(self) -> str:
        """From when on it speaks, and how loudly, in words: what ``help`` says of it."""
        found = _LIMITS.search(self.help)
        return " ".join(found[1].split()) if found else ""
