"""Probes attached for a test, and their windows."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from tracer import histogram
from tracer.collect.collector import Collector
from tracer.kernel import cpus
from tracer.kernel.cgroups import CgroupNames
from tracer.kernel.job import Options, ordered
from tracer.kernel.session import attach
from tracer.probes import all_probes
from tracer.window import Window

__all__ = ["Traced", "counted"]


class Traced:
    """Attached probes and what they require. Each ``collect`` returns the windows since the last, by "probe.table".

    ``constants`` override the probes' settings; FILTER_TGID limits those that can be limited.
    """

    def __init__(self, names: Sequence[str], **constants: int) -> None:
        cgroups = CgroupNames()
        every = all_probes()
        options = Options(cpus.possible_count(), cpus.online(), constants={**constants, **cgroups.constants})
        self.session = attach(ordered((every[name] for name in names), every), options)
        assert not self.session.refused
        self._collector = Collector(self.session, cgroups)

    def collect(self, *, complete: bool = False) -> dict[str, Window]:
        windows = self._collector.collect(complete=complete)
        return {f"{window.probe}.{window.table}": window for window in windows}

    def close(self) -> None:
        with suppress(AttributeError):  # the constructor may have stopped half-way
            self._collector.close()
        self.session.close()


def counted(rows: np.ndarray | np.void) -> int:
    """Return how many values the histograms of some rows hold."""
    return int(histogram.count(rows["slots"]).sum())
