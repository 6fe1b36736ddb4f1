"""The processors, the memory and the clocks of this node, as /proc and /sys describe them.

``root`` goes before every path, so that other machines' trees can be read.
"""

from __future__ import annotations

import os
import re

from tracer.kernel.textfiles import names, number, present, text

__all__ = ["clocksource", "cpu", "firmware", "memory", "mitigations"]

_CPU = "/sys/devices/system/cpu"
_MAX_CPUS = 2048
_MAX_NODES = 256


def cpu(root: str = "") -> dict[str, object]:
    """Return model, microcode, topology, isolation, frequency governors and idle states."""
    base = root + _CPU
    # The first processor's record only: the whole file is a line of work per CPU.
    first = dict(re.findall(r"^([^\t:]+)\s*: (.*)$", text(f"{root}/proc/cpuinfo") or "", re.M))
    cpus = [name for name in names(base) if re.fullmatch(r"cpu\d+", name)]
    left_out = max(len(cpus) - _MAX_CPUS, 0)
    cpus = sorted(cpus, key=lambda name: int(name[3:]))[:_MAX_CPUS]
    cores = _groups(base, cpus, "topology/core_cpus_list") or _groups(base, cpus, "topology/thread_siblings_list")
    sockets = _groups(base, cpus, "topology/package_cpus_list") or _groups(base, cpus, "topology/core_siblings_list")
    return present(
        [
            ("vendor", first.get("vendor_id") or first.get("CPU implementer")),
            ("model", first.get("model name") or first.get("CPU part")),
            ("microcode", text(f"{base}/cpu0/microcode/version") or first.get("microcode")),
            ("hypervisor", True if "hypervisor" in first.get("flags", "").split() else None),
            *((name, text(f"{base}/{name}")) for name in ("online", "possible", "isolated", "nohz_full")),
            ("smt", text(f"{base}/smt/control")),
            ("cores", cores),
            ("sockets", sockets),
            ("caches", _groups(base, cpus, "cache/index3/shared_cpu_list")),
            ("frequency", _frequency(base)),
            ("idle", _idle(base)),
            ("left_out", left_out or None),
        ]
    )


def _groups(base: str, cpus: list[str], file: str) -> list[str]:
    """Return the distinct CPU lists in a file that each CPU has, in the order of the CPUs."""
    return list(dict.fromkeys(filter(None, (text(f"{base}/{name}/{file}") for name in cpus))))


def _frequency(base: str) -> dict[str, object]:
    governors: dict[str, int] = {}
    policies = [name for name in names(f"{base}/cpufreq") if name.startswith("policy")][:_MAX_CPUS]
    for policy in policies:
        governor = text(f"{base}/cpufreq/{policy}/scaling_governor")
        if governor is not None:
            governors[governor] = governors.get(governor, 0) + 1
    first = f"{base}/cpufreq/{policies[0]}" if policies else ""
    files = ("scaling_driver", "cpuinfo_max_freq", "scaling_max_freq", "scaling_min_freq")
    return present(
        [
            ("governors", governors),
            *((file, text(f"{first}/{file}")) for file in files if first),
            ("boost", text(f"{base}/cpufreq/boost")),
            ("no_turbo", text(f"{base}/intel_pstate/no_turbo")),
        ]
    )


def _idle(base: str) -> dict[str, object]:
    folder = f"{base}/cpu0/cpuidle"
    states = {}
    for state in names(folder)[:32]:
        name, disabled = text(f"{folder}/{state}/name"), text(f"{folder}/{state}/disable")
        if name is not None and disabled is not None:
            states[name] = "on" if disabled == "0" else "off"
    governor = text(f"{base}/cpuidle/current_governor_ro") or text(f"{base}/cpuidle/current_governor")
    return present([("driver", text(f"{base}/cpuidle/current_driver")), ("governor", governor), ("states", states)])


def memory(root: str = "") -> dict[str, object]:
    """Return sizes in KiB, the NUMA nodes with their CPUs and distances, and the huge page settings."""
    sizes = dict(re.findall(r"^(\w+):\s+(\d+)", text(f"{root}/proc/meminfo") or "", re.M))
    wanted = {"total_kib": "MemTotal", "swap_kib": "SwapTotal", "huge_page_kib": "Hugepagesize"}
    base = f"{root}/sys/devices/system/node"
    nodes = {}
    for node in [name for name in names(base) if re.fullmatch(r"node\d+", name)][:_MAX_NODES]:
        total = re.search(r"MemTotal:\s+(\d+)", text(f"{base}/{node}/meminfo") or "")
        nodes[node[4:]] = present(
            [
                ("cpus", text(f"{base}/{node}/cpulist")),
                ("total_kib", int(total[1]) if total else None),
                ("distances", text(f"{base}/{node}/distance")),
            ]
        )
    huge = f"{root}/sys/kernel/mm/transparent_hugepage"
    return present(
        [
            *((name, int(sizes[field])) for name, field in wanted.items() if field in sizes),
            ("huge_pages", int(sizes["HugePages_Total"]) if "HugePages_Total" in sizes else None),
            ("nodes", nodes),
            ("transparent_hugepage", text(f"{huge}/enabled")),
            ("transparent_hugepage_defrag", text(f"{huge}/defrag")),
            ("ksm", number(f"{root}/sys/kernel/mm/ksm/run")),
        ]
    )


def clocksource(root: str = "") -> dict[str, object]:
    """Return the clock source in use and those that could be."""
    base = f"{root}/sys/devices/system/clocksource/clocksource0"
    return present((name, text(f"{base}/{name}_clocksource")) for name in ("current", "available"))


def mitigations(root: str = "") -> dict[str, object]:
    """Return what the kernel says about each hardware vulnerability."""
    base = f"{root}{_CPU}/vulnerabilities"
    return present((name, text(f"{base}/{name}", 256)) for name in names(base)[:64])


def firmware(root: str = "") -> dict[str, object]:
    """Return the machine's maker, model and firmware (DMI), and the hypervisor where it names itself."""
    base = f"{root}/sys/class/dmi/id"
    files = ("sys_vendor", "product_name", "board_name", "bios_vendor", "bios_version", "bios_date")
    pairs: list[tuple[str, object]] = [(name, text(f"{base}/{name}", 256)) for name in files]
    pairs.append(("hypervisor", text(f"{root}/sys/hypervisor/type", 64)))
    pairs.append(("efi", True if os.path.isdir(f"{root}/sys/firmware/efi") else None))
    return present(pairs)
