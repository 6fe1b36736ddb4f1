"""A pid that no fork has returned ends nobody: neither what is forked nor the tests take 0 for a process."""

from __future__ import annotations

import os

import pytest

from tracer.kernel import forking


@pytest.mark.parametrize("pid", [0, -1])
def test_a_group_is_no_child(pid: int) -> None:
    with pytest.raises(ValueError, match="no process has pid"):
        forking.end(pid, 0)


def test_one_that_does_not_end_is_killed_and_reaped() -> None:
    pid = forking.fork("one that reads for ever", lambda: os.read(os.pipe()[0], 1) and None)
    forking.end(pid, 0)
    assert forking.ends(pid, 20)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_no_test_reaches_those_who_run_it() -> None:
    """Signal 0 is sent to nobody, should this fail."""
    for send, to in ((os.kill, 0), (os.kill, -1), (os.killpg, 0), (os.killpg, os.getpgrp())):
        with pytest.raises(AssertionError, match="those who run the tests"):
            send(to, 0)
