"""Live views of memory-mapped BPF arrays: read and written without a system call."""

from __future__ import annotations

import contextlib
import mmap
import os

import numpy as np

__all__ = ["MappedArray"]


class MappedArray:
    """One BPF array as a numpy structured array that shows what the programs write, as they write it.

    ``rows`` is the live view, shape ``(count,)``. Copy before computing: a row changes under the reader.
    """

    def __init__(self, descriptor: int, dtype: np.dtype, count: int) -> None:
        size = -(-count * dtype.itemsize // mmap.PAGESIZE) * mmap.PAGESIZE
        self._descriptor = descriptor
        self._memory = mmap.mmap(descriptor, size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        self.rows: np.ndarray = np.frombuffer(self._memory, dtype=dtype, count=count)

    @property
    def size_bytes(self) -> int:
        """Kernel memory the array takes."""
        return len(self._memory)

    def close(self) -> None:
        """Give the mapping and the descriptor back. Copies stay valid, ``rows`` is empty from now on."""
        self.rows = np.zeros(0, dtype=self.rows.dtype)
        # A caller may still hold a view: the mapping goes with it.
        with contextlib.suppress(BufferError):
            self._memory.close()
        os.close(self._descriptor)
