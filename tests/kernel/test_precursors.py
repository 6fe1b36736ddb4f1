"""precursors: a real OOM kill in a group of our own; programs run with arguments that are known; what is missing."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kernel.driven import Driven
from kernel.memory_group import EAT, small_group

from tracer.kernel.loader.btf import Btf
from tracer.probes import all_probes

__all__ = ["small_group"]


def test_an_oom_kill_names_its_victim(attach, small_group):
    traced = attach("precursors")
    traced.collect()
    # "exec" of the program keeps the shell's pid, which is in the group by then.
    enter = f'echo $$ > {small_group}/cgroup.procs; exec "$0" -S -c "$1"'
    before_ns = time.monotonic_ns()
    with subprocess.Popen(["sh", "-c", enter, sys.executable, EAT]) as process:
        assert process.wait(timeout=30) == -signal.SIGKILL
    windows = traced.collect()
    (row,) = windows["precursors.told"].rows
    assert (row["kind"], row["pid"]) == (b"oom_kill", process.pid)
    assert row["comm"].startswith(b"python")
    assert before_ns < row["time_ns"] < time.monotonic_ns()
    (count,) = windows["precursors.count"].rows
    assert (count["kind"], count["count"], count["cpu"]) == (b"oom_kill", 1, row["cpu"])
    assert windows["precursors.told"].losses["suppressed"] == 0


def test_says_which_tracepoints_this_kernel_lacks(attach):
    btf = Btf.running_kernel()
    lacking = {hook.event for hook in all_probes()["precursors"].hooks if not btf.tracepoint(hook.event)}
    missing = attach("precursors").session.missing
    told = re.findall(r"\w+", " ".join(reason for name, reason in missing if name == "precursors"))
    assert {hook.event for hook in all_probes()["precursors"].hooks} & set(told) == lacking


@pytest.fixture(scope="module")
def driven() -> Iterator[Driven]:
    driven = Driven("precursors")
    yield driven
    driven.close()


@pytest.fixture(scope="module")
def text() -> int:
    """The address of "task_struct" in the kernel's type information, which lies in memory as in its file."""
    start = re.search(r"^([0-9a-f]{16}) \w __start_BTF$", Path("/proc/kallsyms").read_text(), re.M)
    if not start or not int(start[1], 16):
        pytest.skip("the kernel does not show where its type information is")
    return int(start[1], 16) + Path("/sys/kernel/btf/vmlinux").read_bytes().index(b"\0task_struct\0") + 1


@pytest.mark.parametrize(
    ("event", "arguments", "kind", "number", "value"),
    [
        ("sched_process_hang", (0,), b"hung_task", 0, 0),
        ("net_dev_xmit_timeout", (0, 5), b"tx_timeout", 5, 0),
        ("error_report_end", (2, 0xFFFFFFFF81000000), b"error_report", 2, 0xFFFFFFFF81000000),
        ("mc_event", (1, 0, 0, 7), b"memory_error", 1, 7),
        ("thermal_zone_trip", (0, 2, 3), b"thermal_trip", 3, 2),
        ("io_page_fault", (0, 0xDEAD000, 1), b"iommu_fault", 1, 0xDEAD000),
    ],
)
def test_arguments_arrive(driven, event, arguments, kind, number, value):
    if f"on_{event}" not in driven.session._loaded.programs:
        pytest.skip(f"this kernel has no {event}")
    driven.rows("precursors.told")
    driven.run(f"on_{event}", *arguments)
    (row,) = driven.rows("precursors.told")
    assert (row["kind"], row["number"], row["value"]) == (kind, number, value)


def test_texts_arrive(driven, text):
    driven.rows("precursors.told")
    driven.run("on_rcu_stall_warning", text, text + 5)
    (row,) = driven.rows("precursors.told")
    assert (row["kind"], row["name"], row["text"]) == (b"rcu_stall", b"task_struct", b"struct")


def test_a_storm_is_counted_and_told_in_part(driven):
    driven.window("precursors.count")
    driven.rows("precursors.told")
    for _ in range(500):
        driven.run("on_mc_event", 0, 0, 0, 1)
    window = driven.window("precursors.told")
    told, suppressed = len(window.rows), window.losses["suppressed"]
    # At most eight in each second that the calls took.
    assert 1 <= told <= 32 and told + suppressed == 500
