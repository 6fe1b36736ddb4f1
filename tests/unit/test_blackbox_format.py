"""docs/blackbox.md is enough to read a box: this reader is written from that page alone."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

from unit.blackbox_samples import BOOT, SECOND, UNIX_NS, sample_box

from tracer.blackbox.box import Box
from tracer.recording import Kind


def _records(data: bytes) -> list[tuple[int, int, int, int, bytes]]:
    """Return (kind, sequence, monotonic, unix, frame) of every record, oldest first."""
    segment_bytes, segments = struct.unpack_from("<QI", data, 16)
    turns = []
    for number in range(segments):
        start = number * segment_bytes
        assert data[start : start + 8] == b"\x89FBX\r\n\x1a\n" or not any(data[start : start + 84])
        if data[start : start + 8] == b"\x89FBX\r\n\x1a\n":
            checksum, version = struct.unpack_from("<II", data, start + 8)
            assert checksum == zlib.crc32(data[start + 12 : start + 84]) and version == 1
            own, serial, _run = struct.unpack_from("<IQQ", data, start + 28)
            assert own == number and data[start + 48 : start + 84].decode() == BOOT
            turns.append((serial, start))
    found = []
    for serial, start in sorted(turns):
        for at in range(start + 4096, start + segment_bytes, 4096):
            magic, checksum, length, _dropped, kind, of, *rest = struct.unpack_from("<4sIIIB3xQQQQ", data, at)
            if magic == b"\x89FBR" and of == serial and checksum == zlib.crc32(data[at + 8 : at + 52 + length]):
                found.append((kind, *rest, data[at + 52 : at + 52 + length]))
    return sorted(found, key=lambda one: (one[2], one[1]))


def test_the_page_says_how_to_read_a_box(tmp_path: Path):
    path = sample_box(tmp_path / "box", goodbye=True)
    read = _records(path.read_bytes())
    with Box(path) as box:
        expected = [
            (one.head.kind, one.head.sequence, one.head.monotonic_ns, one.head.unix_ns, one.frame)
            for one in box.records()
        ]
    assert read == expected
    assert [kind for kind, *_ in read] == [1, *[2] * 5, 4, *[2] * 3, 3] == [
        Kind.HEADER, *[Kind.WINDOWS] * 5, Kind.ALERT, *[Kind.WINDOWS] * 3, Kind.END,
    ]  # fmt: skip
    assert read[-1][2:4] == (8 * SECOND, UNIX_NS + 8 * SECOND)
