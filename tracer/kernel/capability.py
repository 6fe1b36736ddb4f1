"""What this node lets foreshock do: facts only, no judgement (see checks.py). Nothing is changed to find out."""

from __future__ import annotations

import os
import platform
import re
import resource
import subprocess
from dataclasses import dataclass, field
from typing import Any

from tracer.errors import UnavailableError
from tracer.kernel import privilege
from tracer.kernel.cgroups import CgroupNames
from tracer.kernel.clock import in_host_time
from tracer.kernel.cpus import in_host_pids
from tracer.kernel.interpreter import find_interpreter
from tracer.kernel.textfiles import number, text
from tracer.kernel.trials import run_trials

__all__ = ["CAPABILITIES", "Facts", "read_facts"]

# Numbers of include/uapi/linux/capability.h.
CAPABILITIES = {"CAP_IPC_LOCK": 14, "CAP_SYS_ADMIN": 21, "CAP_SYS_RESOURCE": 24, "CAP_PERFMON": 38, "CAP_BPF": 39}
_BCC_SECONDS = 20


@dataclass(frozen=True)
class Facts:
    """What was found. None where the node doesn't say.

    ``trials`` maps names of ``trials.TRIALS`` to the kernel's refusal, "" when it worked. ``memlock_bytes`` is -1
    without a limit. ``tracefs`` is one of "mounted", "available", "missing".
    """

    uid: int = 0
    capabilities: frozenset[str] = frozenset(CAPABILITIES)
    release: str = ""
    architecture: str = "x86_64"
    has_btf: bool = True
    lockdown: str | None = None
    has_securityfs: bool = False
    memlock_bytes: int = -1
    trials: dict[str, str] = field(default_factory=dict)
    unprivileged_bpf_disabled: int | None = None
    perf_event_paranoid: int | None = None
    jit_enabled: int | None = None
    jit_limit: int | None = None
    tracefs: str = "mounted"
    interpreter: str | None = None
    bcc_version: str | None = None
    bcc_error: str = ""
    bcc_hint: str = ""
    bcc_given_up_s: int | None = None
    watchdog: int | None = None
    nmi_watchdog: int | None = None
    watchdog_thresh: int | None = None
    clocksource: str | None = None
    cgroups: str | None = None
    own_pid_namespace: bool = False
    own_time_namespace: bool = False
    own_user_namespace: bool = False


def read_facts() -> Facts:
    """Return the facts of this node, for the user and in the namespaces of this process."""
    uname = os.uname()
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    lockdown = re.search(r"\[(\w+)\]", text("/sys/kernel/security/lockdown", 128) or "")
    bcc = _bcc()
    return Facts(
        uid=os.geteuid(),
        capabilities=_capabilities(),
        release=uname.release,
        architecture=platform.machine(),
        has_btf=os.access("/sys/kernel/btf/vmlinux", os.R_OK),
        lockdown=lockdown[1] if lockdown else None,
        has_securityfs=_is_mounted("securityfs"),
        memlock_bytes=-1 if soft == resource.RLIM_INFINITY else soft,
        trials=run_trials(),
        unprivileged_bpf_disabled=number("/proc/sys/kernel/unprivileged_bpf_disabled"),
        perf_event_paranoid=number("/proc/sys/kernel/perf_event_paranoid"),
        jit_enabled=number("/proc/sys/net/core/bpf_jit_enable"),
        jit_limit=number("/proc/sys/net/core/bpf_jit_limit"),
        tracefs=_tracefs(),
        **bcc,
        watchdog=number("/proc/sys/kernel/soft_watchdog"),
        nmi_watchdog=number("/proc/sys/kernel/nmi_watchdog"),
        watchdog_thresh=number("/proc/sys/kernel/watchdog_thresh"),
        clocksource=text("/sys/devices/system/clocksource/clocksource0/current_clocksource", 64),
        cgroups=_cgroups(),
        own_pid_namespace=not in_host_pids(),
        own_time_namespace=not in_host_time(),
        own_user_namespace=not privilege.in_host_users(),
    )


def _capabilities() -> frozenset[str]:
    effective = re.search(r"^CapEff:\s*([0-9a-f]+)", text("/proc/self/status", 8192) or "", re.M)
    bits = int(effective[1], 16) if effective else 0
    return frozenset(name for name, bit in CAPABILITIES.items() if bits >> bit & 1)


def _is_mounted(kind: str) -> bool:
    return re.search(rf" - {kind} ", text("/proc/self/mountinfo", 1 << 20) or "") is not None


def _tracefs() -> str:
    if _is_mounted("tracefs"):
        return "mounted"
    return "available" if re.search(r"\ttracefs$", text("/proc/filesystems") or "", re.M) else "missing"


def _cgroups() -> str | None:
    names = CgroupNames()
    if not names.cgroup_of(os.getpid()):
        return None
    return "v1, cpu controller" if names.is_v1 else "v2"


def _bcc() -> dict[str, Any]:
    """Return the facts about bcc. It is imported in a child only: it brings LLVM along."""
    try:
        interpreter = find_interpreter()
    except UnavailableError as error:
        return {"bcc_error": error.message, "bcc_hint": error.hint}
    # -I: neither PYTHON* variables nor the current folder decide what is imported.
    command = [interpreter, "-I", "-c", "import bcc; print(bcc.__version__)"]
    found: dict[str, Any] = {"interpreter": interpreter}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_BCC_SECONDS, cwd="/")
    except subprocess.TimeoutExpired:
        return {**found, "bcc_given_up_s": _BCC_SECONDS}
    except OSError as failure:
        return {**found, "bcc_error": str(failure)}
    if done.returncode:
        return {**found, "bcc_error": (done.stderr.strip().splitlines() or ["it fails without a word"])[-1]}
    return {**found, "bcc_version": done.stdout.strip()}
