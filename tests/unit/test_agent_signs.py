"""The agent's sign of life: what was not seen is what the summary calls so, and quiet is only what is."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tracer.agent.screen import Screen
from tracer.window import Window

_MINUTE = 60_000_000_000


def _view(now_ns, **losses):
    return SimpleNamespace(
        now_ns=now_ns, windows={("runqueue", "wait"): Window("runqueue", "wait", 0, now_ns, np.zeros(0, "u8"), losses)}
    )


def _agent(firing):
    return SimpleNamespace(
        told=0,
        firing=firing,
        crew=SimpleNamespace(posts=[SimpleNamespace(ready=True, silent=False)], dropped=0),
        desk=SimpleNamespace(dropped=0),
        recorder=None,
    )


@pytest.mark.parametrize(("firing", "word"), [([], "all quiet: 0 firing"), (["one"], "nothing new: 1 firing")])
def test_after_a_minute_it_says_that_it_lives(capfd, firing, word):
    screen = Screen(foreground=True)
    screen._began = True
    screen.interval(_agent(firing), _view(1, suppressed=5000, unmatched=3))
    screen.interval(_agent(firing), _view(_MINUTE, suppressed=5000, unmatched=4))
    said = " ".join(capfd.readouterr().out.split())
    assert word in said and "1 of 1 sentinels" in said
    # Waits that were merely not told one by one are in the histograms all the same.
    assert "7 events not seen" in said
