"""``python -m tests.bench.bigday OUT.html``: a report of a day, second by second, of 256 CPUs and 20,000 stacks.

Windows go straight to the report: of such a recording, 17 GB, only reading would be measured. Takes some ten minutes.
"""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

import numpy as np

from tracer.reports.html.page import page, room
from tracer.reports.html.payload import Payload
from tracer.window import Window

from .browser import opened, painted, seconds_to_change
from .manyhours import header, intervals
from .manystacks import CPUS, dictionary, drawn, functions

DAY_SECONDS, MOST_BYTES, SAMPLES = 86_400, 10 << 20, 500
_RANGES = ("100-200", "0-1000", "500-510", "1-1300", "7-9")


def main() -> int:
    """Write the report and print what it took."""
    out = Path(sys.argv[1])
    random = np.random.default_rng(1)
    pool, told = drawn(random, 1_000_000), [np.concatenate(dictionary(random)), functions()]
    payload = Payload(header(CPUS, 1))
    began = time.process_time()
    made_up = 0.0
    for windows in intervals(CPUS, DAY_SECONDS, 1):
        made_up = made_up or _resident()
        start, end, at = windows[0].start_ns, windows[0].end_ns, int(random.integers(0, len(pool) - SAMPLES))
        deep = [Window("oncpu", name, start, end, rows) for name, rows in zip(("stacks", "frames"), told, strict=False)]
        payload.add_interval([*windows, *deep, Window("oncpu", "samples", start, end, pool[at : at + SAMPLES])])
        told = []
    gathered = time.process_time()
    text = page(payload.text(room(MOST_BYTES)), "a day")
    out.write_text(text)
    seconds, more = gathered - began, time.process_time() - gathered
    print(
        f"{seconds:.0f} s of CPU for {DAY_SECONDS:,} intervals, {more:.1f} s for the page of {len(text) / 1e6:.1f} MB"
    )
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB resident")
    with opened(out) as shown:
        print(f"painted after {painted(shown):.2f} s")
        changes = seconds_to_change(shown, [f"range={one}" for one in _RANGES])
        print(f"another range painted after {', '.join(f'{1e3 * one:.0f}' for one in changes)} ms")
        print(shown.locator("#dropped").inner_text())
    return int(len(text) > MOST_BYTES)


def _resident() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    raise SystemExit(main())
