"""Lines of the kernel's log that nothing else tells as well: GPUs, storage, file systems, bugs, clocks, tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from tracer.alerts import precursors
from tracer.alerts import thresholds as limits
from tracer.alerts.alert import Condition, Severity
from tracer.alerts.logpatterns import LINES, Found, conditions, found
from tracer.alerts.rule import Rule, View
from tracer.alerts.rules.cpus import STUCK, stuck_cpus

__all__ = ["RULES"]

_FELL_OFF = "79"
_OPEN = ("cpustall", "open")


def _told(name: str, view: View) -> Iterator[Condition]:
    return conditions(found(view, name))


def _gpu(view: View) -> Iterator[Condition]:
    """A GPU that falls off the bus leaves errors of the link on its way: they belong to it."""
    lines = found(view, "gpu-error")
    lost = {line.subject for line in lines if line.groups.get("code") in (_FELL_OFF, None)}
    errors = _pcie_errors(view) if lost else ""
    for condition in conditions(lines):
        if errors and condition.subject in lost:
            yield replace(condition, summary=f"{condition.summary}; PCIe errors came before, at {errors}")
        else:
            yield condition


def _lockup(view: View) -> Iterator[Condition]:
    """Of a CPU that is seen to be stuck another alert pages, and says more."""
    seen = {str(cpu) for cpu in stuck_cpus(view)} if _OPEN in view.windows else set()
    for condition in conditions(found(view, "lockup-report")):
        known = condition.subject.name in seen
        yield replace(condition, severity=Severity.WARNING) if known else condition


def _pcie_errors(view: View) -> str:
    """Return the devices that had PCIe errors of late: the port above a GPU reports what the GPU can't any more."""
    lines: list[Found] = [line for line in found(view, "hardware-error") if "PCIe" in line.says]
    rows = precursors.lately(view, "pcie_error", limits.CORRECTED_SPAN_NS)
    devices = dict.fromkeys([*(precursors.name(row) for row in rows), *(line.subject.name for line in lines)])
    return ", ".join([*devices][:3])


def _rule(name: str, title: str, help: str, next: str) -> Rule:
    return Rule(name, title, help, next, partial(_told, name), needs=(LINES,), keep_ns=limits.RECENT_NS)


RULES = (
    Rule(
        name="gpu-error",
        title="GPU or NVLink switch reports an error",
        help="""
NVIDIA's driver has logged an Xid (GPU) or SXid (NVLink switch). The alert says what the code means and what to do. PCIe
errors of the last minutes belong to a GPU that has fallen off the bus.

Severity by code: info for what a program did wrong; warning for what needs a reset between two jobs; page for what
ends the job: double-bit errors, NVLink, GPU system processor, off the bus.

Countdown: none.
""",
        next="what the alert says; nvidia-smi -q shows counters of errors, retired rows and what is pending",
        judge=_gpu,
        needs=(LINES,),
        wants=(precursors.TOLD,),
        history=(precursors.TOLD,),
        keep_ns=limits.RECENT_NS,
    ),
    _rule(
        "storage-error",
        "drive or file server does not answer",
        """
A drive has timed out, was reset, given up or could not read; a file server does not answer. The next tasks that use it
will be blocked.

Severity: warning; page when an NVMe controller is down or given up.

Countdown: none.
""",
        "look at the drive (smartctl, nvme smart-log) and its link; move the job before tasks are blocked",
    ),
    _rule(
        "filesystem-error",
        "file system fails",
        """
ext4 or XFS has found its own data damaged, or accepts no more writes. With `errors=panic` ext4 panics at once.

Severity: page.

Countdown: none.
""",
        "stop what writes there; unmount it and run its repair tool (fsck, xfs_repair); look at the drive first",
    ),
    _rule(
        "kernel-bug",
        "kernel bug",
        """
The kernel has found a bug of its own: an oops, a corrupted list, a page in a bad state. What it was doing is lost, with
the locks it held. A panic line is the last that anybody reads.

Severity: page; warning for what a debugging kernel finds.

Countdown: none.
""",
        "drain the node and reboot it; keep the log (foreshock bundle) for whoever wrote the code in the stack",
    ),
    Rule(
        name="lockup-report",
        title="the kernel reports a lockup",
        help="""
The kernel's own detectors have found a CPU that makes no progress, or workers that do not. Foreshock's own alerts
(soft-lockup, hard-lockup, workqueue-stall) come seconds earlier; this one says that the kernel agrees.

Severity: page; warning where the CPU is seen to be stuck, for then soft-lockup or hard-lockup has paged.

Countdown: none.
""",
        next="see the alert soft-lockup, hard-lockup or workqueue-stall of the same CPU; dmesg has the stack",
        judge=_lockup,
        needs=(LINES,),
        wants=STUCK,
        keep_ns=limits.RECENT_NS,
    ),
    _rule(
        "network-leak",
        "the kernel holds on to a removed network device",
        """
A network device is to be removed, and something holds it or its pages. All other changes of network devices wait for
it: containers can be neither started nor ended.

Severity: warning.

Countdown: none.
""",
        "reboot the node soon; look which driver or which sockets hold it",
    ),
    _rule(
        "table-full",
        "a table of the kernel is full",
        """
Connection tracking, neighbours, TCP memory or open files have reached their limit: new connections fail, the node looks
healthy.

Severity: warning.

Countdown: none.
""",
        "what the alert says",
    ),
    _rule(
        "clocksource-unstable",
        "the kernel gives up its clock",
        """
The kernel does not trust the CPUs' time stamp counters any more and reads a slow clock instead: every time stamp costs
a microsecond, and the node becomes a straggler until it is rebooted. A virtual machine that was paused can be why.

Severity: warning.

Countdown: none.
""",
        "take the node out of jobs and reboot it",
    ),
    _rule(
        "rt-throttled",
        "real-time tasks are stopped",
        """
A real-time task has used a CPU for so long that the kernel lets others run for a moment (once per boot it says so).

Severity: info.

Countdown: none.
""",
        "find the task (ps -eLo cls,rtprio,psr,pid,comm): it starves everything else on its CPU",
    ),
)
