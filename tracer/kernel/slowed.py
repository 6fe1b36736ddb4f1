"""How much slower each CPU was than it should be: throttled for heat, and below its nominal frequency."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tracer.kernel.textfiles import number

__all__ = ["Slowed"]

_BASE = "/sys/devices/system/cpu"
#: A core, or its package for all of its cores: ms since boot. Source: arch/x86/kernel/cpu/mce/therm_throt.c.
_HEAT = ("thermal_throttle/core_throttle_total_time_ms", "thermal_throttle/package_throttle_total_time_ms")
_NOW = "cpufreq/scaling_cur_freq"
#: What it keeps up with all cores busy: intel_pstate's in kHz, CPPC's in MHz. The highest one is for few cores only.
_NOMINAL = (("cpufreq/base_frequency", 1), ("acpi_cppc/nominal_freq", 1000))
#: The frequency is a sample: so little below the nominal one is none.
_LEAST_SLOW = 0.03


class Slowed:
    """Reads sysfs below ``base`` for ``cpus``; ``sees_heat`` and ``sees_speed`` whether it shows either."""

    def __init__(self, cpus: Sequence[int], base: str = _BASE) -> None:
        self._folders = {cpu: f"{base}/cpu{cpu}" for cpu in cpus}
        self._size = max(cpus, default=-1) + 1
        self._heat = self._read_heat()
        self._nominal = {cpu: khz for cpu, folder in self._folders.items() if (khz := _nominal_khz(folder))}
        self._before_ns = 0
        self.sees_heat = any(self._heat.values())
        self.sees_speed = any(number(f"{self._folders[cpu]}/{_NOW}") for cpu in self._nominal)

    def take(self, now_ns: int) -> tuple[np.ndarray, np.ndarray]:
        """Return shares by CPU number: of the time since the last call throttled for heat; of speed now missing."""
        hot, slow = np.zeros(self._size), np.zeros(self._size)
        passed_ms = (now_ns - self._before_ns) / 1e6
        if self.sees_heat:
            before, self._heat = self._heat, self._read_heat()
            for cpu, totals in self._heat.items():
                # A CPU that came back counts from 0 again.
                more = [max(new - old, 0) for old, new in zip(before[cpu], totals, strict=False)]
                hot[cpu] = min(max(more, default=0) / passed_ms, 1.0) if self._before_ns else 0.0
        if self.sees_speed:
            for cpu, khz in self._nominal.items():
                missing = 1 - (number(f"{self._folders[cpu]}/{_NOW}") or khz) / khz
                slow[cpu] = missing if missing >= _LEAST_SLOW else 0.0
        self._before_ns = now_ns
        return hot, slow

    def _read_heat(self) -> dict[int, list[int]]:
        return {
            cpu: [ms for name in _HEAT if (ms := number(f"{folder}/{name}")) is not None]
            for cpu, folder in self._folders.items()
        }


def _nominal_khz(folder: str) -> int:
    return next((khz * value for name, value in _NOMINAL if (khz := number(f"{folder}/{name}"))), 0)
