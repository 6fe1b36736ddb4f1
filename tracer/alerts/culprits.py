"""Who did it, from rows of ``cpustall``: task, context, and where in the kernel."""

from __future__ import annotations

import numpy as np

from tracer.alerts.alert import Culprit
from tracer.alerts.rule import View
from tracer.probe import SOFTIRQS

__all__ = ["of_open", "of_stall", "task", "text", "where"]

# Code that others wait in, or that passes time for them: it is not who did it.
_HELPERS = ("_raw_", "native_queued_", "queued_", "delay_", "__delay", "__udelay", "__const_udelay", "native_safe_halt")


def text(name: bytes) -> str:
    """Return a name from the node as text; bytes that are no UTF-8 survive as surrogates."""
    return bytes(name).decode("utf-8", "surrogateescape")


def task(row: np.void) -> str:
    """Return ``comm[pid]`` of a row: ``"kworker/3:1[812]"``; "" when it has none."""
    comm = text(row["comm"])
    return f"{comm}[{int(row['pid'])}]" if comm or row["pid"] else ""


def of_stall(row: np.void, view: View) -> Culprit:
    """Return who holds a CPU, from a row of ``cpustall.stalls``.

    Its stack is of the interrupted code: the sample's own frames are not on it.
    """
    frames = [view.symbol(int(address)) for address in row["stack"] if address]
    module = next((module for _, module in frames if module), "")
    return Culprit(task(row), text(row["context"]), tuple(symbol for symbol, _ in frames), module)


def of_open(row: np.void) -> Culprit:
    """Return who holds a CPU, from a row of ``cpustall.open``: what another CPU could see."""
    kind, vector = bytes(row["kind"]), int(row["vector"])
    context = {b"softirq": "softirq", b"hardirq": "hard interrupt", b"heartbeat": "interrupts off"}.get(kind, "")
    if kind == b"softirq" and vector < len(SOFTIRQS):
        context += f" {SOFTIRQS[vector]}"
    return Culprit(task(row), context)


def where(culprit: Culprit, view: View, row: np.void | None) -> str:
    """Return the place in a sentence: ``"softirq TIMER in spin_fn [lab_mod]"``, as far as it is known.

    It is the innermost function of a module, or address without a name (code loaded since the names were read); of the
    core kernel's, the innermost that does more than wait.
    """
    frames = [view.symbol(int(address)) for address in row["stack"] if address] if row is not None else []
    own = [frame for frame in frames if not frame[0].startswith(_HELPERS)] or frames
    found = next((frame for frame in frames if frame[1] or frame[0].startswith("0x")), own[0] if own else None)
    place = f"in {found[0]}{f' [{found[1]}]' if found[1] else ''}" if found else ""
    return " ".join(part for part in (culprit.context, place) if part)
