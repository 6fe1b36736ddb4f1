"""What the writer does with a disk that refuses."""

from __future__ import annotations

import errno

from unit.blackbox_samples import BOOT, RecordedDisk

from tracer.blackbox.layout import Geometry, Note
from tracer.blackbox.log import Log, Position
from tracer.blackbox.queue import Message
from tracer.blackbox.writer import _append


class _Refusing(RecordedDisk):
    """Refuses writes, or syncs, as a dying disk does."""

    def __init__(self, *, writes: bool = False, syncs: bool = False) -> None:
        super().__init__()
        self.writes, self.syncs = writes, syncs

    def write(self, pieces, offset: int) -> None:
        if self.writes:
            raise OSError(errno.EIO, "Input/output error")
        super().write(pieces, offset)

    def sync(self) -> None:
        if self.syncs:
            raise OSError(errno.EIO, "Input/output error")
        super().sync()


def _log(disk: RecordedDisk) -> Log:
    geometry = Geometry.of_size(1 << 20)
    return Log(disk, geometry, b"header", run=1, boot_id=BOOT, at=Position.of(geometry))


def _batch(*numbers: int) -> list[Message]:
    return [Message(memoryview(b"frame"), Note(2, number)) for number in numbers]


def test_what_the_disk_refuses_is_lost_and_the_next_is_tried():
    disk = _Refusing()
    log = _log(disk)
    assert _append(log, _batch(0, 1)) == (2, 0)
    disk.writes = True
    assert _append(log, _batch(2, 3)) == (0, errno.EIO)
    disk.writes, disk.syncs = False, True
    # Nobody knows which of them the disk has: none counts as durable.
    assert _append(log, _batch(4)) == (0, errno.EIO)
    disk.syncs = False
    assert _append(log, _batch(5)) == (1, 0)


def test_a_place_that_was_refused_is_not_written_again():
    """What the disk has of it is unknown: the next record goes behind it."""
    disk = _Refusing()
    log = _log(disk)
    _append(log, _batch(0))
    disk.writes = True
    _append(log, _batch(1))
    disk.writes = False
    _append(log, _batch(2))
    offsets = [one[0] for one in disk.done if one]
    assert offsets[-1] - offsets[-2] == 2 * 4096
