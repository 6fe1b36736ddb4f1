"""``python -m tests.incident FOLDER``: make the incident, record it, write its report and a picture of that.

A pod's exporter reads /proc/net/arp, which has no line for it. The kernel has one table of neighbours for all pods, and
walks it, another pod's 750,000 entries, with softirqs off: packets of that CPU wait. As root; takes two minutes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlencode

from tests.bench.browser import opened

from .node import ADDRESSES, FAR, NEAR, inside, node, spread

CPU = max(os.sched_getaffinity(0))
QUIET_SECONDS, ILL_SECONDS = 14, 12
SECONDS = 2 * QUIET_SECONDS + ILL_SECONDS
PER_SECOND, PAUSE_SECONDS = 1000, 0.04
#: Of what packets meet on their way, and what CPUs do meanwhile.
PROBES = "softirq,napi,cpustate,oncpu"
SERIES = "softirq.delay NET_RX"
WIDTH, HEIGHT, MOST_BYTES = 1280, 1180, 300_000


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.incident", description=__doc__.partition(":")[2].strip())
    parser.add_argument("folder", type=Path, help="for incident.fsk, incident.html, incident.png")
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    recording, report, picture = (folder / f"incident.{suffix}" for suffix in ("fsk", "html", "png"))
    with node(CPU) as neighbours:
        print(f"incident: {neighbours:,} neighbours; recording {SECONDS} s", flush=True)
        _record(recording)
    _foreshock("report", recording, "-o", report)
    with opened(report, f"#{urlencode({'series': SERIES})}") as page:
        page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
        page.screenshot(path=picture)
    print(f"incident: {picture}, {picture.stat().st_size} bytes")
    return int(picture.stat().st_size > MOST_BYTES)


def _record(path: Path) -> None:
    path.unlink(missing_ok=True)
    call = [sys.executable, "-m", "tracer", "record", "--probes", PROBES, "--quiet", "--for", f"{SECONDS}s"]
    call += ["-o", str(path)]
    with inside(FAR, "receive", ADDRESSES[FAR]) as receiver, inside(NEAR, "send", ADDRESSES[FAR], PER_SECOND):
        recorder = subprocess.Popen(call)
        while not path.exists() and recorder.poll() is None:
            time.sleep(0.05)
        time.sleep(QUIET_SECONDS)
        began = time.monotonic()
        with inside(FAR, "read", CPU, "/proc/net/arp", PAUSE_SECONDS):
            time.sleep(ILL_SECONDS)
        ended = time.monotonic()
        if recorder.wait():
            raise SystemExit(recorder.returncode)
        receiver.terminate()
        arrived = [tuple(map(float, line.split())) for line in receiver.stdout or ()]
    ill = [took for now, took in arrived if began <= now <= ended]
    well = [took for now, took in arrived if not began <= now <= ended]
    for what, some in (("without the reader", well), ("with it", ill)):
        print(f"incident: {len(some):,} packets {what}: {spread(some)}")


def _foreshock(verb: str, *arguments: object) -> None:
    subprocess.run([sys.executable, "-m", "tracer", verb, *map(str, arguments), "--overwrite"], check=True)


if __name__ == "__main__":
    raise SystemExit(main())
