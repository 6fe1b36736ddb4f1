"""``make bench-diff``: how often two sides of the same are told apart, and how often a change is found."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sim.pairs import CHANGES, Wobble, make_side, real_side, real_windows
from sim.recordings import DEMO
from tracer.compare.limits import EFFECT
from tracer.compare.metrics import Series
from tracer.compare.node import Node
from tracer.difference.changes import changes_of
from tracer.difference.late import late

__all__ = ["NOISES", "Tally", "apart_in_time", "judged"]

NOISES: Mapping[str, Wobble] = {
    "calm": Wobble(),
    "uneven": Wobble(each=0.15, slow=0.05),
    "wavy": Wobble(slow=0.15, lasting=4),
    "drifting": Wobble(slow=0.15, lasting=10),
}
_GATE = 1.05


@dataclass
class Tally:
    """Of so many ``pairs``, in how many anything was told that did not change (``false``), a gate of 5 % failed for
    that (``gated``), and the change was ``found``."""

    pairs: int
    false: int = 0
    gated: int = 0
    found: int = 0


def judged(
    windows: Mapping[Series, np.ndarray], wobble: Wobble, change: str, number: int, pairs: int, seed: int
) -> Tally:
    """Draw pairs of sides of ``number`` windows, one series of the second changed, and compare them."""
    random, tally = np.random.default_rng(seed), Tally(pairs)
    series = sorted(windows)
    for _ in range(pairs):
        ill = series[int(random.integers(len(series)))]
        before, after = (make_side(windows, number, random, wobble, changed) for changed in ({}, {ill: change}))
        slower, faster, gated = _told(before, after)
        innocent = {ill} if change != "none" else set()
        tally.false += bool((slower | faster) - innocent)
        tally.gated += bool(gated - innocent)
        tally.found += ill in slower and change != "none"
    return tally


def apart_in_time(windows: Mapping[Series, np.ndarray], number: int, pairs: int, seed: int) -> Tally:
    """Compare stretches of ``number`` windows of one real recording that have none in common."""
    random, tally = np.random.default_rng(seed), Tally(pairs)
    length = len(next(iter(windows.values())))
    for _ in range(pairs):
        first = int(random.integers(0, length - 2 * number + 1))
        second = int(random.integers(first + number, length - number + 1))
        slower, faster, gated = _told(real_side(windows, first, number), real_side(windows, second, number))
        tally.false += bool(slower or faster)
        tally.gated += bool(gated)
    return tally


def _told(before: Node, after: Node) -> tuple[set[Series], set[Series], set[Series]]:
    """Return what is slower, on the whole or at the end only; faster; and what fails the gate."""
    changes = changes_of(before, after)
    slower, faster, gated = (
        {one.measure.series for one in changes.told(kind, effect)}
        for kind, effect in (("slower", EFFECT), ("faster", EFFECT), ("slower", _GATE))
    )
    end = None if slower else late(before, after, EFFECT)
    ending = {one.measure.series for one in end.slower} if end else set()
    return slower | ending, faster, gated | ending


def main() -> None:
    """Simulate pairs, compare them, print how often what was told."""
    parser = argparse.ArgumentParser(prog="make bench-diff", description=__doc__)
    parser.add_argument("--pairs", type=int, default=100, help="of each change; five times as many without one")
    parser.add_argument("--windows", type=int, nargs="+", default=[20, 40])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("recordings", nargs="*", type=Path, help="real ones; default: the sample")
    options = parser.parse_args()
    began = time.monotonic()
    for path in options.recordings or [DEMO]:
        windows = real_windows(path)
        print(f"windows of {path.name}: {', '.join(series.title for series in windows)}", flush=True)
        for number in options.windows:
            if len(next(iter(windows.values()))) >= 3 * number:
                real = apart_in_time(windows, number, options.pairs, options.seed)
                told = f"{real.false / real.pairs:.3f} told, {real.gated / real.pairs:.3f} gated"
                print(f"stretches of {number} of its own windows, {real.pairs} pairs: {told}", flush=True)
        titles = "".join(f"{change:>12}" for change in CHANGES if change != "none")
        print(f"{'':<10}{'windows':>8}{'pairs':>7}{'told':>8}{'gated':>8}{titles}")
        for name, wobble in NOISES.items():
            for number in options.windows:
                calm = judged(windows, wobble, "none", number, 5 * options.pairs, options.seed)
                found = [
                    judged(windows, wobble, change, number, options.pairs, options.seed + place)
                    for place, change in enumerate(CHANGES)
                    if change != "none"
                ]
                shares = "".join(f"{one.found / one.pairs:>12.2f}" for one in found)
                false = f"{calm.false / calm.pairs:>8.3f}{calm.gated / calm.pairs:>8.3f}"
                print(f"{name:<10}{number:>8}{calm.pairs:>7}{false}{shares}", flush=True)
    print(f"{time.monotonic() - began:.0f} s, seed {options.seed}")


if __name__ == "__main__":
    main()
