"""RCU's grace periods: how long waits for them took, and since when one goes on."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.histogram import SLOTS, slot_of
from tracer.kernel.graceperiods import GracePeriods, unable

__all__ = ["Source", "refusal"]

Read = tuple[np.ndarray, dict[str, int]]

_ROW = np.dtype(
    [
        ("state", "S16"),
        ("begun_ns", "u8"),
        ("age_ns", "u8"),
        ("sum", "u8"),
        ("slots", "u4", (SLOTS,)),
    ]
)
#: No oftener: each wait forces a grace period, and all CPUs to take part in it.
_EVERY_SECONDS = 5.0


def refusal() -> str:
    """Return why a source can't start in this process; "" if it can."""
    return unable()


class Source:
    """The table ``rcu.grace``, one row. Setting: ``rcu_every`` seconds between two waits."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._periods = GracePeriods(float(settings.get("rcu_every", _EVERY_SECONDS)))

    def read(self, now_ns: int) -> dict[str, Read]:
        """Return ``{table: (rows, losses)}``; the histogram is of the waits that ended since the last read."""
        rows = np.zeros(1, dtype=_ROW)
        row = rows[0]
        begun_ns = self._periods.begun_ns
        row["begun_ns"], row["age_ns"] = begun_ns, max(0, now_ns - begun_ns) if begun_ns else 0
        row["state"] = b"waiting" if begun_ns else b"hung_task_panic" if self._periods.forbidden else b"idle"
        for waited_ns in self._periods.take():
            row["sum"] += np.uint64(waited_ns)
            row["slots"][slot_of(waited_ns)] += np.uint32(1)
        return {"grace": (rows, {})}

    def close(self) -> None:
        self._periods.close()
