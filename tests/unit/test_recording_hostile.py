"""Recordings made to hurt: good windows or one RecordingError, in bounded memory and time, and nothing else."""

from __future__ import annotations

import random
import struct
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path

import msgpack
import pytest
from unit.recording_samples import frame, payload, split, write_anew, write_sample

from tracer.errors import RecordingError
from tracer.recording import RecordingReader
from tracer.window import Window

MUTANTS = 20_000
MEBIBYTE = 1 << 20
EVIL = (
    [None, True, -1, 0, 1, 2, 255, 2**31, 2**32 - 1, 2**63, 2**64 - 1, 1.5, float("nan")]
    + ["", "O", "<u4", "u3", "V8", "S99999", "S99999999999", "M8", "u4,O", "b1", "S0", "\x1b[2J", "x" * 300]
    + [b"", b"\0" * 9, [], [[]], {}, {"": 0}, [0] * 300, [["a", "u4", [2**40]]], [["a", "u4", [0, 2**20]]], [-1, 8, 8]]
)


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    folder = tmp_path_factory.mktemp("bases")
    for intervals in (1, 2, 4):
        write_sample(folder / str(intervals), intervals)
    return [(folder / str(intervals)).read_bytes() for intervals in (1, 2, 4)]


def consume(path: Path, *, check_rows: bool = True) -> tuple[int, str]:
    """Read all; return how many intervals there were and the error or warning, having checked both."""
    good, message = 0, ""
    try:
        with RecordingReader(path) as reader:
            for windows in reader:
                good += 1
                for window in windows if check_rows else ():
                    check(window)
            message = reader.warning
    except RecordingError as error:
        message = error.message
    assert message.isprintable()
    assert len(message) < 500
    return good, message


def check(window: Window) -> None:
    assert window.rows.ndim == 1
    assert not window.rows.dtype.hasobject
    assert window.start_ns <= window.end_ns
    assert all(isinstance(number, int) for number in window.losses.values())
    window.rows.tobytes()


def flip(data: bytes, dice: random.Random) -> bytes:
    edited = bytearray(data)
    for _ in range(dice.randint(1, 8)):
        edited[dice.randrange(len(edited))] ^= 1 << dice.randrange(8)
    return bytes(edited)


def truncate(data: bytes, dice: random.Random) -> bytes:
    return data[: dice.randrange(len(data))]


def splice(data: bytes, dice: random.Random) -> bytes:
    start, end = sorted(dice.randrange(len(data)) for _ in range(2))
    at = dice.randrange(len(data))
    return data[:at] + data[start:end] + data[at + dice.choice((0, end - start)) :]


def edit_length(data: bytes, dice: random.Random) -> bytes:
    offset, kind, body = dice.choice(split(data))
    length = dice.choice((0, 1, dice.randrange(2**32), dice.randrange(2**24), len(body) + dice.randint(-3, 3)))
    head = frame(kind, body, length=length)[:12]
    return (
        data[:offset]
        + (head if dice.random() < 0.7 else struct.pack("<II", 0, length) + head[8:])
        + data[offset + 12 :]
    )


def edit_payload(data: bytes, dice: random.Random) -> bytes:
    """Edit below the checksums, so that the decoder sees it."""
    return _with_payload(data, dice, lambda body: dice.choice((flip, truncate, splice))(body, dice))


def edit_structure(data: bytes, dice: random.Random) -> bytes:
    """Put something evil in place of a part of the description, which stays good msgpack."""

    def edited(body: bytes) -> bytes:
        (length,) = struct.unpack_from("<I", body)
        structure = msgpack.unpackb(body[4 : 4 + length])
        for _ in range(dice.randint(1, 2)):
            holder, key = dice.choice(list(_places(structure)))
            if dice.random() < 0.1:
                del holder[key]
            else:
                holder[key] = deepcopy(dice.choice(EVIL))
            if not list(_places(structure)):
                break
        return payload(msgpack.packb(structure), body[4 + length :])

    return _with_payload(data, dice, edited)


def _places(part: object) -> Iterator[tuple[dict | list, object]]:
    items = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    for key, value in items:
        yield part, key
        yield from _places(value)


def _with_payload(data: bytes, dice: random.Random, edit: Callable[[bytes], bytes]) -> bytes:
    frames = split(data)
    chosen = dice.randrange(len(frames))
    parts = [frame(kind, edit(body) if at == chosen else body) for at, (_, kind, body) in enumerate(frames)]
    return data[:12] + b"".join(parts)


def resident(field: str) -> int:
    """Return VmRSS or VmHWM (its peak) of this process in bytes."""
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{field}:")[1].split()[0]) * 1024


def forget_peak() -> int:
    Path("/proc/self/clear_refs").write_text("5")
    return resident("VmRSS")


def test_twenty_thousand_mutants(bases: list[bytes], tmp_path: Path) -> None:
    dice = random.Random(20261130)
    mutations = (flip, truncate, splice, edit_length, edit_payload, edit_payload, edit_structure, edit_structure)
    path = tmp_path / "mutant.fsk"
    before, start = forget_peak(), time.process_time()
    outcomes = {"read": 0, "error": 0, "partly": 0}
    for number in range(MUTANTS):
        mutation = mutations[number % len(mutations)]
        write_anew(path, mutation(dice.choice(bases), dice))
        try:
            good, message = consume(path)
        except Exception as error:
            raise AssertionError(f"mutant {number} ({mutation.__name__})") from error
        outcomes["read" if not message else "partly" if good else "error"] += 1
    assert min(outcomes.values()) > MUTANTS // 100, outcomes
    assert resident("VmHWM") - before < 64 * MEBIBYTE
    assert time.process_time() - start < 60


def windows_frame(layouts: object, windows: object, columns: bytes = b"", **more: object) -> bytes:
    structure = {"sequence": 0, "layouts": layouts, "windows": windows, **more}
    return frame(2, payload(msgpack.packb(structure), columns))


def window(**changes: object) -> dict[str, object]:
    good = {
        "probe": "a",
        "table": "b",
        "start_ns": 0,
        "end_ns": 1,
        "losses": {},
        "layout": 0,
        "rows": 1,
        "columns": [[]],
    }
    return {**good, **changes}


@cache
def bombs() -> dict[str, bytes]:
    zeros = zlib.compressobj(1)
    bomb = b"".join(zeros.compress(bytes(MEBIBYTE)) for _ in range(256)) + zeros.flush()
    u4 = [["a", "u4", []]]
    wide = [["a", "u1", [1 << 20]]]
    made = {
        "256 MiB of zeros": _compressed(bomb),
        "a payload at the cap": frame(2, payload(b"\xc0" * MEBIBYTE, bytes(15 * MEBIBYTE - 4))),
        "ten thousand lists in each other": frame(2, payload(b"\x91" * 10_000 + b"\xc0")),
        "thousand long lists in each other": frame(2, payload(b"\xdc\x0f\xff" * 1000)),
        "a million empty maps": frame(2, payload(b"\xdc\x00\xfa" + (b"\xdc\x0f\xff" + b"\x80" * 4095) * 250)),
        "a million empty lists": frame(2, payload(b"\xdc\x00\xfa" + (b"\xdc\x0f\xff" + b"\x90" * 4095) * 250)),
        "short strings": frame(2, payload(b"\xdc\x00\x55" + (b"\xdc\x0f\xff" + b"\xa2ab" * 4095) * 85)),
        "a list of four billion": frame(2, payload(b"\xdd\xff\xff\xff\xff")),
        "a map of four billion": frame(2, payload(b"\xdf\xff\xff\xff\xff")),
        "a string of four billion": frame(2, payload(b"\xdb\xff\xff\xff\xff")),
        "an extension": frame(2, payload(b"\xd6\xff\0\0\0\0")),
        "not text": frame(2, payload(b"\x81\xa1\xff\x01")),
        "many rows": windows_frame([u4], [window(rows=2**22)]),
        "many rows of nothing": windows_frame([[]], [window(rows=2**22 - 1, columns=[])] * 1000),
        "rows without bytes": windows_frame([wide], [window(rows=48, columns=[[0, 1, 1]])]),
        "rows without bytes, often": windows_frame([wide], [window(rows=20, columns=[[0, 1, 1]])] * 1000),
        "a sparse column over everything": windows_frame(
            [wide], [window(rows=48, columns=[[7 << 20, 1, 1]])], b"\1" * (14 << 20)
        ),
        "a dense column": windows_frame([wide], [window(rows=15)], bytes(15 << 20)),
        "distances that overflow": windows_frame([wide], [window(columns=[[3, 8, 1]])], b"\xff" * 27),
        "a distance of zero": windows_frame([wide], [window(columns=[[1, 1, 1]])], b"\0\1"),
        "a position after the end": windows_frame([[["a", "u1", [9]]]], [window(columns=[[2, 1, 1]])], b"\5\5\1\1"),
        "more values than places": windows_frame([[["a", "u1", [1]]]], [window(columns=[[2, 1, 1]])], b"\1\1\1\1"),
        "a sparse float": windows_frame([[["a", "f8", [9]]]], [window(columns=[[1, 1, 8]])], b"\1" * 9),
        "python objects": windows_frame([[["a", "O", []]]], [window()], bytes(8)),
        "python objects inside": windows_frame([[["a", [["b", "O", []]], []]]], [window()], bytes(8)),
        "two columns of a name": windows_frame(
            [[["a", "u4", []], ["a", "u4", []]]], [window(columns=[[], []])], bytes(8)
        ),
        "an unknown layout": windows_frame([], [window()]),
        "bytes of no column": windows_frame([u4], [window()], bytes(5)),
        "too few bytes": windows_frame([u4], [window()], bytes(3)),
        "many layouts": windows_frame([u4] * 1000, []),
        "deep layouts": windows_frame([[["a", [["a", [["a", [["a", [["a", "u4", []]], []]], []]], []]], []]]], []),
        "layouts that grow": windows_frame(
            [[["a", [["a", [["a", "u1", [1000]]], [1000]]], [1000]]]], [window()], bytes(9)
        ),
        "arrays of nothing": windows_frame([[["a", [["b", "S0", []]], [2**20] * 4]]], [window()]),
        "nothing of arrays": windows_frame([[["a", "u1", [0, 2**20, 2**20, 2**20]]]], [window()]),
        "forgetting, then using": windows_frame([], [window()], forget=True),
    }
    # One after the other, what is kept of the layouts must not add up.
    name = "n" * 125
    many = [[[f"{name}{number:03}", "u1", []] for number in range(250)]] * 25
    made["layouts for ever"] = b"".join(
        frame(
            2, payload(msgpack.packb({"sequence": number, "layouts": many, "windows": [], "forget": number % 5 == 0}))
        )
        for number in range(40)
    )
    return made


def _compressed(body: bytes) -> bytes:
    check = zlib.crc32(struct.pack("<IBB", len(body), 2, 1)) & 0xFFFF
    head = struct.pack("<IBBH", len(body), 2, 1, check)
    return struct.pack("<I", zlib.crc32(head + body)) + head + body


ACCEPTED = {
    "rows without bytes",
    "many rows of nothing",
    "a sparse column over everything",
    "a dense column",
    "layouts for ever",
}


@pytest.mark.parametrize("name", sorted(bombs()))
def test_bombs(name: str, bases: list[bytes], tmp_path: Path) -> None:
    bomb = bombs()[name]
    path = tmp_path / "bomb.fsk"
    path.write_bytes(bases[0][: split(bases[0])[1][0]] + bomb)
    start = time.process_time()
    tracemalloc.start()
    try:
        good, message = consume(path, check_rows=False)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert time.process_time() - start < 10
    assert peak < 72 * MEBIBYTE, peak / MEBIBYTE
    assert bool(good) == (name in ACCEPTED), message


def test_a_header_of_empty_maps(bases: list[bytes], tmp_path: Path) -> None:
    path = tmp_path / "bomb.fsk"
    for header in (
        b"\x81\xa1a" + b"\xdc\x0f\xff" + b"\x80" * 4095,
        b"\x81\xa6probes\x91\x01",
        b"\x90",
        b"\x81\x01\x01",
    ):
        path.write_bytes(bases[0][:12] + frame(1, payload(header * 1)))
        consume(path)
    path.write_bytes(bases[0][:12] + frame(1, payload(b"\xdc\x0f\xff" * 100 + b"\x80" * 900_000)))
    before = forget_peak()
    with pytest.raises(RecordingError):
        RecordingReader(path)
    assert resident("VmHWM") - before < 64 * MEBIBYTE
