"""Folded stacks, as flamegraph.pl, inferno and speedscope read them: ``task;outermost;…;innermost WEIGHT``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from tracer.escape import printable
from tracer.reports.export.stacks import StackWeights
from tracer.reports.sections.stacks import folded as folded_frames

__all__ = ["folded"]

# flamegraph.pl takes a number before the last one for another weight.
_NUMBER = re.compile(r"\s(?=\d+(?:\.\d*)?$)")


def folded(weights: StackWeights) -> Iterator[bytes]:
    """Yield lines, weights in whole ns. Where there are several kinds, each begins with its own frame."""
    kinds = weights.present()
    lines: dict[str, int] = {}
    for kind in kinds:
        root = f"{kind.title};" if len(kinds) > 1 else ""
        for one in weights.stacks(kind):
            line = f"{root}{_task(one.comm)};{folded_frames(one.frames)}"
            lines[line] = lines.get(line, 0) + one.ns
    for line, ns in sorted(lines.items()):
        yield f"{_NUMBER.sub('_', line)} {ns}\n".encode()


@lru_cache(maxsize=1 << 10)
def _task(comm: str) -> str:
    # As stackcollapse-perf.pl writes it.
    return re.sub(r"[\s;]", "_", printable(comm)) or "?"
