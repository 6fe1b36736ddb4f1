"""What the facts about a node mean for foreshock: ok, warn or fail, and one line that a person can run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from tracer.kernel.capability import CAPABILITIES, Facts
from tracer.kernel.clock import HOST_TIME

__all__ = ["BE_ROOT", "Check", "can_run", "judge"]

_SLOW_CLOCKS = frozenset({"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"})
_ARCHITECTURES = frozenset({"x86_64", "aarch64", "riscv64", "ppc64le", "s390x"})
_OLDEST_BCC, _NEWEST_BCC = (0, 26), (0, 37)
#: A fix that whoever shows it completes by the command.
BE_ROOT = "run as root"


@dataclass(frozen=True)
class Check:
    """One answer. "fail": light probes can't run; "warn": they can, and something is missing or slow."""

    name: str
    status: Literal["ok", "warn", "fail"]
    found: str
    fix: str = ""


def can_run(checks: list[Check]) -> bool:
    """Return whether light probes can run."""
    return all(check.status != "fail" for check in checks)


def judge(facts: Facts) -> list[Check]:
    """Return every check, in the order in which a person would fix what fails."""
    return [
        _user(facts),
        _kernel(facts),
        _btf(facts),
        _lockdown(facts),
        _trial(facts, "mapped array", "memory-mapped BPF arrays", "needs Linux 5.5 or later"),
        _trial(facts, "ring buffer", "BPF ring buffer", "needs Linux 5.8 or later"),
        _trial(facts, "btf tracepoint", "BTF tracepoint that reads kernel memory", "needs Linux 5.5 or later"),
        _trial(facts, "clock", "BPF program on the CPU clock event", "sysctl -w kernel.perf_event_paranoid=2"),
        _memlock(facts),
        _locking(facts),
        _jit(facts),
        _sysctls(facts),
        _tracefs(facts),
        _bcc(facts),
        _watchdog(facts),
        _clocksource(facts),
        _cgroups(facts),
        _pids(facts),
        _time(facts),
    ]


def _is_privileged(facts: Facts) -> bool:
    enough = "CAP_SYS_ADMIN" in facts.capabilities or {"CAP_BPF", "CAP_PERFMON"} <= facts.capabilities
    return enough and not facts.own_user_namespace


def _user(facts: Facts) -> Check:
    who = "root" if facts.uid == 0 else f"uid {facts.uid}"
    missing = [name for name in CAPABILITIES if name not in facts.capabilities]
    found = f"{who}, without {', '.join(missing)}" if missing else f"{who}, with all capabilities needed"
    if facts.own_user_namespace:
        found = f"{who} of a user namespace, whose capabilities are not for the node"
        return Check("user", "fail", found, "container: no user namespace (docker: --userns=host; podman: as root)")
    if _is_privileged(facts):
        return Check("user", "ok", found)
    fix = BE_ROOT if facts.uid else "container: --cap-add=BPF --cap-add=PERFMON (or --privileged)"
    return Check("user", "fail", found, fix)


def _kernel(facts: Facts) -> Check:
    found = f"Linux {facts.release}, {facts.architecture}"
    if facts.architecture in _ARCHITECTURES:
        return Check("kernel", "ok", found)
    return Check("kernel", "fail", found, f"run on one of {', '.join(sorted(_ARCHITECTURES))}")


def _btf(facts: Facts) -> Check:
    if facts.has_btf:
        return Check("BTF", "ok", "/sys/kernel/btf/vmlinux")
    found = "no readable /sys/kernel/btf/vmlinux"
    return Check("BTF", "fail", found, "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y")


def _lockdown(facts: Facts) -> Check:
    if facts.lockdown == "confidentiality":
        fix = "boot with lockdown=integrity, or without lockdown"
        return Check("lockdown", "fail", "confidentiality: BPF may not read kernel memory", fix)
    if facts.lockdown:
        return Check("lockdown", "ok", facts.lockdown)
    why = "this kernel doesn't say" if facts.has_securityfs else "securityfs is not mounted or not readable"
    return Check("lockdown", "ok", f"not known ({why}); the trials below tell what is allowed")


def _trial(facts: Facts, name: str, what: str, fix: str) -> Check:
    refusal = facts.trials.get(name)
    if refusal is None:
        return Check(name, "warn", f"{what}: not tried", BE_ROOT)
    if not refusal:
        return Check(name, "ok", f"{what}: works")
    return Check(name, "fail", f"{what}: {refusal}", fix if _is_privileged(facts) else BE_ROOT)


def _memlock(facts: Facts) -> Check:
    if facts.memlock_bytes < 0:
        return Check("memlock limit", "ok", "unlimited")
    found = f"{facts.memlock_bytes // 1024} KiB"
    if facts.trials.get("beyond memlock") == "":
        return Check("memlock limit", "ok", f"{found}; this kernel doesn't count BPF maps in it")
    if "CAP_SYS_RESOURCE" in facts.capabilities:
        return Check("memlock limit", "ok", f"{found}; foreshock may raise it")
    if facts.trials.get("mapped array") != "":
        return Check("memlock limit", "warn", f"{found}; whether BPF maps count in it isn't known", BE_ROOT)
    return Check("memlock limit", "fail", f"{found}; BPF maps count in it", "ulimit -l unlimited")


def _locking(facts: Facts) -> Check:
    if "CAP_IPC_LOCK" in facts.capabilities or facts.memlock_bytes < 0:
        return Check("memory locking", "ok", "allowed: alerts don't wait for swapped-out pages")
    fix = BE_ROOT if facts.uid else "container: --cap-add=IPC_LOCK"
    return Check("memory locking", "warn", "not allowed: alerts may wait for memory", fix)


def _jit(facts: Facts) -> Check:
    if facts.jit_enabled is None:
        return Check("BPF JIT", "warn", "not readable: /proc/sys/net/core/bpf_jit_enable", BE_ROOT)
    if facts.jit_enabled == 0:
        return Check(
            "BPF JIT", "warn", "off: every probe costs several times more", "sysctl -w net.core.bpf_jit_enable=1"
        )
    limit = f", limit {facts.jit_limit // (1 << 20)} MiB" if facts.jit_limit is not None else ""
    return Check("BPF JIT", "ok", f"on{limit}")


def _sysctls(facts: Facts) -> Check:
    values = {
        "unprivileged_bpf_disabled": facts.unprivileged_bpf_disabled,
        "perf_event_paranoid": facts.perf_event_paranoid,
    }
    found = ", ".join(f"{name}={value}" for name, value in values.items() if value is not None)
    if _is_privileged(facts):
        return Check("BPF sysctls", "ok", f"{found or 'none'}; no obstacle to this user")
    return Check("BPF sysctls", "warn", f"{found or 'none'}; foreshock needs privileges whatever they say", BE_ROOT)


def _tracefs(facts: Facts) -> Check:
    found = {"mounted": "mounted", "missing": "not in this kernel"}.get(facts.tracefs, "not mounted")
    return Check("tracefs", "ok", f"{found}; not needed: tracepoints are reached through BTF")


def _bcc(facts: Facts) -> Check:
    if facts.bcc_given_up_s is not None:
        found = f"{facts.interpreter}: not known: to import it takes longer than {facts.bcc_given_up_s} s here"
        fix = f"ask again when the node is less busy; how long it takes: time {facts.interpreter} -I -c 'import bcc'"
        return Check("bcc", "warn", found, fix)
    if facts.bcc_version is None:
        where = f"{facts.interpreter}: " if facts.interpreter else ""
        fix = facts.bcc_hint or "reinstall bcc: apt-get install --reinstall python3-bpfcc libbpfcc"
        return Check("bcc", "fail", where + facts.bcc_error, fix)
    found = f"{facts.bcc_version} of {facts.interpreter}"
    number = re.match(r"(\d+)\.(\d+)", facts.bcc_version)
    version = (int(number[1]), int(number[2])) if number else None
    if version is None or not _OLDEST_BCC <= version <= _NEWEST_BCC:
        return Check("bcc", "warn", f"{found}; tested are 0.26 to 0.37", "install the distribution's python3-bpfcc")
    return Check("bcc", "ok", found)


def _watchdog(facts: Facts) -> Check:
    if facts.watchdog is None:
        return Check("watchdog", "warn", "none in this kernel: lockups have no deadline to count down to")
    if facts.watchdog == 0:
        found = "soft lockup detector off: lockups have no deadline to count down to"
        return Check("watchdog", "warn", found, "sysctl -w kernel.soft_watchdog=1")
    nmi = "on" if facts.nmi_watchdog else "off"
    threshold = f" after {2 * facts.watchdog_thresh} s" if facts.watchdog_thresh else ""
    return Check("watchdog", "ok", f"soft lockup{threshold}; hard lockup detector {nmi}")


def _clocksource(facts: Facts) -> Check:
    if facts.clocksource in _SLOW_CLOCKS:
        fix = "dmesg | grep -i tsc    # says why the TSC was given up"
        return Check("clock source", "warn", f"{facts.clocksource}: every time stamp costs about 1 µs", fix)
    return Check("clock source", "ok", facts.clocksource or "not known")


def _cgroups(facts: Facts) -> Check:
    if facts.cgroups:
        return Check("cgroups", "ok", facts.cgroups)
    fix = "mount -t cgroup2 none /sys/fs/cgroup (container: bind-mount it)"
    return Check("cgroups", "warn", "no hierarchy found: tasks are shown without their group", fix)


def _pids(facts: Facts) -> Check:
    if facts.own_pid_namespace:
        found = "a container's own: the node's processes can't be named"
        return Check("pid namespace", "warn", found, "docker run --pid=host; Kubernetes: hostPID: true")
    return Check("pid namespace", "ok", "the node's own")


def _time(facts: Facts) -> Check:
    if facts.own_time_namespace:
        return Check("time namespace", "fail", "not the node's: the kernel's times are others", HOST_TIME)
    return Check("time namespace", "ok", "the node's clocks")
