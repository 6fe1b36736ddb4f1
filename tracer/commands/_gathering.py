"""Gather what a report needs, from a recording or from a black box, with or without its names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tracer.alerts.alert import Alert
from tracer.blackbox.box import Box, is_box
from tracer.commands._alerts import ReplayedAlerts
from tracer.commands._redacting import without_names
from tracer.commands._run import missing_of
from tracer.commands._streams import aside
from tracer.recording import RecordingReader
from tracer.recording.paths import shown
from tracer.reports.html.payload import Payload
from tracer.reports.occasion import foremost
from tracer.reports.story import Sign, signs_of

if TYPE_CHECKING:
    from tracer.blackbox.redact import Redactor

__all__ = ["Gathered", "gather"]

_EVER_NS = 1 << 63


@dataclass(frozen=True)
class Gathered:
    """A run, its alerts, and in words what is missing of it; ``damaged`` when a part of it could not be read.

    ``name`` is the file's, unless names are hidden.
    """

    payload: Payload
    signs: Sequence[Sign]
    warning: str
    damaged: bool
    name: str = ""


def gather(path: str, redactor: Redactor | None = None, *, idle: bool = False) -> Gathered:
    """Read the recording or the black box at ``path``; "-" is standard input. Raises RecordingError.

    Idle waits are shown from the start if ``idle``.
    """
    if Path(path).is_fifo():
        aside(f"foreshock: {shown(path)} is a named pipe: waits until somebody writes to it; Ctrl-C ends it")
    boxed = path != "-" and is_box(path)
    found = _of_box(path, redactor, idle) if boxed else _of_recording(path, redactor, idle)
    if redactor is None:
        return replace(found, name="standard input" if path == "-" else os.path.basename(path))
    name = "black box" if boxed else "recording"
    return replace(found, name=name, warning=found.warning.replace(shown(path), f"The {name}"))


def _of_recording(path: str, redactor: Redactor | None, idle: bool) -> Gathered:
    with RecordingReader(path) as reader:
        header, intervals = without_names(reader, redactor)
        payload = Payload(header, idle)
        alerts = ReplayedAlerts(payload.source)
        for windows in intervals:
            payload.add_interval(windows)
            alerts.add_interval(windows)
    signs, _ = signs_of(alerts.alerts)
    return Gathered(payload, signs, reader.warning, bool(reader.damage) or payload.summary.damaged)


def _of_box(path: str, redactor: Redactor | None, idle: bool) -> Gathered:
    """A box holds the alerts that were told, so that none has to be made."""
    from tracer.blackbox.columns import has_names
    from tracer.blackbox.unnamed import unnamed_alert, unnamed_header

    with Box(path) as box:
        alerts: Iterable[Alert] = box.alerts()
        if redactor:
            redactor.learn_header(box.header)
            for windows in box.intervals(_EVER_NS, has_names):
                redactor.learn_windows(windows)
            told = [*alerts]
            for alert in told:
                redactor.learn_alert(alert)
            alerts = [unnamed_alert(alert, redactor) for alert in told]
        signs, _ = signs_of(alerts)
        header = unnamed_header(box.header, redactor) if redactor else box.header
        payload = Payload(header, idle, foremost(signs))
        for windows in box.intervals(_EVER_NS):
            payload.add_interval(windows if redactor is None else [redactor.window(one) for one in windows])
        warning = missing_of(box)
    return Gathered(payload, signs, warning, bool(box.missing.damaged) or payload.summary.damaged)
