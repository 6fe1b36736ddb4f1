"""hung: writers to a frozen file system, whose sleep is the kernel's own; and sleeps that its detector skips."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from kernel.frozen import Frozen
from kernel.stacks import compiled
from kernel.traced import Traced

VFORK = """
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	for (int i = 0; i < atoi(argv[1]); i++) {
		if (!vfork()) {
			usleep(atoi(argv[2]));
			_exit(0);
		}
	}
	return 0;
}
"""
LISTED_NS = 1_000_000_000


@pytest.fixture
def frozen(tmp_path: Path) -> Iterator[Frozen]:
    with Frozen(tmp_path) as frozen:
        yield frozen


def until(traced: Traced, pid: int, seconds: float = 8.0) -> np.void:
    """Return the row of a task once it is listed with its stack."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.25)
        rows = traced.collect()["hung.blocked"].rows
        rows = rows[(rows["pid"] == pid) & (rows["stack"] != b"")]
        if len(rows):
            return rows[0]
    raise AssertionError(f"{pid} was not listed")


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_writer_to_a_frozen_file_system(attach, frozen):
    traced = attach("hung", HUNG_LISTED_NS=LISTED_NS)
    began_ns = time.monotonic_ns()
    pid = frozen.block()
    row = until(traced, pid)
    assert (row["tgid"], row["counted"]) == (pid, b"yes")
    assert row["comm"].startswith(b"python")
    assert began_ns < row["since_ns"] < began_ns + 900_000_000
    assert row["age_ns"] >= LISTED_NS
    assert abs(int(row["since_ns"]) + int(row["age_ns"]) - time.monotonic_ns()) < 1e9
    # The kernel's own words: it waits for the freeze to end, on its way to create the file.
    assert b"percpu_rwsem_wait" in row["stack"] and b"openat" in row["stack"]
    frozen.thaw()
    assert pid not in traced.collect()["hung.blocked"].rows["pid"]


def test_a_task_that_slept_before_is_found(attach, frozen):
    pid = frozen.block()
    wait_for(lambda: state_of(pid) == "D")
    attached_ns = time.monotonic_ns()
    traced = attach("hung", HUNG_LISTED_NS=LISTED_NS)
    row = until(traced, pid)
    assert row["counted"] == b"unknown"
    assert attached_ns <= row["since_ns"] <= attached_ns + 5_000_000_000
    assert b"percpu_rwsem_wait" in row["stack"]
    frozen.thaw()
    assert pid not in traced.collect()["hung.blocked"].rows["pid"]


def test_a_parent_of_vfork_is_not_counted_by_the_detector(attach, tmp_path):
    program = compiled(tmp_path, VFORK)
    traced = attach("hung", HUNG_LISTED_NS=LISTED_NS)
    with subprocess.Popen([program, "1", "3000000"]) as process:
        row = until(traced, process.pid, 2.8)
        assert state_of(process.pid) == "D"
    assert row["counted"] == b"no"
    assert b"vfork" in row["stack"] or b"clone" in row["stack"]


def test_sleeps_are_counted_and_over(attach, tmp_path):
    program = compiled(tmp_path, VFORK)
    traced = attach("hung", HUNG_LISTED_NS=LISTED_NS)
    traced.collect()
    subprocess.run([program, "200", "500"], check=True)
    windows = traced.collect()
    assert windows["hung.blocks"].rows["blocks"].sum() >= 200
    assert windows["hung.blocks"].losses["collided"] == 0
    # What was written is taken away: nothing of the 200 stays.
    time.sleep(LISTED_NS / 1e9 + 0.1)
    assert not [row for row in traced.collect()["hung.blocked"].rows if b"program" in row["comm"]]
    words = traced.session.array("hung_sets")["ways"]
    assert np.count_nonzero(words) < 20


def test_ordinary_sleepers_are_not_listed(attach):
    traced = attach("hung", HUNG_LISTED_NS=LISTED_NS)
    with subprocess.Popen(["sleep", "2"]) as process:
        time.sleep(1.5)
        assert process.pid not in traced.collect()["hung.blocked"].rows["pid"]
        assert os.getpid() not in traced.collect()["hung.blocked"].rows["pid"]
