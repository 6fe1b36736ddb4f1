"""Stacks of tasks that are still blocked: kept until they run again, however many intervals later."""

from __future__ import annotations

import numpy as np

from tracer.kernel.hashes import Hash
from tracer.kernel.session import Session
from tracer.layouts import layout
from tracer.probe import Probe

__all__ = ["BlockedStacks"]

Stacks = dict[int, dict[int, bytes]]


class BlockedStacks:
    """Addresses by generation and stack id: of the last generation all, of older ones those that tasks refer to.

    A task that ran again just after its half was emptied is counted in the next one. So what was referred to at one
    read stays until after the next; memory is bounded by the number of tasks.
    """

    def __init__(self, session: Session, probe: Probe) -> None:
        room = {**probe.settings, **session.options.constants}[f"{probe.name.upper()}_TASKS"]
        task = layout(probe.name, f"{probe.name}_task")
        self._tasks = Hash(session.descriptor(f"{probe.name}_tasks"), np.dtype("u4"), task, room)
        self._kept: Stacks = {}
        self._referred: set[tuple[int, int]] = set()
        self._look = self._tasks.read()

    @property
    def tasks(self) -> tuple[np.ndarray, np.ndarray]:
        """The elements of the tasks' map as of the last ``known``: threads' ids, and ``struct offcpu_task``."""
        return self._look

    def known(self, generation: int, stacks: dict[int, bytes]) -> Stacks:
        """Return all stacks that counts of ``generation`` can refer to, ``stacks`` being its own."""
        known = {**self._kept, generation: stacks}
        referred = self._read()
        self._kept = {generation: stacks}
        for older, number in referred | self._referred:
            found = known.get(older, {}).get(number)
            if found is not None and older != generation:
                self._kept.setdefault(older, {})[number] = found
        self._referred = referred
        return known

    def _read(self) -> set[tuple[int, int]]:
        self._look = self._tasks.read()
        tasks = self._look[1]
        tasks = tasks[tasks["blocked_ns"] > 0]
        return {
            (generation, number)
            for name in ("kernel_stack", "user_stack")
            for generation, number in zip(tasks["generation"].tolist(), tasks[name].tolist(), strict=True)
            if number >= 0
        }
