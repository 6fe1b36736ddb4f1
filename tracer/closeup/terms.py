"""On which terms an alert has the deep probes run: which alerts, for how long, how often, and what is kept."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from tracer import units
from tracer.alerts.alert import Alert, Severity, State
from tracer.errors import UsageError
from tracer.probe import Probe
from tracer.probes import find_probe
from tracer.units import SECOND

__all__ = ["BEFORE_NS", "MOST_BYTES", "MOST_KEPT", "Budget", "Terms"]

_DAY_NS = 86_400 * SECOND
#: What the agent saw before the alert goes into the same recording: settings are told once a minute.
BEFORE_NS = 65 * SECOND
#: Of all that is kept in the folder, by number and size: the oldest go.
MOST_KEPT = 20
MOST_BYTES = 256 << 20
#: Where whose time goes, and in which functions. runqueue_cgroup would bring a second runqueue along.
_PROBES = ("oncpu", "offcpu", "ledger")
_SHORTEST_NS, _LONGEST_NS = 2 * SECOND, 60 * SECOND
_MOST_A_DAY = 288


@dataclass(frozen=True)
class Terms:
    """What the user asked for.

    ``severity``: of the alerts at least. ``for_ns``: how long the deep probes run. ``pause_ns``: from one beginning to
    the next at least. ``most_a_day``: in any 24 hours. ``folder``: where recordings and reports are kept.
    """

    severity: Severity
    for_ns: int
    pause_ns: int
    most_a_day: int
    folder: str

    def check(self, interval_ns: int) -> None:
        """Raise UsageError for terms that make no sense with windows of ``interval_ns``."""
        if not _SHORTEST_NS <= self.for_ns <= _LONGEST_NS:
            raise UsageError(
                f"--closeup-for {units.duration(self.for_ns)}: 2 to 60 s are possible.", hint="--closeup-for 10s"
            )
        if self.for_ns < 2 * interval_ns:
            raise UsageError(
                f"--closeup-for {units.duration(self.for_ns)} is less than two intervals.",
                hint="--interval 1s is the usual one",
            )
        if self.pause_ns < self.for_ns:
            raise UsageError("--closeup-pause is shorter than --closeup-for.", hint="--closeup-pause 10m")
        if not 1 <= self.most_a_day <= _MOST_A_DAY:
            raise UsageError(f"--closeup-most {self.most_a_day}: 1 to {_MOST_A_DAY} a day.", hint="--closeup-most 12")

    def in_words(self) -> str:
        """Return the terms as a phrase."""
        which = "pages" if self.severity is Severity.PAGE else "warnings and pages"
        times = f"once in {units.duration(self.pause_ns)} and {self.most_a_day} times a day at most"
        return f"of {which}, {units.duration(self.for_ns)} each, {times}, in {self.folder}"

    def means(self, alert: Alert) -> bool:
        """Return whether an alert is one of those that have a close-up."""
        return alert.state is State.FIRING and alert.severity >= self.severity and not alert.shadow

    @staticmethod
    def probes(running: tuple[str, ...]) -> tuple[Probe, ...]:
        """Return the deep probes that are not ``running`` anyway."""
        return tuple(find_probe(name) for name in _PROBES if name not in running)


class Budget:
    """How often it may begin: kept by who asks and, again, by the process that has the privileges.

    ``begun_ns`` are those of an earlier process, in order: an agent that is started again and again is no way around.
    """

    def __init__(self, terms: Terms, begun_ns: Iterable[int] = ()) -> None:
        self._terms = terms
        self._begun_ns: deque[int] = deque(begun_ns, maxlen=terms.most_a_day)

    def objection(self, now_ns: int) -> str:
        """Return why it can't begin now; "" if it can."""
        if not self._begun_ns:
            return ""
        since_ns = now_ns - self._begun_ns[-1]
        if since_ns < self._terms.pause_ns:
            return f"the last one began {units.duration(since_ns)} ago (--closeup-pause)"
        if len(self._begun_ns) == self._terms.most_a_day and now_ns - self._begun_ns[0] < _DAY_NS:
            return f"there were {self._terms.most_a_day} in 24 hours (--closeup-most)"
        return ""

    def spend(self, now_ns: int) -> None:
        """Note that one begins."""
        self._begun_ns.append(now_ns)
