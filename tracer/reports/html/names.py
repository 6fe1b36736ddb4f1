"""The functions of a flame graph, each once, and no more of their names than there is room for."""

from __future__ import annotations

from tracer.analysis.stacks import Frame

__all__ = ["ALL", "NO_STACK", "PRUNED", "Names"]

ALL = Frame(False, "", "all")
NO_STACK = Frame(False, "", "[no stack]")
PRUNED = Frame(False, "", "[pruned]")


class Names:
    """Gives numbers to frames: ``names`` are (name, kind, module's number); kinds are task, kernel, user, made up."""

    _CUT = 60

    def __init__(self, most: int) -> None:
        self.names: list[tuple[str, str, int]] = []
        self.modules: list[str] = []
        self.cut = 0
        self._left = most
        self._numbers: dict[tuple[str, str, str], int] = {}
        self._modules: dict[str, int] = {}

    def number(self, frame: Frame, task: bool) -> int:
        kind = _kind(frame, task)
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


def _kind(frame: Frame, task: bool) -> str:
    if frame is PRUNED or frame is NO_STACK:
        return "m"
    return "t" if task else "k" if frame.kernel else "u"
