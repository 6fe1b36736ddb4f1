"""Boxes, alerts and disks for the black box's tests."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from unit.recording_samples import HEADER, interval

from tracer.alerts.alert import Alert, Condition, Countdown, Culprit, Severity, State, Subject, alert_id
from tracer.alerts.record import alert_record
from tracer.blackbox.layout import Geometry, Note
from tracer.blackbox.log import File, Log, Position
from tracer.recording import FrameEncoder, Kind
from tracer.recording.frames import pack_frame

SECOND = 1_000_000_000
BOOT = "1a2b3c4d-0000-4000-8000-000000000001"
UNIX_NS = 1_796_000_000 * SECOND  # of the node's monotonic 0
SMALL = Geometry.of_size(64 << 10)


def header(**more) -> dict:
    return {**HEADER, "host": "cu39", "boot_id": BOOT, "interval_ns": SECOND, "clock_offset_ns": UNIX_NS, **more}


def alert(at_s: float = 10, *, rule="soft-lockup", state=State.FIRING, severity=Severity.PAGE, began_s=9.0, **more):
    began_ns, at_ns = int(began_s * SECOND), int(at_s * SECOND)
    subject = more.pop("subject", Subject("cpu", "1"))
    condition = Condition(
        subject=subject,
        severity=severity,
        summary=more.pop("summary", "CPU 1 stuck in softirq TIMER"),
        since_ns=began_ns,
        numbers={"stalled_s": at_s - began_s},
        culprit=more.pop("culprit", Culprit("python3[4411]", "softirq TIMER", ("spin_fn", "call_timer_fn"), "lab")),
        countdown=more.pop("countdown", Countdown("soft lockup detector", began_ns + 24 * SECOND, True)),
    )
    given = {"node": "cu39", "boot_id": BOOT, "title": "stuck CPU", "next": "drain it", "sequence": 1, **more}
    return Alert(
        id=alert_id(BOOT, rule, subject, began_ns),
        rule=rule,
        state=state,
        condition=condition,
        began_ns=began_ns,
        at_ns=at_ns,
        unix_ns=UNIX_NS + at_ns,
        **given,
    )


def windows_frame(number: int, rows: int = 4) -> bytes:
    # Of a probe that nobody knows: these rows are not those of the real one.
    return FrameEncoder().windows([replace(window, probe="lab") for window in interval(number, rows)])


def alert_frame(one: Alert) -> bytes:
    return pack_frame(Kind.ALERT, alert_record(one))


class Feed:
    """Appends to a log at the times of the node's clock."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self._sequence = 0

    def windows(self, number: int, rows: int = 4) -> None:
        self._append(windows_frame(number, rows), Kind.WINDOWS, (number + 1) * SECOND)

    def alert(self, one: Alert) -> None:
        self._append(alert_frame(one), Kind.ALERT, one.at_ns)

    def end(self, at_s: float, reason: str = "stopped") -> None:
        self._append(pack_frame(Kind.END, {"reason": reason}), Kind.END, int(at_s * SECOND))

    def _append(self, frame: bytes, kind: Kind, at_ns: int) -> None:
        self.append(frame, kind, at_ns, UNIX_NS + at_ns)

    def append(self, frame: bytes, kind: int, at_ns: int, unix_ns: int) -> None:
        """Append a frame, or what is none."""
        try:
            self.log.append(frame, Note(kind, self._sequence, 0, at_ns, unix_ns))
        finally:
            self._sequence += 1


@contextmanager
def box(path: Path, geometry: Geometry = SMALL, *, run: int = 7, boot_id: str = BOOT, **more) -> Iterator[Feed]:
    """Make a box at ``path`` without a process."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.ftruncate(fd, geometry.size_bytes)
    frame = FrameEncoder().header(header(boot_id=boot_id, **more))
    try:
        yield Feed(Log(File(fd), geometry, frame, run=run, boot_id=boot_id, at=Position.of(geometry)))
    finally:
        os.close(fd)


def sample_box(path: Path, *, seconds: int = 8, goodbye: bool = False, **more) -> Path:
    """A box with some seconds of windows, and an alert that fires in their middle and to the end."""
    with box(path, Geometry.of_size(1 << 20), **more) as feed:
        for second in range(seconds):
            feed.windows(second)
            if second == seconds // 2:
                feed.alert(alert(second + 1, began_s=second))
        if goodbye:
            feed.end(seconds)
    return path


class RecordedDisk:
    """A disk that remembers its writes and syncs, to be cut off from power afterwards."""

    def __init__(self) -> None:
        self.done: list[tuple[int, bytes] | None] = []

    def write(self, pieces: Sequence[bytes | memoryview], offset: int) -> None:
        self.done.append((offset, b"".join(pieces)))

    def sync(self) -> None:
        self.done.append(None)
