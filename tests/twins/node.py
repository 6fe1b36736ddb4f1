"""The machine as a node of a cluster: a job of two ranks, its data on a loop device, packets; and recordings of it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kernel.cpu_group import CpuGroup

from tests.bench.machine import CHECKOUT, FIRST_CPU, LAST_CPU
from tests.incident.node import ADDRESSES, FAR, NEAR, inside, node

__all__ = ["HOUSE_CPU", "JOB_CPU", "PROBES", "QUOTA", "Job", "Node", "group", "job", "loop_device", "made", "recorder"]

#: Rank 0 and what serves the node live on the first CPU, rank 1, which has the most to do, on the last.
HOUSE_CPU, JOB_CPU = FIRST_CPU, LAST_CPU
#: What a user would record who wants to know whose time was stolen.
PROBES = "auto,ledger"

#: The job's cgroup has a quota, in CPUs, of which the ranks use three quarters.
QUOTA = 1.0
_WORK_MS = (1.0, 2.5)
_JOB_ID = "48213"
#: What is part of a node counts so many times as much as whatever else runs on this machine.
WEIGHT = 50
_DEVICE_BYTES = 64 << 20
_PACKETS_PER_SECOND = 1500
#: Networks of neighbours: 250,000, which one who reads /proc/net/arp walks with softirqs off.
_NETWORKS = 4
#: Rules that each packet is held against, as on nodes that route for many services.
_RULES = 4000
_START_S = 60.0


@dataclass(frozen=True)
class Job:
    """Two ranks in a barrier loop. ``group`` is theirs, ``pids`` in the order of ranks."""

    group: CpuGroup
    pids: tuple[int, int]


@dataclass(frozen=True)
class Node:
    """What faults are injected into.

    ``device`` holds the job's data, ``throttle`` is the file that makes it slow, ``foreshock`` is the cgroup of who
    records, ``lab`` that of who injects faults, with all that it starts.
    """

    job: Job
    device: str
    throttle: Path
    foreshock: CpuGroup
    lab: CpuGroup

    def slow_disk(self, reads_per_second: int) -> None:
        """Let the job have so many reads per second; 0: as many as it wants."""
        number = os.stat(self.device).st_rdev
        self.throttle.write_text(f"{os.major(number)}:{os.minor(number)} {reads_per_second}")


@contextlib.contextmanager
def made() -> Iterator[Node]:
    """Make the node: two pods with packets between them, the device, the job. As root."""
    with contextlib.ExitStack() as stack:
        lab = stack.enter_context(group("lab"))
        stack.enter_context(_within(lab))
        stack.enter_context(node(HOUSE_CPU, _NETWORKS))
        rules = [f"rule add pref {100 + n} from 10.{200 + n // 250}.{n % 250}.1 lookup 77" for n in range(_RULES)]
        # Before the table of the node's own addresses, which would be found first.
        batch = "\n".join(["rule add pref 32000 lookup local", "rule del pref 0", *rules])
        subprocess.run(["ip", "-n", FAR, "-batch", "-"], input=batch, text=True, check=True)
        device = stack.enter_context(loop_device())
        working = stack.enter_context(job("twins", device, _WORK_MS))
        working.group.quota(QUOTA)
        throttle = stack.enter_context(_throttle(working))
        serving = stack.enter_context(group("serving", 0.2))
        receiver = stack.enter_context(inside(FAR, "receive", ADDRESSES[FAR]))
        sender = stack.enter_context(inside(NEAR, "send", ADDRESSES[FAR], _PACKETS_PER_SECOND))
        for one in (receiver, sender):
            os.sched_setaffinity(one.pid, {HOUSE_CPU})
            serving.add(one.pid)
        yield Node(working, device, throttle, stack.enter_context(group("foreshock")), lab)


@contextlib.contextmanager
def group(name: str, times: float = 1) -> Iterator[CpuGroup]:
    """Make a cgroup that whatever else runs on this machine hardly disturbs; it counts ``times`` as much as the job."""
    made = CpuGroup(name)
    try:
        made.weigh(round(WEIGHT * times))
        yield made
    finally:
        # Children end after their parents.
        deadline = time.monotonic() + _START_S
        while made.pids() and time.monotonic() < deadline:
            time.sleep(0.05)
        made.remove()


@contextlib.contextmanager
def _within(own: CpuGroup) -> Iterator[None]:
    """Be in a cgroup, as will be what is started: on a loaded node a fault has to begin when it is said to."""
    own.add(os.getpid())
    try:
        yield
    finally:
        own.dismiss(os.getpid())


@contextlib.contextmanager
def job(name: str, device: str, work_ms: tuple[float, float], accelerator_ms: float = 2.0) -> Iterator[Job]:
    """Start a job whose ranks work for so many ms of CPU time per step, each on a CPU of its own."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="foreshock-twins-")))
        ends = [folder / "rank-0", folder / "rank-1"]
        for end in ends:
            os.mkfifo(end)
        own = stack.enter_context(group(name))
        pids = []
        for rank, cpu in enumerate((HOUSE_CPU, JOB_CPU)):
            program = [sys.executable, "-S", str(Path(__file__).parent / "rank.py"), str(work_ms[rank])]
            command = [*program, str(ends[rank]), str(ends[1 - rank]), device, str(accelerator_ms)]
            environment = {**os.environ, "SLURM_JOB_ID": _JOB_ID, "RANK": str(rank), "WORLD_SIZE": "2"}
            process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL)
            stack.callback(_end, process)
            os.sched_setaffinity(process.pid, {cpu})
            own.add(process.pid)
            pids.append(process.pid)
        yield Job(own, (pids[0], pids[1]))


def recorder(path: Path, host: str, seconds: float, own: CpuGroup, probes: str = PROBES) -> subprocess.Popen[bytes]:
    """Begin to record this machine as the node ``host``, in the cgroup ``own``; returns when it has begun."""
    path.unlink(missing_ok=True)
    record = [sys.executable, "-m", "tracer", "record", "--probes", probes, "--quiet", "--for", f"{seconds:g}s"]
    # A host's name is its UTS namespace's.
    named = ["unshare", "--uts", "sh", "-c", 'echo "$0" >/proc/sys/kernel/hostname && exec "$@"', host]
    process = subprocess.Popen([*named, *record, "-o", str(path)], cwd=CHECKOUT, stdin=subprocess.DEVNULL)
    own.add(process.pid)
    deadline = time.monotonic() + _START_S
    while not path.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            _end(process)
            raise SystemExit(f"twins: {host} could not be recorded")
        time.sleep(0.02)
    return process


@contextlib.contextmanager
def loop_device() -> Iterator[str]:
    """A loop device over a file; freed at the end."""
    with tempfile.NamedTemporaryFile(prefix="foreshock-twins-", dir="/var/tmp") as file:
        file.truncate(_DEVICE_BYTES)
        device = subprocess.run(
            ["losetup", "--find", "--show", file.name], check=True, capture_output=True, text=True
        ).stdout.strip()
        try:
            yield device
        finally:
            subprocess.run(["losetup", "--detach", device], check=True)


@contextlib.contextmanager
def _throttle(working: Job) -> Iterator[Path]:
    """Return the file that bounds the job's reads: of a cgroup of the block controller's own hierarchy (v1)."""
    folder = Path("/sys/fs/cgroup/blkio") / working.group.name
    folder.mkdir()
    for pid in working.pids:
        (folder / "cgroup.procs").write_text(str(pid))
    try:
        yield folder / "blkio.throttle.read_iops_device"
    finally:
        # A group is gone with its last process.
        for pid in working.pids:
            (folder.parent / "cgroup.procs").write_text(str(pid))
        folder.rmdir()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
