"""What a window's description may say, the same for who writes it and who reads it."""

from __future__ import annotations

from typing import Any

from tracer.errors import RecordingError
from tracer.recording.dtypes import MAX_LAYOUTS

__all__ = ["MAX_ROWS", "check_description"]

MAX_ROWS = 1 << 22  # rows without a column take no bytes
_MAX_NAME = 255
_MAX_LOSSES = 256
_U64 = 1 << 64
_I63 = 1 << 63
_CHECKED = ("probe", "table", "start_ns", "end_ns", "rows", "layout", "losses")


def check_description(description: dict[str, Any]) -> None:
    """Raise RecordingError unless a window's description, its columns aside, is one that any reader takes."""
    # Of every window that is written or read: what is as it should be is found so in one go.
    probe, table, start_ns, end_ns, rows, layout, losses = map(description.get, _CHECKED)
    if not (
        isinstance(probe, str)
        and isinstance(table, str)
        and len(probe) <= _MAX_NAME
        and len(table) <= _MAX_NAME
        and type(start_ns) is type(end_ns) is type(rows) is type(layout) is int
        and 0 <= start_ns <= end_ns < _I63
        and 0 <= rows <= MAX_ROWS
        and 0 <= layout < MAX_LAYOUTS
    ):
        raise RecordingError(_wrong(description))
    if not isinstance(losses, dict) or len(losses) > _MAX_LOSSES:
        raise RecordingError("a window's losses are not a map.")
    for reason, number in losses.items():
        if type(number) is not int or not 0 <= number < _U64 or not isinstance(reason, str) or len(reason) > _MAX_NAME:
            raise RecordingError("a window's losses are not numbers by name.")


def _wrong(description: dict[str, Any]) -> str:
    for key in ("probe", "table"):
        if not isinstance(name := description.get(key), str) or len(name) > _MAX_NAME:
            return f"a window's {key} is not a name."
    for key, limit in (("start_ns", _I63), ("end_ns", _I63), ("rows", MAX_ROWS + 1), ("layout", MAX_LAYOUTS)):
        if type(number := description.get(key)) is not int or not 0 <= number < limit:
            return f"a window's {key} is out of range."
    return "a window ends before it starts."
