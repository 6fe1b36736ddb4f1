"""Hashes and stack maps of the kernel, read and emptied through bpf(2)."""

from __future__ import annotations

import errno

import numpy as np

from tracer.kernel.loader import syscalls

__all__ = ["Hash", "StackMap"]


class Hash:
    """A preallocated hash of at most ``room`` elements, read in one system call.

    Elements come as structured arrays of the layouts, copies that stay valid.
    """

    def __init__(self, descriptor: int, key: np.dtype, value: np.dtype, room: int) -> None:
        self._descriptor = descriptor
        self._keys = np.zeros(room, dtype=key)
        self._values = np.zeros(room, dtype=value)

    def read(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the keys and the values. What programs change meanwhile may be torn."""
        return self._batch(syscalls.MAP_LOOKUP_BATCH)

    def drain(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the keys and the values, and take them out. No program may be using them."""
        return self._batch(syscalls.MAP_LOOKUP_AND_DELETE_BATCH)

    def remove(self, keys: np.ndarray) -> None:
        """Take the elements with these keys out, which are all there."""
        if len(keys):
            keys = np.ascontiguousarray(keys)
            syscalls.map_batch(syscalls.MAP_DELETE_BATCH, self._descriptor, keys.ctypes.data, 0, len(keys))

    def _batch(self, command: int) -> tuple[np.ndarray, np.ndarray]:
        keys, values = self._keys, self._values
        try:
            count, _ = syscalls.map_batch(command, self._descriptor, keys.ctypes.data, values.ctypes.data, len(keys))
        except OSError as error:
            # A bucket larger than the room that is left: can't be, there is room for all.
            raise RuntimeError(f"a kernel hash can't be read: {error.strerror}") from error
        return keys[:count].copy(), values[:count].copy()


class StackMap:
    """A stack map: frames by stack id."""

    def __init__(self, descriptor: int, depth: int, size: int) -> None:
        self._descriptor = descriptor
        self._size = size
        self._frames = np.zeros(depth, dtype="u8")
        self._ids = np.zeros(2, dtype="u4")

    def drain(self) -> dict[int, bytes]:
        """Return the stacks by id, each as the bytes of its addresses (u8, innermost first), and take them out."""
        stacks: dict[int, bytes] = {}
        current, following = (self._ids.ctypes.data + 4 * index for index in range(2))
        found = self._next(0, current)
        while found and len(stacks) < self._size:
            # Before the delete: the kernel goes on from an id only while that is there.
            found = self._next(current, following)
            try:
                frames = self._frames
                syscalls.map_element(syscalls.MAP_LOOKUP, self._descriptor, current, frames.ctypes.data)
                stacks[int(self._ids[0])] = frames[: _depth(frames)].tobytes()
                syscalls.map_element(syscalls.MAP_DELETE, self._descriptor, current, 0)
            except OSError as error:
                if error.errno != errno.ENOENT:
                    raise
            self._ids[0] = self._ids[1]
        return stacks

    def _next(self, key: int, into: int) -> bool:
        try:
            syscalls.map_element(syscalls.MAP_NEXT_KEY, self._descriptor, key, into)
        except OSError as error:
            if error.errno != errno.ENOENT:
                raise
            return False
        return True


def _depth(frames: np.ndarray) -> int:
    """Return how many frames there are before the zeros behind the outermost one."""
    used = np.flatnonzero(frames)
    return int(used[-1]) + 1 if len(used) else 0
