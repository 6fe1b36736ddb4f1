"""Network cards, PCI Express links and interrupt lines of this node, as they are set up."""

from __future__ import annotations

import os

from tracer.kernel.ethtool import Ethtool
from tracer.kernel.textfiles import decoded, names, number, present, text

__all__ = ["interrupts", "network_cards", "pcie_links"]

_MAX_CARDS = 64
_MAX_LINES = 1024
_MAX_LINKS = 128
# Base classes of PCI that matter here: storage, network, display, processing accelerators.
_PCI_CLASSES = ("0x01", "0x02", "0x03", "0x12")


def network_cards(root: str = "") -> dict[str, object]:
    """Return by name the network devices with hardware behind them: driver, firmware, rings, channels, PCIe link."""
    base = f"{root}/sys/class/net"
    every = names(base)
    cards = [name for name in every if os.path.islink(f"{base}/{name}/device")]
    ethtool = Ethtool()
    try:
        found: dict[str, object] = {name: _card(ethtool, f"{base}/{name}", name) for name in cards[:_MAX_CARDS]}
    finally:
        ethtool.close()
    left_out = max(len(cards) - _MAX_CARDS, 0)
    return present([("cards", found), ("virtual", len(every) - len(cards)), ("left_out", left_out or None)])


def _card(ethtool: Ethtool, path: str, name: str) -> dict[str, object]:
    device = os.fsencode(name)
    described = ethtool.driver(device) or {}
    queues = names(f"{path}/queues")
    return present(
        [
            *((key, decoded(value) or None) for key, value in described.items()),
            ("speed_mbps", ethtool.speed_mbps(device) or None),
            ("mtu", number(f"{path}/mtu")),
            ("rings", ethtool.rings(device)),
            ("channels", ethtool.channels(device)),
            ("coalesce", ethtool.coalesce(device)),
            ("rx_queues", sum(queue.startswith("rx-") for queue in queues) or None),
            ("tx_queues", sum(queue.startswith("tx-") for queue in queues) or None),
            ("threaded", number(f"{path}/threaded")),
            ("gro_flush_timeout", number(f"{path}/gro_flush_timeout")),
            ("napi_defer_hard_irqs", number(f"{path}/napi_defer_hard_irqs")),
            ("numa_node", number(f"{path}/device/numa_node")),
            ("pcie", _link(f"{path}/device")),
        ]
    )


def pcie_links(root: str = "") -> dict[str, object]:
    """Return by address the PCI Express links of storage, network, display and accelerator devices."""
    base = f"{root}/sys/bus/pci/devices"
    found: dict[str, object] = {}
    left_out = 0
    for address in names(base):
        kind = text(f"{base}/{address}/class", 16) or ""
        # Asking a device that sleeps would wake it.
        if not kind.startswith(_PCI_CLASSES) or text(f"{base}/{address}/power/runtime_status", 16) == "suspended":
            continue
        if len(found) >= _MAX_LINKS:
            left_out += 1
            continue
        identity: list[tuple[str, object]] = [
            (name, text(f"{base}/{address}/{name}", 16)) for name in ("vendor", "device")
        ]
        driver = f"{base}/{address}/driver"
        name = os.path.basename(os.readlink(driver)) if os.path.islink(driver) else None
        node = number(f"{base}/{address}/numa_node")
        link = _link(f"{base}/{address}").items()
        found[address] = present([("class", kind), *identity, ("driver", name), ("numa_node", node), *link])
    return present([("links", found), ("left_out", left_out or None)])


def _link(path: str) -> dict[str, object]:
    files = ("current_link_speed", "current_link_width", "max_link_speed", "max_link_width")
    return present((name, text(f"{path}/{name}", 32)) for name in files)


def interrupts(root: str = "") -> dict[str, object]:
    """Return the interrupt lines in use as ``[line, name, allowed CPUs, CPUs it is delivered to]``.

    From /sys/kernel/irq and /proc/irq: /proc/interrupts would make the kernel print a column per CPU.
    """
    base = f"{root}/proc/irq"
    lines: list[object] = []
    left_out = 0
    for line in sorted(int(name) for name in names(base) if name.isdecimal()):
        name = _actions(root, line)
        if not name:
            continue
        if len(lines) >= _MAX_LINES:
            left_out += 1
            continue
        allowed = text(f"{base}/{line}/smp_affinity_list", 512) or ""
        effective = text(f"{base}/{line}/effective_affinity_list", 512) or ""
        lines.append([line, name, allowed, effective])
    return present([("lines", lines), ("left_out", left_out or None)])


def _actions(root: str, line: int) -> str:
    actions = text(f"{root}/sys/kernel/irq/{line}/actions", 256)
    if actions is None:
        folder = f"{root}/proc/irq/{line}"
        actions = ",".join(name for name in names(folder) if os.path.isdir(f"{folder}/{name}"))
    return actions
