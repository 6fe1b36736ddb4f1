"""What this node is and how it is set up: the part of a recording that explains why two nodes differ.

Everything is plain dictionaries, lists, numbers and text. What the node doesn't say is absent. Text may have been
written by anyone: it is kept as it is and escaped where it's shown.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping

from tracer.kernel.devices import interrupts, network_cards, pcie_links
from tracer.kernel.hardware import clocksource, cpu, firmware, memory, mitigations
from tracer.kernel.patience import Patience
from tracer.kernel.textfiles import decoded, names, present, text

__all__ = ["read_fingerprint", "restricted_sysctls"]

_PATIENCE_SECONDS = 2.0
_MAX_SYSCTLS = 256
# Folders below /proc/sys with what matters there; a trailing * takes every name that begins so.
_SYSCTLS = {
    "kernel": (
        "sched_*", "watchdog*", "softlockup_*", "hardlockup_*", "nmi_watchdog", "hung_task_*", "panic*", "softirq_*",
        "numa_balancing*", "timer_migration", "perf_event_*", "unprivileged_bpf_disabled", "kptr_restrict", "tainted",
        "rcu_*", "soft_watchdog", "max_rcu_stall_to_panic", "sysrq", "printk",
    ),
    "net/core": (
        "netdev_budget*", "dev_weight*", "busy_poll", "busy_read", "rmem_*", "wmem_*", "rps_*", "netdev_max_backlog",
        "gro_normal_batch", "default_qdisc", "optmem_max", "flow_limit_*",
    ),
    "net/ipv4": (
        "tcp_congestion_control", "tcp_rmem", "tcp_wmem", "tcp_mtu_probing", "neigh/default/gc_thresh3",
    ),
    "vm": (
        "swappiness", "zone_reclaim_mode", "min_free_kbytes", "watermark_scale_factor", "dirty_*", "nr_hugepages",
        "overcommit_memory", "compaction_proactiveness", "stat_interval", "panic_on_oom", "max_map_count",
    ),
}  # fmt: skip

#: Shown to CAP_SYS_ADMIN alone. Source: proc_dointvec_minmax_bpf_restricted in net/core/sysctl_net_core.c.
_RESTRICTED = {"net/core": ("bpf_jit_*",)}


def restricted_sysctls(root: str = "") -> dict[str, object]:
    """Return those sysctls that this process can't read any more once it has given up CAP_SYS_ADMIN."""
    return _sysctls(root, _RESTRICTED)


def read_fingerprint(root: str = "", restricted: Mapping[str, object] | None = None) -> dict[str, object]:
    """Return the fingerprint of this node. ``root`` goes before every path, to read another machine's tree.

    ``restricted`` is what ``restricted_sysctls`` returned when this process was allowed to read them.

    A section that fails, or doesn't answer within two seconds because a device hangs, is named under ``unread``.
    """
    sections: dict[str, Callable[[str], dict[str, object]]] = {
        "cpu": cpu,
        "memory": memory,
        "clocksource": clocksource,
        "firmware": firmware,
        "mitigations": mitigations,
        "sysctl": lambda root: _sysctls(root, _SYSCTLS),
        "network": network_cards,
        "pcie": pcie_links,
        "interrupts": interrupts,
    }
    done: dict[str, object] = {}

    def read() -> bool:
        for name, section in sections.items():
            with contextlib.suppress(OSError):
                done[name] = section(root)
        return True

    patience = Patience(read, _PATIENCE_SECONDS)
    if patience.ask():
        patience.close()
    found = done.copy()
    sysctls = found.get("sysctl")
    if isinstance(sysctls, dict):
        found["sysctl"] = {**sysctls, **(restricted_sysctls(root) if restricted is None else restricted)}
    found["host"], found["kernel"] = _host(), _kernel(root)
    found["clocks"], found["time_zone"] = _clocks(), _time_zone(root)
    found["unread"] = [name for name in sections if name not in found]
    return present(found.items())


def _host() -> str:
    return decoded(os.fsencode(os.uname().nodename))


def _kernel(root: str) -> dict[str, object]:
    uname = os.uname()
    return present(
        [
            ("release", decoded(os.fsencode(uname.release))),
            ("version", decoded(os.fsencode(uname.version))),
            ("architecture", uname.machine),
            ("boot_id", text(f"{root}/proc/sys/kernel/random/boot_id", 64)),
            ("command_line", text(f"{root}/proc/cmdline", 4096)),
            ("page_size", os.sysconf("SC_PAGE_SIZE")),
        ]
    )


def _clocks() -> dict[str, object]:
    """Return three clocks at one moment, in ns; ``spread_ns`` is how long that moment was, the shortest of five."""
    best: tuple[int, ...] = ()
    for _ in range(5):
        begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        real, boot = time.clock_gettime_ns(time.CLOCK_REALTIME), time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        spread = time.clock_gettime_ns(time.CLOCK_MONOTONIC) - begin
        if not best or spread < best[0]:
            best = spread, begin + spread // 2, real, boot
    return dict(zip(("spread_ns", "monotonic_ns", "realtime_ns", "boottime_ns"), best, strict=True))


def _time_zone(root: str) -> dict[str, object]:
    try:
        zone = os.readlink(f"{root}/etc/localtime").partition("zoneinfo/")[2]
    except OSError:
        zone = ""
    name = zone or text(f"{root}/etc/timezone", 64)
    return present([("name", name), ("utc_offset_seconds", time.localtime().tm_gmtoff)])


def _sysctls(root: str, folders: Mapping[str, tuple[str, ...]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for folder, wanted in folders.items():
        base = f"{root}/proc/sys/{folder}"
        there = names(base)
        for name in wanted:
            matches = [entry for entry in there if entry.startswith(name[:-1])] if name.endswith("*") else [name]
            for match in matches:
                value = text(f"{base}/{match}", 512)
                if value is not None and len(found) < _MAX_SYSCTLS:
                    found[f"{folder}/{match}".replace("/", ".")] = " ".join(value.split())
    return found
