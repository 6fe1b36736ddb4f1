"""inject: each fault is what it says, ends in time, and leaves nothing behind however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from kernel.traced import counted

from tracer import histogram
from tracer.commands._faults import FAULTS
from tracer.workloads import places
from tracer.workloads.frozen import Frozen
from tracer.workloads.growth import Growth

NET_RX = 3


def inject(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tracer", "inject", *arguments], capture_output=True, text=True, timeout=60
    )


def _frozen_left() -> list[str]:
    here = tempfile.gettempdir()
    return [path.name for path in Path(here).glob("foreshock-frozen-*")] + [
        path.name for path in Path("/sys/block").glob("loop*") if _backing(path).startswith(f"{here}/foreshock-frozen-")
    ]


def _backing(path: Path) -> str:
    try:
        return (path / "loop/backing_file").read_text()
    except OSError:
        return ""


def _gone(what, seconds: float = 5.0) -> bool:
    end = time.monotonic() + seconds
    while what() and time.monotonic() < end:
        time.sleep(0.05)
    return not what()


def test_without_yes_nothing_is_done():
    done = inject("fifo-hog")
    assert done.returncode == 2 and "--yes" in done.stderr and not done.stdout


def test_it_lists_what_there_is():
    done = inject()
    assert done.returncode == 0
    assert all(name in done.stdout for name in FAULTS)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [(("fifohog", "--yes"), "fifo-hog"), (("d-state", "--yes", "--for", "1h"), "100 s"), (("x", "--yes"), "one of")],
)
def test_bad_input_is_told_in_one_line(arguments, word):
    done = inject(*arguments)
    assert done.returncode == 2 and word in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_each_ends_in_time_and_says_what_it_did(fault):
    began = time.monotonic()
    done = inject(fault, "--for", "1s", "--yes")
    assert done.returncode == 0, done.stderr
    assert "done: " in done.stdout and time.monotonic() - began < 10
    assert _gone(_frozen_left)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_however_it_ends_its_processes_and_its_file_system_end_too(number):
    command = [sys.executable, "-m", "tracer", "inject", "d-state", "--for", "60s", "--yes"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        child = int(line.partition("pid ")[2].split(",")[0])
        time.sleep(0.5)
        stuck = [pid for pid in _children(child) if _comm(pid) == "stuck"]
        assert stuck and _state(stuck[0]) == "D"
        process.send_signal(number)
        process.wait(timeout=10)
    assert _gone(lambda: _state(child) or _state(stuck[0]))
    assert _gone(_frozen_left)


def test_its_file_system_thaws_when_all_but_the_guard_are_killed():
    with Frozen(60) as frozen:
        frozen.go()
        time.sleep(0.5)
        (stuck,) = [pid for pid in _children(frozen.pid) if _comm(pid) == "stuck"]
        os.kill(frozen.pid, signal.SIGKILL)
        assert _gone(lambda: _state(stuck))
    assert _gone(_frozen_left)


def test_late_softirqs_are_late(attach):
    where = places()
    traced = attach("softirq")
    with FAULTS["softirq-delay"].start(1.0, where) as work:
        work.go()
        assert work.result()["holds"] >= 5
    rows = traced.collect()["softirq.delay"].rows
    slots = rows["slots"][rows["cpu"] == where.busy].sum(axis=0)
    assert histogram.max_ns(slots) > 5_000_000


def test_a_crowd_waits_for_its_cpu(attach):
    where = places()
    traced = attach("runqueue")
    with FAULTS["runqueue-crowd"].start(1.0, where) as work:
        work.go()
        work.result()
    rows = traced.collect()["runqueue.wait"].rows
    rows = rows[rows["cpu"] == where.busy]
    assert counted(rows) > 100
    # Eight take turns of about 3 ms each.
    assert histogram.max_ns(rows["slots"].sum(axis=0)) > 5_000_000


def test_memory_grows_as_told():
    with Growth(1.0, bytes_per_second=50 << 20) as growth:
        growth.go()
        taken = growth.result()["bytes"]
        status = Path(f"/proc/{growth.pid}/status").read_text()
    peak = int(status.partition("VmHWM:")[2].split()[0]) << 10
    assert taken == pytest.approx(50 << 20, rel=0.15) and peak > taken


@pytest.mark.parametrize(
    ("fault", "line"), [("kernel-log", "I/O error, dev {},"), ("fs-error", "EXT4-fs error (device {})")]
)
def test_the_kernel_logs_errors_of_what_is_gone_afterwards(fault, line):
    done = inject(fault, "--for", "2s", "--yes")
    assert done.returncode == 0, done.stderr
    device = done.stdout.partition("done: device ")[2].split(",")[0]
    log = subprocess.run(["dmesg"], capture_output=True, text=True, check=True).stdout
    assert line.format(device) in log
    assert _gone(lambda: _backing(Path("/sys/block", device)))
    assert not [*Path(tempfile.gettempdir()).glob("foreshock-brokenfs-*")]


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _comm(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _state(pid: int) -> str:
    """Return a process's state; "" once it is gone, or dead and waiting for whoever should reap it."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]
    except OSError:
        return ""
    return "" if state in "ZX" else state
