"""Counts in two halves, one of which programs fill while the other is read and emptied; see bpf/stacks.h."""

from __future__ import annotations

import time

import numpy as np

from tracer.layouts import constants

__all__ = ["Halves"]

# Stores of another CPU are seen within nanoseconds; a program takes microseconds, unless its virtual CPU is halted.
_SETTLE_SECONDS = 0.0002
_SETTLE_AT_MOST = 0.1


class Halves:
    """Turns the halves of a probe over: ``rows`` are its live rows per CPU, ``control`` the live ``stack_control``."""

    def __init__(self, rows: np.ndarray, control: np.ndarray) -> None:
        self._rows, self._control = rows, control
        self._known = constants("stacks")

    def turn(self) -> tuple[int, bool]:
        """Have programs fill the other half; return the generation that is over, and whether all have left it."""
        generation = int(self._control["generation"][0])
        self._control["generation"][0] = (generation + 1) & 0xFFFFFFFF
        return generation, self._settled(generation)

    def _settled(self, generation: int) -> bool:
        inside = generation + self._known["STACK_INSIDE"]
        until = time.monotonic() + _SETTLE_AT_MOST
        while time.monotonic() < until:
            time.sleep(_SETTLE_SECONDS)
            use = self._rows["use"]["inside"]
            if not ((use == self._known["STACK_ENTERING"]) | (use == inside)).any():
                return True
        return False
