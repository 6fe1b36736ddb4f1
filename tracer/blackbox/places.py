"""What a text calls devices, hosts, users and files that no row tells: where in it such a name is.

Devices that the kernel, or udev by where they are plugged in, has named (``eth0``, ``enp59s0f1``, ``mlx5_0``,
``nvme0n1p1``) name nobody, and stay; so do the kernel's own settings below /proc/sys.

Sources: ext4_msg, xfs_alert, btrfs_printk; blk_print_req_error (block/blk-mq.c), buffer_io_error (fs/buffer.c);
__netdev_printk (net/core/dev.c), dev_watchdog, addrconf_notify, bond_main.c, br_log_state; rpc_check_timeout
(net/sunrpc/clnt.c); systemd.unit(5), systemd.net-naming-scheme(7).
"""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["ADDRESS", "PLACES", "is_plain_device", "without_devices"]

_PLAIN = re.compile(
    r"(?:lo|backlog|dummy"
    r"|(?:eth|ib|wlan|wwan|bond|team|br|docker|virbr|cni|ifb|dummy|tun|tap|tunl|sit|gre|gretap|vlan|usb|hsn)\d+"
    r"|em\d+|p\d+p\d+|flannel\.\d+|vxlan\.?\d+|veth[0-9a-f]{1,11}"
    r"|(?:en|ib|wl|ww|sl|roce|iw|opa)(?:[bcdfinopsuvP]{1,2}\d+)+"
    r"|(?:mlx[45]|irdma|bnxt_re|hns|hfi1|qib|efa|siw|rxe|erdma|mana|cxgb4|qedr|ocrdma)(?:_bond)?_?\d+"
    r"|(?:sd|vd|xvd|hd)[a-z]{1,3}\d*|nvme\d+(?:c\d+)?(?:n\d+)?(?:p\d+)?"
    r"|(?:dm-|md|loop|sr|fd|ram|zram|nbd|rbd|pmem|mmcblk|sg|st|nullb)\d+(?:p\d+)?)"
    r"(?:\.\d{1,4}|-\d+)?"
)
#: Of a line from pstore, too: level, time and caller.
_LINE = r"^((?:<\d+>)?(?:\[ *[TC]?\d+(?:\.\d+)?\] ?){,2}"
#: What is before the name, the name, and ahead what is after it.
_DEVICES = tuple(
    re.compile(one)
    for one in (
        r"(\b(?:EXT[234]-fs|XFS|BTRFS|F2FS-fs|FAT-fs|EROFS|bcachefs|NILFS2?|ntfs3|OCFS2)\b[^()]{,40} \((?:device )?)"
        r"([^\s():]+)",
        r"(\b(?:error, dev|on dev|on device) )([^\s,]+?)(?=[,:.]?(?:\s|$)|,)",
        _LINE + r"device )(\S+)(?= (?:entered|left) )",
        # Of network devices: what their drivers say, and what others say of them.
        r"(\b[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] )([^\s:()]+)(?=: | \(|$)",
        r"(\bNETDEV WATCHDOG: )([^\s:()]+)(?= \()",
        r"(\bADDRCONF\(NETDEV_\w+\): )([^\s:]+)",
        r"(: renamed from )(\S+)",
        r"(\((?:slave|port) |\bport \d+\()([^\s()]+)",
        _LINE + r")([^\s:]+)(?=: (?:renamed from |\(slave |port \d+\(|(?:NIC )?[Ll]ink |(?:entered|left) ))",
        # Where file systems are.
        r"(: server )(\S+)(?= (?:not responding|OK|is not))",
        r"(\b)([\w.]+)(?=-(?:OST|MDT|MGS)[0-9a-f]{4})",
        r"(\bmd(?:/raid\w+)?: ?)([^\s:]+)(?=: )",
        # Who and what.
        r"(\b(?:for|of) user )([^\s.,:;()]+)",
        r"(\bSerialNumber: )(.+)",
    )
)
_NOT_OURS = rf"(?!/proc/(?:sys/|\d+\b|self\b)|/dev/(?:null|kmsg|console|watchdog|mem|{_PLAIN.pattern})(?![\w.-]))"
#: Whole names: where one begins no other one may.
PLACES = "|".join(
    (
        # An address of anything, a share, a host's folder, files.
        r"(?<=://)[^\s\"'<>()\[\]{},;]+",
        r"\\{2,4}[\w.$-]+(?:\\+[^\s\"',;()]*)?",
        r"(?<![\w:/.)-])//[\w.-]+/[^\s\"'()\[\]{}<>,;|]*",
        r"(?<![\w/.:-])(?:[\w-]+\.)*[\w-]*[A-Za-z][\w-]*(?=:/[\w.])",
        rf"(?<=\"){_NOT_OURS}/[^\"\n]+(?=\")|(?<='){_NOT_OURS}/[^'\n]+(?=')",
        rf"(?<![\w/.)\]}}-]){_NOT_OURS}/[\w.@~+%$-][^\s\"'()\[\]{{}}<>,;|]*[^\s\"'()\[\]{{}}<>,;|:.]",
        # Units of the service manager, but for its own.
        r"(?<![\w./\\@:-])(?!systemd-)[\w\\@:.-]+?(?=\.(?:service|socket|mount|automount|swap|slice|scope|timer)\b)",
        # Hosts, and whom of.
        r"(?<![\w./@-])(?:[\w.+-]+@)?(?:[A-Za-z0-9][A-Za-z0-9-]*\.){2,}[A-Za-z]{2,}(?![\w-])",
        # A file system, a disk, a machine.
        r"(?<![\w-])[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}(?![\w-])",
        # An interface that is called by its address.
        r"(?<![A-Za-z0-9])enx[0-9a-f]{12}(?![A-Za-z0-9])",
    )
)


_IPV4 = r"(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_HEX = r"[0-9A-Fa-f]{1,4}"
#: A port, a path or a name may follow after a colon, and precede one: the longest of them first.
ADDRESS = (
    r"(?<![\w.])(?:"
    r"(?:[0-9A-Fa-f]{2}[:-]){5,}[0-9A-Fa-f]{2}"  # Ethernet has 6 bytes, InfiniBand 20
    rf"|(?:{_HEX}:){{6}}(?:{_IPV4}|{_HEX}:{_HEX})"
    rf"|(?:{_HEX}(?::{_HEX}){{0,6}})?::(?:(?:{_HEX}:){{0,6}}(?:{_IPV4}|{_HEX}))?"
    rf"|(?<![Vv]ersion ){_IPV4}"  # drivers have versions of four numbers, too
    r")(?!\w)"
)


def is_plain_device(name: str) -> bool:
    """Return whether a device is called as the kernel, or udev, calls such: it names nobody."""
    return bool(_PLAIN.fullmatch(name))


def without_devices(line: str, hidden: Callable[[str], str]) -> str:
    """Return a line of the kernel's log with each device, host and user that its sentences name changed."""
    for one in _DEVICES:
        line = one.sub(lambda found: found[1] + (found[2] if is_plain_device(found[2]) else hidden(found[2])), line)
    return line
