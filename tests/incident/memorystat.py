"""``python -m tests.incident.memorystat [-o FILE.fsk]``: do packets wait for who reads memory.stat, on this kernel?

Memory cgroups that are gone own a page each of a file that a loader maps and unmaps again and again: every read has all
of them to add up. Packets come in on the reader's CPU; both their ends have real-time priority, so that they wait for
the kernel alone. As root; takes a minute.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from .node import ADDRESSES, FAR, NEAR, inside, node, spread

CPU, OTHER = max(os.sched_getaffinity(0)), min(os.sched_getaffinity(0))
QUIET_SECONDS, ILL_SECONDS = 6, 8
PER_SECOND, PAUSE_SECONDS, PRIORITY = 1000, 0.04, 5
PROBES = "softirq,cpustate,oncpu"
FILE = Path("/dev/shm/foreshock-loaded")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.incident.memorystat", description=__doc__)
    parser.add_argument("--cgroups", type=int, default=12_000, help="how many are gone (default: %(default)s)")
    parser.add_argument("-o", type=Path, metavar="FILE.fsk", help=f"record {PROBES} meanwhile")
    options = parser.parse_args()
    hierarchy = _hierarchy()
    gone = hierarchy / "foreshock-gone"
    gone.mkdir(exist_ok=True)
    try:
        if (gone / "cgroup.subtree_control").exists():
            (gone / "cgroup.subtree_control").write_text("+memory")
        with node(CPU, 0):
            # ip mounts the pods' own /sys, in which there are no cgroups.
            with inside("", "leave", hierarchy, FILE, options.cgroups) as leaver:
                if leaver.wait():
                    raise SystemExit(leaver.returncode)
            _measure(hierarchy / "memory.stat", options.o)
    finally:
        FILE.unlink(missing_ok=True)
        gone.rmdir()


def _hierarchy() -> Path:
    v1 = Path("/sys/fs/cgroup/memory")
    return v1 if (v1 / "memory.stat").exists() else Path("/sys/fs/cgroup")


def _measure(path: Path, recording: Path | None) -> None:
    record = [sys.executable, "-m", "tracer", "record", "--probes", PROBES, "--quiet", "--overwrite"]
    seconds = 2 * QUIET_SECONDS + ILL_SECONDS
    with (
        inside(FAR, "receive", ADDRESSES[FAR], PRIORITY) as receiver,
        inside(NEAR, "send", ADDRESSES[FAR], PER_SECOND, PRIORITY),
        inside("", "load", OTHER, FILE, PAUSE_SECONDS / 2),
    ):
        recorder = subprocess.Popen([*record, "--for", f"{seconds}s", "-o", str(recording)]) if recording else None
        while recording and not recording.exists() and recorder and recorder.poll() is None:
            time.sleep(0.05)
        time.sleep(QUIET_SECONDS)
        began = time.monotonic()
        with inside("", "read", CPU, path, PAUSE_SECONDS, "stats-agent") as reader:
            time.sleep(ILL_SECONDS)
            reader.terminate()
            reads = [float(line) for line in reader.stdout or ()]
        ended = time.monotonic()
        time.sleep(QUIET_SECONDS)
        if recorder and recorder.wait():
            raise SystemExit(recorder.returncode)
        receiver.terminate()
        arrived = [tuple(map(float, line.split())) for line in receiver.stdout or ()]
    print(f"memorystat: {len(reads)} reads: {spread(reads)}")
    for what, ill in (("without the reader", False), ("with it", True)):
        some = [took for now, took in arrived if (began <= now <= ended) == ill]
        print(f"memorystat: {len(some):,} packets {what}: {spread(some)}")


if __name__ == "__main__":
    main()
