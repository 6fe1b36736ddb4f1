"""workqueue: works of a known number and function; a worker that is stuck for good; a pool that begins nothing."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from kernel.frozen import Frozen
from kernel.holding import Holder, on_cpu
from kernel.traced import Traced, counted
from kernel.workload import UNSEEN

from tracer.kernel.symbols.kallsyms import Kallsyms

#: A write to it has every CPU do one work, and waits for them. Source: mm/vmstat.c, vmstat_refresh().
REFRESH = Path("/proc/sys/vm/stat_refresh")
ROUNDS = 100


def refresh() -> None:
    REFRESH.write_text("1")


def symbol(address: int) -> bytes:
    return Kallsyms.of_running_kernel().resolve(np.array([address], dtype="u8"))[0][1]


def until_open(traced: Traced, wanted: Callable[[np.ndarray], np.ndarray], seconds: float = 8.0) -> np.void:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.25)
        rows = traced.collect()["workqueue.open"].rows
        rows = rows[wanted(rows)]
        if len(rows):
            return rows[0]
    raise AssertionError("not listed")


def test_counts_the_works_of_every_cpu(attach):
    traced = attach("workqueue")
    traced.collect()
    for _ in range(ROUNDS):
        refresh()
    time.sleep(0.01)
    windows = traced.collect()
    for table in ("workqueue.delay", "workqueue.run"):
        rows = windows[table].rows
        for cpu in os.sched_getaffinity(0):
            # Others' works come on top, and those that wait for the end of ours: see below.
            assert ROUNDS * (1 - UNSEEN) <= counted(rows[rows["cpu"] == cpu]) <= 3 * ROUNDS
    losses = windows["workqueue.delay"].losses
    assert losses["unmatched"] + losses["collided"] <= UNSEEN * ROUNDS + 4
    assert losses["negative"] == 0
    # Each refresh may wait for each CPU's work, by a barrier that is a work, too, and was never queued.
    delays, runs = (counted(windows[f"workqueue.{table}"].rows) for table in ("delay", "run"))
    assert abs(runs - delays - losses["unqueued"]) <= UNSEEN * runs + 4


def test_long_and_late_works_are_told_with_their_function(attach):
    traced = attach("workqueue", WORKQUEUE_THRESHOLD_NS=1)
    traced.collect()
    refresh()
    time.sleep(0.01)
    worst = traced.collect()["workqueue.worst"].rows
    mine = [row for row in worst if symbol(int(row["function"])) == b"refresh_vm_stats"]
    assert {int(row["kind"]) for row in mine} == {1, 2}
    assert all(row["duration_ns"] > 0 and row["comm"].startswith(b"kworker/") for row in mine)


@pytest.fixture
def stuck_device(tmp_path: Path) -> Iterator[str]:
    """A loop device whose file lies on a frozen file system: its worker does not come back before that is thawed."""
    with Frozen(tmp_path, prepare=lambda folder: (folder / "disk").write_bytes(bytes(1 << 20))) as frozen:
        device = subprocess.run(
            ["losetup", "--find", "--show", frozen.mount / "disk"], check=True, capture_output=True, text=True
        ).stdout.strip()
        try:
            yield device
        finally:
            frozen.thaw()
            subprocess.run(["losetup", "--detach", device], check=True)


def test_a_work_that_runs_on(attach, stuck_device):
    traced = attach("workqueue", WORKQUEUE_LISTED_NS=1_000_000_000)
    write = ["dd", "if=/dev/zero", f"of={stuck_device}", "bs=4k", "count=1", "oflag=direct"]
    began_ns = time.monotonic_ns()
    writer = threading.Thread(target=lambda: subprocess.run(write, capture_output=True))
    writer.start()
    row = until_open(traced, lambda rows: (rows["kind"] == b"work") & (rows["stack"] != b""))
    assert b"loop" in symbol(int(row["function"]))
    assert row["comm"].startswith(b"kworker/") and b"+loop" in row["comm"]
    assert began_ns < row["since_ns"] < began_ns + 1_000_000_000
    assert b"percpu_rwsem_wait" in row["stack"]
    subprocess.run(["fsfreeze", "--unfreeze", _mount_of(stuck_device)], check=True)
    writer.join()
    # The worker may still be on its way out when the write has ended.
    time.sleep(0.5)
    assert not (traced.collect()["workqueue.open"].rows["kind"] == b"work").any()


def _mount_of(device: str) -> Path:
    return (Path("/sys/block") / Path(device).name / "loop/backing_file").read_text().strip().removesuffix("/disk")


def test_a_pool_that_begins_nothing(attach):
    """A CPU held in the kernel lets no worker run; the other's clock sees it."""
    allowed = os.sched_getaffinity(0)
    if len(allowed) < 2:
        pytest.skip("one CPU: nobody can watch it")
    held = max(allowed)
    os.sched_setaffinity(0, allowed - {held})
    traced = attach("workqueue")
    times: list[int] = []

    def hold() -> None:
        times.append(time.monotonic_ns())
        holder.hold()

    try:
        # The pool is known once work has been queued to it.
        refresh()
        with Holder(4.0) as holder:
            holding = on_cpu(held, hold)
            time.sleep(0.1)
            times.append(time.monotonic_ns())
            waiting = threading.Thread(target=refresh)
            waiting.start()
            row = until_open(traced, lambda rows: (rows["kind"] == b"pool") & (rows["cpu"] == held), 4.0)
            holding.join()
            waiting.join()
    finally:
        os.sched_setaffinity(0, allowed)
    # From the first work that was queued there: ours, or one of the kernel's own since the CPU was taken.
    assert min(times) - 0.3e9 < row["since_ns"] < max(times) + 0.5e9
    assert row["age_ns"] > 0.9e9
    assert symbol(int(row["function"]))
    time.sleep(0.5)
    assert not len(traced.collect()["workqueue.open"].rows)
