"""The terminal is left as it was found, whatever ends the view; keys arrive whole."""

from __future__ import annotations

import os
import pty
import signal
import termios
from collections.abc import Iterator

import pytest

from tracer.reports.terminal import Terminal, _parse, shows_unicode, wants_color


@pytest.fixture
def ends() -> Iterator[tuple[int, object]]:
    """A pseudo-terminal: the user's end, and the program's as a file."""
    user, program = pty.openpty()
    with os.fdopen(program, "r+b", buffering=0) as file:
        yield user, file
    os.close(user)


def test_keys_arrive_and_arrows_are_one_key(ends):
    user, program = ends
    with Terminal(program, program) as terminal:
        os.write(user, b"q \x1b[D\x1b[C\x1bOAs\x1b[5~")
        keys = [terminal.key(2.0) for _ in range(7)]
        assert keys == ["q", " ", "left", "right", "up", "s", "page up"]
        assert terminal.key(0.0) == ""


def test_split_sequences_and_unknown_ones():
    assert _parse(b"\x1b") == ["escape"]
    assert _parse(b"\x1b[200~x") == ["x"]
    assert _parse(b"\x1b[1;5Cx") == ["x"]
    assert _parse(b"\x1b[") == []


@pytest.mark.parametrize("error", [None, KeyboardInterrupt, RuntimeError])
def test_the_terminal_is_restored_on_any_way_out(ends, error):
    user, program = ends
    before = termios.tcgetattr(program)
    handler = signal.getsignal(signal.SIGTERM)
    try:
        with Terminal(program, program) as terminal:
            assert termios.tcgetattr(program) != before
            terminal.draw(["one", "two"])
            if error:
                raise error
    except (KeyboardInterrupt, RuntimeError):
        pass
    assert termios.tcgetattr(program) == before
    assert signal.getsignal(signal.SIGTERM) is handler
    written = b""
    while not written.endswith(b"\x1b[?1049l"):
        written += os.read(user, 4096)
    assert written.startswith(b"\x1b[?1049h")
    assert b"\x1b[H\x1b[Kone\r\n\x1b[Ktwo" in written


def test_a_signal_ends_it_with_the_terminal_restored(ends):
    user, program = ends
    before = termios.tcgetattr(program)
    with pytest.raises(SystemExit) as ended, Terminal(program, program):
        os.kill(os.getpid(), signal.SIGTERM)
    assert ended.value.code == 128 + signal.SIGTERM
    assert termios.tcgetattr(program) == before


def test_resizing_is_a_key(ends):
    user, program = ends
    with Terminal(program, program) as terminal:
        os.kill(os.getpid(), signal.SIGWINCH)
        assert terminal.key(2.0) == "resize"


def test_colour_is_for_terminals_that_want_it(ends, monkeypatch, tmp_path):
    user, program = ends
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    with open(tmp_path / "file", "w") as file:
        assert not wants_color(file)
    assert wants_color(program)
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_color(program)


def test_encodings(tmp_path):
    for encoding, expected in (("utf-8", True), ("latin-1", False), ("ascii", False)):
        with open(tmp_path / encoding, "w", encoding=encoding) as file:
            assert shows_unicode(file) is expected
