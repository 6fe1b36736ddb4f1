"""A recording with stacks on and off the CPU, some of whose names mean harm."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from unit.synthetic import HEADER, SECOND, START, Node

from tracer.recording import RecordingWriter
from tracer.window import Window

SAMPLE = np.dtype([("cpu", "u4"), ("pid", "u4"), ("tid", "u4"), ("comm", "S16"), ("stack", "u8"), ("weight", "u8")])
OFF = np.dtype([*SAMPLE.descr, ("count", "u8"), ("state", "S1")])
WAKER = [("waker_kind", "S1"), ("waker_vector", "u1"), ("waker_comm", "S16")]
STACK = np.dtype([("stack", "u8"), ("depth", "u2"), ("frame", "u8")])
FRAME = np.dtype([("frame", "u8"), ("kind", "S1"), ("module", "S64"), ("symbol", "S192")])
FRAME_OF_BUILD = np.dtype([*FRAME.descr, ("build_id", "S40")])

HZ = 50
#: Breaks out of a script, clears a terminal, turns text around, ends a folded frame and line, looks like a weight.
EVIL = b"</script><img src=x onerror=alert(1)>;\n\x1b[2J\xe2\x80\xae\xff 12"
FRAMES = np.array(
    [
        (1, b"u", b"hog", b"main"),
        (2, b"u", b"hog", b"spin"),
        (3, b"k", b"", b"__schedule"),
        (4, b"k", b"[nvme]", b"nvme_wait"),
        (5, b"u", b"evil.so", EVIL),
        (6, b"u", b"libc.so.6", b"operator new(unsigned long) 7"),
    ],
    FRAME,
)
#: Innermost first.
STACKS = np.array(
    [(71, 0, 2), (71, 1, 1), (72, 0, 3), (72, 1, 4), (72, 2, 1), (73, 0, 5), (73, 1, 1), (74, 0, 6), (74, 1, 1)], STACK
)
DEEP_HEADER = {
    **HEADER,
    "probes": [
        {"name": "oncpu", "clock_hz": HZ, "tables": [{"name": name} for name in ("samples", "stacks", "frames")]},
        {"name": "offcpu", "tables": [{"name": name} for name in ("samples", "stacks", "frames")]},
        {"name": "runqueue", "tables": [{"name": "wait"}, {"name": "worst"}]},
    ],
}


def deep_windows(second: int) -> list[Window]:
    """Return the stacks of the ``second``-th second; what they are is told in the first one."""
    on = np.array([(0, 60, 60, b"hog", 71, 40), (1, 60, 61, b"hog", 74, 2), (1, 9, 9, EVIL[:16], 73, 5)], SAMPLE)
    off = np.array([(0, 60, 61, b"hog", 72, SECOND // 2 + second, 3, b"D"), (1, 9, 9, b"", 0, 7, 1, b"S")], OFF)
    told = (STACKS, FRAMES) if second == 0 else (STACKS[:0], FRAMES[:0])
    start = START + second * SECOND
    return [
        Window(probe, table, start, start + SECOND, rows, {"missed": 0})
        for probe, samples in (("oncpu", on), ("offcpu", off))
        for table, rows in (("samples", samples), ("stacks", told[0]), ("frames", told[1]))
    ]


def still_windows(second: int, **blocked_ns: int) -> list[Window]:
    """Return the windows of a last second: with a block of each kind (``o``, ``a``) that has not ended."""
    windows = deep_windows(second)
    place = next(n for n, one in enumerate(windows) if (one.probe, one.table) == ("offcpu", "samples"))
    rows = np.zeros(len(blocked_ns), [*windows[place].rows.dtype.descr, *WAKER])
    rows["waker_kind"], rows["weight"] = [kind.encode() for kind in blocked_ns], [*blocked_ns.values()]
    rows["tid"], rows["comm"], rows["count"], rows["state"] = 77, [kind.encode() for kind in blocked_ns], 1, b"D"
    windows[place] = replace(windows[place], rows=rows)
    return windows


def write_deep(path: Path, seconds: int = 4) -> Path:
    """Write a recording of a healthy node with stacks."""
    node = Node(cpus=2)
    with RecordingWriter(path, DEEP_HEADER) as writer:
        for second in range(seconds):
            writer.write([*node.interval(), *deep_windows(second)])
    return path
