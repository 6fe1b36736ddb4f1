"""The report's data as one text: JSON and the arrays it refers to, packed, without a character that HTML minds."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from tracer.reports.json import dumps

__all__ = ["Blob"]

_ALIGNED = 8  # JavaScript's arrays begin at multiples of their items' size
_GZIP = 16 + zlib.MAX_WBITS
_LEVEL = 4  # 6 takes four times as long for 5 % less


class Blob:
    """Collects arrays; whoever refers to one keeps what ``add`` returned."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, values: np.ndarray) -> dict[str, Any]:
        """Return where an array of u1, u2, u4 or f8 is: ``at`` (bytes), ``length`` (items), ``type``."""
        data = np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<"), copy=False).tobytes()
        place = {"at": self._size, "length": values.size, "type": values.dtype.str[1:]}
        padding = -len(data) % _ALIGNED
        self._parts += [data, bytes(padding)]
        self._size += len(data) + padding
        return place

    def text(self, tree: Mapping[str, Any]) -> str:
        """Return base64 of gzip of: the length of the JSON (u4), the JSON filled up with spaces, the arrays."""
        head = dumps(tree, rounded=True).encode()  # the page computes with them
        head += b" " * (-(len(head) + 4) % _ALIGNED)
        packer = zlib.compressobj(_LEVEL, wbits=_GZIP)
        packed = [packer.compress(part) for part in (len(head).to_bytes(4, "little"), head, *self._parts)]
        return base64.b64encode(b"".join([*packed, packer.flush()])).decode("ascii")
