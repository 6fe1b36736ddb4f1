"""Stacks and frames under ids that stay the same all through a recording, each told once.

Ids are hashes of what they stand for: telling one twice does no harm, and two recordings agree on them.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

import numpy as np

__all__ = ["FRAME", "NO_STACK", "STACK", "Dictionary", "Part", "Symbol"]

#: Module and function; of a file that has one, its build id.
Symbol = tuple[bytes, bytes] | tuple[bytes, bytes, bytes]

#: One row per stack and frame; depth 0 is the innermost.
STACK = np.dtype([("stack", "u8"), ("depth", "u2"), ("frame", "u8")])
FRAME = np.dtype([("frame", "u8"), ("kind", "S1"), ("module", "S64"), ("symbol", "S192"), ("build_id", "S40")])

NO_STACK = 0

#: When as many were told, all are forgotten and told again as they come.
MAX_STACKS = 1 << 16
MAX_FRAMES = 1 << 17


class Part:
    """The kernel's (``kind`` "k") or the process's ("u") part of a stack, innermost frame first."""

    __slots__ = ("digest", "frames", "kind")

    def __init__(self, kind: bytes, frames: Iterable[Symbol]) -> None:
        self.kind = kind
        self.frames = tuple(frames)
        text = b"\0".join(b"\0".join(frame) for frame in self.frames)
        self.digest = blake2b(kind + text, digest_size=16).digest() if self.frames else b""


class Dictionary:
    """Gives out ids and keeps what was not told yet."""

    def __init__(self) -> None:
        self._told: set[int] = set()
        self._frames: dict[tuple[bytes, Symbol], int] = {}
        self._new_stacks: list[tuple[int, int, int]] = []
        self._new_frames: list[tuple[int, bytes, bytes, bytes, bytes]] = []

    def stack(self, kernel: Part, user: Part) -> int:
        """Return the id of a stack, kernel part innermost; ``NO_STACK`` if it has no frames."""
        if not kernel.digest and not user.digest:
            return NO_STACK
        number = _hash(kernel.digest + user.digest)
        if number not in self._told:
            self._told.add(number)
            frames = [self._frame(part.kind, frame) for part in (kernel, user) for frame in part.frames]
            self._new_stacks.extend((number, depth, frame) for depth, frame in enumerate(frames))
        return number

    def take(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of the stacks and frames that are new since the last call."""
        stacks, frames = np.array(self._new_stacks, dtype=STACK), np.array(self._new_frames, dtype=FRAME)
        self._new_stacks, self._new_frames = [], []
        if len(self._told) >= MAX_STACKS or len(self._frames) >= MAX_FRAMES:
            self.forget()
        return stacks, frames

    def forget(self) -> None:
        """Tell everything again as it comes: a recording that drops its oldest intervals has lost what they told."""
        self._told.clear()
        self._frames.clear()

    def _frame(self, kind: bytes, symbol: Symbol) -> int:
        number = self._frames.get((kind, symbol))
        if number is None:
            number = self._frames[kind, symbol] = _hash(b"\0".join((kind, *symbol)))
            module, name, build_id = (*symbol, b"")[:3]
            self._new_frames.append((number, kind, module, name, build_id))
        return number


def _hash(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little") or 1
