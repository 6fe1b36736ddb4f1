"""Every table of a recording as JSON or CSV, with the columns and units of docs/probes.md."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from tracer.analysis.rows import text
from tracer.analysis.source import Source
from tracer.escape import printable
from tracer.histogram import SLOTS, edges_ns
from tracer.reports.export.selection import Selection
from tracer.reports.json import dumps
from tracer.window import Window

__all__ = ["SCHEMA", "CsvTables", "json_document"]

SCHEMA = "foreshock.export/1"
_COMMON = ("time", "start_ns", "end_ns")
_LEVELS = 32
#: Hashes of 64 bits: strings always, so that they compare whatever reads them.
_IDS = ("stack", "frame")
# A spreadsheet takes what begins so for a formula.
_FORMULA = ("=", "+", "-", "@")


def json_document(
    header: Mapping[str, Any], intervals: Iterable[list[Window]], selection: Selection, found: set[str]
) -> Iterator[bytes]:
    """Yield one JSON object with the header and a list of windows, a window a line; ``found`` learns their names."""
    yield f'{{"schema":{dumps(SCHEMA)},"header":{dumps(_shallow(header))},"windows":['.encode()
    separator = "\n"
    for windows in intervals:
        inside = selection.has(windows)
        for window in windows:
            rows = selection.rows(window, inside)
            if rows is None:
                continue
            found.add(f"{window.probe}.{window.table}")
            told = {
                "probe": window.probe,
                "table": window.table,
                "start_ns": window.start_ns,
                "end_ns": window.end_ns,
                "losses": dict(window.losses),
                "rows": list(_records(rows)),
            }
            yield f"{separator}{dumps(told)}".encode()
            separator = ",\n"
    yield b"\n]}\n"


def _shallow(value: Any, levels: int = _LEVELS) -> Any:
    """Return a header without what lies deeper than anything that foreshock writes."""
    if not isinstance(value, (Mapping, list, tuple)):
        return value
    if not levels:
        return "…"
    if isinstance(value, Mapping):
        return {name: _shallow(inner, levels - 1) for name, inner in value.items()}
    return [_shallow(inner, levels - 1) for inner in value]


class CsvTables:
    """Turns windows into lines of CSV, one text per table; the first window of a table decides its columns."""

    def __init__(self, source: Source, selection: Selection) -> None:
        self._source, self._selection = source, selection
        self._columns: dict[str, list[str]] = {}

    def lines(self, windows: Iterable[Window]) -> Iterator[tuple[str, bytes]]:
        """Yield ``(probe.table, lines)`` per window that is selected; a table's first lines begin with its heads."""
        windows = [*windows]
        for window in windows:
            if (window.probe, window.table) == ("agent", "clock"):
                self._source.learn_clock(window)
        inside = self._selection.has(windows)
        for window in windows:
            rows = self._selection.rows(window, inside)
            if rows is not None:
                name = f"{window.probe}.{window.table}"
                yield name, self._window(name, window, rows)

    def _window(self, name: str, window: Window, rows: np.ndarray) -> bytes:
        output = io.StringIO()
        writer = csv.writer(output, lineterminator="\n")
        if name not in self._columns:
            self._columns[name] = [*_COMMON, *_names(rows)]
            writer.writerow(_cell(column) for column in self._columns[name])
        start = self._source.unix_ns(window.start_ns)
        time = f"{np.datetime64(int(start), 'ns')}Z" if start == start else ""
        for record in _records(rows):
            record |= {"time": time, "start_ns": window.start_ns, "end_ns": window.end_ns}
            writer.writerow(_cell(record.get(column, "")) for column in self._columns[name])
        return output.getvalue().encode()


def _names(rows: np.ndarray) -> list[str]:
    return list(next(_records(np.zeros(1, rows.dtype))))


def _records(rows: np.ndarray) -> Iterator[dict[str, Any]]:
    """Yield rows as maps; a struct's members stand beside the others, a histogram is its buckets in use."""
    for row in rows:
        yield dict(_fields(row, ""))


def _fields(row: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    for name in row.dtype.names:
        value, kind = row[name], row.dtype[name]
        if kind.names is not None:
            yield from _fields(value, f"{prefix}{name}.")
        elif name == "slots" and kind.shape == (SLOTS,):
            yield f"{prefix}count", int(value.sum(dtype=np.uint64))
            yield f"{prefix}buckets", _buckets(value)
        elif name in _IDS and kind.base.kind == "u":
            yield f"{prefix}{name}", list(map(str, value.tolist())) if kind.shape else str(value)
        elif kind.shape:
            yield f"{prefix}{name}", [text(one) if isinstance(one, bytes) else one for one in np.ravel(value).tolist()]
        else:
            yield f"{prefix}{name}", text(value.item()) if kind.kind == "S" else value.item()


def _buckets(slots: np.ndarray) -> list[list[int | None]]:
    """Return ``[upper edge, count]`` of the buckets in use, in ns; the edge is None above the last one."""
    used = np.flatnonzero(slots).tolist()
    return [[None if slot == SLOTS - 1 else int(edges_ns()[slot]), int(slots[slot])] for slot in used]


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        shown = printable(value)
        return f"'{shown}" if shown.startswith(_FORMULA) else shown
    if isinstance(value, list):
        return " ".join(_item(one) for one in value)
    return value


def _item(value: Any) -> str:
    if isinstance(value, list):
        edge, count = value
        return f"{'+Inf' if edge is None else edge}:{count}"
    return printable(str(value)).replace(" ", "_")
