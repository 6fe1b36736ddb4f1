"""Command lines without names: foreshock's, which its header has, and the kernel's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

__all__ = ["Hides", "unnamed_command", "unnamed_kernel_command", "unnamed_value"]

#: Options whose values are words of ours, and values that are no names: numbers, times, sizes, CPUs.
_TOLD = frozenset({"--probes", "--series", "--format", "--closeup", "--shadow"})
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[KMGT]i?B?|%)?|\d+(?:[,-]\d+)+|(?:\d+(?:\.\d+)?(?:ms|[hms]))+", re.ASCII)

#: Of the kernel's parameters, those whose values are words of its own (its admin-guide/kernel-parameters.txt).
_WORDS = """
acpi amd_iommu amd_pstate clocksource console cpufreq.default_governor cpuidle.governor crashkernel default_hugepagesz
deferred_init earlycon earlyprintk gather_data_sampling hpet hugepagesz idle intel_iommu intel_pstate iommu irqaffinity
isolcpus kpti l1tf log_buf_len lsm mds mitigations mmio_stale_data nmi_watchdog nohz nohz_full numa numa_balancing pci
pcie_aspm preempt printk.devkmsg pti rcu_nocbs reboot retbleed rodata rootfstype security slub_debug
spec_store_bypass_disable spectre_v2 srso swiotlb transparent_hugepage tsc tsx tsx_async_abort vsyscall
"""
_HARMLESS = frozenset(_WORDS.split())
#: Spaces within quotes part nothing (lib/cmdline.c).
_PARAMETER = re.compile(r'(?:[^\s"]|"[^"]*"?)+')
#: What follows is init's.
_INIT = "--"


class Hides(Protocol):
    """What hides a name that stands alone, and those within a text."""

    def name(self, name: str) -> str: ...

    def text(self, text: str) -> str: ...


def unnamed_command(command: Sequence[str], hides: Hides) -> list[str]:
    """Return foreshock's command line with hashes for values: for all but numbers and words of ours."""
    hidden = list(command[:2])
    for before, argument in pairwise(command[1:]):
        option, equals, value = argument.partition("=") if argument.startswith("--") else ("", "", argument)
        if argument.startswith("--") and not equals:
            hidden.append(argument)
        elif argument.startswith("-") and not equals:
            hidden.append(argument[:2] + (hides.name(argument[2:]) if argument[2:] else ""))
        else:
            hidden.append(f"{option}{equals}{_unnamed_option(option or before, value, hides)}")
    return hidden


def unnamed_kernel_command(line: str, hides: Hides) -> str:
    """Return the kernel's command line with hashes for values: for all but numbers and words of the kernel's.

    Parameters keep their names; of init's arguments, after ``--``, only numbers and the names of options stay.
    """
    parameters, init = _PARAMETER.findall(line), False
    for place, parameter in enumerate(parameters):
        name, equals, value = parameter.partition("=")
        if parameter == _INIT:
            init = True
        elif equals and not init and name.strip('"').replace("-", "_") in _HARMLESS:
            parameters[place] = f"{name}={hides.text(value)}"
        elif equals:
            parameters[place] = f"{hides.text(name)}={unnamed_value(value, hides)}"
        elif init and not parameter.startswith("--"):
            parameters[place] = unnamed_value(parameter, hides)
        else:
            parameters[place] = hides.text(parameter)
    return " ".join(parameters)


def unnamed_value(value: str, hides: Hides) -> str:
    """Return a hash of a value, unless it is a number."""
    return value if _NUMBER.fullmatch(value) else hides.name(value)


def _unnamed_option(option: str, value: str, hides: Hides) -> str:
    if option in _TOLD:
        return hides.text(value)
    if option == "--sink":
        kind, colon, where = value.partition(":")
        return f"{kind}{colon}{hides.name(where)}"
    if option == "--label":
        name, equals, value = value.partition("=")
        return f"{name}{equals}{unnamed_value(value, hides)}"
    return unnamed_value(value, hides)
