"""One request to stop is one, however many signals it takes; one more, later, interrupts."""

from __future__ import annotations

import os
import signal
import time

import pytest

from tracer.commands import _stopping
from tracer.commands._stopping import stopping


def test_signals_at_the_same_time_are_one_request():
    with stopping() as stop:
        for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM):
            os.kill(os.getpid(), number)
        assert stop.is_set()


def test_one_more_later_interrupts(monkeypatch):
    monkeypatch.setattr(_stopping, "_SAME_SECONDS", 0.05)
    with stopping() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.06)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        assert stop.is_set()
