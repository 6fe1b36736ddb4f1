"""The fingerprint of made-up machines: many processors, thousands of interrupts, nothing at all."""

from __future__ import annotations

from pathlib import Path

import msgpack
import pytest

from tracer.kernel import fingerprint
from tracer.kernel.fingerprint import read_fingerprint


def write(root: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else f"{content}\n".encode())


def big_machine(root: Path) -> None:
    """Two sockets of two cores of two threads; CPU n and n + 4 share a core."""
    base = "sys/devices/system/cpu"
    for cpu in range(8):
        core, socket = cpu % 4, cpu % 4 // 2
        write(
            root,
            {
                f"{base}/cpu{cpu}/topology/core_cpus_list": f"{core},{core + 4}",
                f"{base}/cpu{cpu}/topology/package_cpus_list": "0-1,4-5" if socket == 0 else "2-3,6-7",
                f"{base}/cpufreq/policy{cpu}/scaling_governor": "powersave" if cpu == 5 else "performance",
            },
        )
    write(
        root,
        {
            f"{base}/isolated": "2-3",
            f"{base}/vulnerabilities/meltdown": "Mitigation: PTI",
            f"{base}/cpuidle/current_driver": "intel_idle",
            f"{base}/cpu0/cpuidle/state0/name": "POLL",
            f"{base}/cpu0/cpuidle/state0/disable": "0",
            f"{base}/cpu0/cpuidle/state1/name": "C6",
            f"{base}/cpu0/cpuidle/state1/disable": "1",
            "proc/cpuinfo": "vendor_id\t: GenuineIntel\nmodel name\t: Xeon\nflags\t\t: fpu vme",
            "proc/meminfo": "MemTotal:  1024 kB\nHugePages_Total:  3",
            "sys/devices/system/node/node0/cpulist": "0-1,4-5",
            "sys/devices/system/node/node0/meminfo": "Node 0 MemTotal:   512 kB",
            "sys/devices/system/node/node1/distance": "21 10",
            "proc/sys/kernel/sched_rt_runtime_us": "950000",
            "proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t33554432",
            "proc/cmdline": b"quiet evil=\xff\x1b[31m\n",
        },
    )


def test_topology_memory_and_settings(tmp_path: Path) -> None:
    big_machine(tmp_path)
    found = read_fingerprint(str(tmp_path))
    cpu = found["cpu"]
    assert isinstance(cpu, dict)
    assert cpu["cores"] == ["0,4", "1,5", "2,6", "3,7"]
    assert cpu["sockets"] == ["0-1,4-5", "2-3,6-7"]
    assert cpu["isolated"] == "2-3"
    assert cpu["model"] == "Xeon" and "hypervisor" not in cpu
    assert cpu["frequency"]["governors"] == {"performance": 7, "powersave": 1}
    assert cpu["idle"]["states"] == {"POLL": "on", "C6": "off"}
    assert found["memory"] == {
        "total_kib": 1024,
        "huge_pages": 3,
        "nodes": {"0": {"cpus": "0-1,4-5", "total_kib": 512}, "1": {"distances": "21 10"}},
    }
    assert found["sysctl"] == {
        "kernel.sched_rt_runtime_us": "950000",
        "net.ipv4.tcp_rmem": "4096 131072 33554432",
    }
    assert found["mitigations"] == {"meltdown": "Mitigation: PTI"}


def test_any_bytes_can_be_packed(tmp_path: Path) -> None:
    big_machine(tmp_path)
    found = read_fingerprint(str(tmp_path))
    assert msgpack.unpackb(msgpack.packb(found)) == found
    kernel = found["kernel"]
    assert isinstance(kernel, dict) and kernel["command_line"] == "quiet evil=\\xff\x1b[31m"


def test_what_is_missing_is_absent(tmp_path: Path) -> None:
    found = read_fingerprint(str(tmp_path))
    assert found.keys() - {"host", "kernel", "clocks", "time_zone", "network"} == set()
    assert found.get("network", {"virtual": 0}) == {"virtual": 0}


def test_interrupt_lines_are_bounded_and_unused_ones_left_out(tmp_path: Path) -> None:
    for line in range(1100):
        write(tmp_path, {f"proc/irq/{line}/smp_affinity_list": "0-7", f"proc/irq/{line}/effective_affinity_list": "3"})
        write(tmp_path, {f"sys/kernel/irq/{line}/actions": "" if line == 0 else f"mlx5_comp{line}"})
    found = read_fingerprint(str(tmp_path))["interrupts"]
    assert isinstance(found, dict)
    assert len(found["lines"]) == 1024 and found["left_out"] == 75
    assert found["lines"][0] == [1, "mlx5_comp1", "0-7", "3"]


def test_names_of_interrupts_without_sys_kernel_irq(tmp_path: Path) -> None:
    write(tmp_path, {"proc/irq/5/smp_affinity_list": "0", "proc/irq/5/eth0-rx/x": "", "proc/irq/6/node": "0"})
    found = read_fingerprint(str(tmp_path))["interrupts"]
    assert found == {"lines": [[5, "eth0-rx", "0", ""]]}


def test_pci_links_of_devices_that_matter_and_do_not_sleep(tmp_path: Path) -> None:
    base = "sys/bus/pci/devices"
    write(
        tmp_path,
        {
            f"{base}/0000:01:00.0/class": "0x020000",
            f"{base}/0000:01:00.0/current_link_width": "8",
            f"{base}/0000:01:00.0/max_link_width": "16",
            f"{base}/0000:02:00.0/class": "0x030200",
            f"{base}/0000:02:00.0/power/runtime_status": "suspended",
            f"{base}/0000:03:00.0/class": "0x060400",
        },
    )
    found = read_fingerprint(str(tmp_path))["pcie"]
    assert found == {
        "links": {"0000:01:00.0": {"class": "0x020000", "current_link_width": "8", "max_link_width": "16"}}
    }


def test_a_section_that_fails_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(root: str) -> dict[str, object]:
        raise PermissionError("no sockets here")

    monkeypatch.setattr(fingerprint, "network_cards", refuse)
    found = read_fingerprint(str(tmp_path))
    assert found["unread"] == ["network"]


def test_clocks_are_of_one_moment() -> None:
    clocks = read_fingerprint()["clocks"]
    assert isinstance(clocks, dict)
    assert clocks["boottime_ns"] >= clocks["monotonic_ns"] - clocks["spread_ns"]
    assert 0 <= clocks["spread_ns"] < 10_000_000
