"""speedscope's own format: https://www.speedscope.app/file-format-schema.json."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import tracer
from tracer import brackets
from tracer.analysis.frames import Frame
from tracer.analysis.names import quoted, task
from tracer.escape import printable
from tracer.reports.export.stacks import Kind, StackWeights, WeightedStack

__all__ = ["speedscope"]

# One after the other with n and p; the rest is in the profile of all.
_PROCESSES = 50
_NAMES = 3


def speedscope(weights: StackWeights, name: str) -> Iterator[bytes]:
    """Yield the file in pieces: per kind a profile of all tasks, then one of each of the heaviest processes, in ns."""
    shared = _Frames()
    profiles = [profile for kind in weights.present() for profile in _profiles(kind, weights, shared)]
    document = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "name": printable(name),
        "exporter": f"foreshock@{tracer.__version__}",
        "activeProfileIndex": 0,
        "shared": {"frames": shared.frames},
        "profiles": profiles,
    }
    for piece in json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).iterencode(document):
        yield piece.encode()


def _profiles(kind: Kind, weights: StackWeights, shared: _Frames) -> list[dict[str, Any]]:
    everything: list[WeightedStack] = list(weights.stacks(kind))
    processes: dict[int, list[WeightedStack]] = {}
    for one in everything:
        processes.setdefault(one.pid, []).append(one)
    heaviest = sorted(processes.items(), key=lambda item: -sum(one.ns for one in item[1]))[:_PROCESSES]
    profiles = [_profile(f"{kind.title}: all", everything, shared)]
    for pid, stacks in heaviest:
        profiles.append(_profile(f"{kind.title}: {_called(pid, stacks)}", stacks, shared))
    return profiles


def _called(pid: int, stacks: Sequence[WeightedStack]) -> str:
    # As its own first thread is, if that was seen: by all its names, where it became another program.
    names: dict[str, int] = {}
    for one in stacks:
        if one.comm and one.tid == pid != 0:
            names[one.comm] = names.get(one.comm, 0) + one.ns
    *more, last = sorted(names, key=lambda comm: -names[comm])[:_NAMES] or [stacks[0].comm]
    return ", ".join([*map(quoted, more), task(last, pid)])


def _profile(name: str, stacks: Sequence[WeightedStack], shared: _Frames) -> dict[str, Any]:
    merged: dict[tuple[int, ...], int] = {}
    for one in stacks:
        stack = (shared.number(printable(one.comm) or "?"), *(shared.function(frame) for frame in one.frames))
        merged[stack] = merged.get(stack, 0) + one.ns
    return {
        "type": "sampled",
        "name": printable(name),
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": sum(merged.values()),
        "samples": list(merged),
        "weights": list(merged.values()),
    }


class _Frames:
    """Gives numbers to frames; each is listed once."""

    def __init__(self) -> None:
        self.frames: list[dict[str, str]] = []
        self._numbers: dict[tuple[str, str], int] = {}
        self._functions: dict[Frame, int] = {}

    def function(self, frame: Frame) -> int:
        if frame not in self._functions:
            module = printable(frame.module) or (brackets.KERNEL if frame.kernel else "")
            self._functions[frame] = self.number(printable(frame.symbol) or module or "?", module)
        return self._functions[frame]

    def number(self, name: str, module: str = "") -> int:
        if (name, module) not in self._numbers:
            self._numbers[name, module] = len(self.frames)
            self.frames.append({"name": name, "file": module} if module else {"name": name})
        return self._numbers[name, module]
