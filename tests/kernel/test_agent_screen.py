"""What the agent shows on a terminal, and that it does not watch in silence when it can't show anything."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from kernel.command import FORESHOCK, foreshock
from kernel.screen import Screen

_LABELS = ("node", "probes", "rules", "sentinels", "kernel", "alerts to", "black box", "close-ups", "state")


@pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux")
@pytest.mark.parametrize("columns", [80, 100])
def test_what_is_watched_goes_on_in_its_column(socket_folder: Path, tmp_path: Path, columns: int) -> None:
    command = (*FORESHOCK, "agent", "--foreground", "--state", str(tmp_path / "state"))
    with Screen(socket_folder, command, columns=columns, lines=60) as screen:
        shown = screen.until(lambda lines: any(line.startswith("state") for line in lines), "state")
    facts = [line for line in shown[1:] if line]
    # A line that the terminal has broken would go on at its left edge.
    assert [line for line in facts if not line.startswith((*_LABELS, " "))] == []
    assert max(map(len, facts)) > columns - 20


@pytest.mark.parametrize("sink", ["terminal", "json:-"])
def test_with_standard_output_closed_it_does_not_begin(tmp_path: Path, sink: str) -> None:
    closed = ("timeout", "20", "sh", "-c", 'exec "$@" >&-', "sh")
    done = foreshock("agent", "--sink", sink, "--state", str(tmp_path / "state"), before=closed)
    assert done.returncode == 5
    assert done.stderr.splitlines()[0] == "foreshock: error: can't write the output: standard output is closed"
