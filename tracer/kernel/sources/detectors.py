"""How the kernel's own detectors are set, once a minute, and what they have counted, every time."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.kernel.kept import Kept
from tracer.kernel.textfiles import text

__all__ = ["Source", "refusal"]

Read = tuple[np.ndarray, dict[str, int]]

SETTING = np.dtype([("name", "S48"), ("value", "S208")])
COUNT = np.dtype([("name", "S16"), ("total", "u8"), ("new", "u8")])
EVERY_SECONDS = 60.0
_NONE = np.zeros(0, SETTING)

#: Each is there or not, depending on the kernel's version and configuration.
_SYSCTLS = (
    "kernel.hardlockup_panic",
    "kernel.hung_task_check_count",
    "kernel.hung_task_check_interval_secs",
    "kernel.hung_task_panic",
    "kernel.hung_task_timeout_secs",
    "kernel.hung_task_warnings",
    "kernel.max_rcu_stall_to_panic",
    "kernel.nmi_watchdog",
    "kernel.oops_limit",
    "kernel.panic",
    "kernel.panic_on_io_nmi",
    "kernel.panic_on_oops",
    "kernel.panic_on_rcu_stall",
    "kernel.panic_on_unrecovered_nmi",
    "kernel.panic_on_warn",
    "kernel.panic_print",
    "kernel.panic_sys_info",
    "kernel.printk",
    "kernel.sched_rt_period_us",
    "kernel.sched_rt_runtime_us",
    "kernel.soft_watchdog",
    "kernel.softlockup_panic",
    "kernel.unknown_nmi_panic",
    "kernel.warn_limit",
    "kernel.watchdog",
    "kernel.watchdog_cpumask",
    "kernel.watchdog_thresh",
    "vm.min_free_kbytes",
    "vm.oom_kill_allocating_task",
    "vm.overcommit_memory",
    "vm.panic_on_oom",
)
_PARAMETERS = (
    "kernel.crash_kexec_post_notifiers",
    "rcupdate.rcu_cpu_stall_suppress",
    "rcupdate.rcu_cpu_stall_timeout",
    "rcupdate.rcu_exp_cpu_stall_timeout",
    "smp.csd_lock_timeout",
    "smp.panic_on_ipistall",
    "workqueue.panic_on_stall",
    "workqueue.panic_on_stall_time",
    "workqueue.watchdog_thresh",
)
_FILES = {
    **{name: "/proc/sys/" + name.replace(".", "/") for name in _SYSCTLS},
    **{name: "/sys/module/" + name.replace(".", "/parameters/") for name in _PARAMETERS},
    "kernel.kexec_crash_loaded": "/sys/kernel/kexec_crash_loaded",
}
_COUNTS = {
    **{name: f"/sys/kernel/{name}_count" for name in ("warn", "oops", "softlockup", "hardlockup", "rcu_stall")},
    "hung_task": "/proc/sys/kernel/hung_task_detect_count",
    "taint": "/proc/sys/kernel/tainted",
}


def refusal() -> str:
    """Return why this source can't start: never, what is missing has no row."""
    return ""


class Source:
    """The tables ``detectors.settings`` and ``detectors.counts``. The first read is a beginning, without rows."""

    def __init__(self, settings: dict[str, Any]) -> None:
        del settings
        self._counts = {name: Kept(path) for name, path in _COUNTS.items()}
        self._before: dict[str, int] | None = None
        self._quiet: Read | None = None
        self._due_ns = 0

    def read(self, now_ns: int) -> dict[str, Read]:
        """Return ``{table: (rows, losses)}``; the counts are those since the last read."""
        counted = {name: number for name, file in self._counts.items() if (number := file.number()) is not None}
        before, self._before = self._before, counted
        if before is None:
            return {"settings": (np.zeros(0, SETTING), {}), "counts": (np.zeros(0, COUNT), {"reset": 0})}
        # While nothing is counted, as nearly always, the rows are the same.
        told = self._quiet if self._quiet and counted == before else _differences(before, counted)
        self._quiet = told if counted == before else None
        return {"settings": (self._settings(now_ns), {}), "counts": told}

    def close(self) -> None:
        for file in self._counts.values():
            file.close()

    def _settings(self, now_ns: int) -> np.ndarray:
        if now_ns < self._due_ns:
            return _NONE
        self._due_ns = now_ns + int(EVERY_SECONDS * 1e9)
        found = [(name, value.encode()) for name, path in _FILES.items() if (value := text(path)) is not None]
        return np.array(found, SETTING)


def _differences(before: dict[str, int], now: dict[str, int]) -> Read:
    """Return what was counted; a counter that went back, which an administrator may do to one, is a loss."""
    rows, reset = [], 0
    for name, total in now.items():
        earlier = before.get(name, total)
        if name == "taint":
            new = total & ~earlier
        else:
            new = max(total - earlier, 0)
            reset += total < earlier
        rows.append((name, total, new))
    return np.array(rows, COUNT), {"reset": reset}
