"""What a comparison said of a cluster of twins, beside what is true of it. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .faults import Fault

__all__ = ["Judged", "nothing"]

#: Windows around the one in which the fault began: it begins somewhere in it, and its first bit is short.
_ONSET = 2


@dataclass(frozen=True)
class Judged:
    """One cluster: ``tree`` is of ``foreshock compare --json``, ``fault`` on one of its nodes, ``nodes`` how many.

    ``began`` is the second of the recording in which it did, ``took_s`` how long the comparison took; ``strangers`` of
    the recordings can't be compared.
    """

    cluster: str
    fault: Fault | None
    nodes: int
    tree: Mapping[str, Any]
    began: float
    took_s: float
    strangers: int = 0

    @property
    def verdict(self) -> str:
        return str(self.tree["verdict"])

    @property
    def suspect(self) -> Mapping[str, Any]:
        """What was said of the node that has the fault; empty if nothing."""
        return next((one for one in self.tree["suspects"] if self.fault and one["node"] == self.fault.name), {})

    @property
    def onset(self) -> float | None:
        """The second of the recording from which on it is said to deviate."""
        window = self.suspect.get("since_window")
        return None if window is None else float(self.tree["window_s"] * window)

    @property
    def others(self) -> list[str]:
        """Nodes without a fault that are accused, and what is called common."""
        nodes = [one["node"] for one in self.tree["suspects"] if not self.fault or one["node"] != self.fault.name]
        return nodes + [f"common cause in {one['series']}" for one in self.tree["common"]]

    def misses(self) -> Iterator[str]:
        """Yield everything that is not as it should be."""
        if self.others:
            yield f"accused as well: {', '.join(self.others)}" if self.fault else f"accused: {', '.join(self.others)}"
        if len(self.tree["skipped"]) != self.strangers:
            yield f"{len(self.tree['skipped'])} recordings left out, not {self.strangers}"
        if not self.fault:
            return
        if not self.suspect:
            yield "the node is not named"
            return
        if self.suspect["cause"] not in self.fault.causes:
            yield f"cause {self.suspect['cause']}, not {' or '.join(self.fault.causes)}"
        if self.fault.culprit not in json.dumps([self.suspect["who"], self.suspect["taken"], self.verdict]):
            yield f"{self.fault.culprit} is not named"
        if self.fault.setting and self.fault.setting not in [one["setting"] for one in self.tree["differences"]]:
            yield f"{self.fault.setting} is not named"
        if not self.fault.early and (self.onset is None or abs(self.onset - self.began) > _ONSET):
            said = "not said when it began" if self.onset is None else f"said to have begun at {self.onset:.0f} s"
            yield f"{said}, not {self.began:.0f} s"


def nothing(error: str) -> Mapping[str, Any]:
    """Return the tree of a comparison that could not be made, and said why."""
    return {"verdict": error, "suspects": [], "common": [], "skipped": [], "differences": [], "window_s": 0.0}
