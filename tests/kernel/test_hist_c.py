"""The kernel's own bucket function and Python's agree on a million values and around every edge."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np

from tracer import histogram
from tracer.kernel.interpreter import find_interpreter

SCRIPT = Path(__file__).with_name("slots_in_kernel.py")


def slots_in_kernel(values: np.ndarray, checkout: Path) -> np.ndarray:
    command = [find_interpreter(), str(SCRIPT), str(checkout / "tracer" / "kernel"), str(checkout / "bpf")]
    given = histogram.kernel_table() + values.astype("u8").tobytes()
    done = subprocess.run(command, input=given, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return np.frombuffer(done.stdout, dtype="u4")


def test_agrees_with_python(checkout: Path):
    edges = histogram.edges_ns()
    powers = np.uint64(1) << np.arange(64, dtype="u8")
    around = np.concatenate([edges, edges - np.uint64(1), edges[:-1] + np.uint64(1), powers, powers - np.uint64(1)])
    random = np.random.default_rng(20)
    # As many values of every magnitude, from a nanosecond to five centuries.
    wide = random.integers(0, 2**64, 1_000_000, dtype="u8") >> random.integers(0, 64, 1_000_000, dtype="u8")
    values = np.concatenate([around, np.arange(1000, dtype="u8"), wide])
    slots = slots_in_kernel(values, checkout)
    expected = histogram.slot_of(values)
    wrong = np.flatnonzero(slots != expected)
    assert not wrong.size, [(int(values[at]), int(slots[at]), int(expected[at])) for at in wrong[:10]]
    # All but the slots below 12 ns that hold no whole nanosecond.
    assert len(set(slots.tolist())) > histogram.SLOTS - 40
