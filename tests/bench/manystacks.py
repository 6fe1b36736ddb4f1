"""A deep recording, made up: 256 busy CPUs, sampled until there are a million samples of 20,000 different stacks."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tracer.kernel.symbols.dictionary import FRAME, STACK
from tracer.recording import RecordingWriter
from tracer.window import Window

__all__ = ["CPUS", "FUNCTIONS", "HZ", "SAMPLES", "STACKS", "dictionary", "drawn", "functions", "write"]

CPUS, HZ = 256, 49
SAMPLES, STACKS, FUNCTIONS, TASKS, THREADS = 1_000_000, 20_000, 4_000, 64, 8
_SECOND_NS = 1_000_000_000
_DEEPEST = 127  # as the kernel takes them
_SAMPLE = np.dtype([("cpu", "u4"), ("pid", "u4"), ("tid", "u4"), ("comm", "S16"), ("stack", "u8"), ("weight", "u8")])
_HEADER = {
    "host": "bench",
    "cpus": CPUS,
    "interval_ns": _SECOND_NS,
    "clock_offset_ns": 1_764_468_665 * _SECOND_NS,
    "probes": [
        {"name": "oncpu", "clock_hz": HZ, "tables": [{"name": name} for name in ("samples", "stacks", "frames")]}
    ],
}


def write(path: Path) -> None:
    """Write the recording: few stacks weigh much, and each is of one program."""
    random = np.random.default_rng(1)
    samples, stacks, frames, untold = drawn(random, SAMPLES), dictionary(random), functions(), np.ones(STACKS, bool)
    with RecordingWriter(path, _HEADER, overwrite=True) as writer:
        for number, rows in enumerate(np.array_split(samples, round(SAMPLES / CPUS / HZ))):
            new = np.unique(rows["stack"] - 1).astype(int)
            new = new[untold[new]]
            untold[new] = False
            told = {
                "samples": rows,
                "stacks": np.concatenate([np.zeros(0, STACK), *(stacks[one] for one in new)]),
                "frames": frames if not number else frames[:0],
            }
            start = (number + 1) * _SECOND_NS
            writer.write([Window("oncpu", table, start, start + _SECOND_NS, one) for table, one in told.items()])


def drawn(random: np.random.Generator, number: int) -> np.ndarray:
    """Return ``number`` samples: every stack at least once, if there are enough."""
    shares = np.arange(1, STACKS + 1) ** -0.8
    more = random.choice(STACKS, max(0, number - STACKS), p=shares / shares.sum())
    hits = random.permutation(np.concatenate([np.arange(STACKS), more]))[:number]
    samples = np.zeros(number, _SAMPLE)
    task = random.integers(0, TASKS, STACKS)[hits]
    samples["cpu"], samples["pid"] = random.integers(0, CPUS, number), 1000 + THREADS * task
    samples["tid"] = samples["pid"] + random.integers(0, THREADS, number)
    samples["comm"] = np.array([b"worker-%d" % one for one in range(TASKS)])[task]
    samples["stack"], samples["weight"] = hits + 1, 1
    return samples


def dictionary(random: np.random.Generator) -> list[np.ndarray]:
    """Return what each stack is, about 20 frames: it goes on from somewhere in an earlier one, as calls do."""
    paths = [np.zeros(1, np.int64)]
    found = []
    for number in range(STACKS):
        earlier = paths[random.integers(0, len(paths))]
        kept = earlier[: max(1, int(len(earlier) * random.uniform(0.6, 1)))]
        path = np.concatenate([kept, random.integers(1, FUNCTIONS, random.integers(1, 9))])[:_DEEPEST]
        paths.append(path)
        rows = np.zeros(len(path), STACK)
        rows["stack"], rows["depth"], rows["frame"] = number + 1, np.arange(len(path))[::-1], path
        found.append(rows)
    return found


def functions() -> np.ndarray:
    """Return what the frames of ``dictionary`` are."""
    frames = np.zeros(FUNCTIONS, FRAME)
    frames["frame"] = np.arange(FUNCTIONS)
    frames["kind"] = np.where(np.arange(FUNCTIONS) % 4, b"u", b"k")
    frames["module"] = [b"" if number % 4 == 0 else b"libwork-%d.so" % (number % 17) for number in range(FUNCTIONS)]
    frames["symbol"] = [b"function_number_%d" % number for number in range(FUNCTIONS)]
    return frames
