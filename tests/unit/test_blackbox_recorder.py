"""The recorder and its writer: nothing waits, nothing durable is lost, nobody else's file is touched."""

from __future__ import annotations

import fcntl
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from unit.blackbox_samples import BOOT, alert, header, sample_box
from unit.recording_samples import assert_same, interval

from tracer.blackbox import Recorder
from tracer.blackbox.box import Box, Missing
from tracer.blackbox.kept import kept_boxes
from tracer.blackbox.layout import Note
from tracer.blackbox.queue import CAPACITY, RESERVE, Receiver, Sender
from tracer.errors import OutputError
from tracer.recording import Kind

SIZE = 1 << 20


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a busy machine's writers more time for their goodbye than a node's end has."""
    monkeypatch.setattr("tracer.blackbox.recorder._CLOSE_SECONDS", 60.0)


def _wait(condition, seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not come to that"
        time.sleep(0.005)


def _durable(recorder: Recorder, number: int) -> None:
    _wait(lambda: recorder.status()[0].durable >= number)


def test_windows_and_alerts_are_read_back(tmp_path: Path):
    recorder = Recorder(str(tmp_path / "box"), SIZE, header())
    for second in range(3):
        recorder.windows(interval(second))
    recorder.alert(alert(3))
    recorder.close("asked to")
    with Box(tmp_path / "box") as box:
        for read, written in zip(box.intervals(1 << 62), (interval(second) for second in range(3)), strict=True):
            assert_same(read, written)
        assert list(box.alerts()) == [alert(3)]
        assert (box.goodbye, box.starts, box.boot_id, box.live) == ("asked to", 1, BOOT, False)
        assert box.header["host"] == "cu39" and not any(vars(box.missing).values())
        assert abs(box.last.unix_ns - time.time_ns()) < 60e9
    assert oct((tmp_path / "box").stat().st_mode) == "0o100600"


def test_it_is_whole_on_disk_from_the_start(tmp_path: Path):
    """No later write may need an allocation: a full disk can stop the start only."""
    recorder = Recorder(str(tmp_path / "box"), SIZE, header())
    before = (tmp_path / "box").stat()
    assert before.st_size == SIZE and before.st_blocks * 512 >= SIZE
    for second in range(300):
        recorder.windows(interval(second))
    recorder.close()
    after = (tmp_path / "box").stat()
    assert (after.st_size, after.st_blocks) == (before.st_size, before.st_blocks)


def test_a_live_box_is_read_while_it_is_written(tmp_path: Path):
    recorder = Recorder(str(tmp_path / "box"), SIZE, header())
    try:
        for second in range(200):
            recorder.windows(interval(second))
            if second % 10 == 0:
                _durable(recorder, second + 1)
                with Box(tmp_path / "box") as box:
                    assert box.live and box.goodbye is None
                    sequences = [one.head.sequence for one in box.records() if one.head.kind != Kind.HEADER]
                    assert sequences == sorted(set(sequences))
                    assert (box.missing.torn, box.missing.damaged) == (0, 0)
    finally:
        recorder.close()


def test_a_second_agent_is_refused_with_one_line(tmp_path: Path):
    recorder = Recorder(str(tmp_path / "box"), SIZE, header())
    with pytest.raises(OutputError, match="another agent is writing it") as error:
        Recorder(str(tmp_path / "box"), SIZE, header())
    recorder.close()
    assert error.value.hint and "\n" not in error.value.message
    Recorder(str(tmp_path / "box"), SIZE, header()).close()


def test_it_goes_on_after_a_goodbye_of_the_same_boot(tmp_path: Path):
    for start in range(3):
        recorder = Recorder(str(tmp_path / "box"), SIZE, header(run=start))
        recorder.windows(interval(start))
        recorder.close()
    with Box(tmp_path / "box") as box:
        assert box.starts == 3 and len(list(box.intervals(1 << 62))) == 3 and box.missing.lost == 0
    assert kept_boxes(str(tmp_path / "box")) == []


def test_the_previous_boot_and_a_crashed_agent_are_kept_aside(tmp_path: Path):
    path = str(sample_box(tmp_path / "box", boot_id="0" * 36))
    os.utime(path, (0, 0))
    for boot in range(1, 7):
        recorder = Recorder(path, SIZE, header(boot_id=f"{boot}" * 36))
        assert any("kept as" in note for note in recorder.notes)
        recorder.close()
        os.utime(path, (boot * 1000, boot * 1000))
    kept = [Path(one).name for one in kept_boxes(path)]
    assert kept == [
        "box.33333333-19700101T005000Z",
        "box.44444444-19700101T010640Z",
        "box.55555555-19700101T012320Z",
    ]


def test_a_crash_loop_does_not_push_out_the_boxes_of_earlier_boots(tmp_path: Path):
    path = str(sample_box(tmp_path / "box", boot_id="0" * 36))
    for crash in range(5):
        recorder = Recorder(path, SIZE, header())
        recorder.windows(interval(0))
        recorder.close()
        _forget_goodbye(Path(path))
        os.utime(path, (crash * 1000, crash * 1000))
    boots = [Path(one).name.split(".")[1][:8] for one in kept_boxes(path)]
    assert sorted(boots) == ["00000000", BOOT[:8]]


def _forget_goodbye(path: Path) -> None:
    """Damage the last record, as if the agent had been killed before it."""
    data = bytearray(path.read_bytes())
    last = max(at for at in range(0, len(data), 4096) if data[at : at + 4] == b"\x89FBR")
    data[last : last + 4] = bytes(4)
    path.write_bytes(data)


def test_another_size_makes_a_new_box_and_keeps_the_old_one(tmp_path: Path):
    sample_box(tmp_path / "box", goodbye=True)
    Recorder(str(tmp_path / "box"), 2 * SIZE, header()).close()
    assert (tmp_path / "box").stat().st_size == 2 * SIZE and len(kept_boxes(str(tmp_path / "box"))) == 1


def test_a_box_that_was_cut_off_while_it_was_made_is_made_again(tmp_path: Path):
    for content in (b"", bytes(4096)):
        (tmp_path / "box").write_bytes(content)
        Recorder(str(tmp_path / "box"), SIZE, header()).close()
        assert (tmp_path / "box").stat().st_size == SIZE and kept_boxes(str(tmp_path / "box")) == []
        (tmp_path / "box").unlink()


@pytest.mark.parametrize("kind", ["text", "link", "dangling link", "hard link", "folder", "fifo", "no folder"])
def test_what_is_no_box_is_not_touched(tmp_path: Path, kind: str):
    path, other = tmp_path / "box", tmp_path / "other"
    if kind != "dangling link":
        other.write_text("precious " * 1000)
    match kind:
        case "text":
            other.rename(path)
            other = path
        case "link" | "dangling link":
            path.symlink_to(other)
        case "hard link":
            sample_box(path)
            other.unlink()
            os.link(path, other)
        case "folder":
            path.mkdir()
        case "fifo":
            os.mkfifo(path)
        case "no folder":
            path = tmp_path / "none" / "box"
    before = other.read_bytes() if other.exists() else None
    with pytest.raises(OutputError) as error:
        Recorder(str(path), SIZE, header())
    assert error.value.hint and "\n" not in error.value.message
    assert (other.read_bytes() if other.exists() else None) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="not root")
def test_a_file_of_another_owner_is_not_touched(tmp_path: Path):
    path = sample_box(tmp_path / "box", goodbye=True)
    os.chown(path, 65534, 65534)
    before = path.read_bytes()
    with pytest.raises(OutputError, match="no plain file of this user"):
        Recorder(str(path), SIZE, header())
    assert path.read_bytes() == before


def test_a_mirror_holds_the_same_and_its_failure_is_a_note(tmp_path: Path):
    recorder = Recorder(str(tmp_path / "box"), SIZE, header(), mirror=str(tmp_path / "mirror"))
    recorder.alert(alert(3))
    recorder.close()
    for name in ("box", "mirror"):
        with Box(tmp_path / name) as box:
            assert list(box.alerts()) == [alert(3)]
    recorder = Recorder(str(tmp_path / "box"), SIZE, header(), mirror=str(tmp_path / "none" / "mirror"))
    recorder.close()
    assert any("no mirror" in note for note in recorder.notes) and len(recorder.status()) == 1


def test_a_box_too_small_for_the_header_is_one_clear_error(tmp_path: Path):
    with pytest.raises(OutputError, match="too few") as error:
        Recorder(str(tmp_path / "box"), 64 << 10, much := header(much=os.urandom(20_000).hex()))
    assert "--blackbox-size" in error.value.hint and not (tmp_path / "box").exists()
    enough = int(re.search(r"(\d+)KiB", error.value.hint)[1]) << 10
    Recorder(str(tmp_path / "box"), enough, much).close()
    with pytest.raises(OutputError):
        Recorder(str(tmp_path / "half"), enough // 2, much)


def test_begins_again_says_that_dictionaries_are_to_be_told_again(tmp_path: Path):
    recorder = Recorder(str(tmp_path / "box"), SIZE, header())
    try:
        said = 0
        for second in range(40):
            recorder.windows(interval(second))
            _durable(recorder, second + 1)
            said += recorder.begins_again()
        with Box(tmp_path / "box") as box:
            assert said == len({found.head.serial for found in box.records()}) > 2
        assert not recorder.begins_again()
    finally:
        recorder.close()


def test_killing_the_writer_loses_nothing_durable_and_another_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tracer.blackbox.lane._AGAIN_NS", 0)
    recorder = Recorder(str(tmp_path / "box"), 8 * SIZE, header())
    chance = random.Random(1)
    sent, kills = 0, 12  # each writer begins a segment, of which the first hand has fourteen
    try:
        for _ in range(kills):
            for _ in range(chance.randrange(1, 6)):
                recorder.windows(interval(sent % 50, rows=1))
                sent += 1
            time.sleep(chance.random() * 0.01)
            process = recorder._lanes[0]._process
            assert process is not None
            process.kill()
            process.wait()

        def caught_up() -> bool:
            recorder.windows(interval(0, rows=1))  # which starts the writer again, if need be
            time.sleep(0.1)
            return bool(recorder.status()[0].behind == 0)

        _wait(caught_up)
    finally:
        recorder.close()
    durable = recorder.status()[0].durable
    with Box(tmp_path / "box") as box:
        assert box.starts == 1 and box.missing.damaged == 0 and box.goodbye == "stopped"
        sequences = [one.head.sequence for one in box.records() if one.head.kind != Kind.HEADER]
        assert sequences == sorted(set(sequences))
        # More may be on disk than the writers had time to say.
        assert len(sequences) >= durable > 0
    assert kept_boxes(str(tmp_path / "box")) == []


_CALLER = """
import os, sys
sys.path.insert(0, sys.argv[2])
from unit.blackbox_samples import alert, header
from unit.recording_samples import interval
from tracer.blackbox import Recorder
recorder = Recorder(sys.argv[1], 1 << 20, header())
number = 0
while True:
    recorder.windows(interval(number % 50, rows=1))
    recorder.alert(alert(number + 1.0, began_s=number))
    # What was handed over at all reaches the disk: the writer outlives its caller.
    os.write(1, b"%d\\n" % number)
    number += 1
"""


def test_killing_the_caller_at_any_moment_loses_nothing_that_was_handed_over(tmp_path: Path, checkout: Path):
    chance = random.Random(2)
    for moment in range(8):
        path = tmp_path / f"box{moment}"
        process = subprocess.Popen(
            [sys.executable, "-c", _CALLER, str(path), str(checkout / "tests")],
            stdout=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(chance.random() * 0.15)
        process.kill()
        said = int((b"0\n" + process.stdout.read()).splitlines()[-1])
        process.stdout.close()
        process.wait()
        _wait(lambda path=path: not _locked(path))
        with Box(path) as box:
            assert box.goodbye is None and not box.missing.damaged
            dropped = box.last.dropped
            numbers = [int(one.at_ns // 10**9) - 1 for one in box.alerts()]
            assert numbers[-1] >= said or dropped


def _locked(path: Path) -> bool:
    with open(path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_the_writer_ignores_what_ends_its_caller(tmp_path: Path):
    recorder = Recorder(str(tmp_path / "box"), SIZE, header())
    process = recorder._lanes[0]._process
    assert process is not None
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        process.send_signal(number)
    recorder.alert(alert(1))
    _durable(recorder, 1)
    recorder.close()
    assert process.returncode == 0


def test_the_writer_has_nothing_of_its_caller(tmp_path: Path):
    """A writer that hangs must not hold programs, maps or sockets of an agent that is gone."""
    with open(tmp_path / "held", "w") as held:
        os.set_inheritable(held.fileno(), True)
        recorder = Recorder(str(tmp_path / "box"), SIZE, header())
        process = recorder._lanes[0]._process
        assert process is not None
        recorder.alert(alert(1))
        _durable(recorder, 1)
        files = [os.readlink(one) for one in Path(f"/proc/{process.pid}/fd").iterdir()]
        recorder.close()
    assert str(tmp_path / "held") not in files and len(files) <= 7


def _hands(recorder: Recorder) -> list[int]:
    """Return the process ids of the first path's writer and, where there is more than one CPU, of its second hand."""
    _wait(lambda: len(_present(recorder)) > 1 or len(os.sched_getaffinity(0)) == 1)
    return _present(recorder)


def _present(recorder: Recorder) -> list[int]:
    process = recorder._lanes[0]._process
    assert process is not None
    try:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    except OSError:
        return []  # it is gone
    return [process.pid, *map(int, children.split())]


several = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="a second hand needs a second CPU")


@several
def test_the_hands_are_on_different_cpus(tmp_path: Path):
    recorder = Recorder(str(tmp_path / "box"), SIZE, header())
    first, second = _hands(recorder)
    _wait(lambda: not os.sched_getaffinity(first) & os.sched_getaffinity(second))
    assert os.sched_getaffinity(first) | os.sched_getaffinity(second) == os.sched_getaffinity(0)
    recorder.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="not root")
def test_both_hands_are_locked_in_memory_and_shown_as_foreshock(tmp_path: Path):
    recorder = Recorder(str(tmp_path / "box"), SIZE, header())
    for hand in _hands(recorder):
        status = Path(f"/proc/{hand}/status")
        _wait(lambda status=status: re.search(r"VmLck:\s+[1-9]", status.read_text()) is not None)
        assert status.read_text().startswith("Name:\tforeshock\n")
        assert int(re.search(r"VmRSS:\s+(\d+)", status.read_text())[1]) < 32_000
    recorder.close()


@several
@pytest.mark.parametrize("stopped", [0, 1])
def test_one_hand_is_enough_whichever_stands_still(tmp_path: Path, stopped: int):
    """A stopped process stands for one whose CPU is stuck."""
    recorder = Recorder(str(tmp_path / "box"), 8 * SIZE, header())
    hands = _hands(recorder)
    recorder.alert(alert(1))
    _durable(recorder, 1)
    os.kill(hands[stopped], signal.SIGSTOP)
    try:
        for second in range(2, 30):
            recorder.alert(alert(second))
            recorder.windows(interval(second, rows=1))
            if second == 2:
                began = time.monotonic()
                _durable(recorder, 3)
                assert time.monotonic() - began < 1
        _durable(recorder, 57)
        with Box(tmp_path / "box") as box:
            assert [one.at_ns // 10**9 for one in box.alerts()] == list(range(1, 30))
    finally:
        os.kill(hands[stopped], signal.SIGCONT)
    for second in range(30, 40):
        recorder.alert(alert(second))
    recorder.close()
    with Box(tmp_path / "box") as box:
        sequences = [one.head.sequence for one in box.records() if one.head.kind != Kind.HEADER]
        assert sequences == list(range(68)) and not any(vars(box.missing).values()) and box.goodbye == "stopped"


@several
def test_what_has_been_written_over_is_not_missing_nor_told_in_part(tmp_path: Path):
    """The second hand, which is rarely needed, keeps its records for longer than the first."""
    recorder = Recorder(str(tmp_path / "box"), SIZE, header())
    first, second = _hands(recorder)
    os.kill(first, signal.SIGSTOP)
    recorder.alert(alert(1))
    _durable(recorder, 1)
    os.kill(first, signal.SIGCONT)
    os.kill(second, signal.SIGSTOP)
    for number in range(2, 400):
        recorder.windows(interval(number, rows=1))
        _durable(recorder, number)
    os.kill(second, signal.SIGCONT)
    recorder.close()
    with Box(tmp_path / "box") as box:
        assert box.missing == Missing() and box.goodbye == "stopped"
        assert not list(box.alerts()) and 0 < len(list(box.intervals(1 << 62))) < 300


@several
def test_killing_both_hands_or_one_is_noticed_and_two_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tracer.blackbox.lane._AGAIN_NS", 0)
    recorder = Recorder(str(tmp_path / "box"), SIZE, header())
    for died, victims in enumerate(((1,), (0, 1), (0,)), 1):
        hands = _hands(recorder)
        for victim in victims:
            os.kill(hands[victim], signal.SIGKILL)
        durable = recorder.status()[0].durable

        def go_on(hands=hands, durable=durable) -> bool:
            # The first that are started may find the box still held by a hand that has not ended yet.
            recorder.alert(alert(1))
            now = _present(recorder)
            return len(now) == 2 and not {*hands} & {*now} and recorder.status()[0].durable > durable

        _wait(go_on)
        assert recorder.status()[0].died >= died
    recorder.close()
    with Box(tmp_path / "box") as box:
        assert box.goodbye == "stopped" and box.starts == 1


def test_frames_that_find_no_room_are_dropped_and_counted_and_alerts_still_fit(tmp_path: Path):
    recorder = Recorder(str(tmp_path / "box"), SIZE, header())
    hands = _hands(recorder)
    for hand in hands:
        os.kill(hand, signal.SIGSTOP)
    try:
        frame = os.urandom(200_000)
        for _ in range(60):
            recorder._send(frame, Kind.WINDOWS, urgent=False)
        dropped = recorder.status()[0].dropped
        assert dropped >= 60 - CAPACITY // 200_000
        recorder.alert(alert(5))
        assert recorder.status()[0].dropped == dropped
    finally:
        for hand in hands:
            os.kill(hand, signal.SIGCONT)
    _wait(lambda: recorder.status()[0].behind == 0)
    recorder.alert(alert(6))
    recorder.close()
    with Box(tmp_path / "box") as box:
        assert [one.at_ns for one in box.alerts()] == [5 * 10**9, 6 * 10**9]
        assert box.missing.dropped == dropped


def test_an_interval_too_large_for_a_segment_is_lost_and_said(tmp_path: Path):
    recorder = Recorder(str(tmp_path / "box"), SIZE, header())
    recorder._send(os.urandom(SIZE // 16), Kind.WINDOWS, urgent=False)
    _wait(lambda: recorder.status()[0].lost == 1)
    assert recorder.status()[0].error == "file too large"
    recorder.close()


def test_what_no_recording_can_hold_is_dropped_and_counted(tmp_path: Path):
    recorder = Recorder(str(tmp_path / "box"), SIZE, header())
    recorder.alert(alert(1, summary="x" * (2 << 20)))
    recorder.windows(interval(0) * 600)
    recorder.alert(alert(2))
    recorder.close()
    with Box(tmp_path / "box") as box:
        assert box.missing.dropped == 2 and [one.at_ns for one in box.alerts()] == [2 * 10**9]


def test_the_queue_keeps_its_messages_whole_through_many_laps():
    sender = Sender(b"header")
    receivers = [Receiver(sender.memory_fd, os.dup(sender.wake_fd)) for _ in range(2)]
    assert all(one.header == b"header" for one in receivers)
    chance, waiting, refused = random.Random(3), [], 0
    hands = [one.batches() for one in receivers]
    for number in range(3000):
        frame = chance.randbytes(chance.choice((1, 100, 50_000, 700_000)))
        if sender.send(frame, Note(2, number), urgent=chance.random() < 0.1):
            waiting.append((number, frame))
        else:
            refused += 1
        if chance.random() < 0.08 and waiting:
            for message in next(chance.choice(hands)):
                assert (message.note.sequence, bytes(message.frame)) == waiting.pop(0)
    assert refused > 100 and RESERVE < CAPACITY
    sender.finish()
    for batch in (batch for hand in hands for batch in hand):
        for message in batch:
            assert (message.note.sequence, bytes(message.frame)) == waiting.pop(0)
    assert not waiting
