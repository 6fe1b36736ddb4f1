"""The summary of one recording, as `summary` prints it and `record` ends with."""

from __future__ import annotations

import shutil

import click

from tracer.analysis.source import Source
from tracer.analysis.summary import Summary
from tracer.analysis.verdict import judge
from tracer.recording import RecordingReader
from tracer.reports import text

__all__ = ["print_summary"]


def print_summary(path: str) -> None:
    """Read a recording and print what it says. Raises RecordingError."""
    with RecordingReader(path) as reader:
        source = Source.from_header(reader.header)
        summary = Summary(source.interval_ns)
        for windows in reader:
            summary.add_interval(windows)
    for line in text.render(summary, judge(summary), source, width=shutil.get_terminal_size((80, 24)).columns):
        click.echo(line)
