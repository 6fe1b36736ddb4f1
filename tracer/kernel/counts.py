"""What the kernel itself counts of the things probes count: the second opinion in tests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["Counts", "read_counts", "watchdog_period"]


@dataclass(frozen=True)
class Counts:
    """Totals over all CPUs since boot.

    ``interrupts`` has vectors by name ("LOC") and lines by number ("24"), ``handlers`` how many share each line;
    ``received_packets`` is what the network stack took in (softnet_stat), ``devices`` are bytes and packets sent.
    """

    switches: int
    softirqs: dict[str, int]
    interrupts: dict[str, int]
    handlers: dict[str, int]
    received_packets: int
    devices: dict[str, tuple[int, int]]


def read_counts() -> Counts:
    """Read them all, one after the other: takes about a millisecond."""
    interrupts = _table("/proc/interrupts")
    return Counts(
        switches=_switches(),
        softirqs={name: sum(numbers) for name, (numbers, _) in _table("/proc/softirqs").items()},
        interrupts={name: sum(numbers) for name, (numbers, _) in interrupts.items()},
        handlers={name: rest.count(",") + 1 for name, (_, rest) in interrupts.items() if name.isdigit()},
        received_packets=sum(int(line.split()[0], 16) for line in _lines("/proc/net/softnet_stat")),
        devices=dict(map(_device, _lines("/proc/net/dev")[2:])),
    )


def watchdog_period() -> float:
    """Return every how many seconds the kernel's watchdog is fed on each CPU, 0.0 if it is off or not there.

    Source: ``get_softlockup_thresh`` and ``set_sample_period`` in kernel/watchdog.c.
    """
    try:
        switches = [Path(f"/proc/sys/kernel/{name}").read_text() for name in ("watchdog", "soft_watchdog")]
        threshold = int(Path("/proc/sys/kernel/watchdog_thresh").read_text())
    except OSError:
        return 0.0
    return 2 * threshold / 5 if all(int(switch) for switch in switches) else 0.0


def _table(path: str) -> dict[str, tuple[list[int], str]]:
    """Return the rows of a table with a column per CPU: the numbers, and the text behind them."""
    header, *lines = _lines(path)
    cpus = len(header.split())
    rows = {}
    for line in lines:
        name, _, rest = line.partition(":")
        # ERR and MIS have one number for all CPUs; the text behind the numbers may be anything.
        fields = rest.split(None, cpus)
        numbers = [int(field) for field in fields[:cpus] if field.isdigit()]
        rows[name.strip()] = numbers, fields[cpus] if len(fields) > cpus else ""
    return rows


def _switches() -> int:
    return next(int(line.split()[1]) for line in _lines("/proc/stat") if line.startswith("ctxt "))


def _device(line: str) -> tuple[str, tuple[int, int]]:
    name, _, rest = line.partition(":")
    fields = rest.split()
    return name.strip(), (int(fields[8]), int(fields[9]))


def _lines(path: str) -> list[str]:
    return Path(path).read_text(errors="replace").splitlines()
