"""Turn what rules find true into alerts: each is told when it changes, and now and then again while it lasts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tracer.alerts.alert import Alert, Condition, Countdown, Evidence, Severity, State, Subject, alert_id
from tracer.alerts.record import alert_from, alert_record
from tracer.alerts.rule import Rule, View
from tracer.errors import RecordingError

__all__ = ["Engine", "Identity"]

_Paged = Callable[[str, Subject, int], bool]

#: Alerts kept at once. A node in such trouble is paged already; the others are counted.
MOST_ALERTS = 256
#: A countdown is not taken back, or said anew, more often than this.
_SETTLED_NS = 10_000_000_000


def _nobody(rule: str, subject: Subject, now_ns: int) -> bool:
    return False


@dataclass(frozen=True)
class Identity:
    """Who speaks: the node, this boot of it, the process. ``clock_offset_ns``: CLOCK_REALTIME less CLOCK_MONOTONIC.

    ``machine``: what tells two nodes of one name apart, "" if nothing does.
    """

    node: str
    boot_id: str
    clock_offset_ns: int
    source: str = "agent"
    machine: str = ""


@dataclass
class _Track:
    """One rule's condition about one subject, for as long as it lasts."""

    alert: Alert
    true_since_ns: int
    true_ns: int
    told_ns: int = 0
    told_countdown: Countdown | None = None


class Engine:
    """Keeps the states of the alerts of one process.

    ``refused`` counts those beyond ``MOST_ALERTS``. ``broken`` are rules that failed, which is a bug of theirs, with
    the reason: they are asked again, and the others go on. ``paged`` says of a rule, a subject and a time whether
    another process pages that then.
    """

    def __init__(
        self, rules: Iterable[Rule], identity: Identity, *, shadow: Collection[str] = (), paged: _Paged = _nobody
    ) -> None:
        self.rules = tuple(rules)
        self.refused = 0
        self.broken: dict[str, str] = {}
        self._identity = identity
        self._shadow = frozenset(shadow)
        self._paged = paged
        self._tracks: dict[tuple[str, Subject], _Track] = {}

    def judge(self, view: View) -> list[Alert]:
        """Ask every rule whose tables are there, and return what has to be told now.

        A rule that can't be asked leaves its alerts as they are: no news is not good news.
        """
        told: list[Alert] = []
        for rule in self.rules:
            if not all(table in view.windows for table in rule.needs):
                continue
            try:
                conditions = list(rule.judge(view))
                conditions += self._go_on(rule, view, {condition.subject for condition in conditions})
            except Exception as error:
                self.broken[rule.name] = f"{type(error).__name__}: {error}"
                continue
            held: set[Subject] = set()
            for condition in conditions:
                held.add(condition.subject)
                told += self._holds(rule, self._once(rule, condition, view.now_ns), view)
            told += self._gone(rule, held, view.now_ns)
        return told

    @property
    def idle(self) -> bool:
        """Whether nothing holds, pending or firing: what could change that is a condition alone."""
        return not self._tracks

    @property
    def firing(self) -> list[Alert]:
        """The alerts that fire, oldest first."""
        alerts = [track.alert for track in self._tracks.values() if track.alert.state is State.FIRING]
        return sorted(alerts, key=lambda alert: alert.began_ns)

    def attach(self, id: str, evidence: Evidence, now_ns: int) -> Alert | None:
        """Return the message of ``now_ns`` that tells of ``evidence``, which every later one has as well.

        None of what is over.
        """
        for track in self._tracks.values():
            if track.alert.id == id and track.alert.state is State.FIRING:
                track.alert = self._at(replace(track.alert, evidence=evidence), now_ns)
                return self._tell(track, State.FIRING)
        return None

    def tell_time(self, clock_offset_ns: int) -> None:
        """Go on by a clock that was set meanwhile; see ``Identity``."""
        self._identity = replace(self._identity, clock_offset_ns=clock_offset_ns)

    def state(self) -> dict[str, Any]:
        """Return what a later process of the same boot needs in order to go on without telling everything again."""
        return {"boot_id": self._identity.boot_id, "firing": [alert_record(alert) for alert in self.firing]}

    def restore(self, state: Mapping[str, Any], now_ns: int) -> None:
        """Go on from an earlier process's ``state``; one of another boot is over, and ignored.

        Raises RecordingError when it is damaged.
        """
        if not isinstance(state, Mapping) or not isinstance(state.get("firing"), list):
            raise RecordingError("the alerts' state is damaged.")
        if state.get("boot_id") != self._identity.boot_id:
            return
        known = {rule.name for rule in self.rules}
        for record in state["firing"][:MOST_ALERTS]:
            alert = alert_from(record)
            if alert.rule in known:
                track = _Track(alert, alert.began_ns, now_ns, now_ns, alert.condition.countdown)
                self._tracks[alert.rule, alert.condition.subject] = track

    def _go_on(self, rule: Rule, view: View, held: Collection[Subject]) -> list[Condition]:
        firing = [
            track.alert.condition
            for (name, subject), track in self._tracks.items()
            if name == rule.name and subject not in held and track.alert.state is State.FIRING
        ]
        return [now for before in firing if (now := rule.goes_on(view, before)) is not None]

    def _once(self, rule: Rule, condition: Condition, now_ns: int) -> Condition:
        """Return the condition, as a warning where another rule's page is about the same incident."""
        if condition.severity is not Severity.PAGE:
            return condition
        pages = any(self._pages(name, condition.subject, now_ns) for name in rule.echoes)
        return replace(condition, severity=Severity.WARNING) if pages else condition

    def _pages(self, name: str, subject: Subject, now_ns: int) -> bool:
        track = self._tracks.get((name, subject))
        if track and track.alert.severity is Severity.PAGE and not track.alert.shadow:
            return track.alert.state is State.FIRING
        return self._paged(name, subject, now_ns)

    def _holds(self, rule: Rule, condition: Condition, view: View) -> Iterable[Alert]:
        track = self._tracks.get((rule.name, condition.subject))
        if track is None:
            if len(self._tracks) >= MOST_ALERTS:
                self.refused += 1
                return
            track = _Track(self._new(rule, condition, view.now_ns), view.now_ns, view.now_ns)
            self._tracks[rule.name, condition.subject] = track
        before, track.true_ns = track.alert, view.now_ns
        severity = max(condition.severity, before.severity)
        condition = _kept(replace(condition, severity=severity), before.condition)
        track.alert = self._at(replace(before, condition=condition, quality=_quality(rule, view)), view.now_ns)
        if before.state is State.PENDING:
            if view.now_ns - track.true_since_ns >= rule.for_ns:
                yield self._tell(track, State.FIRING)
        elif (
            severity > before.severity
            or _learnt(before.condition, track.alert.condition)
            or _no_longer_so(track, view.now_ns)
            or view.now_ns - track.told_ns >= rule.again_ns
        ):
            yield self._tell(track, State.FIRING)

    def _gone(self, rule: Rule, held: Collection[Subject], now_ns: int) -> Iterable[Alert]:
        for key, track in list(self._tracks.items()):
            if key[0] != rule.name or key[1] in held:
                continue
            if track.alert.state is State.PENDING:
                del self._tracks[key]
            elif now_ns - track.true_ns >= rule.keep_ns:
                del self._tracks[key]
                track.alert = self._at(track.alert, now_ns)
                yield self._tell(track, State.RESOLVED)

    def _at(self, alert: Alert, now_ns: int) -> Alert:
        """Return what is said of it at that time."""
        return replace(alert, at_ns=now_ns, unix_ns=now_ns + self._identity.clock_offset_ns)

    def _tell(self, track: _Track, state: State) -> Alert:
        track.alert = replace(track.alert, state=state, sequence=track.alert.sequence + 1)
        track.told_ns = track.alert.at_ns
        track.told_countdown = track.alert.condition.countdown
        return track.alert

    def _new(self, rule: Rule, condition: Condition, now_ns: int) -> Alert:
        identity = self._identity
        return Alert(
            id=alert_id(identity.boot_id, rule.name, condition.subject, condition.since_ns),
            rule=rule.name,
            title=rule.title,
            state=State.PENDING,
            condition=condition,
            next=rule.next,
            node=identity.node,
            boot_id=identity.boot_id,
            sequence=0,
            began_ns=condition.since_ns,
            at_ns=now_ns,
            unix_ns=now_ns + identity.clock_offset_ns,
            source=identity.source,
            shadow=rule.name in self._shadow,
        )


def _kept(condition: Condition, before: Condition) -> Condition:
    """Return the condition with the culprit known before, where this look at it saw none, or none of its stack."""
    known, now = before.culprit, condition.culprit
    less = known is not None and (now is None or (now.task == known.task and bool(known.stack) and not now.stack))
    return replace(condition, culprit=known) if less else condition


def _no_longer_so(track: _Track, now_ns: int) -> bool:
    """Return whether the countdown to a panic that was told is another now: none, one where there was none, run out.

    That it has become longer or shorter is no news before it has run out.
    """
    told, now = track.told_countdown, track.alert.condition.countdown
    if told is None or not told.panics:
        return track.alert.says_panic
    if now_ns - track.told_ns < _SETTLED_NS:
        return False
    return now is None or not now.panics or told.latest_ns <= now_ns < now.latest_ns


def _learnt(before: Condition, now: Condition) -> bool:
    """Return whether a culprit, or its stack, is known now for the first time."""
    if now.culprit is None:
        return False
    return before.culprit is None or (bool(now.culprit.stack) and not before.culprit.stack)


def _quality(rule: Rule, view: View) -> dict[str, int]:
    """Return what the tables behind a rule missed, by reason; only what happened."""
    missed: dict[str, int] = {}
    for table in (*rule.needs, *rule.wants):
        window = view.windows.get(table)
        for reason, number in (window.losses if window else {}).items():
            if number:
                missed[reason] = missed.get(reason, 0) + number
    return missed
