"""Drives and file systems: timeouts, resets, errors, and file systems that give up."""

from __future__ import annotations

from functools import partial

from tracer.alerts.alert import Severity
from tracer.alerts.logpattern import LogPattern

__all__ = ["PATTERNS"]

_WARNING, _PAGE = Severity.WARNING, Severity.PAGE

_NVME = r"nvme (?P<device>nvme\d+): "
_EXT4 = r"EXT4-fs \((?P<device>[^\s)]+)\): "
_XFS = r"XFS \((?P<device>[^\s)]+)\): "
_REPLACE = "drain the node; replace the drive if a power cycle does not bring it back"

_drive = partial(LogPattern, "storage-error")
_filesystem = partial(LogPattern, "filesystem-error", kind="filesystem")

PATTERNS = (
    _drive(
        rf"{_NVME}I/O (?:tag )?\d+ (?:\([0-9a-f]+\) )?(?:opcode 0x[0-9a-f]+ )?(?:\([^)]*\) )?QID (?P<queue>\d+) "
        r"timeout, (?P<what>aborting|reset controller|disable controller|completion polled)",
        _WARNING,
        "{device}: a request of queue {queue} has timed out ({what})",
    ),
    _drive(
        rf"{_NVME}controller is down; will reset: CSTS=(?P<status>0x[0-9a-f]+)",
        _PAGE,
        "{device}: the controller is down (CSTS={status}; 0xffffffff means that it has left the bus)",
        "drain the node, power-cycle it",
    ),
    _drive(
        rf"{_NVME}(?:Removing after probe failure status|Disabling device after reset failure): -?\d+",
        _PAGE,
        "{device}: the controller was given up",
        _REPLACE,
    ),
    _drive(
        rf"{_NVME}Device not ready; aborting (?:reset|initialisation)",
        _PAGE,
        "{device}: the controller does not become ready",
        _REPLACE,
    ),
    _drive(
        r"(?:blk_update_request: )?critical (?P<what>medium|target|nexus) error, dev (?P<device>[^\s,]+),",
        _WARNING,
        "{device}: {what} error",
        "replace the drive; what was to be read is lost",
    ),
    _drive(
        r"(?:blk_update_request: )?I/O error, dev (?P<device>[^\s,]+), sector \d+",
        _WARNING,
        "{device}: input/output error",
    ),
    _drive(
        r"Buffer I/O error on dev(?:ice)? (?P<device>[^\s,]+), logical block \d+",
        _WARNING,
        "{device}: a block could not be read or written",
    ),
    _drive(
        r"nfs: server (?P<device>\S+) (?P<what>not responding, (?:still trying|timed out))",
        _WARNING,
        "NFS server {device}: {what}",
        "tasks that use it are blocked: look at the server and the way to it",
    ),
    _filesystem(
        r"EXT4-fs error \(device (?P<device>[^\s)]+)\)(?: in (?P<inside>\w+))?(?:: (?P<where>\w+))?"
        r"(?::\d+: (?:inode #\d+: )?(?:block \d+: )?comm (?P<comm>.{1,15}?): )?",
        _PAGE,
        "ext4 on {device} is damaged, found by {where}{inside}",
    ),
    _filesystem(
        rf"{_EXT4}(?:Remounting filesystem read-only|shut down requested \(\d\))",
        _PAGE,
        "ext4 on {device} accepts no more writes",
    ),
    _filesystem(
        r"Aborting journal on device (?P<device>\S+?)(?:-8)?\.$",
        _PAGE,
        "the journal on {device} was given up: the file system accepts no more writes",
    ),
    _filesystem(
        rf"{_XFS}(?:Filesystem has been shut down due to |Corruption .*Shutting down filesystem|"
        r"xfs_do_force_shutdown\(0x[0-9a-f]+\) called from )",
        _PAGE,
        "XFS on {device} has shut down: it neither reads nor writes any more",
    ),
    _filesystem(
        rf"{_XFS}(?:(?:[Mm]etadata|log) I/O [Ee]rror|Metadata (?:CRC error|corruption) detected|Internal error )",
        _PAGE,
        "XFS on {device}: an error of its own data",
    ),
)
