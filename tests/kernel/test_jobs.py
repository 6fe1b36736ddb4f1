"""Jobs and ranks of real processes: their environment, cgroups of our own, processes that come and go."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from kernel.command import foreshock

from tracer.collect.request import Request
from tracer.collect.target import for_job
from tracer.errors import UsageError
from tracer.kernel.census import Census, process
from tracer.kernel.cgroups import CgroupNames, hierarchy
from tracer.kernel.deeds import Deeds
from tracer.kernel.helper import Helper
from tracer.kernel.members import look
from tracer.kernel.readers.jobs import LEAST_NS, Reader

SECOND = 1_000_000_000
#: Uses the CPU for as long as is needed to be looked at, then waits to be killed.
BUSY = "import time\nwhile time.process_time() < 0.28: pass\nprint('done', flush=True)\ntime.sleep(600)"
SECRET = "hunter2-in-the-environment"

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Return a function that starts a process with these variables and no other.

    A ``busy`` one has used the CPU when it is returned.
    """
    started: list[subprocess.Popen[str]] = []

    def run(busy: bool = False, **variables: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-I", "-S", "-c", BUSY] if busy else ["sleep", "600"]
        made = subprocess.Popen(command, env={**variables, "SECRET": SECRET}, stdout=subprocess.PIPE, text=True)
        started.append(made)
        assert not busy or (made.stdout and made.stdout.readline() == "done\n")
        return made

    yield run
    for one in started:
        end(one)


@pytest.fixture
def groups() -> Iterator[Callable[[str], Path]]:
    """Return a function that makes a cgroup in one of our own, where CPU time is charged."""
    mount = Path(os.fsdecode(hierarchy(b"cpu")[1]))
    top = mount / f"foreshock-test-{os.getpid()}"

    def make(path: str) -> Path:
        (top / path).mkdir(parents=True)
        return top / path

    try:
        yield make
    finally:
        for folder in sorted(top.rglob("*"), reverse=True):
            if folder.is_dir():
                folder.rmdir()
        if top.is_dir():
            top.rmdir()


def end(one: subprocess.Popen[str]) -> None:
    one.kill()
    one.wait()
    if one.stdout:
        one.stdout.close()


def reader() -> Reader:
    """A reader that has begun and asks by itself: these tests have the privileges."""
    made = Reader(Deeds({}, ()), None)  # type: ignore[arg-type]
    assert not len(made.read(SECOND)["members"][0])
    return made


def told(made: Reader, now_s: int, pid: int) -> np.void:
    """Return the row of a process; it may have to wait for its turn."""
    for turn in range(64):
        rows = made.read((now_s + turn) * SECOND)["members"][0]
        if pid in rows["pid"]:
            return rows[rows["pid"] == pid][0]
    raise AssertionError(f"{pid} was not told")


def test_a_rank_is_told_with_its_process_and_nothing_else_of_its_environment(start: Start):
    rank = start(busy=True, SLURM_JOB_ID="48213", SLURM_STEP_ID="0", RANK="37", LOCAL_RANK="5", WORLD_SIZE="64")
    row = told(reader(), 2, rank.pid)
    assert (row["job"], row["step"], row["rank"], row["local_rank"], row["world_size"]) == (b"48213", b"0", 37, 5, 64)
    assert (row["ended"], row["comm"]) == (0, Path(f"/proc/{rank.pid}/comm").read_bytes().strip())
    assert SECRET.encode() not in row.tobytes()
    age_ns = time.monotonic_ns() - int(row["began_ns"])
    assert 0 < age_ns < 120 * SECOND and LEAST_NS <= row["used_ns"] <= age_ns + SECOND // 50


def test_what_has_ended_is_told_once_and_what_goes_on_again_after_five_minutes(start: Start):
    first, second = (start(busy=True, RANK=rank, WORLD_SIZE="2") for rank in "01")
    made = reader()
    assert {told(made, 2, one.pid)["ended"] for one in (first,)} == {0}
    made.read(66 * SECOND)
    end(first)
    assert told(made, 100, first.pid)["ended"] == 1
    later = made.read(310 * SECOND)["members"][0]
    assert second.pid in later["pid"] and first.pid not in later["pid"]
    assert not len(made.read(311 * SECOND)["members"][0])
    made.forget()
    assert second.pid in made.read(312 * SECOND)["members"][0]["pid"]


def test_a_rank_that_sleeps_is_told_and_nobody_else_who_does(start: Start):
    rank, other = start(SLURM_JOB_ID="48213", RANK="7", WORLD_SIZE="8"), start(SLURM_JOB_ID="48213")
    made, pids = reader(), set[int]()
    for turn in range(64):
        pids.update(made.read((2 + turn) * SECOND)["members"][0]["pid"].tolist())
    assert rank.pid in pids and other.pid not in pids
    end(rank)
    assert told(made, 100, rank.pid)["ended"] == 1


def test_a_shell_that_waits_for_a_rank_is_none(start: Start):
    variables = {"SLURM_JOB_ID": "48213", "RANK": "7", "WORLD_SIZE": "8"}
    rank, shell = start(busy=True, **variables), start(**variables)
    made = reader()
    assert told(made, 2, rank.pid)["rank"] == 7
    found = [made.read((3 + turn) * SECOND)["members"][0]["pid"].tolist() for turn in range(64)]
    assert shell.pid not in sum(found, [])


def test_the_census_tells_users_from_those_that_are_there(start: Start):
    idle = start()
    census = Census(LEAST_NS)
    assert idle.pid not in census.turn() and idle.pid in census.clocks
    assert os.getpid() in Census(0).turn() and os.getpid() not in census.reused


def test_a_cgroup_says_whose_a_process_is(start: Start, groups: Callable[[str], Path]):
    rank = start(busy=True, SLURM_JOB_ID="1", RANK="3", WORLD_SIZE="4")
    group = groups("slurm/uid_0/job_48213/step_2/task_0")
    (group / "cgroup.procs").write_text(str(rank.pid))
    row = told(reader(), 2, rank.pid)
    assert (row["job"], row["step"], row["rank"]) == (b"48213", b"2", 3)
    assert row["cgroup"].endswith(b"/slurm/uid_0/job_48213/step_2/task_0")
    end(rank)


def test_a_job_in_a_cgroup_of_its_own_is_traced_by_that(start: Start, groups: Callable[[str], Path]):
    group = groups("job_77001")
    ranks = [start(SLURM_JOB_ID="77001", RANK=str(rank), WORLD_SIZE="2") for rank in range(2)]
    names = CgroupNames()
    request, notes = for_job(Request(job="77001"), names)
    assert request.applied == {} and request.filters == {}
    assert notes == [
        "--job 77001: its 2 processes share no cgroup of their own: everything is traced, and they are named"
    ]
    for one in ranks:
        (group / "cgroup.procs").write_text(str(one.pid))
    request, notes = for_job(Request(job="77001"), names)
    assert request.filters == {"cgroup": f"/{group.relative_to(os.fsdecode(hierarchy(b'cpu')[1]))}", "job": "77001"}
    assert names.id_of(request.cgroup or "") == group.stat().st_ino
    for one in ranks:
        end(one)


def test_a_rank_is_traced_by_the_process_that_works(start: Start):
    """Not by the first one: that is a shell of the launcher's, which waits."""
    ranks = [
        start(busy, SLURM_JOB_ID="77002", RANK=str(rank), WORLD_SIZE="2")
        for rank, busy in ((0, True), (1, False), (1, True))
    ]
    request, notes = for_job(Request(job="77002", rank=1), CgroupNames())
    assert request.filters == {"pid": str(ranks[2].pid), "job": "77002", "rank": "1"}
    assert notes == [f"--job 77002 --rank 1: process {ranks[2].pid} is traced; not its 1 other processes"]


def test_a_rank_of_several_jobs_needs_the_job(start: Start):
    for job in ("77003", "77004"):
        start(SLURM_JOB_ID=job, RANK="987654", WORLD_SIZE="1000000")
    with pytest.raises(UsageError, match="--rank 987654: there are several: of 77003, 77004"):
        for_job(Request(rank=987654), CgroupNames())


def test_a_job_that_is_not_here_is_refused_with_those_that_are(start: Start):
    start(SLURM_JOB_ID="77005\x1b[2J", RANK="0", WORLD_SIZE="1")
    with pytest.raises(UsageError, match="--job 4: no process of it runs on this node") as refused:
        for_job(Request(job="4"), CgroupNames())
    assert r"77005\x1b[2J" in refused.value.hint
    with pytest.raises(UsageError, match="choose the processes themselves"):
        for_job(Request(job="4", pid=1), CgroupNames())


def test_processes_that_come_and_go_are_no_trouble():
    deeds, seen = Deeds({}, ()), 0
    until = time.monotonic() + 1
    while time.monotonic() < until:
        variables = {"RANK": "5", "WORLD_SIZE": "6", "PATH": os.environ["PATH"]}
        short = [subprocess.Popen(["true"], env=variables) for _ in range(8)]
        for one in short:
            found = look(one.pid, deeds.variables)
            # Before it is a program of its own it still is this one.
            assert found is None or found.labels.rank in (5, -1)
            seen += found is not None
        for one in short:
            one.wait()
        assert all(look(one.pid, deeds.variables) is None for one in short)
    assert seen
    deeds.close()


def test_threads_of_the_kernel_are_nobodys():
    assert process(2) is None and process(os.getpid()) is not None
    assert Deeds({}, ()).variables(2) == b""


def test_the_helper_tells_the_named_variables_only(start: Start):
    rank = start(RANK="1", WORLD_SIZE="2", LD_PRELOAD="")
    helper = Helper(Deeds({}, ()), lambda: None)
    try:
        assert helper.variables(rank.pid) == b"RANK=1\0WORLD_SIZE=2"
        end(rank)
        assert helper.variables(rank.pid) == b""
        with pytest.raises(OSError, match="Invalid argument"):
            helper.variables(0)
    finally:
        helper.close()


def test_an_environment_that_does_not_come_is_not_waited_for():
    class Stuck(Deeds):
        def _read_environ(self) -> bytes:
            time.sleep(2)
            return b"RANK=1"

    deeds = Stuck({}, ())
    with pytest.raises(TimeoutError):
        deeds.variables(1)
    found = look(os.getpid(), deeds.variables)
    assert found is not None and not found.answered
    deeds.close()


def test_a_recording_says_whose_node_it_was(start: Start, tmp_path: Path):
    rank = start(busy=True, SLURM_JOB_ID="77006", SLURM_STEP_ID="1", RANK="3", WORLD_SIZE="4")
    path = str(tmp_path / "job.fsk")
    options = ["--probes", "runqueue", "--label", "rack=r12", "--label", "image=2026-11=a"]
    done = foreshock("record", "--job", "77006", "--for", "1500ms", "-o", path, *options)
    assert done.returncode == 0, done.stderr
    assert f"--job 77006: process {rank.pid} is traced" in done.stderr
    assert "WHOSE NODE IT WAS" in done.stdout and "3 of 4" in done.stdout
    tree = json.loads(foreshock("summary", "--json", path).stdout)
    (one,) = (one for one in tree["jobs"] if one["pid"] == rank.pid)
    assert (one["job"], one["step"], one["rank"], one["ended"], one["pod"]) == ("77006", "1", 3, False, None)
    assert tree["source"]["filters"] == {"pid": str(rank.pid), "job": "77006"}
    assert tree["source"]["labels"] == {"rack": "r12", "image": "2026-11=a"}
    assert SECRET.encode() not in Path(path).read_bytes()
