"""Hardware that says that it fails: memory, CPUs, PCIe, IOMMU, temperature."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from tracer.alerts import precursors
from tracer.alerts import thresholds as limits
from tracer.alerts.alert import Condition, Severity, Subject
from tracer.alerts.logpatterns import LINES, Found, conditions, found
from tracer.alerts.rule import Rule, View
from tracer.units import duration

__all__ = ["RULES"]

_INFO, _WARNING, _PAGE = Severity.INFO, Severity.WARNING, Severity.PAGE

#: enum hw_event_mc_err_type of include/linux/edac.h: corrected, uncorrected, deferred, fatal, info.
_MEMORY = ((_INFO, "corrected"), (_PAGE, "uncorrected"), (_WARNING, "deferred"), (_PAGE, "fatal"), (_INFO, "reported"))
#: Severities of include/linux/aer.h: not fatal, fatal, corrected.
_PCIE = ((_WARNING, "uncorrected (non-fatal)"), (_PAGE, "uncorrected (fatal)"), (_INFO, "corrected"))
#: enum thermal_trip_type.
_TRIPS = ((_INFO, "active"), (_INFO, "passive"), (_WARNING, "hot"), (_PAGE, "critical"))
# MCi_STATUS.UC, Intel SDM volume 3, "Machine-check architecture".
_UNCORRECTED = 1 << 61

_Told = tuple[Subject, Severity, str]


def _memory(row: np.void) -> _Told:
    severity, kind = _of(_MEMORY, int(row["number"]))
    label = precursors.name(row).strip() or "memory"
    return Subject("memory", label), severity, f"{label}: {kind} memory errors ({int(row['value'])})"


def _machine_check(row: np.void) -> _Told:
    wrong = int(row["value"]) & _UNCORRECTED
    what = "uncorrected" if wrong else "corrected"
    cpu, bank = int(row["cpu"]), int(row["number"])
    return Subject("cpu", str(cpu)), _PAGE if wrong else _INFO, f"CPU {cpu}: {what} machine check in bank {bank}"


def _pcie(row: np.void) -> _Told:
    severity, kind = _of(_PCIE, int(row["number"]))
    device = precursors.name(row)
    return Subject("device", device), severity, f"{device}: PCIe error, {kind} (status {int(row['value']):#x})"


def _memory_failure(row: np.void) -> _Told:
    return Subject("memory", "page"), _WARNING, f"a page of memory has failed (frame {int(row['value']):#x})"


def _iommu(row: np.void) -> _Told:
    device = precursors.name(row)
    return Subject("device", device), _WARNING, f"{device}: the IOMMU refused it access to memory"


def _trip(row: np.void) -> _Told:
    severity, kind = _of(_TRIPS, int(row["number"]))
    return (
        Subject("node", "thermal"),
        severity,
        f"the thermal zone {precursors.name(row)} has passed a {kind} trip point",
    )


_ERRORS: dict[str, Callable[[np.void], _Told]] = {
    "memory_error": _memory,
    "machine_check": _machine_check,
    "pcie_error": _pcie,
    "memory_failure": _memory_failure,
    "iommu_fault": _iommu,
}


def _of(kinds: tuple[tuple[Severity, str], ...], number: int) -> tuple[Severity, str]:
    return kinds[number] if 0 <= number < len(kinds) else (_WARNING, "unknown")


def _errors(view: View) -> Iterator[Condition]:
    told = [each for kind, tell in _ERRORS.items() for each in _found(view, kind, tell)]
    told += found(view, "hardware-error")
    earlier = _earlier(view) if told else {}
    for condition in conditions(told):
        # The tracepoint and the line tell of the same errors.
        yield _repeated(condition, max(earlier.get(condition.subject, 0), int(condition.numbers["lines"])))


def _earlier(view: View) -> dict[Subject, int]:
    """Return how many errors each subject has had of late, as far as tracepoints told."""
    times: dict[Subject, int] = {}
    for kind, tell in _ERRORS.items():
        for row in precursors.lately(view, kind, limits.CORRECTED_SPAN_NS):
            subject = tell(row)[0]
            times[subject] = times.get(subject, 0) + 1
    return times


def _repeated(condition: Condition, times: int) -> Condition:
    """Return the condition with how often it came; many corrected errors are a warning."""
    condition = replace(condition, numbers={"errors": times})
    if condition.severity is not _INFO or times < limits.CORRECTED_WARN:
        return condition
    rate = f"; {times} in {duration(limits.CORRECTED_SPAN_NS)} at most: uncorrected ones may follow"
    return replace(condition, severity=_WARNING, summary=condition.summary + rate)


def _found(view: View, kind: str, tell: Callable[[np.void], _Told]) -> Iterator[Found]:
    """Yield what the kernel said by tracepoint in the form of lines."""
    for row in precursors.told(view, kind):
        subject, severity, says = tell(row)
        yield Found(subject, severity, says, "", int(row["time_ns"]), 1, {})


def _thermal(view: View) -> Iterator[Condition]:
    return conditions([*_found(view, "thermal_trip", _trip), *found(view, "thermal-throttle")])


RULES = (
    Rule(
        name="hardware-error",
        title="hardware reports errors",
        help=f"""
Memory modules, CPUs, PCIe links or the IOMMU report errors, by tracepoint (EDAC, MCE, AER) or in the kernel's log.
Which of the tracepoints a kernel has, `foreshock doctor` tells.

Severity: info for single corrected errors; warning from {limits.CORRECTED_WARN} of one device in
{duration(limits.CORRECTED_SPAN_NS)}, for errors that were survived, and for refused accesses; page for uncorrected and
fatal ones.

Countdown: none; uncorrected errors have followed corrected ones after seconds (PCIe) to weeks (memory).
""",
        next="drain the node and have the named device checked; of PCIe errors, the link and the port above it, too",
        judge=_errors,
        needs=(),
        wants=(precursors.TOLD, LINES),
        history=(precursors.TOLD,),
        fast=True,
        keep_ns=limits.RECENT_NS,
    ),
    Rule(
        name="thermal-throttle",
        title="too hot",
        help="""
CPUs are slowed down because they are too hot, or a thermal zone has passed a trip point. A node that throttles holds
up the whole job.

Severity: warning; info for passive trip points; page for critical ones, at which the node shuts down.

Countdown: none.
""",
        next="check fans, airflow and the room; take the node out of the job until it is cool",
        judge=_thermal,
        needs=(),
        wants=(precursors.TOLD, LINES),
        fast=True,
        keep_ns=limits.RECENT_NS,
    ),
)
