"""Copy a box: as it is, or with its names redacted."""

from __future__ import annotations

import os
import shutil

from tracer.alerts.record import alert_from, alert_record
from tracer.blackbox.box import Box
from tracer.blackbox.columns import has_names, has_texts
from tracer.blackbox.layout import MOST_SIZE, Geometry
from tracer.blackbox.log import File, Log, Position
from tracer.blackbox.redact import Redactor
from tracer.blackbox.scan import Found
from tracer.blackbox.tally import frame_of
from tracer.blackbox.unnamed import unnamed_alert, unnamed_header
from tracer.errors import RecordingError
from tracer.recording import FrameDecoder, FrameEncoder, Kind
from tracer.recording.frames import pack_frame
from tracer.recording.payload import unpack_payload

__all__ = ["copy_box", "redact_box"]

_ALL_NS = 1 << 63


def copy_box(path: str, target: str) -> None:
    """Copy the file: a box that is being written may lack its last records, and is still a box. Raises OSError."""
    shutil.copyfile(path, target)


def redact_box(box: Box, target: str, redactor: Redactor) -> int:
    """Write ``box`` to ``target`` with every name redacted; return how many records could not be understood.

    Those are left out: nobody knows what is in them. Raises OSError.
    """
    redactor.learn_header(box.header)
    for windows in box.intervals(_ALL_NS, has_names):
        redactor.learn_windows(windows)
    for alert in box.alerts():
        redactor.learn_alert(alert)
    # Hashes may take more room than names.
    geometry = Geometry.of_size(min(MOST_SIZE, box.size_bytes + box.size_bytes // 4))
    left_out = 0
    fd = os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.ftruncate(fd, geometry.size_bytes)
        log: Log | None = None
        header = b""
        at = Position.of(geometry)
        for found in box.records():
            frame = _redacted(found, redactor)
            if frame is None:
                left_out += 1
            elif found.head.kind == Kind.HEADER:
                if log is None or frame != header:
                    header = frame
                    log = Log(File(fd), geometry, header, run=found.segment.run, boot_id=box.boot_id, at=at)
            elif log is not None:
                log.append(frame, found.head)
    finally:
        os.close(fd)
    return left_out


def _redacted(found: Found, redactor: Redactor) -> bytes | None:
    try:
        frame = frame_of(found)
        if frame.kind == Kind.WINDOWS:
            return FrameDecoder().changed(frame, has_texts, redactor.window)
        if frame.kind == Kind.HEADER:
            return FrameEncoder().header(unnamed_header(FrameDecoder().header(frame), redactor))
        if frame.kind == Kind.ALERT:
            alert = unnamed_alert(alert_from(unpack_payload(frame.payload)[0]), redactor)
            return pack_frame(Kind.ALERT, alert_record(alert))
        if frame.kind == Kind.END:
            return pack_frame(Kind.END, unpack_payload(frame.payload)[0])
    except (RecordingError, ValueError):
        return None
    return None
