"""Views for the tests of alert rules: settings, and windows as the probes make them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tracer.alerts.alert import Condition
from tracer.alerts.rule import View
from tracer.alerts.rules import rules
from tracer.probes.cpustall import PROBE as CPUSTALL
from tracer.window import Window

SECOND = 1_000_000_000
SETTINGS = {
    "kernel.panic": "10",
    "kernel.soft_watchdog": "1",
    "kernel.nmi_watchdog": "1",
    "kernel.watchdog_cpumask": "0-7",
    "kernel.watchdog_thresh": "10",
    "kernel.softlockup_panic": "1",
    "kernel.hardlockup_panic": "1",
    "kernel.warn_limit": "0",
    "kernel.oops_limit": "10000",
    "vm.panic_on_oom": "0",
}
SYMBOLS = {
    0x10: ("delay_tsc", ""),
    0x20: ("spin_fn", "lab_mod"),
    0x30: ("call_timer_fn", ""),
    0x40: ("_raw_spin_lock", ""),
    0x50: ("ext4_writepages", ""),
}
OPEN = np.dtype(
    [
        *(("cpu", "u4"), ("kind", "S12"), ("age_ns", "u8"), ("pid", "u4"), ("comm", "S16"), ("vector", "u4")),
        *(("fed_ns", "u8"), ("idle_ns", "u8")),
    ]
)


def stalls(*rows: dict[str, Any]) -> np.ndarray:
    """Return rows of ``cpustall.stalls`` as the probe decodes them."""
    (table,) = (table for table in CPUSTALL.tables if table.name == "stalls")
    empty = table.decode(np.zeros(0, dtype=[("event", [("cpu", "u4")])]), None)  # type: ignore[union-attr]
    return filled(empty.dtype, rows)


def opened(*rows: dict[str, Any]) -> np.ndarray:
    """Return rows of ``cpustall.open``."""
    return filled(OPEN, rows)


def filled(dtype: np.dtype, rows: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """Return rows of ``dtype``; a column that is not given is 0 or empty."""
    table = np.zeros(len(rows), dtype)
    for row, values in zip(table, rows, strict=True):
        for name, value in values.items():
            if name == "stack":
                row[name][: len(value)] = value
            else:
                row[name] = value
    return table


def one(**values: Any) -> np.ndarray:
    """Return one row of unsigned columns."""
    return np.array([tuple(int(value) for value in values.values())], [(name, "u8") for name in values])


def view(
    now_s: float,
    tables: Mapping[str, np.ndarray],
    *,
    history: Mapping[str, Sequence[np.ndarray]] | None = None,
    settings: Mapping[str, Any] | None = None,
    interval_s: float = 1.0,
) -> View:
    """Return a view at ``now_s``; ``tables`` by "probe.table", ``history`` the latest last, one per interval."""
    now_ns, step = round(now_s * SECOND), round(interval_s * SECOND)
    windows, past = {}, {}
    for name, rows in tables.items():
        probe, _, table = name.partition(".")
        windows[probe, table] = Window(probe, table, now_ns - step, now_ns, rows)
    for name, each in (history or {}).items():
        probe, _, table = name.partition(".")
        ends = [now_ns - step * back for back in range(len(each) - 1, -1, -1)]
        past[probe, table] = [Window(probe, table, e - step, e, rows) for e, rows in zip(ends, each, strict=True)]
        windows.setdefault((probe, table), past[probe, table][-1])
    known = {**SETTINGS, **{name: str(value) for name, value in (settings or {}).items()}}
    return View(now_ns, windows, known, past, lambda address: SYMBOLS.get(address, (f"{address:#x}", "")))


def judged(rule: str, seen: View) -> list[Condition]:
    """Return what one rule finds."""
    return list(rules()[rule].judge(seen))
