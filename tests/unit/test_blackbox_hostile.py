"""Boxes made to harm their reader: 20,000 of them end in one clear error or in a story, never otherwise."""

from __future__ import annotations

import os
import random
import threading
import time
import zlib

import pytest
from unit.blackbox_samples import alert, box

from tracer.analysis.verdict import judge
from tracer.blackbox.box import Box, is_box
from tracer.blackbox.layout import BLOCK, HEAD_BYTES, Geometry
from tracer.commands._story import story_of
from tracer.errors import RecordingError
from tracer.recording import Kind
from tracer.recording.frames import pack_frame
from tracer.reports import json
from tracer.reports.postmortem import as_dict, render

INPUTS = 20_000


def _small(path) -> bytes:
    with box(path) as feed:
        feed.windows(0, rows=1)
        feed.alert(alert(1))
    return path.read_bytes()


def test_mutated_boxes_end_in_an_error_or_in_values(tmp_path):
    original = _small(tmp_path / "box")
    chance = random.Random(39)
    fd = os.memfd_create("mutated")
    path = f"/proc/self/fd/{fd}"
    used = [offset for offset in range(0, len(original), BLOCK) if any(original[offset : offset + BLOCK])]
    os.pwrite(fd, original, 0)
    refused = 0
    begin = time.process_time()  # this machine may be busy with other things
    try:
        for _ in range(INPUTS):
            blocks = chance.sample(used, chance.choice((1, 1, 2, 3)))
            for block in blocks:
                _mutate(fd, original, block, chance)
            if chance.random() < 0.02:
                os.ftruncate(fd, chance.randrange(used[-1], len(original)))
            refused += not _is_read(path)
            for block in blocks:
                os.pwrite(fd, original[block : block + BLOCK], block)
            os.ftruncate(fd, len(original))
    finally:
        os.close(fd)
    assert 0 < refused < INPUTS / 2  # most mutations leave a box that can be read
    assert time.process_time() - begin < 30


def _mutate(fd: int, original: bytes, block: int, chance: random.Random) -> None:
    """Change a block; half of the time with a right checksum, so that what is behind it is reached."""
    data = bytearray(original[block : block + BLOCK])
    length = int.from_bytes(data[8:12], "little") if data[:4] == b"\x89FBR" else 64
    for _ in range(chance.choice((1, 2, 8))):
        values = (0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256))
        data[chance.randrange(min(BLOCK, HEAD_BYTES + length))] = chance.choice(values)
    if chance.random() < 0.5:
        if data[:4] == b"\x89FBR":
            end = HEAD_BYTES + int.from_bytes(data[8:12], "little")
            frame = data[HEAD_BYTES:end]
            if len(frame) > 12 and end <= BLOCK:
                head = frame[4:10]
                frame[10:12] = (zlib.crc32(head) & 0xFFFF).to_bytes(2, "little")
                frame[:4] = zlib.crc32(frame[12:], zlib.crc32(frame[4:12])).to_bytes(4, "little")
                data[HEAD_BYTES:end] = frame
            data[4:8] = zlib.crc32(data[8:end]).to_bytes(4, "little")
        else:
            data[8:12] = zlib.crc32(data[12:84]).to_bytes(4, "little")
    os.pwrite(fd, data, block)


def _is_read(path: str) -> bool:
    try:
        with Box(path) as found:
            list(found.alerts())
            list(found.intervals(1 << 62))
    except RecordingError as error:
        assert error.message and "\n" not in error.message
        return False
    return True


def test_hostile_values_become_a_story_all_the_same(tmp_path):
    """Numbers out of every range, names that are terminal commands: shown escaped, on both ways out."""
    path = tmp_path / "box"
    evil = "\x1b]0;owned\x07\u202e"
    with box(path, host=evil, clock_offset_ns=1e300) as feed:
        feed.windows(0)
        feed.alert(alert(1, node=evil, summary=evil * 20, rule=evil))
        most = (1 << 64) - 1
        feed.append(pack_frame(Kind.END, {"reason": evil}), Kind.END, most, most)
    for last_ns in (0, 1, 1 << 62):
        story, _ = story_of(str(path), last_ns)
        verdict = judge(story.summary)
        text = "\n".join(render(story, verdict)) + json.dumps(as_dict(story, verdict))
        assert "\x1b" not in text and "\u202e" not in text and "\\x1b" in text


@pytest.mark.parametrize("payload", [{}, {"id": 1}, {"id": "x" * 5000}, {"alert": []}])
def test_alerts_that_are_none_are_left_out(tmp_path, payload):
    path = tmp_path / "box"
    with box(path) as feed:
        feed.append(pack_frame(Kind.ALERT, payload), Kind.ALERT, 1, 1)
        feed.alert(alert(3))
    with Box(path) as found:
        assert len(list(found.alerts())) == 1


def test_memory_and_time_stay_bounded_with_a_thousand_alerts(tmp_path):
    path = tmp_path / "box"
    with box(path, Geometry.of_size(16 << 20)) as feed:
        for number in range(1500):
            feed.alert(alert(number + 1.0, began_s=number))
    story, _ = story_of(str(path), 1)
    assert len(story.signs) == 400 and story.unkept == 1100
    assert story.signs[0].first.at_ns == 10**9 and story.signs[-1].first.at_ns == 1500 * 10**9
    assert len(render(story, judge(story.summary))) < 200


def test_a_frame_of_another_kind_than_its_head_says_is_no_alert(tmp_path):
    with box(tmp_path / "other") as feed:
        feed.append(pack_frame(Kind.END, {"reason": "x"}), Kind.ALERT, 1, 1)
    with Box(tmp_path / "other") as found:
        assert list(found.alerts()) == [] and found.goodbye is None


def test_who_waits_to_write_to_a_pipe_goes_on_waiting(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(b"a recording",), daemon=True)
    writer.start()
    time.sleep(0.05)
    for _ in range(20):
        assert not is_box(path)
        time.sleep(0.01)
    assert writer.is_alive()
    assert path.read_bytes() == b"a recording"
