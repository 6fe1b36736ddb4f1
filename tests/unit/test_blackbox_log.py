"""The box on disk: whatever ends it, all that was durable is read back, and nothing else."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest
from unit.blackbox_samples import BOOT, SMALL, RecordedDisk, box, header, sample_box, windows_frame

from tracer.blackbox.box import Box
from tracer.blackbox.layout import BLOCK, HEAD_BYTES, LEAST_SIZE, MOST_SIZE, Geometry, Note, SegmentHead, pack_record
from tracer.blackbox.log import Log, Position
from tracer.blackbox.scan import Scan
from tracer.errors import OutputError, RecordingError
from tracer.recording import FrameEncoder, Kind

HEADER = FrameEncoder().header(header())
SECTOR = 512


def _read(fd: int) -> list[tuple[int, int, bytes]]:
    """Return (serial, sequence, frame) of every record that can be read."""
    scan = Scan.of(fd)
    if scan is None:
        return []
    return [(one.head.serial, one.head.sequence, one.frame) for seg in scan.segments for one in scan.records(fd, seg)]


@pytest.fixture
def image() -> Iterator[int]:
    fd = os.memfd_create("box")
    yield fd
    os.close(fd)


def test_what_was_written_is_read_back_in_order_lap_after_lap(image: int):
    os.ftruncate(image, SMALL.size_bytes)
    disk = RecordedDisk()
    log = Log(disk, SMALL, HEADER, run=1, boot_id=BOOT, at=Position.of(SMALL))
    for number in range(40):
        log.append(b"frame %d" % number, Note(Kind.WINDOWS, number))
    _apply(image, disk.done)
    read = _read(image)
    sequences = [sequence for _, sequence, frame in read if frame != HEADER]
    assert sequences == list(range(sequences[0], sequences[-1] + 1))
    assert read[-1][2] == b"frame 39" and len({serial for serial, _, _ in read}) == SMALL.segments
    # Every segment can be read alone: it begins with the header.
    assert all(next(frame for one, _, frame in read if one == serial) == HEADER for serial, _, _ in read)


def test_blocks_made_durable_are_not_written_again_in_the_same_turn():
    disk = RecordedDisk()
    log = Log(disk, SMALL, HEADER, run=1, boot_id=BOOT, at=Position.of(SMALL))
    for number in range(3):
        log.append(b"x" * (number * 100), Note(Kind.WINDOWS, number))
        log.sync()
    writes = [one for one in disk.done if one]
    assert all(offset % BLOCK == 0 and len(data) % BLOCK == 0 for offset, data in writes)
    written = [offset + part for offset, data in writes for part in range(0, len(data), BLOCK)]
    assert len(written) == len(set(written))


@pytest.mark.parametrize("seed", range(12))
def test_power_cut_at_any_moment(image: int, seed: int):
    """Replay the writes up to the last sync, and of those after it any sectors in any order: the disk's cache."""
    chance = random.Random(seed)
    disk, ends = RecordedDisk(), []
    log = Log(disk, SMALL, HEADER, run=1, boot_id=BOOT, at=Position.of(SMALL))
    frames: list[bytes] = []
    for number in range(60):
        frames.append(b"%d " % number + chance.randbytes(chance.choice((0, 50, 3000, 7000))))
        log.append(frames[-1], Note(Kind.WINDOWS, number))
        ends.append(len(disk.done))
        if chance.random() < 0.7:
            log.sync()
    for cut in range(1, len(disk.done) + 1):
        synced = max((at for at, done in enumerate(disk.done[:cut], 1) if done is None), default=0)
        image_bytes = bytearray(SMALL.size_bytes)
        _replay(image_bytes, disk.done[:synced])
        expected = _parsed(image, image_bytes)
        begun = _begun(disk.done[synced:cut])
        for offset, data in filter(None, disk.done[synced:cut]):
            for part in range(0, len(data), SECTOR):
                # Not yet written, written, or torn in the middle of a sector.
                sector = chance.choice((None, data[part : part + SECTOR], chance.randbytes(SECTOR)))
                if sector is not None:
                    image_bytes[offset + part : offset + part + SECTOR] = sector
        after = _parsed(image, image_bytes)
        kept = [one for one in expected if (one[0] // 2 - 1) % SMALL.segments not in begun]
        assert [one for one in after if one in kept] == kept
        assert {frame for _, _, frame in after} <= {HEADER, *frames}
        sequences = [sequence for _, sequence, frame in after if frame != HEADER]
        assert sequences == sorted(set(sequences))
        # Everything up to the last sync that no later turn has taken is there.
        last = sum(end <= synced for end in ends)
        if last:
            assert frames[last - 1] in {frame for _, _, frame in after}


def test_truncated_at_every_byte(image: int):
    disk = RecordedDisk()
    log = Log(disk, SMALL, HEADER, run=1, boot_id=BOOT, at=Position.of(SMALL))
    for number in range(8):
        log.append(bytes([number + 1]) * 100, Note(Kind.WINDOWS, number))
    data = bytearray(SMALL.size_bytes)
    _replay(data, disk.done)
    os.pwrite(image, data, 0)
    places = _places(image)
    assert len(places) == 12
    # Every byte that holds something, and every end of a block.
    for size in (
        size for size in range(SMALL.size_bytes, -1, -1) if any(data[size - 1 : size + 1]) or not size % BLOCK
    ):
        os.ftruncate(image, size)
        whole = [one for end, one in places if end <= size]
        assert len(_read(image)) == len(whole), size


def test_every_flipped_bit_costs_one_record_at_most_or_its_segment(image: int):
    disk = RecordedDisk()
    log = Log(disk, SMALL, HEADER, run=1, boot_id=BOOT, at=Position.of(SMALL))
    for number in range(8):
        log.append(bytes([number]) * 100, Note(Kind.WINDOWS, number))
    data = bytearray(SMALL.size_bytes)
    _replay(data, disk.done)
    os.pwrite(image, data, 0)
    whole = _read(image)
    in_segment = max(sum(1 for one in whole if one[0] == serial) for serial, _, _ in whole)
    chance = random.Random(1)
    places = [offset for offset, byte in enumerate(data) if byte]
    for place in places[:: max(1, len(places) // 1500)]:
        os.pwrite(image, bytes([data[place] ^ 1 << chance.randrange(8)]), place)
        left = _read(image)
        os.pwrite(image, data[place : place + 1], place)
        assert set(left) <= set(whole)
        in_head = place % SMALL.segment_bytes < BLOCK
        assert len(whole) - len(left) <= (in_segment if in_head else 1), place


def test_what_is_left_of_an_earlier_turn_is_not_taken_for_this_one(image: int):
    """Equal records on equal places: only the serial tells them apart."""
    os.ftruncate(image, SMALL.size_bytes)
    disk = RecordedDisk()
    log = Log(disk, SMALL, HEADER, run=1, boot_id=BOOT, at=Position.of(SMALL))
    per_segment = SMALL.segment_bytes // BLOCK - 2
    for number in range(per_segment * SMALL.segments + 1):
        log.append(b"same", Note(Kind.WINDOWS, number))
    _apply(image, disk.done)
    read = _read(image)
    latest = [one for one in read if one[0] == max(serial for serial, _, _ in read)]
    assert len(latest) == 2  # its header and one record; the others are of the turn before


def test_a_frame_larger_than_a_segment_is_refused_and_leaves_a_gap(tmp_path):
    with box(tmp_path / "box") as feed:
        feed.windows(0)
        with pytest.raises(OSError, match="larger than a segment"):
            feed.append(bytes(SMALL.segment_bytes), Kind.WINDOWS, 1, 1)
        feed.append(bytes(feed.log.largest_frame), Kind.WINDOWS, 1, 1)
    with Box(tmp_path / "box") as found:
        assert found.missing.lost == 1


@pytest.mark.parametrize("size", [LEAST_SIZE - 1, MOST_SIZE + 1])
def test_sizes_out_of_range_are_one_clear_error(size: int):
    with pytest.raises(OutputError, match="64 KiB to 1 GiB"):
        Geometry.of_size(size)


def test_a_box_is_never_larger_than_asked_for():
    for size in (LEAST_SIZE, 100_000, 1 << 20, (64 << 20) + 1, MOST_SIZE):
        geometry = Geometry.of_size(size)
        assert size * 0.7 < geometry.size_bytes <= size and geometry.segment_bytes % BLOCK == 0


@pytest.mark.parametrize(
    "content",
    [b"", bytes(1 << 16), b"x" * (1 << 16), b"\x89FBX\r\n\x1a\n", SegmentHead(SMALL, 0, 0, 1, BOOT).pack()],
    ids=["empty", "all-zero", "wrong format", "cut off", "created, never begun"],
)
def test_what_is_no_box_is_one_clear_error(tmp_path, content: bytes):
    path = tmp_path / "box"
    path.write_bytes(content)
    with pytest.raises(RecordingError) as error:
        Box(path)
    assert "\n" not in error.value.message and error.value.hint


def test_made_up_heads_do_not_cost_more_than_their_segment(tmp_path):
    """Every block claims to be a large record: checksums of all of them would take minutes."""
    geometry = Geometry.of_size(64 << 20)
    head, _, _ = pack_record(Note(2), 1, b"")
    lying = head[:8] + (3 << 20).to_bytes(4, "little") + head[12:]
    with open(tmp_path / "box", "wb") as file:
        file.truncate(geometry.size_bytes)
        file.write(SegmentHead(geometry, 0, 1, 1, BOOT).pack())
        for offset in range(BLOCK, geometry.segment_bytes, BLOCK):
            file.seek(offset)
            file.write(lying)
    fd = os.open(tmp_path / "box", os.O_RDONLY)
    try:
        scan = Scan.of(fd)
        assert scan is not None
        assert list(scan.records(fd, scan.segments[0])) == []
        assert scan.segments[0].torn < 10
    finally:
        os.close(fd)


def test_a_damaged_record_is_told_from_a_torn_one(tmp_path):
    path = sample_box(tmp_path / "box")
    with Box(path) as found:
        assert found.missing.torn == found.missing.damaged == 0
        heads = [one.head for one in found.records()]
    data = bytearray(path.read_bytes())
    places = [at for at in range(BLOCK, len(data), BLOCK) if data[at : at + 4] == b"\x89FBR"]
    assert len(places) == len(heads)
    data[places[3] + 60] ^= 1
    path.write_bytes(data)
    with Box(path) as found:
        assert (found.missing.damaged, found.missing.torn, found.missing.lost) == (1, 0, 0)
    data[places[3] + 60] ^= 1
    data[places[-1] + 60] ^= 1
    path.write_bytes(data)
    with Box(path) as found:
        assert (found.missing.damaged, found.missing.torn) == (0, 1)


def test_windows_frames_need_no_other_frame():
    """Else a damaged record would take those after it with it."""
    assert windows_frame(3) == windows_frame(3)


def _replay(image: bytearray, done) -> None:
    for offset, data in filter(None, done):
        image[offset : offset + len(data)] = data


def _apply(fd: int, done) -> None:
    for offset, data in filter(None, done):
        os.pwrite(fd, data, offset)


def _parsed(fd: int, image: bytearray) -> list[tuple[int, int, bytes]]:
    os.pwrite(fd, image, 0)
    return _read(fd)


def _begun(done) -> set[int]:
    """Places of segments whose turn has begun in these writes."""
    return {offset // SMALL.segment_bytes for offset, _ in filter(None, done) if offset % SMALL.segment_bytes == 0}


def _places(fd: int) -> list[tuple[int, int]]:
    """Return where each record's last byte is, and its sequence."""
    scan = Scan.of(fd)
    assert scan is not None
    found = []
    for segment in scan.segments:
        offset = segment.head.number * SMALL.segment_bytes + BLOCK
        for one in scan.records(fd, segment):
            found.append((offset + HEAD_BYTES + one.head.length, one.head.sequence))
            offset += one.head.blocks * BLOCK
    return found
