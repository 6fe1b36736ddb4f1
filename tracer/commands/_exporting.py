"""What an export writes: the bytes of each format, and the folder of a table per file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any

from tracer.commands._selecting import Intervals
from tracer.commands._streams import aside
from tracer.errors import UsageError

if TYPE_CHECKING:
    from tracer.analysis.source import Source

__all__ = ["OF_STACKS", "TABLES", "pieces", "say", "write_folder"]

OF_STACKS = ("folded", "speedscope", "pprof")
TABLES = ("json", "csv")
_MOST_FILES = 256  # a recording may name any number of tables


def pieces(
    form: str, parts: Intervals, source: Source, header: Mapping[str, Any], file: str, idle: bool
) -> Iterator[bytes]:
    """Return the bytes of the recording in the format ``form``. Raises UsageError where it holds none."""
    if form == "json":
        from tracer.reports.export.tables import json_document

        return json_document(header, parts, parts.selection, set())
    if form == "csv":
        from tracer.reports.export.tables import CsvTables

        tables = CsvTables(source, parts.selection)
        return _some((text for windows in parts for _, text in tables.lines(windows)), "rows of that table")
    return _stacks(form, parts, source, file, idle)


def _stacks(form: str, parts: Intervals, source: Source, file: str, idle: bool) -> Iterator[bytes]:
    from tracer.reports.export.folded import folded
    from tracer.reports.export.pprof import pprof
    from tracer.reports.export.speedscope import speedscope
    from tracer.reports.export.stacks import StackWeights
    from tracer.reports.sections.stacks import hidden
    from tracer.units import duration, percent

    weights = StackWeights(source, parts.selection, threads=form != "folded", idle=idle)
    recorded = False
    for windows in parts:
        weights.add_interval(windows)
        recorded = recorded or any(window.probe in ("oncpu", "offcpu") for window in windows)
    if not recorded:
        raise UsageError(f"{file} holds no stacks.", hint="they are recorded with: foreshock record --deep")
    if not weights.present():
        if weights.idle.ns:
            raise UsageError("all stacks of that part are idle waits.", hint="--idle shows them")
        raise UsageError(
            f"{file} holds no stacks of that part.", hint="choose another --range, --pid, --cpus or --series"
        )
    if weights.unkept:
        say(f"warning: {weights.unkept} stacks or functions are without names: too many to keep.")
    title = f"{os.path.basename(file)} of {source.host or 'unknown host'}"
    if not idle and (note := hidden(weights.idle)):
        say(note)
        title += f", without {percent(weights.idle.share)} of {duration(weights.idle.total_ns)} off the CPU: idle waits"
    if form == "folded":
        return folded(weights)
    return speedscope(weights, title) if form == "speedscope" else pprof(weights, source, f"foreshock: {title}")


def write_folder(path: str, parts: Intervals, source: Source) -> None:
    """Write a file per table into a new folder."""
    from tracer.commands._output import new_folder
    from tracer.reports.export.tables import CsvTables

    tables = CsvTables(source, parts.selection)
    with new_folder(path) as opened:
        files: dict[str, IO[bytes]] = {}
        left_out = set()
        try:
            for windows in parts:
                for name, text in tables.lines(windows):
                    if name not in files and (len(files) >= _MOST_FILES or not _is_file_name(name)):
                        left_out.add(name)
                        continue
                    if name not in files:
                        files[name] = opened(f"{name}.csv")
                    files[name].write(text)
        finally:
            for file in files.values():
                file.close()
    if left_out:
        say(f"warning: {len(left_out)} tables left out: too many, or their names are no file names.")


def _is_file_name(name: str) -> bool:
    return name.isascii() and name.replace(".", "").replace("_", "").replace("-", "").isalnum() and len(name) < 200


def _some(pieces: Iterable[bytes], what: str) -> Iterator[bytes]:
    """Yield the pieces. Raises UsageError when there is none."""
    none = True
    for piece in pieces:
        none = False
        yield piece
    if none:
        raise UsageError(f"the recording holds no {what} in that part.", hint="choose another --range, --pid or --cpu")


def say(text: str) -> None:
    """Tell on standard error what the exported bytes can't say."""
    from tracer.escape import printable

    aside(f"foreshock: {printable(text)}")
