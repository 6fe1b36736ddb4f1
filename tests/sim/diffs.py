"""``make bench-diff``: how often two sides of the same are told apart, and how often a change is found."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sim.pairs import CHANGES, Wobble, make_side, real_side, real_windows
from sim.recordings import DEMO
from tracer.compare.limits import EFFECT
from tracer.compare.metrics import Series
from tracer.compare.node import Node
from tracer.difference.changes import Change, changes_of
from tracer.difference.stretch import slower_stretches

__all__ = ["NOISES", "Tally", "apart_in_time", "judged"]

NOISES: Mapping[str, Wobble] = {
    "calm": Wobble(),
    "uneven": Wobble(each=0.15, slow=0.05),
    "wavy": Wobble(slow=0.15, lasting=4),
    "drifting": Wobble(slow=0.15, lasting=10),
    "by times": Wobble(times=0.1),
}
_GATE = 1.05


@dataclass
class Tally:
    """Of so many ``pairs``, in how many anything was told that did not change (``false``), a gate of 5 % failed for
    that (``gated``) or could not tell (``doubted``), and the change was ``found``, and ``stopped`` by such a gate."""

    pairs: int
    false: int = 0
    gated: int = 0
    doubted: int = 0
    found: int = 0
    stopped: int = 0


@dataclass(frozen=True)
class _Said:
    """Series that are slower, wholly or for a part only; faster; that fail the gate; that it can't tell of."""

    slower: set[Series]
    faster: set[Series]
    gated: set[Series]
    doubted: set[Series]


def judged(
    windows: Mapping[Series, np.ndarray],
    wobble: Wobble,
    change: str,
    number: int,
    pairs: int,
    seed: int,
    recordings: int = 1,
) -> Tally:
    """Draw pairs of sides of ``number`` windows, one series of the second changed, and compare them.

    The first side are so many ``recordings``, as long each.
    """
    random, tally = np.random.default_rng(seed), Tally(pairs)
    series = sorted(windows)
    for _ in range(pairs):
        ill = series[int(random.integers(len(series)))]
        befores = [make_side(windows, number, random, wobble) for _ in range(recordings)]
        said = _told(befores, make_side(windows, number, random, wobble, {ill: change}))
        innocent = {ill} if change != "none" else set()
        tally.false += bool((said.slower | said.faster) - innocent)
        tally.gated += bool(said.gated - innocent)
        tally.doubted += bool(said.doubted - innocent) and not said.gated - innocent
        tally.found += ill in said.slower and change != "none"
        tally.stopped += ill in said.gated and change != "none"
    return tally


def apart_in_time(
    windows: Mapping[Series, np.ndarray], number: int, pairs: int, seed: int, recordings: int = 1
) -> Tally:
    """Compare stretches of ``number`` windows of one real recording that have none in common."""
    random, tally = np.random.default_rng(seed), Tally(pairs)
    spare = len(next(iter(windows.values()))) - (recordings + 1) * number
    for _ in range(pairs):
        starts = np.sort(random.integers(0, spare + 1, recordings + 1)) + number * np.arange(recordings + 1)
        sides = [real_side(windows, int(start), number) for start in starts]
        said = _told(sides[:-1], sides[-1])
        tally.false += bool(said.slower or said.faster)
        tally.gated += bool(said.gated)
        tally.doubted += bool(said.doubted) and not said.gated
    return tally


def _told(befores: Sequence[Node], after: Node) -> _Said:
    changes = changes_of(befores, after)
    slower, faster, reaching = (
        _series(changes.told(kind, effect))
        for kind, effect in (("slower", EFFECT), ("faster", EFFECT), ("slower", _GATE))
    )
    gated = _series(changes.told("slower", _GATE, surely=True))
    parts = () if reaching else slower_stretches(befores, after)
    partly, beyond, surely = (
        set().union(*(_series(part.slower_by(effect, surely=sure)) for part in parts))
        for effect, sure in ((EFFECT, False), (_GATE, False), (_GATE, True))
    )
    gated = gated or surely
    return _Said(slower or partly, faster, gated, (reaching | beyond) - gated)


def _series(changes: Iterable[Change]) -> set[Series]:
    return {one.measure.series for one in changes}


def main() -> None:
    """Simulate pairs, compare them, print how often what was told."""
    parser = argparse.ArgumentParser(prog="make bench-diff", description=__doc__)
    parser.add_argument("--pairs", type=int, default=100, help="of each change; five times as many without one")
    parser.add_argument("--windows", type=int, nargs="+", default=[20, 40])
    parser.add_argument("--befores", type=int, nargs="+", default=[1, 3], help="recordings of before")
    parser.add_argument("--noises", nargs="+", choices=NOISES, default=[*NOISES])
    parser.add_argument("--changes", nargs="+", choices=CHANGES, default=[one for one in CHANGES if one != "none"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("recordings", nargs="*", type=Path, help="real ones; default: the sample")
    options = parser.parse_args()
    began = time.monotonic()
    for path in options.recordings or [DEMO]:
        windows = real_windows(path)
        print(f"windows of {path.name}: {', '.join(series.title for series in windows)}", flush=True)
        for number in options.windows:
            for befores in options.befores:
                if len(next(iter(windows.values()))) >= (befores + 2) * number:
                    real = apart_in_time(windows, number, options.pairs, options.seed, befores)
                    shares = (real.false / real.pairs, real.gated / real.pairs, real.doubted / real.pairs)
                    told = "{:.3f} told, {:.3f} gated, {:.3f} doubted".format(*shares)
                    print(
                        f"{befores} + 1 stretches of {number} of its own windows, {real.pairs} times: {told}",
                        flush=True,
                    )
        titles = "".join(f"{change:>12}" for change in options.changes)
        print("of those with a change: found/stopped by the gate")
        print(f"{'':<10}{'windows':>8}{'befores':>8}{'pairs':>7}{'told':>8}{'gated':>8}{'doubted':>8}{titles}")
        for name in options.noises:
            for number in options.windows:
                for befores in options.befores:
                    print(
                        f"{name:<10}{number:>8}{befores:>8}{_row(windows, name, number, befores, options)}", flush=True
                    )
    print(f"{time.monotonic() - began:.0f} s, seed {options.seed}")


def _row(
    windows: Mapping[Series, np.ndarray], noise: str, number: int, befores: int, options: argparse.Namespace
) -> str:
    def drawn(change: str, pairs: int, seed: int) -> Tally:
        return judged(windows, NOISES[noise], change, number, pairs, seed, befores)

    calm = drawn("none", 5 * options.pairs, options.seed)
    found = [
        drawn(change, options.pairs, options.seed + place)
        for place, change in enumerate(CHANGES)
        if change in options.changes
    ]
    shares = "".join(f"{f'{one.found / one.pairs:.2f}/{one.stopped / one.pairs:.2f}':>12}" for one in found)
    false = "".join(f"{value / calm.pairs:>8.3f}" for value in (calm.false, calm.gated, calm.doubted))
    return f"{calm.pairs:>7}{false}{shares}"


if __name__ == "__main__":
    main()
