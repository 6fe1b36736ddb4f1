"""The functions of a flame graph, each once, and no more of their names than there is room for."""

from __future__ import annotations

from tracer.analysis.stacks import Frame

__all__ = ["ALL", "NO_STACK", "PRUNED", "Named", "Names", "function", "task"]

#: A frame and what kind of thing it is: KINDS of web/src/picture.ts.
Named = tuple[Frame, str]

ALL: Named = (Frame(False, "", "all"), "m")
NO_STACK: Named = (Frame(False, "", "[no stack]"), "m")
PRUNED: Named = (Frame(False, "", "[pruned]"), "m")


def function(frame: Frame) -> Named:
    """Return a frame of a stack with its kind: the kernel or a program."""
    return frame, "k" if frame.kernel else "u"


def task(name: str, kind: str = "t") -> Named:
    """Return a frame of what has no functions: a task, or who woke it."""
    return Frame(False, "", name or "?"), kind


class Names:
    """Gives numbers to frames: ``names`` are (name, kind, module's number)."""

    _CUT = 60

    def __init__(self, most: int) -> None:
        self.names: list[tuple[str, str, int]] = []
        self.modules: list[str] = []
        self.cut = 0
        self._left = most
        self._numbers: dict[tuple[str, str, str], int] = {}
        self._modules: dict[str, int] = {}

    def number(self, frame: Frame, kind: str) -> int:
        module = self._short(frame.module)
        key = (self._short(frame.symbol or frame.module or "?"), kind, module)
        if key not in self._numbers:
            self._numbers[key] = len(self.names)
            self.names.append((key[0], kind, self._module(module)))
            self._left -= len(key[0])
        return self._numbers[key]

    def _module(self, module: str) -> int:
        if module not in self._modules:
            self._modules[module] = len(self.modules)
            self.modules.append(module)
            self._left -= len(module)
        return self._modules[module]

    def _short(self, name: str) -> str:
        if self._left > 0 or len(name) <= self._CUT:
            return name
        self.cut += 1
        return f"{name[: self._CUT]}…"
