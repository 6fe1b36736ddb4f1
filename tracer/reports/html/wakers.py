"""Who woke a task, as one word of bytes: what kind of thing it is, then its name."""

from __future__ import annotations

import numpy as np

from tracer import brackets
from tracer.analysis.names import vector
from tracer.analysis.rows import has, text
from tracer.reports.html.names import Named, task

__all__ = ["LABEL", "labels", "waker"]

LABEL = "S24"
_NOBODY = {b"o": brackets.STILL_BLOCKED, b"a": brackets.BLOCKED_ALL_ALONG}


def labels(samples: np.ndarray) -> np.ndarray | None:
    """Return a label per row of ``offcpu.samples``, shape ``(n,)``; None where nobody noted who woke tasks."""
    if not all(has(samples, name) for name in ("waker_kind", "waker_vector", "waker_comm")):
        return None
    kinds = samples["waker_kind"].astype("S1")
    # Nobody is a kind, too: a label that begins with a name could be taken for another's.
    kinds[kinds == b""] = b"-"
    names = samples["waker_comm"].astype("S16")
    softirqs = np.flatnonzero(kinds == b"s")
    names[softirqs] = [vector(number).encode() for number in samples["waker_vector"][softirqs].tolist()]
    return np.char.add(kinds, names).astype(LABEL)


def waker(label: bytes) -> Named:
    """Return what a label stands for."""
    kind, name = label[:1], text(label[1:])
    if kind == b"t":
        return task(name, "a")
    if kind == b"s":
        return task(f"softirq {name}", "k")
    if kind == b"h":
        return task("interrupt", "k")
    return task(_NOBODY.get(kind, brackets.NOBODY_SEEN), "m")
