"""Which alert has a close-up, when it begins, and what is told of it: the agent's side."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tracer.alerts.alert import Alert, Evidence
from tracer.alerts.engine import Engine
from tracer.alerts.rule import View
from tracer.closeup import folder
from tracer.closeup.limits import objection
from tracer.closeup.order import Order
from tracer.closeup.ring import Ring
from tracer.closeup.standby import Standby
from tracer.closeup.terms import BEFORE_NS, Budget
from tracer.probe import Probe
from tracer.units import SECOND

__all__ = ["Closeups"]

#: An alert whose node is in no state for more waits so long for a better one.
_PATIENCE_NS = 30 * SECOND
#: Alerts that have had their turn.
_MOST_KNOWN = 1024
#: Alerts that share one.
_MOST_ALERTS = 8
#: The worker has an alarm, at 3 minutes and the seconds; whoever has not answered then never will.
_LATEST_NS = 300 * SECOND


@dataclass
class _Running:
    """What has begun: the latest message of each alert that it is of, by id; ``told`` is what the worker has told."""

    alerts: dict[str, Alert]
    began_ns: int
    told: dict[str, Any] = field(default_factory=dict)
    given: bool = False

    @property
    def rule(self) -> str:
        """The rule of the alert that it was begun for."""
        return next(iter(self.alerts.values())).rule


class Closeups:
    """Has ``standby`` begin one at a time, within the terms and while the node can bear it. ``note`` gets why not."""

    def __init__(
        self, standby: Standby, probes: Sequence[Probe], interval_ns: int, note: Callable[[str], None]
    ) -> None:
        self._terms = terms = standby.terms
        self._standby = standby
        self._probes = tuple(probe.name for probe in probes)
        self._interval_ns = interval_ns
        self._note = note
        self._budget = Budget(terms, folder.begun_ns(terms.folder, time.monotonic_ns()))
        self._ring = Ring()
        #: Alerts that want one, by id, and since when the first of them does.
        self._wanted: dict[str, Alert] = {}
        self._wanted_ns = 0
        self._latest = folder.latest(terms.folder)
        self._running: _Running | None = None
        self._known: dict[str, None] = {}
        self._gone = False

    def turn(self, engine: Engine, view: View, told: Iterable[Alert], frame: bytes, due_ns: int) -> list[Alert]:
        """Return what there is to tell at an interval's end; the next one ends at ``due_ns``."""
        for alert in told:
            self.heard(alert, view.now_ns)
        self.begin(view, engine.firing, due_ns)
        self.interval(view.now_ns, frame)
        return list(self.finished(engine, view.now_ns))

    def heard(self, alert: Alert, now_ns: int) -> None:
        """Take note of a message: its alert may be the next, and how it goes on is told with what was recorded."""
        sharing = self._running.alerts if self._running else self._wanted
        if alert.id in sharing:
            sharing[alert.id] = alert
        if self._gone or not self._terms.means(alert) or alert.id in self._known:
            return
        if len(self._known) >= _MOST_KNOWN:
            del self._known[next(iter(self._known))]
        self._known[alert.id] = None
        if not sharing:
            self._wanted_ns = now_ns
        # Where one runs, it fires in the very seconds that are looked at.
        if len(sharing) < _MOST_ALERTS:
            sharing[alert.id] = alert

    def begin(self, view: View, firing: Iterable[Alert], due_ns: int) -> None:
        """Begin what is wanted if nothing is against it; ``due_ns`` is when the agent's interval ends."""
        if self._running:
            if any(alert.says_panic for alert in firing):
                self._standby.say({"end": True})
            return
        if not self._wanted:
            return
        against = self._budget.objection(view.now_ns)
        wait = "" if against else objection(view, firing)
        if wait and view.now_ns - self._wanted_ns < _PATIENCE_NS:
            return
        # The worst is what it is made for; the others share it.
        alerts = sorted(self._wanted.values(), key=lambda alert: -alert.severity)
        self._wanted = {}
        if against and self._latest:
            against = f"{against}: see {self._latest}"
        against = against or wait
        if not against:
            order = Order(alerts[0], due_ns, self._interval_ns, self._probes, os.getpid())
            against = self._standby.say(order.record())
        if against:
            for alert in alerts:
                self._note(f"no close-up of {alert.rule}, {alert.condition.subject}: {against}")
            return
        self._budget.spend(view.now_ns)
        self._running = _Running({alert.id: alert for alert in alerts}, view.now_ns)

    def interval(self, end_ns: int, frame: bytes) -> None:
        """Keep an interval's frame; hand all to a worker that has looked long enough."""
        self._ring.add(end_ns, frame)
        running = self._running
        if running is None:
            self._ring.forget_before(end_ns - BEFORE_NS)
        elif running.told.get("traced") and not running.given:
            running.given = True
            try:
                descriptor = self._ring.written()
            except OSError as error:
                self._note(f"close-up of {running.rule}: without the seconds before: {error.strerror}")
                return
            self._standby.say({"before": True}, (descriptor,))
            os.close(descriptor)

    def finished(self, engine: Engine, now_ns: int) -> Iterator[Alert]:
        """Yield the message that tells of what was recorded, once it was."""
        if self._gone:
            return
        try:
            messages = self._standby.received()
        except EOFError:
            self._gone, messages = True, [{"done": True, "failed": "the process that keeps the privileges for it died"}]
            self._note("no more close-ups: the process that keeps the privileges for them died")
        running = self._running
        if running is None:
            return
        for message in messages:
            failed = running.told.get("failed") or message.get("failed", "")
            running.told |= {**message, "failed": failed}
        if now_ns - running.began_ns > _LATEST_NS:
            running.told |= {"done": True, "failed": "it did not end"}
        if running.told.get("done"):
            self._running = None
            yield from self._told(running, engine, now_ns)

    def _told(self, running: _Running, engine: Engine, now_ns: int) -> Iterator[Alert]:
        told = running.told
        if told["failed"]:
            what = "without a report" if told.get("recording") else "nothing was recorded"
            self._note(f"close-up of {running.rule}: {what}: {told['failed']}")
        if not told.get("recording"):
            return
        self._note(f"close-up of {running.rule}: {told['recording']}, {told.get('cpu_s', 0):.1f} s of CPU time")
        self._latest = told.get("report") or told["recording"]
        evidence = Evidence(told["recording"], told.get("report", ""), tuple(told.get("stacks", ())))
        for id, latest in running.alerts.items():
            goes_on = engine.attach(id, evidence, now_ns)
            yield goes_on or replace(latest, evidence=evidence, sequence=latest.sequence + 1)

    def close(self) -> None:
        """End what is going on."""
        self._standby.close()
