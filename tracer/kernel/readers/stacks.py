"""Stacks counted in the kernel: the tables ``samples``, ``stacks`` and ``frames`` of the probes that take them.

The kernel side is bpf/stacks.h: counts and stack ids in two halves. A read flips them, waits until no program is
left in the old half, and empties it. So a stack id means one stack as long as anybody can see it, and no memory
grows with time.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np

from tracer import brackets
from tracer.kernel.halves import Halves
from tracer.kernel.hashes import Hash, StackMap
from tracer.kernel.readers.blocked import BlockedStacks
from tracer.kernel.readers.openblocks import OpenBlocks
from tracer.kernel.readers.samples import merged
from tracer.kernel.session import Session
from tracer.kernel.symbols.dictionary import Dictionary, Part
from tracer.kernel.symbols.kernel import KernelStacks
from tracer.kernel.symbols.users import LATE, UserStacks
from tracer.layouts import constants, layout
from tracer.probe import Probe

__all__ = ["Reader"]

_NO_PART = Part(b"u", ())
_LOST = {kind: Part(kind, [(b"", brackets.LOST.encode())]) for kind in (b"k", b"u")}

_NAMELESS = "a program has no names in the interval in which it is seen first, nor once it has ended"
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
        self._kernel, self._users = KernelStacks(), UserStacks(session.programs)
        self._before = self._rows.copy()
        least_ns = sizes.get(f"{name.upper()}_MINIMUM_NS", 0)
        self._open = OpenBlocks(session, self._blocked, least_ns) if self._blocked else None
        self._began_ns = 0
        self._last = False
        self._programs, self._lost_before = session.programs, 0
        self.drain()
        if session.programs and session.programs.trouble:
            reason = f"records of programs that start ({session.programs.trouble}): {_NAMELESS}"
            session.missing.append((name, reason))

    def read(self, now_ns: int) -> Read:
        """Return the tables of the time since the last read; the first time nothing, since nobody keeps it."""
        turned_ns = time.monotonic_ns()
        generation, settled = self._halves.turn()
        losses = {"unsettled": int(not settled)}
        self._count_losses(losses)
        keys, values = self._counts[generation & 1].drain()
        stacks = {generation: self._drain(generation & 1)}
        if self._blocked:
            stacks = self._blocked.known(generation, stacks[generation])
        if not self._began_ns:
            keys, values, self._began_ns = keys[:0], values[:0], turned_ns
        going_on, self._last = self._open if self._last else None, False
        if going_on:
            keys, values = _joined((keys, values), going_on.noted(turned_ns))
        ids = self._ids(keys, values, stacks, generation, losses)
        # Else who is not noted may have found no room.
        if going_on and not self._rows["full_tasks"].any():
            before = going_on.since_before(self._began_ns, turned_ns)
            keys, values = _joined((keys, values), (before.keys, before.values))
            ids = np.append(ids, np.array([self._dictionary.stack(part, _NO_PART) for part in before.parts], "u8"))
            losses["unasked"] = before.left_out
        samples = merged(keys, values, ids)
        new_stacks, new_frames = self._dictionary.take()
        return {"samples": (samples, losses), "stacks": (new_stacks, {}), "frames": (new_frames, {})}

    def complete(self) -> None:
        """Count what goes on at the next read, the last one, as if it ended there."""
        self._last = True

    def drain(self) -> None:
        """Take in what must not wait for the end of a long interval: records of programs, of which the rings hold few.

        Where they can't be had there is nothing to do.
        """
        if self._programs and not self._programs.trouble:
            self._programs.update()

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

    def _ids(
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
        parts = self._user_parts(keys, user, values, losses)
        ids = np.zeros(len(keys), dtype="u8")
        for place, (addresses, part) in enumerate(zip(kernel, parts, strict=True)):
            ids[place] = self._dictionary.stack(self._kernel_part(addresses), part)
        losses["kernel_hidden"] = int(self._kernel.hidden)
        if self._blocked:
            not_taken = keys["kernel_stack"] == _NOT_TAKEN
            losses["not_taken"] = int(values["count"][not_taken].sum())
        return ids

    def _kernel_part(self, addresses: bytes | None) -> Part:
        if addresses is None:
            return _LOST[b"k"]
        return self._kernel.part(addresses) if addresses else _NO_PART

    def _user_parts(
        self, keys: np.ndarray, stacks: list[bytes | None], values: np.ndarray, losses: dict[str, int]
    ) -> list[Part]:
        self._users.begin()
        # A process is one program after the other, and may have been two of them in this interval. At the end of its
        # first block a thread was what it had been at the beginning, which may lie before all records.
        times = (values["first_ns"] + values["weight"] if self._blocked else values["first_ns"]).tolist()
        whose = [self._users.program(pid, at) for pid, at in zip(keys["tgid"].tolist(), times, strict=True)]
        comms = keys["comm"].tolist()
        stacks_of: dict[tuple[int, int], dict[tuple[bytes, bytes], None]] = {}
        for program, stack, comm in zip(whose, stacks, comms, strict=True):
            if stack:
                stacks_of.setdefault(program, {})[stack, comm] = None
        found = self._users.parts({program: list(each) for program, each in stacks_of.items()})
        wanted = {program: dict(zip(stacks_of[program], parts, strict=True)) for program, parts in found.items()}
        losses["late"] = sum(part is LATE for parts in found.values() for part in parts)
        losses["ended"] = self._users.ended
        if self._programs:
            losses["programs"] = self._programs.lost - self._lost_before
            self._lost_before = self._programs.lost
        return [
            _LOST[b"u"] if stack is None else wanted[program][stack, comm] if stack else _NO_PART
            for program, stack, comm in zip(whose, stacks, comms, strict=True)
        ]

    def _count_losses(self, losses: dict[str, int]) -> None:
        """Add what the programs counted: with the samples, where it is missing."""
        after = self._rows.copy()
        for loss in self._probe.losses:
            if not loss.map:
                continue  # of this reader's own
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


def _joined(some: tuple[np.ndarray, np.ndarray], more: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    return np.concatenate((some[0], more[0])), np.concatenate((some[1], more[1]))
