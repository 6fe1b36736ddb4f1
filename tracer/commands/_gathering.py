"""Gather what a report needs, from a recording or from a black box."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from tracer.blackbox.box import Box, is_box
from tracer.commands._alerts import ReplayedAlerts
from tracer.recording import RecordingReader
from tracer.reports.html.payload import Payload
from tracer.reports.postmortem import what_is_missing
from tracer.reports.story import Sign, signs_of

__all__ = ["Gathered", "gather"]

_EVER_NS = 1 << 63


@dataclass(frozen=True)
class Gathered:
    """A run, its alerts, and in words what is missing of it; ``damaged`` when a part of it could not be read."""

    payload: Payload
    signs: Sequence[Sign]
    warning: str
    damaged: bool


def gather(path: str) -> Gathered:
    """Read the recording or the black box at ``path``; "-" is standard input. Raises RecordingError."""
    return _of_box(path) if path != "-" and is_box(path) else _of_recording(path)


def _of_recording(path: str) -> Gathered:
    with RecordingReader(path) as reader:
        payload = Payload(reader.header)
        alerts = ReplayedAlerts(payload.source)
        for windows in reader:
            payload.add_interval(windows)
            alerts.add_interval(windows)
    signs, _ = signs_of(alerts.alerts)
    return Gathered(payload, signs, reader.warning, bool(reader.damage) or payload.summary.damaged)


def _of_box(path: str) -> Gathered:
    """A box holds the alerts that were told, so that none has to be made."""
    with Box(path) as box:
        payload = Payload(box.header)
        for windows in box.intervals(_EVER_NS):
            payload.add_interval(windows)
        signs, _ = signs_of(box.alerts())
        missing = {name: number for name, number in asdict(box.missing).items() if number}
    warning = f"The black box lacks {what_is_missing(missing)}." if missing else ""
    return Gathered(payload, signs, warning, bool(box.missing.damaged) or payload.summary.damaged)
