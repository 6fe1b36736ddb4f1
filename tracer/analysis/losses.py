"""What was not seen, by probe and reason."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["MAX_PROBES", "MAX_REASONS", "Losses", "missed"]

# A hostile recording may name any number of them.
MAX_PROBES = 64
MAX_REASONS = 64

# Counted, but not told one by one: nothing is missing from any histogram. A device that is new has no difference yet.
_HARMLESS = frozenset({"suppressed", "appeared"})
# Of these probes every event is counted, some of them under "other".
_FOLDED_IS_COUNTED = frozenset({"hardirq", "napi"})


def missed(probe: str, reasons: Mapping[str, int]) -> dict[str, int]:
    """Return those of a probe's losses that are missing from its numbers, without zeros."""
    harmless = _HARMLESS | {"folded"} if probe in _FOLDED_IS_COUNTED else _HARMLESS
    return {reason: int(number) for reason, number in reasons.items() if number and reason not in harmless}


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
