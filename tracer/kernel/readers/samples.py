"""The rows of ``samples``: what programs counted, under the names that people use."""

from __future__ import annotations

import numpy as np

from tracer.layouts import constants

__all__ = ["merged"]

_OFFCPU = constants("offcpu")
_WAKERS = {
    _OFFCPU["OFFCPU_BY_TASK"]: b"t",
    _OFFCPU["OFFCPU_BY_SOFTIRQ"]: b"s",
    _OFFCPU["OFFCPU_BY_HARDIRQ"]: b"h",
    _OFFCPU["OFFCPU_STILL"]: b"o",
    _OFFCPU["OFFCPU_ALL_ALONG"]: b"a",
}


def merged(keys: np.ndarray, values: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Add up what differed by addresses only, and name the columns as people do (process id, thread id)."""
    names = [name for name in ("cpu", "tgid", "tid", "state") if name in (keys.dtype.names or ())]
    numbers = [name for name in ("weight", "count") if name in (values.dtype.names or ())]
    fields = [("cpu", "u4"), ("pid", "u4"), ("tid", "u4"), ("comm", "S16"), ("stack", "u8")]
    fields += [(name, "u8") for name in numbers]
    if "state" in names:
        fields += [("state", "S1"), ("waker_kind", "S1"), ("waker_vector", "u1"), ("waker_comm", "S16")]
    same = np.zeros(
        len(keys),
        dtype=[(name, "u4") for name in names] + [("comm", "S16"), ("stack", "u8"), ("by", "u4"), ("waker", "S16")],
    )
    for name in (*names, "comm"):
        same[name] = keys[name]
    if "waker" in (keys.dtype.names or ()):
        same["by"], same["waker"] = keys["waker"]["kind"], keys["waker"]["comm"]
    same["stack"] = ids
    distinct, places = np.unique(same, return_inverse=True)
    rows = np.zeros(len(distinct), dtype=fields)
    rows["cpu"], rows["pid"], rows["tid"] = distinct["cpu"], distinct["tgid"], distinct["tid"]
    rows["stack"], rows["comm"] = distinct["stack"], distinct["comm"]
    for number in numbers:
        np.add.at(rows[number], places.reshape(-1), values[number])
    if "state" in names:
        rows["state"] = [_state(state) for state in distinct["state"].tolist()]
        rows["waker_kind"] = [_WAKERS.get(by & 0xFF, b"") for by in distinct["by"].tolist()]
        rows["waker_vector"] = distinct["by"] >> _OFFCPU["OFFCPU_VECTOR_SHIFT"]
        rows["waker_comm"] = distinct["waker"]
    return rows


def _state(bits: int) -> bytes:
    """Return the letter of a state as ps shows it; source: include/linux/sched.h, unchanged since v4.14."""
    if bits & 0x402 == 0x402:
        return b"I"
    letters = ((0x02, b"D"), (0x01, b"S"), (0x04, b"T"), (0x08, b"t"), (0x40, b"P"))
    return next((letter for bit, letter in letters if bits & bit), b"?")
