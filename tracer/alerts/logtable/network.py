"""Network adapters: transmit timeouts, resets, firmware that does not answer; tables that are full."""

from __future__ import annotations

from functools import partial

from tracer.alerts.alert import Severity
from tracer.alerts.logpattern import PCI, LogPattern

__all__ = ["PATTERNS"]

_WARNING, _PAGE = Severity.WARNING, Severity.PAGE

_DEVICE = r"(?P<device>[^\s:]+)"
#: "ice 0000:3b:00.0 eth0: ", as netdev_err() begins a line.
_INTEL = rf"(?:igb|igc|ixgbe|ixgbevf|e1000e|i40e|ice) {PCI} {_DEVICE}: "
_ICE = rf"(?:ice|i40e) {PCI} {_DEVICE}: "
_BNXT = rf"bnxt_en {PCI} {_DEVICE}: "
_ENA = rf"ena {PCI} {_DEVICE}: "
#: mlx5 speaks of the PCI device, with the name of a function.
_MLX5 = rf"mlx5_core (?P<device>{PCI}): (?:\w+:\d+:\(pid \d+\): )?"

_timeout = partial(LogPattern, "tx-timeout")
_firmware = partial(LogPattern, "nic-firmware")
_full = partial(LogPattern, "table-full", kind="node")

_NAPI = "look what keeps NAPI from running on the queue's CPU: foreshock top, softirqs"

PATTERNS = (
    # Since v6.5 with the driver in front and without a WARN; before that the other way round.
    _timeout(
        rf"(?P<driver>\S+) \S+ {_DEVICE}: NETDEV WATCHDOG: CPU: \d+: transmit queue (?P<queue>\d+) timed out",
        _WARNING,
        "{device}: transmit queue {queue} has timed out (driver {driver})",
    ),
    _timeout(
        r"NETDEV WATCHDOG: (?P<device>\S+) \((?P<driver>[^)]*)\): transmit queue (?P<queue>\d+) timed out",
        _WARNING,
        "{device}: transmit queue {queue} has timed out (driver {driver})",
    ),
    _timeout(rf"{_INTEL}Reset adapter", _WARNING, "{device}: the driver resets the adapter"),
    _timeout(
        rf"{_INTEL}(?:Detected (?:Tx|Hardware) Unit Hang|initiating reset due to tx timeout)",
        _WARNING,
        "{device}: a transmit unit hangs",
    ),
    _timeout(
        rf"{_ICE}tx_timeout: VSI_(?:num|seid): \d+, Q (?P<queue>\d+),",
        _WARNING,
        "{device}: transmit queue {queue} has timed out",
    ),
    _timeout(
        rf"{_ICE}tx_timeout recovery level (?P<level>\d+),",
        _WARNING,
        "{device}: the driver resets after a transmit timeout, level {level}",
    ),
    _timeout(
        rf"mlx5_core {PCI} {_DEVICE}: TX timeout (?:detected|on queue: \d+)",
        _WARNING,
        "{device}: a transmit queue has timed out",
    ),
    _timeout(
        rf"{_BNXT}TX timeout detected, starting reset task!",
        _WARNING,
        "{device}: a transmit queue has timed out, the driver resets",
    ),
    _timeout(
        rf"{_ENA}Found a Tx that wasn't completed on time, qid (?P<queue>\d+), index \d+\.",
        _WARNING,
        "{device}: packets of queue {queue} are not sent in time",
        _NAPI,
    ),
    _timeout(
        rf"{_ENA}The number of lost tx completions? is above the threshold \(\d+ > \d+\)\. Reset the device",
        _WARNING,
        "{device}: many packets were not sent in time, the driver resets",
        _NAPI,
    ),
    _timeout(rf"{_ENA}Trigger reset is on", _WARNING, "{device}: the driver resets the device"),
    _firmware(
        rf"{_ENA}Keep alive watchdog timeout\.",
        _PAGE,
        "{device}: the device gives no sign of life, the driver resets it",
    ),
    _firmware(
        rf"{_MLX5}(?:cmd\[\d+\]: )?(?P<command>[A-Z0-9_]+)\(0x[0-9a-f]+\) (?:Async, )?timeout\. "
        r"Will cause a leak of a command resource",
        _PAGE,
        "{device}: the firmware does not answer ({command})",
    ),
    _firmware(
        rf"{_MLX5}device's health compromised - reached miss count",
        _PAGE,
        "{device}: the firmware's heartbeat has stopped",
    ),
    _firmware(rf"{_MLX5}Fatal error (?P<code>\d+) detected", _PAGE, "{device}: fatal firmware error {code}"),
    _firmware(
        rf"{_MLX5}Health issue observed, (?P<what>[^,]+), severity\(\d+\)", _PAGE, "{device}: the firmware says: {what}"
    ),
    _firmware(
        rf"{_MLX5}High temperature on sensors with bit set",
        _WARNING,
        "{device}: the adapter is too hot",
        "check fans and airflow",
    ),
    _firmware(
        rf"{_BNXT}Firmware (?P<kind>fatal|non-fatal) reset event",
        _PAGE,
        "{device}: the firmware resets itself ({kind})",
    ),
    _firmware(
        rf"{_BNXT}Error \(timeout: \d+\) msg \{{0x[0-9a-f]+ 0x[0-9a-f]+\}} len:\d+",
        _PAGE,
        "{device}: the firmware does not answer",
    ),
    _firmware(
        rf"(?:ice|i40e) (?P<device>{PCI}): Rebuild failed, unload and reload driver",
        _PAGE,
        "{device}: the adapter did not come back after a reset",
        "reload the driver or reboot",
    ),
    LogPattern(
        "network-leak",
        r"unregister_netdevice: waiting for (?P<device>\S+) to become free\. Usage count = -?\d+",
        _WARNING,
        "{device}: something holds the removed device, and all other changes of devices wait",
        "reboot before containers can't be started any more",
    ),
    LogPattern(
        "network-leak",
        r"page_pool_release_retry\(\) stalled pool shutdown:?(?: id \d+,)? (?P<pages>\d+) inflight (?P<age>\d+) sec",
        _WARNING,
        "{pages} pages of a removed receive queue have been in use for {age} s",
        kind="node",
        about="page pool",
    ),
    _full(
        r"nf_conntrack: (?:nf_conntrack: )?table full, dropping packet",
        _WARNING,
        "the connection tracking table is full: packets are dropped",
        "raise net.netfilter.nf_conntrack_max, or find who opens so many connections",
        about="conntrack",
    ),
    _full(
        r"neighbour: (?P<table>\w+): neighbor table overflow!",
        _WARNING,
        "the neighbour table {table} is full: new peers can't be reached",
        "raise net.ipv4.neigh.default.gc_thresh3; it counts all network namespaces together",
        about="{table}",
    ),
    _full(
        r"TCP: out of memory -- consider tuning tcp_mem",
        _WARNING,
        "TCP has used up its memory",
        "raise net.ipv4.tcp_mem, or find whose sockets are full",
        about="tcp_mem",
    ),
    _full(
        r"VFS: file-max limit (?P<limit>\d+) reached",
        _WARNING,
        "no more files can be opened: fs.file-max={limit} is reached",
        "find who holds them, or raise fs.file-max",
        about="file-max",
    ),
)
