"""Windows to frames and back, for a file or a connection.

A table's dtype is sent once, in the frame that uses it first, so every frame can be decoded from those before it.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tracer.errors import OutputError, RecordingError
from tracer.recording.dtypes import MAX_LAYOUTS, describe, parse_all
from tracer.recording.frames import Frame, Kind, pack_frame
from tracer.recording.packing import join_windows, pack
from tracer.recording.payload import PLACE_OF_MAP, unpack_payload
from tracer.recording.rows import decode_window, encode_window, fill_window, pass_window, skip_window
from tracer.window import Window

__all__ = ["MAX_ROWS_BYTES", "FrameDecoder", "FrameEncoder"]

MAX_ROWS_BYTES = 48 << 20  # one interval in memory: 40,000 histogram rows
_MAX_WINDOWS = 1024
_TWO_KEYS = b"\x82"  # how a msgpack map of two starts


class FrameEncoder:
    """Encodes one recording or connection: ``header`` first, then ``windows`` per interval, then ``end``."""

    def __init__(self) -> None:
        self._layouts: dict[np.dtype, int] = {}
        self._sequence = 0

    def header(self, header: Mapping[str, Any]) -> bytes:
        """Return the header's frame; ``architecture`` is added unless the header has it.

        Raises OutputError when it is too large or holds what msgpack can't.
        """
        try:
            return pack_frame(Kind.HEADER, {"architecture": platform.machine(), **header})
        except (ValueError, TypeError, OverflowError) as error:
            raise OutputError(f"the recording's header can't be written: {error}.", hint="please report this") from None

    def windows(self, windows: Sequence[Window]) -> bytes:
        """Return one interval's frame.

        Raises OutputError when the interval is too large for a reader's limits, ValueError for rows that no
        recording can hold (objects, unicode, no fields).
        """
        size = sum(window.rows.nbytes for window in windows)
        if size > MAX_ROWS_BYTES or len(windows) > _MAX_WINDOWS:
            raise _too_large(f"{len(windows)} windows of {size} bytes; the most is {_MAX_WINDOWS} of {MAX_ROWS_BYTES}")
        layouts, new, forget = self._layouts_of(windows)
        described, data = [], []
        for window in windows:
            description, columns = encode_window(window, layouts[window.rows.dtype])
            described.append(description)
            data += columns
        more: dict[str, Any] = {"layouts": new} if new else {}
        if forget:
            more["forget"] = True
        try:
            # Windows have been checked one by one, columns when their layout was new.
            structure = join_windows(self._sequence, described, more)
            frame = pack_frame(Kind.WINDOWS, structure, b"".join(data), checked=not new)
        except ValueError as error:
            raise _too_large(str(error)) from None
        # Only now: a frame that could not be made has defined nothing.
        self._layouts, self._sequence = layouts, self._sequence + 1
        return frame

    def end(self) -> bytes:
        """Return the closing frame, by which a reader knows that nothing is missing."""
        return pack_frame(Kind.END, {"intervals": self._sequence})

    def _layouts_of(self, windows: Sequence[Window]) -> tuple[dict[np.dtype, int], list[Any], bool]:
        dtypes = dict.fromkeys(window.rows.dtype for window in windows)
        known = self._layouts
        if dtypes.keys() <= known.keys():
            return known, [], False
        forget = len(known.keys() | dtypes.keys()) > MAX_LAYOUTS
        layouts = {} if forget else dict(known)
        new = []
        for dtype in dtypes:
            if dtype not in layouts:
                layouts[dtype] = len(layouts)
                new.append(describe(dtype))
        if len(layouts) > MAX_LAYOUTS:
            raise _too_large(f"{len(layouts)} kinds of rows; the most is {MAX_LAYOUTS}")
        return layouts, new, forget


class FrameDecoder:
    """Decodes the frames of one recording or connection, in their order."""

    def __init__(self) -> None:
        self._layouts: list[np.dtype] = []
        self._sequence = 0

    def header(self, frame: Frame) -> dict[str, Any]:
        """Return the header's map; its ``probes``, if any, are a list of maps. Raises RecordingError."""
        header, _ = unpack_payload(frame.payload)
        probes = header.get("probes", [])
        if not isinstance(probes, list) or not all(isinstance(probe, dict) for probe in probes):
            raise RecordingError("the header's probes are not a list of maps.")
        return header

    def windows(self, frame: Frame, tables: Container[tuple[str, str]] | None = None) -> list[Window]:
        """Return one interval's windows, with rows of their own; only ``tables``, if given. Raises RecordingError."""
        described, data = self._opened(frame)
        room = MAX_ROWS_BYTES
        windows = []
        for item in described:
            if tables is not None and isinstance(item, dict) and (item.get("probe"), item.get("table")) not in tables:
                data = pass_window(item, self._layouts, data)
                continue
            window, data = decode_window(item, self._layouts, data, room)
            room -= window.rows.nbytes
            windows.append(window)
        if data:
            raise RecordingError("an interval has bytes that belong to no column.")
        self._sequence += 1
        return windows

    def some(self, frame: Frame, wanted: Callable[[np.dtype], bool]) -> list[Window]:
        """Return an interval's windows whose rows are ``wanted``, for less than all of them. Raises RecordingError."""
        structure, data = unpack_payload(frame.payload)
        return [window for _, _, window in self._looked_through(structure, data, wanted) if window]

    def changed(self, frame: Frame, wanted: Callable[[np.dtype], bool], change: Callable[[Window], Window]) -> bytes:
        """Return the frame with those of its windows changed whose rows are ``wanted``, the others as they are.

        ``change`` keeps the dtype. Raises RecordingError; ValueError for what no recording can hold.
        """
        structure, data = unpack_payload(frame.payload)
        described: list[bytes] = []
        parts: list[bytes | memoryview] = []
        for description, columns, window in self._looked_through(structure, data, wanted):
            if window:
                packed, changed = encode_window(change(window), description["layout"])
                described.append(packed)
                parts += changed
            else:
                described.append(pack(description))
                parts.append(columns)
        more: dict[str, Any] = {key: structure[key] for key in ("layouts", "forget") if key in structure}
        return pack_frame(Kind.WINDOWS, join_windows(structure["sequence"], described, more), b"".join(parts))

    def _looked_through(
        self, structure: dict[str, Any], data: memoryview, wanted: Callable[[np.dtype], bool]
    ) -> Iterator[tuple[dict[str, Any], memoryview, Window | None]]:
        """Yield each window's description, its columns, and itself if it has rows and they are ``wanted``."""
        room = MAX_ROWS_BYTES
        for item in self._begun(structure):
            description, columns, data = skip_window(item, self._layouts, data)
            window = None
            if description["rows"] and wanted(self._layouts[description["layout"]]):
                window, _ = fill_window(description, self._layouts, columns, room)
                room -= window.rows.nbytes
            yield description, columns, window
        self._sequence += 1

    def passes(self, start: bytes) -> bool:
        """Return whether an interval can be left out whose payload starts so; then it counts as read.

        It can unless its map has more than a sequence and windows: layouts, that is, which later ones need.
        """
        plain = start[PLACE_OF_MAP : PLACE_OF_MAP + 1] == _TWO_KEYS
        self._sequence += plain
        return plain

    def skip(self, frame: Frame) -> None:
        """Learn from an interval's frame, whose columns may be missing, what later ones need. Raises RecordingError."""
        self._opened(frame)
        self._sequence += 1

    def end(self, frame: Frame) -> None:
        """Check the closing frame against what was read. Raises RecordingError."""
        structure, _ = unpack_payload(frame.payload)
        if structure.get("intervals") != self._sequence:
            raise RecordingError(f"the closing frame disagrees with the {self._sequence} intervals before it.")

    @property
    def layouts(self) -> Sequence[np.dtype]:
        """What has been described so far; another sequence once a frame changed it."""
        return self._layouts

    def copy(self) -> FrameDecoder:
        """Return a decoder that goes on from here, for who keeps a frame and decodes it later, or again."""
        other = FrameDecoder()
        other._layouts, other._sequence = self._layouts, self._sequence
        return other

    def _opened(self, frame: Frame) -> tuple[list[Any], memoryview]:
        """Return the descriptions of an interval's windows, and their columns."""
        structure, data = unpack_payload(frame.payload)
        return self._begun(structure), data

    def _begun(self, structure: dict[str, Any]) -> list[Any]:
        """Return the descriptions of an interval's windows, having learnt what they need."""
        if structure.get("sequence") != self._sequence:
            raise RecordingError(f"interval {self._sequence} is missing or out of order.")
        self._learn(structure)
        described = structure.get("windows")
        if not isinstance(described, list) or len(described) > _MAX_WINDOWS:
            raise RecordingError("an interval's windows are not a list.")
        return described

    def _learn(self, structure: dict[str, Any]) -> None:
        new = structure.get("layouts", [])
        known = [] if structure.get("forget") is True else self._layouts
        if not isinstance(new, list) or len(known) + len(new) > MAX_LAYOUTS:
            raise RecordingError("an interval describes too many kinds of rows.")
        if new or known is not self._layouts:
            self._layouts = known + parse_all(new)


def _too_large(why: str) -> OutputError:
    return OutputError(f"an interval is too large to record: {why}.", hint="record fewer probes at once")
