"""Shared by all tests: one variable turns every skip into a failure, so that CI can't lose a test unnoticed.

And no signal of a test's goes to more than one process, or to the group that runs the tests.
"""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

_Report = TypeVar("_Report", pytest.TestReport, pytest.CollectReport)

NO_SKIP = os.environ.get("FORESHOCK_NO_SKIP") == "1"


@pytest.fixture(autouse=True, scope="session")
def _signals_are_heeded() -> None:
    """What is ignored is so in every child: SIGINT behind a shell's ``&``, SIGHUP under nohup."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)  # this process goes on as it was asked to; children begin anew


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The folder with pyproject.toml."""
    return Path(__file__).parent.parent


@pytest.fixture
def socket_folder() -> Iterator[Path]:
    """Return a folder for sockets, whose paths take 107 bytes at most: ``tmp_path`` may be longer than that."""
    with tempfile.TemporaryDirectory(prefix="fs-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture(autouse=True)
def _as_wide_as_nobody_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Text is wrapped as in a pipe, at 80 columns, however wide the terminal of those who run the tests is."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(autouse=True)
def _signals_stay_with_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse what a pid that nobody has been given would do: 0 is this very group, -1 is everybody."""
    monkeypatch.setattr(os, "kill", _refusing(os.kill, ()))
    monkeypatch.setattr(os, "killpg", _refusing(os.killpg, (os.getpgrp(),)))


def _refusing(send: Callable[[int, int], None], spared: tuple[int, ...]) -> Callable[[int, int], None]:
    def guarded(to: int, number: int) -> None:
        assert to > 0 and to not in spared, f"signal {number} would reach those who run the tests: {to}"
        send(to, number)

    return guarded


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return _refuse_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """A module that skips itself (importorskip, allow_module_level) never reaches makereport."""
    return _refuse_skip((yield))


def _refuse_skip(report: _Report) -> _Report:
    # An expected failure is reported as skipped as well; it did run.
    if NO_SKIP and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"FORESHOCK_NO_SKIP=1 and this was skipped: {reason}"
    return report
