"""Which columns of a table hold names, and whose."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tracer.recording.dtypes import MAX_LAYOUTS, leaves

__all__ = ["OWN_PROBES", "Column", "are_functions", "columns", "devices", "has_names", "has_texts", "peoples"]

_NAME_LIKE = ("comm", "cgroup", "task", "pod", "namespace", "container")
_DEVICE_LIKE = ("device", "netdev")
#: Where the kernel and foreshock put words of their own: in these columns, and in all of these probes'.
_OWN_COLUMNS = frozenset({"kind", "waker_kind", "state", "counted", "context", "program", "function", "stack"})
OWN_PROBES = frozenset({"detectors"})
#: Where a row says what kind its ``name`` is of, these are people's, also those that are like words of ours.
_NAMED_KINDS = (b"cgroup", b"task", b"own")
#: And these a network device's.
_DEVICE_KINDS = (b"tx_timeout",)


@lru_cache(MAX_LAYOUTS)
def has_names(dtype: np.dtype) -> bool:
    """Return whether such rows have columns with names of tasks, cgroups or devices."""
    named = (*_NAME_LIKE, *_DEVICE_LIKE)
    return _says_kinds(dtype) or any(leaf.kind == "S" and path[-1].endswith(named) for path, leaf in leaves(dtype))


@lru_cache(MAX_LAYOUTS)
def has_texts(dtype: np.dtype) -> bool:
    """Return whether such rows have columns with any text."""
    return any(leaf.kind == "S" for _, leaf in leaves(dtype))


def _says_kinds(dtype: np.dtype) -> bool:
    """Return whether a row's column ``kind`` says what its ``name`` is of: of a cgroup, or of something of ours."""
    return {"kind", "name"} <= {*(dtype.names or ())} and dtype["kind"].kind == dtype["name"].kind == "S"


class Column:
    """A column of bytes in some rows, a view.

    ``name_like``: it holds the name of a task or a cgroup; ``device_like``: of a device; ``own``: nobody's name.
    """

    def __init__(self, name: str, values: np.ndarray) -> None:
        self.values = values
        self.name_like = name.endswith(_NAME_LIKE)
        self.device_like = name.endswith(_DEVICE_LIKE)
        self.own = name in _OWN_COLUMNS


def peoples(rows: np.ndarray) -> np.ndarray:
    """Return in which rows the column ``name`` is a task's or a cgroup's."""
    return np.isin(rows["kind"], _NAMED_KINDS) if _says_kinds(rows.dtype) else np.zeros(len(rows), bool)


def devices(rows: np.ndarray) -> np.ndarray:
    """Return in which rows the column ``name`` is a device's."""
    return np.isin(rows["kind"], _DEVICE_KINDS) if _says_kinds(rows.dtype) else np.zeros(len(rows), bool)


def columns(rows: np.ndarray) -> list[Column]:
    """Return the columns of bytes, also those within others."""
    found = []
    for name in rows.dtype.names or ():
        part = rows[name]
        if part.dtype.names:
            found += columns(part)
        elif part.dtype.kind == "S" and part.size:
            found.append(Column(name, part))
    return found


def are_functions(dtype: np.dtype) -> bool:
    """Return whether such rows tell what frames of stacks are."""
    named = ("kind", "module", "symbol")
    return {*named} <= {*(dtype.names or ())} and all(
        dtype[name].kind == "S" and not dtype[name].shape for name in named
    )
