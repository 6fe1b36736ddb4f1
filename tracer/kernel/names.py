"""Tasks' names as they lie in the kernel's memory."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

__all__ = ["cut_names"]


def cut_names(rows: np.ndarray) -> np.ndarray:
    """Return ``rows`` with the names in the columns ``comm``, ``holder_comm``, … cut at their first NUL.

    Behind it is what an earlier, longer name has left. Since 06c5088aee86 ("fs/exec: replace strlcpy with strscpy_pad
    in __set_task_comm") (in v5.17) there are only zeros, and ``rows`` are returned as they are.
    """
    for column in _columns(rows.dtype) if len(rows) else ():
        names = np.array(rows[column])
        letters = names.view("u1").reshape(len(rows), -1)
        behind = np.logical_or.accumulate(letters == 0, axis=1)
        if letters[behind].any():
            letters[behind] = 0
            rows = rows.copy()
            rows[column] = names
    return rows


@lru_cache
def _columns(dtype: np.dtype) -> tuple[str, ...]:
    return tuple(name for name in dtype.names or () if name.endswith("comm") and dtype[name].kind == "S")
