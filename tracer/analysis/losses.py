"""What was not seen, by probe and reason."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from tracer.probes import all_probes

__all__ = ["MAX_PROBES", "MAX_REASONS", "Losses", "missed"]

# A hostile recording may name any number of them.
MAX_PROBES = 64
MAX_REASONS = 64


@cache
def _harmless(probe: str) -> frozenset[str]:
    declared = all_probes()[probe].losses if probe in all_probes() else ()
    return frozenset(loss.reason for loss in declared if loss.harmless)


def missed(probe: str, reasons: Mapping[str, int]) -> dict[str, int]:
    """Return those of a probe's losses that are missing from its numbers, without zeros."""
    return {reason: int(number) for reason, number in reasons.items() if number and reason not in _harmless(probe)}


class Losses:
    """Sums of losses per probe and reason. A reason that was never watched is absent, which is not 0.

    ``unkept`` counts the losses of probes and reasons that found no room.
    """

    def __init__(self) -> None:
        self.reasons: dict[str, dict[str, int]] = {}
        self.measured: set[str] = set()
        self.probes: set[str] = set()
        self.unkept = 0

    def add(self, probe: str, losses: Mapping[str, int]) -> None:
        """Add the losses of one window of ``probe``."""
        if probe not in self.probes and len(self.probes) >= MAX_PROBES:
            self.unkept += sum(map(int, losses.values()))
            return
        self.probes.add(probe)
        known = self.reasons.setdefault(probe, {})
        for reason, number in losses.items():
            if reason not in known and len(known) >= MAX_REASONS:
                self.unkept += int(number)
                continue
            known[reason] = known.get(reason, 0) + int(number)
            self.measured.add(probe)

    def total(self, probe: str) -> int | None:
        """Return how much ``probe`` lost; None when that was not measured."""
        return sum(self.reasons[probe].values()) if probe in self.measured else None

    @property
    def unmeasured(self) -> list[str]:
        """Probes that say nothing about what they miss."""
        return sorted(self.probes - self.measured)
