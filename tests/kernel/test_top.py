"""``foreshock top`` on a real terminal: what it shows, that it can be left, and that it leaves everything as it was."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from kernel.command import FORESHOCK, assert_fails, foreshock
from kernel.screen import Screen
from kernel.workload import HOG, SPIN, Task
from unit.synthetic import HEADER, Node, hog_interval

from tracer.kernel import cpus
from tracer.recording import RecordingWriter

LIVE = (*FORESHOCK, "top", "--interval", "200ms", "--probes", "runqueue,softirq")
INTERVALS = 135  # more than a replay holds

pytestmark = [
    pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux"),
    pytest.mark.usefixtures("nothing_left"),
]

Show = Callable[..., Screen]


@pytest.fixture
def show(socket_folder: Path) -> Show:
    return lambda *command, **options: Screen(socket_folder, command, **options)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("top") / "node.fsk"
    node = Node(cpus=4)
    with RecordingWriter(path, HEADER) as writer:
        for _ in range(INTERVALS):
            writer.write(hog_interval(node))
    return str(path)


def test_live_it_fits_its_screen_follows_keys_and_leaves_no_trace(show: Show) -> None:
    with show(*LIVE) as screen:
        lines = screen.shows("every 200 ms")
        assert lines[0].startswith("foreshock top") and len(lines) == 24
        assert "q quit" in lines[-1] and "live" in lines[-1]
        # The footer takes as many lines as it needs.
        footer = " ".join(lines[-4:-1])
        assert "lost" in footer and "cost" in footer
        shown = {line.strip("! ").split()[0] for line in lines if "%" in line}
        assert {str(cpu) for cpu in cpus.online()[:2]} <= shown
        screen.press("s")
        screen.shows("by softirq")
        screen.press("Space")
        screen.shows("PAUSED")
        screen.press("Space")
        screen.resize(120, 40)
        lines = screen.until(lambda lines: len(lines) == 40 and "q quit" in lines[-1], "all 40 lines")
        assert lines[0].startswith("foreshock top")
        screen.resize(40, 10)
        lines = screen.until(lambda lines: len(lines) == 10 and "live" in lines[-1], "all 10 lines")
        assert lines[0].startswith("foreshock top") and max(map(len, lines)) <= 40
        screen.resize(80, 24)
        screen.shows("q quit")
        screen.press("q")
        screen.ended(0)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_however_it_is_ended_the_terminal_is_given_back(show: Show, number: int, code: int) -> None:
    with show(*FORESHOCK, "top", "--probes", "netdev") as screen:
        screen.shows("q quit")
        screen.kill(number)
        screen.ended(code)


def test_stopped_and_continued_it_draws_again(show: Show) -> None:
    with show(*FORESHOCK, "top", "--probes", "netdev") as screen:
        screen.shows("q quit")
        screen.kill(signal.SIGTSTP)
        screen.until(lambda lines: lines[0] == "BEFORE" and not any("q quit" in line for line in lines), "the shell")
        screen.kill(signal.SIGCONT)
        screen.shows("q quit")
        screen.press("q")
        screen.ended(0)


def test_a_recording_is_stepped_through(show: Show, recording: str) -> None:
    with show(*FORESHOCK, "top", recording) as screen:
        screen.shows("PAUSED")
        screen.shows("gpu-0417")
        steps = [
            ("Right", 2), ("Right", 3), ("Left", 2), ("Left", 1), ("Left", 1), ("Down", 11), ("PPage", 1),
            ("NPage", 61), ("Up", 51), ("End", INTERVALS), ("Right", INTERVALS), ("Home", 1), ("End", INTERVALS),
            ("Up", INTERVALS - 10), ("PPage", INTERVALS - 70), ("PPage", INTERVALS - 130), ("Home", 1),
        ]  # fmt: skip
        for key, position in steps:
            screen.press(key)
            assert moment(position) in screen.shows(f"PAUSED  interval {position} of ")[0], key
        screen.press("Space")
        screen.shows(f"interval 3 of {INTERVALS} ")
        screen.press("q")
        screen.ended(0)


def moment(position: int) -> str:
    """Return the time at the end of an interval, as the header shows it."""
    seconds = (HEADER["clock_offset_ns"] + 1000 * 10**9) // 10**9 + position
    return f"{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def test_a_cut_recording_says_so_at_its_end(show: Show, recording: str, tmp_path: Path) -> None:
    cut = tmp_path / "cut.fsk"
    cut.write_bytes(Path(recording).read_bytes()[:-40])
    with show(*FORESHOCK, "top", str(cut), columns=160) as screen:
        screen.shows("q quit")
        screen.press("End")
        screen.shows("was cut off after")
        screen.press("q")
        screen.ended(0)


def test_a_terminal_without_colours_gets_none(show: Show, recording: str) -> None:
    for term, colored in (("screen", True), ("vt100", False)):
        with show(*FORESHOCK, "top", recording, term=term) as screen:
            screen.shows("hog[1234]")
            assert any("\x1b[" in line for line in screen.lines(escapes=True)) is colored, term
            screen.press("q")
            screen.ended(0)


HOSTILE = b"\x1b[2J\x1b[7;1H\x07\nX"
NAMED = f"open('/proc/self/comm', 'wb').write({HOSTILE!r})\n"


def test_a_hostile_name_is_shown_escaped_and_changes_nothing(show: Show) -> None:
    with show(*FORESHOCK, "top", "--interval", "500ms", "--probes", "runqueue", columns=160) as screen:
        screen.shows("every 500 ms")
        with Task(NAMED + SPIN, 3, cpu=1) as victim, Task(NAMED + HOG, 0.4, cpu=1) as hog:
            victim.go()
            hog.go()
            hog.result()
            lines = screen.shows(r"\x1b[2J\x1b[7;1H\x07\x0aX")
            victim.result()
        assert lines[0].startswith("foreshock top") and "q quit" in lines[-1] and len(lines) == 24
        screen.press("q")
        screen.ended(0)


def test_once_as_text_and_as_json(recording: str) -> None:
    done = foreshock(*LIVE[3:], "--once")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("foreshock top") and "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    done = foreshock(*LIVE[3:], "--once", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["schema"] == "foreshock.top/1" and found["interval"]["time"]["intervals"] == 1
    done = foreshock("top", "--once", "--json", recording)
    assert json.loads(done.stdout)["recent"]["time"]["intervals"] == 10
    assert "hog[1234]" in foreshock("top", "--once", recording).stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "top needs a terminal"),
        (["--json"], 2, "--json needs --once"),
        (["--once", "/no/such.fsk"], 4, "/no/such.fsk can't be read"),
        (["--once", "--probes", "nothing"], 2, "unknown probe 'nothing'"),
        (["--once", "--pid", "1", "--probes", "napi"], 2, "napi can't be limited to a process"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_can_not_be_is_refused(arguments: list[str], code: int, said: str) -> None:
    assert_fails(foreshock("top", *arguments), code, said)
