"""``make bench-cohorts``: cohorts of simulated nodes, one of them slower by what is known, and what intervals say."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from sim.cluster import INTERVALS, Pool, make_cluster, read_pools
from sim.recordings import DEMO
from tracer.cohorts.contrast import contrast, nodes_needed
from tracer.cohorts.levels import middles, ratios, tails
from tracer.compare import limits
from tracer.compare.metrics import Series
from tracer.compare.shapes import means_ns

__all__ = ["FACTORS", "SIZES", "Score", "drawn", "slowed", "values"]

#: What an image makes everything take, as factors.
FACTORS = (1.0, 1.01, 1.02, 1.05, 1.1)
#: How many nodes have the new image, and how many the old one.
SIZES = ((8, 60), (8, 8), (16, 48), (32, 32), (100, 100))
_WINDOWS = 38
_NS = 1e9


@dataclass
class Score:
    """Of comparisons with one factor and one size: how often their intervals were right."""

    intervals: int = 0
    single: int = 0  # of those, at 95 % each, that hold the truth
    comparisons: int = 0
    together: int = 0  # of those, in which all intervals at once hold it
    told: int = 0  # in which something was told to be different
    halves: list[float] = field(default_factory=list)
    needed: list[int] = field(default_factory=list)


def slowed(slots: np.ndarray, factor: float, random: np.random.Generator) -> np.ndarray:
    """Return histograms ``(…, n)`` whose values take ``factor`` times as long: some move to the next slot."""
    steps = 8 * np.log2(factor)
    for _ in range(int(steps)):
        slots = _higher(slots, slots)
    return _higher(slots, random.binomial(slots.astype(np.int64), steps % 1).astype(slots.dtype))


def _higher(slots: np.ndarray, moving: np.ndarray) -> np.ndarray:
    found: np.ndarray = slots - moving
    found[..., 1:] += moving[..., :-1]
    return found


def values(slots: np.ndarray, first: int) -> dict[str, np.ndarray]:
    """Return what cohorts are compared in, of histograms ``(nodes, windows, n)``: by name, one number per node."""
    spent = np.nan_to_num(means_ns(slots, first)) * slots.sum(axis=2)
    pairs = np.stack([spent, np.where(slots.any(axis=2), INTERVALS * _NS, 0.0)], axis=-1)
    return {"middle": middles(slots, first), "p99": tails(slots, first), "share": ratios(pairs, limits.LEAST_LOST)}


def drawn(
    pools: Mapping[Series, Sequence[Pool]], new: int, old: int, random: np.random.Generator
) -> Iterator[tuple[np.ndarray, int]]:
    """Yield histograms of each series of ``new + old`` nodes, and their first slot. In half of them a node is ill."""
    for series in sorted(pools):
        fault = "+50 %" if random.random() < 0.5 else "healthy"
        cluster = make_cluster(pools[series], [fault], random, new + old, _WINDOWS)
        yield cluster.slots, cluster.first


def judge(score: Score, pairs: Sequence[tuple[np.ndarray, np.ndarray, float]]) -> None:
    """Compare cohorts in several quantities: (the new ones' values, the others', what the difference is)."""
    error = limits.COHORT_ERROR / len(pairs)
    together, told = True, False
    for ours, theirs, truth in pairs:
        one, all_at_once = contrast(ours, theirs, limits.COHORT_ERROR), contrast(ours, theirs, error)
        score.intervals += 1
        score.single += abs(one.difference - truth) <= one.half
        together = together and abs(all_at_once.difference - truth) <= all_at_once.half
        change = 2.0 ** abs(one.difference) - 1
        told = told or (abs(one.difference) > all_at_once.half and change >= limits.COHORT_EFFECT - 1)
        score.halves.append(2.0**all_at_once.half - 1)
        sought = float(np.log2(limits.COHORT_SOUGHT))
        score.needed.append(nodes_needed(one.variances, sought, error, limits.COHORT_POWER))
    score.comparisons += 1
    score.together += together
    score.told += told


def run(
    pools: Mapping[Series, Sequence[Pool]], comparisons: int, seed: int, sizes: Sequence[tuple[int, int]] = SIZES
) -> dict[tuple[tuple[int, int], float], Score]:
    """Return the scores by sizes and factor."""
    scores = {(size, factor): Score() for size in sizes for factor in FACTORS}
    for number, (new, old) in enumerate(sizes):
        random = np.random.default_rng([seed, number])
        for _ in range(comparisons):
            pairs: dict[float, list[tuple[np.ndarray, np.ndarray, float]]] = {factor: [] for factor in FACTORS}
            for slots, first in drawn(pools, new, old, random):
                for factor in FACTORS:
                    pairs[factor] += _compared(slots, first, new, factor, random)
            for factor in FACTORS:
                judge(scores[(new, old), factor], pairs[factor])
    return scores


def _compared(
    slots: np.ndarray, first: int, new: int, factor: float, random: np.random.Generator
) -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
    changed = slots.copy()
    changed[:new] = slowed(slots[:new], factor, random)
    # The truth is what the factor makes of very many values, in the same classes.
    whole = slots.sum(axis=(0, 1))[None, None].repeat(2, 0).repeat(4, 1)
    many = whole.copy()
    many[0] = slowed(whole[0], factor, random)
    truth = values(many, first)
    for name, numbers in values(changed, first).items():
        known = [numbers[:new][~np.isnan(numbers[:new])], numbers[new:][~np.isnan(numbers[new:])]]
        yield known[0], known[1], float(truth[name][0] - truth[name][1])


def main() -> None:
    """Simulate, compare, print."""
    parser = argparse.ArgumentParser(prog="make bench-cohorts", description=__doc__)
    parser.add_argument("--comparisons", type=int, default=100, help="of each size")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("recordings", nargs="*", type=Path, help="real ones; default: the sample")
    options = parser.parse_args()
    pools, began = read_pools(options.recordings or [DEMO]), time.monotonic()
    print(f"{len(pools)} series in 3 quantities, {options.comparisons} comparisons of each size, seed {options.seed}")
    print(f"{'nodes':>9}{'slower':>8}{'95 % hold':>11}{'all hold':>10}{'told':>7}{'± (all)':>9}{'for 2 %':>9}")
    for ((new, old), factor), score in run(pools, options.comparisons, options.seed).items():
        print(
            f"{new:>4} /{old:>3}{factor - 1:>8.0%}{score.single / score.intervals:>11.3f}"
            f"{score.together / score.comparisons:>10.3f}{score.told / score.comparisons:>7.2f}"
            f"{np.median(score.halves):>9.1%}{np.median(score.needed):>9.0f}",
            flush=True,
        )
    print(f"{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
