"""The alerts that an agent would have told of a recording: the same rules, the same engine, later."""

from __future__ import annotations

from collections.abc import Sequence

from tracer.agent.lookout import Lookout
from tracer.alerts.alert import Alert
from tracer.alerts.engine import Engine, Identity
from tracer.alerts.rules import rules
from tracer.analysis.source import Source
from tracer.window import Window

__all__ = ["ReplayedAlerts"]

_INTERVAL_NS = 1_000_000_000
_MOST = 4096


class ReplayedAlerts:
    """Judges interval by interval; ``alerts`` are the messages so far, ``untold`` those that found no room.

    ``failed`` counts intervals that rules could not look at: a recording may come from anyone.
    """

    def __init__(self, source: Source) -> None:
        self.alerts: list[Alert] = []
        self.untold = self.failed = 0
        offset_ns = source.clock_offset_ns
        identity = Identity(source.host, source.boot_id, int(offset_ns) if offset_ns == offset_ns else 0)
        self._engine = Engine(rules().values(), identity)
        self._lookout = Lookout(rules().values(), source.interval_ns or _INTERVAL_NS, _unnamed)

    def add_interval(self, windows: Sequence[Window]) -> None:
        """Judge one interval."""
        try:
            told = self._engine.judge(self._lookout.view(windows))
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            self.failed += 1
            return
        room = _MOST - len(self.alerts)
        self.alerts += told[:room]
        self.untold += len(told[room:])


def _unnamed(address: int) -> tuple[str, str]:
    return f"{address:#x}", ""
