"""What stacks are made of: functions, and many stacks as numbers of functions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tracer import brackets

__all__ = ["Frame", "Paths"]

#: Recordings of before wrote module+0x… without brackets.
_UNNAMED = re.compile(r"(?:\[unknown )?.+\+0x([0-9a-f]{1,15})\]?", re.DOTALL)


class Frame(NamedTuple):
    """A function; ``kernel`` or of the process. Names as recorded: the report escapes them.

    ``build_id`` is that of the module's file, if it has one.
    """

    kernel: bool
    module: str
    symbol: str
    build_id: str = ""

    @property
    def offset(self) -> int | None:
        """Where in the module's file a frame without a name is; None where it has one, or lies in no file."""
        found = None if self.kernel else _UNNAMED.fullmatch(self.symbol)
        return int(found[1], 16) if found and self.module else None

    @property
    def is_lost(self) -> bool:
        """Whether it stands for a stack, or the half of one, that found no room in the kernel's table."""
        return not self.module and self.symbol == brackets.LOST

    @property
    def is_unnamed(self) -> bool:
        """Whether no function is known: ``[unknown …]``, ``[process ended]``, ``[anonymous]``."""
        return self.symbol.startswith("[") or "+0x" in self.symbol


@dataclass(frozen=True)
class Paths:
    """Many stacks: what frame numbers stand for, the numbers of one stack after the other (outermost first), lengths.

    Shapes ``(all frames,)`` and ``(stacks,)``. A stack that was not taken or not told has none.
    """

    frames: list[Frame]
    numbers: np.ndarray
    lengths: np.ndarray
