"""GPUs and NVLink switches: Xid, SXid, and what the driver says beside them."""

from __future__ import annotations

from functools import partial

from tracer.alerts.alert import Severity
from tracer.alerts.logpattern import Groups, LogPattern
from tracer.alerts.logtable._xids import sxid, xid

__all__ = ["PATTERNS"]

_GPU = r"(?P<device>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2})(?:\.\d)?"
_error = partial(LogPattern, "gpu-error")


def _xid(groups: Groups) -> tuple[Severity, str]:
    severity, meaning, advice = xid(int(groups["code"]))
    return severity, f"GPU {groups['device']}: Xid {groups['code']}, {meaning}; {advice}"


def _sxid(groups: Groups) -> tuple[Severity, str]:
    severity, advice = sxid(groups["fatal"] == "Fatal")
    return severity, f"NVLink switch {groups['device']}: SXid {groups['code']}, {groups['what']}; {advice}"


PATTERNS = (
    _error(rf"NVRM: Xid \(PCI:{_GPU}\): (?P<code>\d{{1,4}})(?:,|$)", Severity.WARNING, "", judge=_xid),
    _error(
        rf"NVRM: (?:GPU )?{_GPU}: GPU has fallen off the bus",
        Severity.PAGE,
        "GPU {device} has fallen off the bus",
        "drain the node and power-cycle it; check power, seating, PCIe errors",
    ),
    _error(
        rf"NVRM: GPU {_GPU}: RmInitAdapter failed!",
        Severity.PAGE,
        "GPU {device} could not be initialised",
        "drain the node, power-cycle it; have the GPU replaced if it comes again",
    ),
    _error(
        rf"nvidia-nvswitch\d+: SXid \(PCI:{_GPU}\): (?P<code>\d{{5}}), (?P<fatal>Non-fatal|Fatal), (?P<what>.+)",
        Severity.WARNING,
        "",
        judge=_sxid,
    ),
)
