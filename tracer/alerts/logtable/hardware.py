"""What the hardware says of itself: machine checks, memory, PCIe, IOMMU, temperature, clocks."""

from __future__ import annotations

from functools import partial

from tracer.alerts.alert import Severity
from tracer.alerts.logpattern import PCI, Groups, LogPattern

__all__ = ["PATTERNS"]

_INFO, _WARNING, _PAGE = Severity.INFO, Severity.WARNING, Severity.PAGE

_error = partial(LogPattern, "hardware-error")
_hot = partial(LogPattern, "thermal-throttle", kind="node", about="thermal")
_clock = partial(LogPattern, "clocksource-unstable", kind="node", about="clocksource")

_IOMMU = "an error of its driver or of the device: look what it lost"
_RECEIVED = rf"error (?:message )?received(?: from|:) (?P<device>{PCI})"
_PORT = rf"(?:\S+ )?{PCI}: (?:AER: )?(?:Multiple )?"


def _machine_check(groups: Groups) -> tuple[Severity, str]:
    what = groups["what"].lower()
    return _INFO if what == "corrected" else _PAGE, f"{what} hardware error, the {groups.get('who', 'CPU')} says"


def _memory(groups: Groups) -> tuple[Severity, str]:
    if groups["kind"] == "UE":
        return _PAGE, f"{groups['label']}: uncorrected memory errors ({groups['count']}); drain the node, replace it"
    return _INFO, f"{groups['label']}: corrected memory errors ({groups['count']})"


def _pcie(groups: Groups) -> tuple[Severity, str]:
    kind = groups["kind"].lower()
    severity = _INFO if kind.startswith("correct") else _WARNING if "non-fatal" in kind else _PAGE
    layer = f", {groups['layer'].lower()}" if "layer" in groups else ""
    return severity, f"{groups['device']}: PCIe error, {kind}{layer}"


PATTERNS = (
    _error(
        r"mce: \[Hardware Error\]: CPU (?P<cpu>\d+): Machine Check(?: Exception)?: \w+ Bank (?P<bank>\d+): ",
        _PAGE,
        "CPU {cpu}: machine check in bank {bank}",
        kind="cpu",
        about="{cpu}",
    ),
    _error(
        r"(?:mce: )?\[Hardware Error\]: (?P<what>Corrected|Deferred|Uncorrected|Fatal)[ ,].*error",
        _WARNING,
        "",
        kind="node",
        about="machine check",
        judge=_machine_check,
    ),
    _error(
        r"(?:\{\d+\})?\[Hardware Error\]: +event severity: (?P<what>corrected|recoverable|fatal)",
        _WARNING,
        "",
        kind="node",
        about="firmware",
        judge=lambda groups: _machine_check({**groups, "who": "firmware"}),
    ),
    _error(
        r"EDAC \w+: (?P<count>\d+) (?P<kind>CE|UE) .*? on (?P<label>\S+) \(",
        _WARNING,
        "",
        kind="memory",
        about="{label}",
        judge=_memory,
    ),
    _error(
        r"Memory failure: 0x[0-9a-f]+: recovery action for (?P<what>.+): (?P<result>Recovered|Delayed|Ignored|Failed)$",
        _WARNING,
        "a page of memory has failed ({what}: {result})",
        "its process may have been killed; drain the node, replace the memory module",
        kind="memory",
        about="page",
    ),
    _error(
        rf"{_PORT}(?P<kind>Correctable|Corrected) {_RECEIVED}",
        _INFO,
        "",
        judge=_pcie,
    ),
    _error(
        rf"{_PORT}(?P<kind>Uncorrect(?:able|ed) \((?:Non-Fatal|Fatal)\)) {_RECEIVED}",
        _WARNING,
        "",
        judge=_pcie,
    ),
    _error(
        rf"(?:\S+ )?(?P<device>{PCI}): (?:AER: )?PCIe Bus Error: "
        r"severity=(?P<kind>Correct\w+|Uncorrect\w+ \([\w-]+\)), type=(?P<layer>[\w ]+)",
        _INFO,
        "",
        judge=_pcie,
    ),
    _error(
        rf"(?:\S+ )?(?P<device>{PCI}): DPC: containment event, status:0x[0-9a-f]+",
        _PAGE,
        "{device}: the port has cut off what lies below it after an error",
        "drain the node; look which device is gone, power-cycle",
    ),
    _error(
        r"DMAR: \[DMA (?:Read|Write)(?: NO_PASID)?\] Request device \[(?P<device>[0-9a-fx]+:[0-9a-fx]+\.\d)\] "
        r"(?:PASID \w+ )?fault addr ",
        _WARNING,
        "{device}: the IOMMU refused it access to memory",
        _IOMMU,
    ),
    _error(
        rf"(?:\S+ (?P<device>{PCI}): )?AMD-Vi: Event logged \[IO_PAGE_FAULT (?:device=(?P<other>[0-9a-f:.]+) )?domain=",
        _WARNING,
        "{device}{other}: the IOMMU refused it access to memory",
        _IOMMU,
        about="{device}{other}",
    ),
    _error(
        rf"\S+ (?P<device>{PCI}): swiotlb buffer is full \(sz: \d+ bytes\), total (?P<total>\d+) \(slots\), "
        r"used (?P<used>\d+)",
        _WARNING,
        "{device}: no bounce buffer is left ({used} of {total})",
        "boot with a larger swiotlb=, or look for a leak of mappings",
    ),
    _hot(
        r"(?:mce: )?CPU(?P<cpu>\d+): (?P<what>Core|Package) temperature (?:is )?above threshold, "
        r"cpu clock (?:is )?throttled",
        _WARNING,
        "CPUs are throttled because they are too hot (CPU {cpu}: {what})",
    ),
    _hot(
        r"(?:thermal )?thermal_zone\d+: .*critical temperature reached",
        _PAGE,
        "a critical temperature is reached: the node shuts down",
    ),
    _clock(
        r"clocksource: timekeeping watchdog on CPU\d+: Marking clocksource '(?P<clock>[\w-]+)' as unstable",
        _WARNING,
        "the kernel gives up the clock {clock}",
    ),
    _clock(r"(?:tsc: )?Marking TSC unstable due to (?P<why>.+)", _WARNING, "the kernel gives up the clock tsc: {why}"),
    _clock(
        r"clocksource: Switched to clocksource (?P<clock>hpet|acpi_pm|jiffies|refined-jiffies)$",
        _WARNING,
        "the clock is {clock} now: every look at it takes a microsecond",
    ),
)
