"""A close-up's files: the recording, and the report made of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from tracer.alerts.record import OCCASION, alert_record
from tracer.closeup.folder import name_of, prune, put
from tracer.closeup.joining import joined
from tracer.closeup.looking import Seen
from tracer.closeup.order import Order
from tracer.recording import RecordingReader, RecordingWriter
from tracer.reports.html.page import page, room
from tracer.reports.html.payload import Payload
from tracer.window import Window

__all__ = ["write_recording", "write_report"]

_REPORT_BYTES = 10 << 20


def write_recording(folder: str, order: Order, seen: Seen, told: Callable[[Sequence[Window]], Any]) -> str:
    """Write what the agent and the deep probes saw as one recording; return its path.

    Its header has the alert; ``told`` is told each interval's windows. Raises OutputError and OSError.
    """
    prune(folder)
    name = f"{name_of(order.alert)}.fsk"
    path, beside = os.path.join(folder, name), os.path.join(folder, f".{name}")
    with RecordingWriter(beside, {**seen.header, OCCASION: alert_record(order.alert)}) as writer:
        for windows in joined(seen.light_intervals(), seen.deep, order.probes):
            writer.write(windows)
            told(windows)
    os.rename(beside, path)
    return path


def write_report(recording: str) -> str:
    """Write the report of a recording beside it; return its path. Raises RecordingError and OSError."""
    with RecordingReader(recording) as reader:
        payload = Payload(reader.header)
        for windows in reader:
            payload.add_interval(windows)
    name = os.path.basename(recording)
    data = payload.text(room(_REPORT_BYTES), title=name, warning=reader.warning)
    text = page(data, f"foreshock: {payload.source.host or name}")
    return put(os.path.dirname(recording), f"{os.path.splitext(name)[0]}.html", text.encode())
