"""What the agent sees: an interval's windows, the kernel's settings, and earlier windows of what rules ask for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from tracer.alerts import deadlines, thresholds
from tracer.alerts.rule import Rule, View
from tracer.kernel.sources import detectors
from tracer.window import Window

__all__ = ["HISTORY_NS", "Lookout", "kernel_side", "settings_now"]

_Key = tuple[str, str]

#: Earlier windows go back so far.
HISTORY_NS = 600_000_000_000
#: Of one table, whatever its rows are: the oldest windows give way.
_MOST_BYTES = 4 << 20
_SETTINGS = ("detectors", "settings")


class Lookout:
    """Keeps what rules may look at; ``settings`` are the kernel's, as read last: at first those that are given."""

    def __init__(
        self,
        rules: Iterable[Rule],
        interval_ns: int,
        symbol: Callable[[int], tuple[str, str]],
        settings: Mapping[str, str] | None = None,
    ) -> None:
        most = max(2, HISTORY_NS // interval_ns)
        self.settings: dict[str, str] = dict(settings or {})
        self._history: dict[_Key, deque[Window]] = {
            table: deque(maxlen=most) for rule in rules for table in rule.history
        }
        self._symbol = symbol

    def view(self, windows: Sequence[Window]) -> View:
        """Return what is seen at the end of an interval."""
        latest = {(window.probe, window.table): window for window in windows}
        if _SETTINGS in latest:
            self.settings.update(_named(latest[_SETTINGS].rows))
        for table, history in self._history.items():
            if table in latest:
                history.append(latest[table])
                if latest[table].rows.nbytes * len(history) > _MOST_BYTES:
                    _trim(history)
        now_ns = max((window.end_ns for window in windows), default=0)
        return View(
            now_ns, latest, self.settings, {key: tuple(kept) for key, kept in self._history.items()}, self._symbol
        )


def _trim(history: deque[Window]) -> None:
    size = sum(window.rows.nbytes for window in history)
    while size > _MOST_BYTES and len(history) > 1:
        size -= history.popleft().rows.nbytes


def settings_now() -> dict[str, str]:
    """Return the kernel's settings as they are now, for what can't wait for the first interval."""
    source = detectors.Source({})
    source.read(0)  # which only begins
    try:
        return _named(source.read(0)["settings"][0])
    finally:
        source.close()


def kernel_side(settings: Mapping[str, str]) -> dict[str, int]:
    """Return probes' settings that follow from the kernel's: a stall is told when rules want to hear of it."""
    watchdog = deadlines.soft_lockup(View(0, {}, settings))
    return {"CPUSTALL_THRESHOLD_NS": watchdog.quarter_ns(thresholds.STALL_WARN_NS)}


def _named(rows: np.ndarray) -> dict[str, str]:
    return {
        name.decode(errors="replace"): value.decode(errors="replace")
        for name, value in zip(rows["name"].tolist(), rows["value"].tolist(), strict=True)
    }
