"""Runs as they are kept beside their logs, so that a page has the latest of each scenario, and can be made again."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from .kernels import cache
from .receiver import Line
from .scenarios import SCENARIOS
from .score import Run

__all__ = ["keep", "kept"]


def keep(run: Run) -> None:
    """Keep a run in place of the scenario's earlier one."""
    record = {
        "kernel": run.kernel,
        "measured": run.measured,
        "story": run.story,
        "lines": [asdict(line) for line in run.lines],
    }
    _file(run.scenario.name).write_text(json.dumps(record))


def kept() -> list[Run]:
    """Return the latest run of each scenario that has one, in the scenarios' order."""
    return [_read(name) for name in SCENARIOS if _file(name).exists()]


def _read(name: str) -> Run:
    record = json.loads(_file(name).read_text())
    lines = tuple(Line(**line) for line in record["lines"])
    return Run(SCENARIOS[name], record["kernel"], lines, record["story"], record["measured"])


def _file(name: str) -> Path:
    return cache() / "runs" / f"{name}.json"
