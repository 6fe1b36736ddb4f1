"""Which stacks weigh most, from samples and from the dictionary of stacks and frames that comes with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tracer.analysis.frames import Frame, Paths
from tracer.analysis.idle import WHOSE, IdleTime, idle_kinds, idle_time, stack_kinds, whose
from tracer.analysis.order import distinct
from tracer.analysis.rows import COMM, has, numbers, text, texts
from tracer.analysis.source import Source
from tracer.analysis.still import Still
from tracer.analysis.sums import Sums

__all__ = ["Dictionary", "HeavyStack", "Stacks"]

# The recorder tells no more before it tells them again. Frames of stacks are 8 bytes each, names up to 260.
MAX_STACKS = 1 << 16
MAX_STACK_FRAMES = 1 << 20
MAX_FRAMES = 1 << 17

_TASKS = np.dtype([("pid", "u4"), ("tid", "u4"), ("comm", COMM), ("stack", "u8"), WHOSE])


@dataclass(frozen=True)
class HeavyStack:
    """A task's stack and its weight (samples, or ns off the CPU), ``share`` of all weight but idle waits.

    ``frames`` go from the outermost to the innermost; none when the stack was not taken or not told.
    """

    comm: str
    pid: int
    tid: int
    weight: int
    share: float
    frames: tuple[Frame, ...]


class Dictionary:
    """What the stacks and frames of one probe are, in bounded memory. ``unkept`` counts entries that found no room."""

    def __init__(self) -> None:
        self.unkept = 0
        self._stacks: dict[int, np.ndarray] = {}
        self._stack_frames = 0
        self._frames: dict[int, Frame] = {}

    def learn(self, rows: np.ndarray) -> None:
        """Take in a window's ``stacks`` or ``frames``, told once before or with the first sample of them."""
        if has(rows, "depth"):
            self._learn_stacks(rows)
        elif has(rows, "symbol"):
            self._learn_frames(rows)

    def frames(self, stack: int) -> tuple[Frame, ...]:
        """Return a stack's frames, the outermost first; none when it was not taken or not told."""
        return tuple([self._frames.get(frame, _UNKNOWN) for frame in self._stacks.get(stack, _NONE).tolist()])

    def every(self, stacks: Sequence[int]) -> dict[int, tuple[Frame, ...]]:
        """Return what ``frames`` does, of many stacks at once."""
        told = self.paths(stacks)
        frames = [told.frames[number] for number in told.numbers.tolist()]
        ends = np.cumsum(told.lengths)
        parts = zip(stacks, (ends - told.lengths).tolist(), ends.tolist(), strict=True)
        return {stack: tuple(frames[start:end]) for stack, start, end in parts}

    def paths(self, stacks: Iterable[int]) -> Paths:
        """Return the frames of many stacks at once."""
        found = [self._stacks.get(stack, _NONE) for stack in stacks]
        every = np.concatenate([_NONE, *found])
        first, which = distinct(every)
        frames = [self._frames.get(frame, _UNKNOWN) for frame in every[first].tolist()]
        return Paths(frames, which, np.array([len(one) for one in found], np.int64))

    def are_lost(self, stacks: np.ndarray) -> np.ndarray:
        """Return which stacks, or halves of them, found no room in the kernel's table, shape ``(n,)``."""
        first, which = distinct(stacks)
        told = self.paths(stacks[first].tolist())
        lost = np.array([frame.is_lost for frame in told.frames], bool)[told.numbers]
        stack = np.repeat(np.arange(len(told.lengths)), told.lengths)
        found: np.ndarray = (np.bincount(stack, lost, len(first)) > 0)[which]
        return found

    def idle_kinds(self, rows: np.ndarray) -> np.ndarray:
        """Return the kind of idle wait of rows with ``stack`` and ``whose``, shape ``(n,)``."""
        first, which = distinct(rows["stack"])
        return idle_kinds(stack_kinds(self.paths(rows["stack"][first].tolist()))[which], rows["whose"])

    def _learn_stacks(self, rows: np.ndarray) -> None:
        ordered = rows.take(np.lexsort((~rows["depth"], rows["stack"])))
        ids, frames = ordered["stack"].astype(np.uint64), ordered["frame"].astype(np.uint64)
        starts = np.flatnonzero(np.append(True, ids[1:] != ids[:-1])[: len(ids)])
        ends = [*starts[1:].tolist(), len(ids)]
        for stack, start, end in zip(ids[starts].tolist(), starts.tolist(), ends, strict=False):
            if stack in self._stacks:
                continue
            if len(self._stacks) >= MAX_STACKS or self._stack_frames + end - start > MAX_STACK_FRAMES:
                self.unkept += 1
                continue
            self._stacks[stack] = frames[start:end].copy()
            self._stack_frames += end - start

    def _learn_frames(self, rows: np.ndarray) -> None:
        columns = [texts(rows, name) for name in ("kind", "module", "symbol", "build_id")]
        frames = rows["frame"].astype(np.uint64).tolist()
        for frame, kind, module, symbol, build_id in zip(frames, *columns, strict=True):
            if frame not in self._frames and len(self._frames) >= MAX_FRAMES:
                self.unkept += 1
                continue
            self._frames[frame] = Frame(kind == "k", module, symbol, build_id)


class Stacks(Dictionary):
    """The samples of one probe and the dictionary of their stacks, in bounded memory.

    Of blocks, ``source`` says whose they are: idle ones are told apart, and among the heaviest only where ``all_told``;
    ``still`` are those that had not ended. ``blocks`` is how many; 0 in recordings that don't say so.
    """

    def __init__(self, source: Source | None = None, all_told: bool = False) -> None:
        super().__init__()
        self._source = source
        self._all_told = all_told
        self._weights = Sums(_TASKS, ("weight",), MAX_STACKS)
        self.still = Still()
        self.blocks = 0

    @property
    def lost(self) -> int:
        """The weight of samples whose stack, or the half of one, was lost."""
        rows = self._weights.rows()
        return int(rows["weight"][self.are_lost(rows["stack"])].sum())

    @property
    def total(self) -> int:
        """The weight of all samples."""
        return int(self._weights.rows()["weight"].sum()) + self._weights.other["weight"]

    def add(self, samples: np.ndarray) -> None:
        """Add a window's ``samples``."""
        if self._source:
            self.blocks += int(numbers(samples, "count").sum())
            self._weights.add(samples, whose=whose(samples, self._source))
            self.still.add(samples)
        else:
            self._weights.add(samples)

    def idle(self) -> IdleTime:
        """Return what is idle of the time off the CPU."""
        rows = self._weights.rows()
        return idle_time(rows, self._idle_kinds(rows), self.total)

    def heaviest(self, most: int) -> list[HeavyStack]:
        """Return the ``most`` heaviest stacks by task, the heaviest first."""
        rows = self._weights.rows()
        idle = np.zeros(len(rows), bool) if self._all_told else self._idle_kinds(rows) > 0
        return self._heaviest(rows[~idle], most, self.total - int(rows["weight"][idle].sum()))

    def of_thread(self, tid: int, most: int) -> list[HeavyStack]:
        """Return the ``most`` heaviest stacks of a thread, the heaviest first; shares are of all weight."""
        rows = self._weights.rows()
        return self._heaviest(rows[rows["tid"] == tid], most, self.total)

    def _idle_kinds(self, rows: np.ndarray) -> np.ndarray:
        return self.idle_kinds(rows) if self._source else np.zeros(len(rows), "u1")

    def _heaviest(self, rows: np.ndarray, most: int, total: int) -> list[HeavyStack]:
        order = np.lexsort((rows["whose"], rows["stack"], rows["tid"], -rows["weight"].astype(np.int64)))
        return [
            HeavyStack(text(comm), pid, tid, weight, weight / total, self.frames(stack))
            for pid, tid, comm, stack, _, weight in rows[order][:most].tolist()
        ]


_NONE = np.zeros(0, np.uint64)
_UNKNOWN = Frame(False, "", "?")
