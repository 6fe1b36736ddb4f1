"""Work as training nodes do it: heavy, uneven, and healthy. Each load is a function that works for some seconds."""

from __future__ import annotations

import mmap
import os
import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

__all__ = ["LOADS"]

_STEP_SECONDS = 0.005
_CHECKPOINT_BYTES = 256 << 20
_CHECKPOINT_EVERY = 5.0
#: Of all memory, left available by the load that takes nearly all.
_MEMORY_LEFT = 0.08


def _in_processes(count: int, body: Callable[[int], None]) -> None:
    """Run ``body(number)`` in so many processes and wait for them."""
    pids = []
    for number in range(count):
        pid = os.fork()
        if not pid:
            try:
                body(number)
            finally:
                os._exit(0)
        pids.append(pid)
    for pid in pids:
        os.waitpid(pid, 0)


def barrier(seconds: float) -> None:
    """Ranks pinned to one CPU each compute steps of about 5 ms, and spin in user mode until the slowest is there."""
    cpus = sorted(os.sched_getaffinity(0))
    # A counter per rank, eight bytes apart by a cache line.
    shared = mmap.mmap(-1, mmap.PAGESIZE)

    def arrived(rank: int) -> int:
        return int.from_bytes(shared[rank * 64 : rank * 64 + 8], "little")

    def rank(number: int) -> None:
        os.sched_setaffinity(0, {cpus[number]})
        end, step = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            until = time.monotonic() + _STEP_SECONDS * random.uniform(0.8, 1.2)
            while time.monotonic() < until:
                pass
            step += 1
            shared[number * 64 : number * 64 + 8] = step.to_bytes(8, "little")
            while time.monotonic() < end and any(arrived(other) < step for other in range(len(cpus))):
                pass

    _in_processes(len(cpus), rank)


def polling(seconds: float) -> None:
    """A rank that polls in user mode, pinned, and never lets go of its CPU."""

    def poll(_: int) -> None:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pass

    _in_processes(1, poll)


def checkpoint(seconds: float) -> None:
    """Bursts of writes to a disk, each made durable."""
    end = time.monotonic() + seconds
    block = os.urandom(1 << 20)
    with tempfile.TemporaryDirectory(prefix="foreshock-calm-", dir="/var/tmp") as folder:
        while (began := time.monotonic()) < end:
            with open(Path(folder) / "checkpoint", "wb") as file:
                for _ in range(_CHECKPOINT_BYTES >> 20):
                    file.write(block)
                file.flush()
                os.fsync(file.fileno())
            time.sleep(max(0.0, min(end, began + _CHECKPOINT_EVERY) - time.monotonic()))


def forks(seconds: float) -> None:
    """Short programs one after the other, from every CPU: a launcher, a build, a shell script."""

    def launch(_: int) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)

    _in_processes(2 * len(os.sched_getaffinity(0)), launch)


def compiles(seconds: float) -> None:
    """A compiler on every CPU and one more."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise FileNotFoundError("gcc: install it, or leave the load 'compiles' out")
    source = "\n".join(
        f"int f{n}(int a, int b) {{ return a * {n} + b / {n + 1} - (a ^ b) % {n + 7}; }}" for n in range(300)
    )

    def build(_: int) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            subprocess.run([compiler, "-O2", "-x", "c", "-c", "-o", os.devnull, "-"], input=source.encode(), check=True)

    _in_processes(len(os.sched_getaffinity(0)) + 1, build)


def memory(seconds: float) -> None:
    """Nearly all memory taken within some seconds, and kept: steady is not exhausted."""

    def take(_: int) -> None:
        Path("/proc/self/oom_score_adj").write_text("1000")
        sizes = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        available, total = (int(sizes[name].split()[0]) << 10 for name in ("MemAvailable", "MemTotal"))
        kept, end = [], time.monotonic() + seconds
        for _ in range(max(0, available - int(total * _MEMORY_LEFT)) >> 26):
            kept.append(bytearray(b"\1") * (1 << 26))
        time.sleep(max(0.0, end - time.monotonic()))

    _in_processes(1, take)


def containers(seconds: float) -> None:
    """What a container start does: new namespaces, a cgroup, mounts, and all of it taken away again."""
    end = time.monotonic() + seconds
    groups = Path("/sys/fs/cgroup")
    number = 0
    while time.monotonic() < end:
        number += 1
        group = groups / f"foreshock-calm-{os.getpid()}-{number}"
        made = _made(group)
        subprocess.run(
            ["unshare", "--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--mount-proc", "/bin/true"],
            check=True,
        )
        if made:
            group.rmdir()


def _made(group: Path) -> bool:
    try:
        group.mkdir()
    except OSError:
        return False
    return True


LOADS: dict[str, Callable[[float], None]] = {
    load.__name__: load for load in (barrier, polling, checkpoint, forks, compiles, memory, containers)
}
