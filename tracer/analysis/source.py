"""Which node a run comes from, as its recording's header or the live session says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tracer.analysis.rows import text

__all__ = ["Source"]


@dataclass(frozen=True)
class Source:
    """The fingerprint as far as it is known; empty text or NaN where it is not.

    ``clock_offset_ns`` turns the node's CLOCK_MONOTONIC into wall-clock time (UTC).
    """

    host: str = ""
    kernel: str = ""
    architecture: str = ""
    boot_id: str = ""
    version: str = ""
    cpus: int = 0
    interval_ns: int = 0
    clock_offset_ns: float = float("nan")

    @classmethod
    def from_header(cls, header: Mapping[str, Any]) -> Source:
        """Read a recording's header. It may come from anyone: what has a wrong type counts as unknown."""
        return cls(
            host=_text(header, "host"),
            kernel=_text(header, "kernel"),
            architecture=_text(header, "architecture"),
            boot_id=_text(header, "boot_id"),
            version=_text(header, "version"),
            cpus=_cpus(header),
            interval_ns=_interval_ns(header),
            clock_offset_ns=_number(header, "clock_offset_ns", float("nan")),
        )

    def unix_ns(self, monotonic_ns: float) -> float:
        """Return the wall-clock time of a moment of the node's monotonic clock; NaN when the offset isn't known."""
        return monotonic_ns + self.clock_offset_ns


def _text(header: Mapping[str, Any], name: str) -> str:
    value = header.get(name, "")
    return text(value) if isinstance(value, (str, bytes)) else ""


def _number(header: Mapping[str, Any], name: str, default: float) -> float:
    value = header.get(name)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else default


def _cpus(header: Mapping[str, Any]) -> int:
    value = header.get("cpus")
    return len(value) if isinstance(value, (list, tuple)) else int(_number(header, "cpus", 0))


def _interval_ns(header: Mapping[str, Any]) -> int:
    seconds = _number(header, "interval_s", _number(header, "interval", 0.0))
    return max(0, int(_number(header, "interval_ns", seconds * 1e9)))
