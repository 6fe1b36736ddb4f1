"""Windows, recordings and hand-made frames for the recording tests."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np

from tracer.recording import RecordingWriter
from tracer.window import Window

SLOTS = 298
HEADER = {"host": "node17", "probes": [{"name": "softirq", "tables": [{"name": "run", "units": {"sum": "ns"}}]}]}
EVENT = np.dtype([("event", [("time_ns", "u8"), ("cpu", "u4")]), ("comm", "S16"), ("late", "?"), ("delta", "i4")])
HISTOGRAM = np.dtype([("cpu", "u4"), ("sum", "u8"), ("slots", "u4", (SLOTS,))])


def histogram_rows(count: int, used: int = 12, seed: int = 1) -> np.ndarray:
    """Return histogram rows with about ``used`` slots in use, close to each other as latencies are."""
    random = np.random.default_rng(seed)
    rows = np.zeros(count, HISTOGRAM)
    rows["cpu"] = np.arange(count)
    slots = random.integers(60, 200, (count, 1)) + random.normal(0, 6, (count, used))
    rows["slots"][np.arange(count)[:, None], slots.astype(int).clip(0, SLOTS - 1)] = random.geometric(
        0.02, (count, used)
    )
    rows["sum"] = rows["slots"].sum(1) * random.integers(100, 100_000, count)
    return rows


def event_rows(count: int, seed: int = 1) -> np.ndarray:
    """Return rows with a nested struct, text with NULs in it, bools and negative numbers."""
    random = np.random.default_rng(seed)
    rows = np.zeros(count, EVENT)
    rows["event"]["time_ns"] = random.integers(0, 2**63, count)
    rows["comm"] = np.array([b"a\0b", b"kworker/0:1", b"\xff\xfe", b""] * count)[:count]
    rows["late"] = random.integers(0, 2, count)
    rows["delta"] = random.integers(-(2**31), 2**31, count)
    return rows


def interval(number: int, rows: int = 4) -> list[Window]:
    """Return the windows of interval ``number``: two tables, one of them empty every third time."""
    start, end = number * 10**9, (number + 1) * 10**9
    return [
        Window("softirq", "run", start, end, histogram_rows(rows, seed=number), {"ring full": number}),
        Window("softirq", "worst", start, end, event_rows(0 if number % 3 == 2 else rows, seed=number)),
    ]


def write_sample(path: Path, intervals: int = 4) -> list[list[Window]]:
    """Write a small recording and return what it holds."""
    written = [interval(number) for number in range(intervals)]
    with RecordingWriter(path, HEADER) as writer:
        for windows in written:
            writer.write(windows)
    return written


def write_anew(path: Path, data: bytes) -> None:
    """Write a file that is not there before: one that is cut and written again, ext4 has wait for the disk."""
    path.unlink(missing_ok=True)
    path.write_bytes(data)


def assert_same(read: list[Window], written: list[Window]) -> None:
    """Compare windows byte for byte, padding aside."""
    assert len(read) == len(written)
    for ours, theirs in zip(read, written, strict=True):
        assert (ours.probe, ours.table, ours.start_ns, ours.end_ns) == (
            theirs.probe,
            theirs.table,
            theirs.start_ns,
            theirs.end_ns,
        )
        assert dict(ours.losses) == dict(theirs.losses)
        assert_same_rows(ours.rows, theirs.rows)


def assert_same_rows(ours: np.ndarray, theirs: np.ndarray) -> None:
    assert ours.shape == theirs.shape
    assert ours.dtype.names == theirs.dtype.names
    for name in ours.dtype.names or ():
        one, other = ours[name], theirs[name]
        if one.dtype.names is not None:
            assert_same_rows(one, other)
            continue
        little = other.dtype.newbyteorder("<")
        assert (one.dtype, one.shape) == (little, other.shape)
        assert one.tobytes() == (other if other.dtype == little else other.astype(little)).tobytes()


def frame(kind: int, payload: bytes, *, compression: int = 1, length: int | None = None) -> bytes:
    """Return a frame with right checksums around anything, as an attacker would."""
    body = zlib.compress(payload, 1) if compression == 1 else payload
    size = len(body) if length is None else length
    check = zlib.crc32(struct.pack("<IBB", size, kind, compression)) & 0xFFFF
    head = struct.pack("<IBBH", size, kind, compression, check)
    return struct.pack("<I", zlib.crc32(head + body)) + head + body


def payload(structure: bytes, columns: bytes = b"") -> bytes:
    return struct.pack("<I", len(structure)) + structure + columns


def split(recording: bytes) -> list[tuple[int, int, bytes]]:
    """Return ``(offset, kind, payload)`` of every frame of a good recording."""
    frames, offset = [], 12
    while offset < len(recording):
        _, length, kind, compression, _ = struct.unpack_from("<IIBBH", recording, offset)
        body = recording[offset + 12 : offset + 12 + length]
        frames.append((offset, kind, zlib.decompress(body) if compression == 1 else body))
        offset += 12 + length
    return frames
