"""Stacks as people read them, for tests of the probes that take them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from subprocess import run

import numpy as np
import pytest
from kernel.traced import Traced

from tracer.window import Window

__all__ = ["Stacks", "compiled"]


class Stacks:
    """One probe's windows added up: ``rows`` of all of them, ``names`` of any stack's frames, ``losses``."""

    def __init__(self, traced: Traced, probe: str) -> None:
        self._traced, self._probe = traced, probe
        self._frames: dict[int, np.void] = {}
        self._stacks: dict[int, dict[int, int]] = {}
        self._rows: list[np.ndarray] = []
        self.losses: dict[str, int] = {}
        # What came before the test: the stacks it told stand, its samples don't count.
        self.collect()
        self._rows, self.losses = [], {}

    @property
    def rows(self) -> np.ndarray:
        return np.concatenate(self._rows)

    def collect(self, *, complete: bool = False) -> Mapping[str, Window]:
        """Add the interval that ends now, ``complete`` if it is the last one."""
        windows = self._traced.collect(complete=complete)
        samples = windows[f"{self._probe}.samples"]
        self._rows.append(samples.rows)
        for reason, number in samples.losses.items():
            self.losses[reason] = self.losses.get(reason, 0) + number
        for frame in windows[f"{self._probe}.frames"].rows:
            assert int(frame["frame"]) not in self._frames
            self._frames[int(frame["frame"])] = frame
        for stack in windows[f"{self._probe}.stacks"].rows:
            self._stacks.setdefault(int(stack["stack"]), {})[int(stack["depth"])] = int(stack["frame"])
        return windows

    def names(self, stack: int, kind: bytes) -> list[str]:
        """Return the functions of one part of a stack, innermost first; depths are without a gap."""
        if not stack:
            return []
        frames = self._stacks[int(stack)]
        assert sorted(frames) == list(range(len(frames)))
        found = (self._frames[frames[depth]] for depth in sorted(frames))
        return [frame["symbol"].decode() for frame in found if frame["kind"] == kind]

    def of(self, pid: int) -> np.ndarray:
        """Return the rows of one process."""
        rows = self.rows
        return rows[rows["pid"] == pid]

    def weight(self, rows: np.ndarray, function: str, kind: bytes) -> int:
        """Return how much of ``rows`` has a function in its stack."""
        return sum(int(row["weight"]) for row in rows if function in self.names(row["stack"], kind))


def compiled(folder: Path, text: str, *flags: str) -> Path:
    """Compile a C program whose every function has a frame; skip without gcc."""
    source, program = folder / "program.c", folder / "program"
    source.write_text(text)
    try:
        run(["gcc", "-O0", "-fno-omit-frame-pointer", *flags, "-o", program, source], check=True)
    except FileNotFoundError:
        pytest.skip("no gcc")
    return program
