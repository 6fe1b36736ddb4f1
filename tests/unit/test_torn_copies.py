"""Snapshots taken in the middle of updates: every value is told once, under its own key and in its own slot."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tracer.collect.snapshots import Snapshots
from tracer.collect.tables import TableRows
from tracer.histogram import SLOTS, slot_of
from tracer.kernel.job import MapShape
from tracer.layouts import layout
from tracer.probe import Table

ROW = np.dtype([("key", "u8"), ("wait", layout("hist", "hist"))], align=True)
TABLE = Table("wait", "", by=("",), keys=("key",), histogram="wait", used="key")
ROWS = 2
#: Stores between two looks: mostly none, so that rows are idle for a while and given to others.
STEPS = (0, 0, 0, 1, 2, 5)


class Program:
    """What the kernel side does to its rows, one store at a time, and what it means to say (``told``)."""

    def __init__(self, values: list[tuple[int, int]]) -> None:
        self.rows = np.zeros(ROWS, ROW)
        self.told: Counter[tuple[int, int]] = Counter()
        self.sum = 0
        self.takes = self.done = 0
        self._began: int | None = None
        self._last_use = [-1] * ROWS
        self._stores = self._run(values)

    def step(self, stores: int) -> None:
        for _ in range(stores):
            next(self._stores, None)

    def catch_up(self) -> None:
        """No program stands still between two stores for a whole interval."""
        while self._began is not None and self.done > self._began:
            self.step(1)

    def finish(self) -> None:
        for _ in self._stores:
            pass

    def _run(self, values: list[tuple[int, int]]) -> Iterator[None]:
        for number, (place, value) in enumerate(values, start=1):
            row = self.rows[place]
            # As programs do: a row is given away only once it was idle for longer than an interval.
            if not row["key"] or self.done > self._last_use[place] + 1:
                row["key"] = number
                yield
            self.told[int(row["key"]), int(slot_of(value))] += 1
            self.sum += value
            self._last_use[place], self._began = self.takes, self.done
            row["wait"]["sum"] += value
            yield
            row["wait"]["slots"][slot_of(value)] += 1
            self._last_use[place], self._began = self.takes, None
            yield


class Live:
    """The live rows as a reader meets them: the program is a little further at every look."""

    def __init__(self, program: Program, chance: random.Random) -> None:
        self._program, self._chance = program, chance

    def __getitem__(self, name: str) -> np.ndarray:
        self._program.step(self._chance.choice(STEPS))
        return self._program.rows[name]


class Torn(Snapshots):
    """Copies member by member in any order, with stores between."""

    def __init__(self, program: Program, chance: random.Random) -> None:
        super().__init__(program.rows, (TABLE,))
        self.live, self._program, self._chance = Live(program, chance), program, chance  # type: ignore[assignment]

    def take(self) -> None:
        self._program.catch_up()
        self._program.takes += 1
        super().take()
        self._program.done += 1

    def _copy_rows(self) -> None:
        assert self._used is not None
        self.rows = np.flatnonzero(self._used)
        parts = [("key",), ("wait", "sum"), ("wait", "slots")]
        self._chance.shuffle(parts)
        for path in parts:
            self._program.step(self._chance.choice(STEPS))
            source, copy = self._program.rows, self.after
            for name in path:
                source, copy = source[name], copy[name]
            copy[self.rows] = source[self.rows]


@settings(max_examples=200)
@given(st.integers(0, 2**32))
def test_every_value_is_told_once_and_in_its_place(seed: int) -> None:
    chance = random.Random(seed)
    program = Program([(chance.randrange(ROWS), chance.randrange(1000)) for _ in range(40)])
    snapshots = Torn(program, chance)
    snapshots.take()
    table = TableRows(TABLE, MapShape(ROW, (("ROWS", ROWS),)), snapshots)
    told: Counter[tuple[int, int]] = Counter()
    total = 0
    for turn in range(100):
        if turn < 95:
            program.step(chance.choice(STEPS))
        else:
            program.finish()
        snapshots.take()
        rows = table.read()
        assert (rows["slots"] < 2**31).all() and (rows["sum"] < 2**63).all()
        for row in rows:
            assert row["sum"] or row["slots"].any()
            told.update(
                {(int(row["key"]), slot): int(row["slots"][slot]) for slot in range(SLOTS) if row["slots"][slot]}
            )
        total += int(rows["sum"].sum())
    assert told == program.told
    assert total == program.sum
