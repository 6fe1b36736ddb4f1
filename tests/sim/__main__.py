"""``make bench-detect``: how well faults are found, and how often healthy nodes are accused, beside other methods."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from sim.brief import Brief
from sim.causes import Causes
from sim.cluster import read_pools
from sim.recordings import DEMO
from sim.score import Scores, told


def main() -> None:
    """Simulate clusters, judge them, print the scores."""
    parser = argparse.ArgumentParser(prog="make bench-detect", description=__doc__)
    parser.add_argument("--clusters", type=int, default=20, help="of each fault, and as many without one")
    parser.add_argument("--healthy", type=int, default=180, help="more without one, for foreshock alone")
    parser.add_argument("--brief", type=int, default=40, help="healthy ones of half a minute, of each kind")
    parser.add_argument("--causes", type=int, default=12, help="common causes of each kind")
    parser.add_argument("--nodes", type=int, default=64)
    parser.add_argument("--windows", type=int, default=38, help="of 16 s: ten minutes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("recordings", nargs="*", type=Path, help="real ones; default: the sample and two made here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = options.recordings or [DEMO, *_recorded(Path(folder))]
        pools = read_pools(paths)
    if not pools:
        sys.exit("no series of these recordings has enough values")
    print(f"windows of {', '.join(path.name for path in paths)}; {', '.join(one.title for one in pools)}", flush=True)
    scores, began = Scores(options.nodes, options.windows), time.monotonic()
    scores.run(pools, options.clusters, options.healthy, options.seed)
    print("\n".join(told(scores)), flush=True)
    brief = Brief()
    brief.run(pools, options.brief, np.random.default_rng(options.seed + 3))
    print("\n".join(brief.lines()))
    causes = Causes()
    causes.run(pools, options.causes, np.random.default_rng(options.seed + 4), options.windows)
    print("\n".join(causes.lines()))
    print(f"{time.monotonic() - began:.0f} s, seed {options.seed}; rivals' thresholds by seed {options.seed + 1}")


def _recorded(folder: Path) -> list[Path]:
    """Record this machine as it is, and with tasks that compete for its CPUs; as root only."""
    if os.geteuid() != 0:
        return []
    paths = [folder / "as-it-is.fsk", folder / "competing.fsk"]
    for path, tasks in zip(paths, (0, 2 * (os.cpu_count() or 1)), strict=True):
        loops = [subprocess.Popen([sys.executable, "-c", "while True: sum(range(10**5))"]) for _ in range(tasks)]
        try:
            command = [sys.executable, "-m", "tracer", "record", "--for", "30s", "--quiet", "-o", str(path)]
            subprocess.run(command, check=True, timeout=120)
        finally:
            for loop in loops:
                loop.kill()
                loop.wait()
    return paths


if __name__ == "__main__":
    main()
