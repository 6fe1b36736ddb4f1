"""pprof's profile, gzip'd: https://github.com/google/pprof/blob/main/proto/profile.proto.

A mapping is a file with its build id, from its first byte on: what has no name has its offset in it for an address, so
that a symboliser that has the file finds the name later.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from tracer import brackets
from tracer.analysis.frames import Frame
from tracer.analysis.source import Source
from tracer.escape import printable
from tracer.reports.export.protobuf import integer, message, packed, text
from tracer.reports.export.stacks import StackWeights, WeightedStack

__all__ = ["pprof"]

# Fields of Profile.
_SAMPLE_TYPE, _SAMPLE, _MAPPING, _LOCATION, _FUNCTION, _STRING = 1, 2, 3, 4, 5, 6
_TIME_NS, _DURATION_NS, _PERIOD_TYPE, _PERIOD, _COMMENT, _DEFAULT_TYPE = 9, 10, 11, 12, 13, 14
_GZIP = 16 + zlib.MAX_WBITS


def pprof(weights: StackWeights, source: Source, comment: str) -> Iterator[bytes]:
    """Yield the profile in pieces: per kind a count and a time in ns, and labels pid, tid, comm."""
    packer = zlib.compressobj(wbits=_GZIP)
    for piece in _Profile(weights, source).pieces(comment):
        yield packer.compress(piece)
    yield packer.flush()


class _Profile:
    def __init__(self, weights: StackWeights, source: Source) -> None:
        self._weights, self._source = weights, source
        self._kinds = weights.present()
        self._strings = {"": 0}
        self._locations: dict[Frame, int] = {}
        self._mappings: dict[tuple[str, str], _Mapping] = {}
        self._new: list[bytes] = []  # functions and locations that the next samples refer to

    def pieces(self, comment: str) -> Iterator[bytes]:
        for kind in self._kinds:
            yield message(_SAMPLE_TYPE, self._type(kind.counted, "count"))
            yield message(_SAMPLE_TYPE, self._type(kind.time, "nanoseconds"))
        for place, kind in enumerate(self._kinds):
            for one in self._weights.stacks(kind):
                sample = self._sample(one, place)
                yield from self._new
                self._new.clear()
                yield message(_SAMPLE, sample)
        for (module, build_id), mapping in self._mappings.items():
            yield message(_MAPPING, mapping.packed(self._string(module), self._string(build_id)))
        yield from self._facts(comment)
        for string in self._strings:
            yield text(_STRING, string)

    def _facts(self, comment: str) -> Iterator[bytes]:
        weights = self._weights
        start_ns = self._source.unix_ns(weights.start_ns)
        if start_ns == start_ns:
            yield integer(_TIME_NS, int(start_ns))
        yield integer(_DURATION_NS, weights.end_ns - weights.start_ns)
        if any(kind.probe == "oncpu" for kind in self._kinds):
            yield message(_PERIOD_TYPE, self._type("cpu", "nanoseconds"))
            yield integer(_PERIOD, round(1e9 / self._source.sample_hz))
        yield integer(_COMMENT, self._string(comment))
        yield integer(_DEFAULT_TYPE, self._string(self._kinds[0].time))

    def _type(self, what: str, unit: str) -> bytes:
        return integer(1, self._string(what)) + integer(2, self._string(unit))

    def _sample(self, one: WeightedStack, place: int) -> bytes:
        values = [0] * (2 * len(self._kinds))
        values[2 * place : 2 * place + 2] = one.count, one.ns
        stack = packed(1, (self._location(frame) for frame in reversed(one.frames)))
        labels = [integer(1, self._string("comm")) + integer(2, self._string(one.comm))]
        for name, number in (("pid", one.pid), ("tid", one.tid)):
            labels.append(integer(1, self._string(name)) + integer(3, number))
        return stack + packed(2, values) + b"".join(message(3, label) for label in labels)

    def _location(self, frame: Frame) -> int:
        """Return a frame's location: one per function, since recordings know no address of what has a name."""
        if frame not in self._locations:
            number = self._locations[frame] = len(self._locations) + 1
            module = printable(frame.module) or (brackets.KERNEL if frame.kernel else "")
            name = self._string(frame.symbol or module or "?")
            function = integer(1, number) + integer(2, name) + integer(3, name) + integer(4, self._string(module))
            place = self._place(module, frame) if module else b""
            self._new.append(message(_FUNCTION, function))
            self._new.append(message(_LOCATION, integer(1, number) + place + message(4, integer(1, number))))
        return self._locations[frame]

    def _place(self, module: str, frame: Frame) -> bytes:
        """Return in which mapping a location is, and where in it."""
        key = module, printable(frame.build_id)
        mapping = self._mappings.setdefault(key, _Mapping(len(self._mappings) + 1))
        if frame.offset is None:
            return integer(2, mapping.number)
        mapping.end = max(mapping.end, frame.offset + 1)
        return integer(2, mapping.number) + integer(3, frame.offset)

    def _string(self, value: str) -> int:
        return self._strings.setdefault(printable(value), len(self._strings))


@dataclass
class _Mapping:
    """A file; ``end`` is behind its last place without a name, 0 where all have one."""

    number: int
    end: int = 0

    def packed(self, filename: int, build_id: int) -> bytes:
        return (
            integer(1, self.number)
            + integer(3, self.end)
            + integer(5, filename)
            + integer(6, build_id)
            + integer(7, not self.end)
        )
