"""Stacks counted in the kernel: the tables ``samples``, ``stacks`` and ``frames`` of the probes that take them.

The kernel side is bpf/stacks.h: counts and stack ids in two halves. A read flips them, waits until no program is
left in the old half, and empties it. So a stack id means one stack as long as anybody can see it, and no memory
grows with time.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tracer.kernel.halves import Halves
from tracer.kernel.hashes import Hash, StackMap
from tracer.kernel.readers.blocked import BlockedStacks
from tracer.kernel.session import Session
from tracer.kernel.symbols.dictionary import Dictionary, Part
from tracer.kernel.symbols.kernel import KernelStacks
from tracer.kernel.symbols.users import ENDED, LATE, UserStacks
from tracer.layouts import constants, layout
from tracer.probe import Probe

__all__ = ["Reader"]

_NO_PART = Part(b"u", ())
_LOST = {kind: Part(kind, [(b"", b"[stack lost]")]) for kind in (b"k", b"u")}

_EEXIST = 17
_NOT_TAKEN = -4096

Read = dict[str, tuple[np.ndarray, Mapping[str, int]]]


class Reader:
    """Reads the halves in turn, makes names of addresses and hands stacks out under lasting ids."""

    def __init__(self, session: Session, probe: Probe) -> None:
        self._probe = probe
        name = probe.name
        sizes = {**probe.settings, **session.options.constants}
        self._known = constants(name)
        self._key = layout(name, f"{name}_key")
        self._rows = session.array(f"{name}_rows")
        self._halves = Halves(self._rows, session.array(f"{name}_control"))
        value = layout(name, f"{name}_count")
        self._counts = [
            Hash(session.descriptor(f"{name}_counts_{half}"), self._key, value, sizes[f"{name.upper()}_KEYS"])
            for half in range(2)
        ]
        size, depth = sizes[f"{name.upper()}_STACKS"], self._known["STACK_DEPTH"]
        self._stacks = [StackMap(session.descriptor(f"{name}_stacks_{half}"), depth, size) for half in range(2)]
        self._spill = [StackMap(session.descriptor(f"{name}_spill_{half}"), depth, size) for half in range(2)]
        self._blocked = BlockedStacks(session, probe) if "generation" in (self._key.names or ()) else None
        self._dictionary = Dictionary()
        self._kernel, self._users = KernelStacks(), UserStacks()
        self._before = self._rows.copy()
        self._begun = False

    def read(self, now_ns: int) -> Read:
        """Return the tables of the time since the last read; the first time nothing, since nobody keeps it."""
        generation, settled = self._halves.turn()
        losses = {"unsettled": int(not settled)}
        self._count_losses(losses)
        keys, values = self._counts[generation & 1].drain()
        stacks = {generation: self._drain(generation & 1)}
        if self._blocked:
            stacks = self._blocked.known(generation, stacks[generation])
        if not self._begun:
            keys, values, self._begun = keys[:0], values[:0], True
        samples = self._samples(keys, values, stacks, generation, losses)
        new_stacks, new_frames = self._dictionary.take()
        return {"samples": (samples, losses), "stacks": (new_stacks, {}), "frames": (new_frames, {})}

    def forget(self) -> None:
        """Tell all stacks and frames again as they come."""
        self._dictionary.forget()

    def close(self) -> None:
        """End the thread that asks processes."""
        self._users.close()

    def _drain(self, half: int) -> dict[int, bytes]:
        spilled = self._spill[half].drain()
        return self._stacks[half].drain() | {
            number + self._known["STACK_SPILLED"]: stack for number, stack in spilled.items()
        }

    def _samples(
        self,
        keys: np.ndarray,
        values: np.ndarray,
        stacks: Mapping[int, Mapping[int, bytes]],
        generation: int,
        losses: dict[str, int],
    ) -> np.ndarray:
        generations = keys["generation"].tolist() if self._blocked else [generation] * len(keys)
        kernel = [_find(stacks, *each) for each in zip(generations, keys["kernel_stack"].tolist(), strict=True)]
        user = [_find(stacks, *each) for each in zip(generations, keys["user_stack"].tolist(), strict=True)]
        parts = self._user_parts(keys["tgid"].tolist(), user, losses)
        ids = np.zeros(len(keys), dtype="u8")
        for place, (addresses, part) in enumerate(zip(kernel, parts, strict=True)):
            ids[place] = self._dictionary.stack(self._kernel_part(addresses), part)
        losses["kernel_hidden"] = int(self._kernel.hidden)
        if self._blocked:
            not_taken = keys["kernel_stack"] == _NOT_TAKEN
            losses["not_taken"] = int(values["count"][not_taken].sum())
        return _merged(keys, values, ids)

    def _kernel_part(self, addresses: bytes | None) -> Part:
        if addresses is None:
            return _LOST[b"k"]
        return self._kernel.part(addresses) if addresses else _NO_PART

    def _user_parts(self, pids: list[int], stacks: list[bytes | None], losses: dict[str, int]) -> list[Part]:
        wanted: dict[int, dict[bytes, Part]] = {}
        for pid, stack in zip(pids, stacks, strict=True):
            if stack:
                wanted.setdefault(pid, {})[stack] = LATE
        self._users.begin()
        losses.update(ended=0, late=0)
        for pid, found in wanted.items():
            found.update(zip(found, self._users.parts(pid, list(found)), strict=True))
            losses["ended"] += sum(part is ENDED for part in found.values())
            losses["late"] += sum(part is LATE for part in found.values())
        return [
            _LOST[b"u"] if stack is None else wanted[pid][stack] if stack else _NO_PART
            for pid, stack in zip(pids, stacks, strict=True)
        ]

    def _count_losses(self, losses: dict[str, int]) -> None:
        """Add what the programs counted: with the samples, where it is missing."""
        after = self._rows.copy()
        for loss in self._probe.losses:
            old, new = self._before, after
            for name in loss.field.split("."):
                old, new = old[name], new[name]
            losses[loss.reason] = losses.get(loss.reason, 0) + int((new - old).sum())
        self._before = after


def _find(stacks: Mapping[int, Mapping[int, bytes]], generation: int, number: int) -> bytes | None:
    """Return a stack's addresses, none where there is no such stack, None where it was lost."""
    if number >= 0:
        return stacks.get(generation, {}).get(number)
    return None if number == -_EEXIST else b""


def _merged(keys: np.ndarray, values: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Add up what differed by addresses only, and name the columns as people do (process id, thread id)."""
    names = [name for name in ("cpu", "tgid", "tid", "state") if name in (keys.dtype.names or ())]
    numbers = [name for name in ("weight", "count") if name in (values.dtype.names or ())]
    fields = [("cpu", "u4"), ("pid", "u4"), ("tid", "u4"), ("comm", "S16"), ("stack", "u8")]
    fields += [(name, "u8") for name in numbers]
    if "state" in names:
        fields += [("state", "S1"), ("waker_kind", "S1"), ("waker_vector", "u1"), ("waker_comm", "S16")]
    same = np.zeros(
        len(keys), dtype=[(name, "u4") for name in names] + [("stack", "u8"), ("by", "u4"), ("waker", "S16")]
    )
    for name in names:
        same[name] = keys[name]
    if "waker" in (keys.dtype.names or ()):
        same["by"], same["waker"] = keys["waker"]["kind"], keys["waker"]["comm"]
    same["stack"] = ids
    distinct, first, places = np.unique(same, return_index=True, return_inverse=True)
    rows = np.zeros(len(distinct), dtype=fields)
    rows["cpu"], rows["pid"], rows["tid"] = distinct["cpu"], distinct["tgid"], distinct["tid"]
    rows["stack"], rows["comm"] = distinct["stack"], values["comm"][first]
    for number in numbers:
        np.add.at(rows[number], places.reshape(-1), values[number])
    if "state" in names:
        rows["state"] = [_state(state) for state in distinct["state"].tolist()]
        rows["waker_kind"] = [_WAKERS.get(by & 0xFF, b"") for by in distinct["by"].tolist()]
        rows["waker_vector"] = distinct["by"] >> _OFFCPU["OFFCPU_VECTOR_SHIFT"]
        rows["waker_comm"] = distinct["waker"]
    return rows


_OFFCPU = constants("offcpu")
_WAKERS = {_OFFCPU["OFFCPU_BY_TASK"]: b"t", _OFFCPU["OFFCPU_BY_SOFTIRQ"]: b"s", _OFFCPU["OFFCPU_BY_HARDIRQ"]: b"h"}


def _state(bits: int) -> bytes:
    """Return the letter of a state as ps shows it; source: include/linux/sched.h, unchanged since v4.14."""
    if bits & 0x402 == 0x402:
        return b"I"
    letters = ((0x02, b"D"), (0x01, b"S"), (0x04, b"T"), (0x08, b"t"), (0x40, b"P"))
    return next((letter for bit, letter in letters if bits & bit), b"?")
