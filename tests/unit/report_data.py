"""What a report holds, unpacked as the page unpacks it."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import numpy as np

__all__ = ["Data", "histograms", "unpacked"]


class Data:
    """The JSON of a report, and its arrays."""

    def __init__(self, text: str) -> None:
        packed = gzip.decompress(base64.b64decode(text, validate=True))
        length = int.from_bytes(packed[:4], "little")
        self.tree: dict[str, Any] = json.loads(packed[4 : 4 + length])
        self._arrays = packed[4 + length :]

    def array(self, place: dict[str, Any]) -> np.ndarray:
        dtype = np.dtype(f"<{place['type']}")
        assert (place["at"] + len(self._arrays) * 0) % dtype.itemsize == 0
        return np.frombuffer(self._arrays, dtype, place["length"], place["at"])


def unpacked(text: str) -> Data:
    return Data(text)


def histograms(data: Data, series: dict[str, Any]) -> np.ndarray:
    """Return a series' counts, shape (bins, slots)."""
    starts, slots, counts = (data.array(series[name]) for name in ("starts", "slots", "counts"))
    found = np.zeros((len(starts) - 1, data.tree["edges"]["length"]), np.uint64)
    for place in range(len(found)):
        here = slice(starts[place], starts[place + 1])
        found[place, slots[here]] = counts[here]
    return found
