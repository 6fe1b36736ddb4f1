"""Differences of device counters: resets, devices that come and go, and an answer that doesn't come."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from tracer.kernel.links import COUNTERS, LINK, Moment, difference
from tracer.kernel.patience import Patience
from tracer.kernel.rtnetlink import STATS


def moment(**devices: tuple[int, dict[str, int]]) -> Moment:
    """Build a moment from ``name=(id, counters)``; unnamed counters are 5."""
    rows = np.zeros(len(devices), LINK)
    totals = np.full((len(devices), len(STATS.names or ()) + 1), 5, np.uint64)
    for position, (name, (_, counters)) in enumerate(devices.items()):
        rows["device"][position] = name
        for column, value in counters.items():
            member = -1 if column == "carrier_changes" else (STATS.names or ()).index(COUNTERS[column])
            totals[position, member] = value
    return Moment(np.array([id for id, _ in devices.values()], np.uint64), rows, totals)


def test_every_column_gets_its_own_counter():
    columns = [*COUNTERS, "carrier_changes"]
    before = moment(eth0=(1, {}))
    after = moment(eth0=(1, {column: 5 + number for number, column in enumerate(columns)}))
    ((row,), losses) = difference(before, after)
    assert [int(row[column]) for column in columns] == list(range(len(columns)))
    assert losses == {"reset": 0, "appeared": 0, "gone": 0}


def test_devices_are_matched_by_id_whatever_their_order():
    before = moment(a=(9, {"rx_bytes": 10}), b=(2, {"rx_bytes": 20}), c=(4, {"rx_bytes": 30}))
    after = moment(c=(4, {"rx_bytes": 33}), a=(9, {"rx_bytes": 11}), b=(2, {"rx_bytes": 22}))
    rows, _ = difference(before, after)
    assert dict(zip(rows["device"].tolist(), rows["rx_bytes"].tolist(), strict=True)) == {b"a": 1, b"b": 2, b"c": 3}


def test_a_reset_is_counted_and_not_reported():
    before = moment(a=(1, {"rx_bytes": 1000}), b=(2, {}))
    rows, losses = difference(before, moment(a=(1, {"rx_bytes": 10, "tx_bytes": 10**6}), b=(2, {})))
    assert rows["device"].tolist() == [b"b"] and losses["reset"] == 1


def test_a_wrapped_counter_is_a_reset():
    rows, losses = difference(moment(a=(1, {"rx_bytes": 2**32 - 1})), moment(a=(1, {"rx_bytes": 3})))
    assert len(rows) == 0 and losses["reset"] == 1


def test_counters_beyond_the_signed_range_are_ordinary():
    rows, losses = difference(moment(a=(1, {"rx_bytes": 2**63 - 1})), moment(a=(1, {"rx_bytes": 2**63 + 1})))
    assert rows["rx_bytes"].tolist() == [2] and losses["reset"] == 0


def test_devices_that_came_and_went_have_no_row():
    rows, losses = difference(moment(a=(1, {}), b=(2, {})), moment(b=(2, {}), a=(3, {})))
    assert rows["device"].tolist() == [b"b"] and losses == {"reset": 0, "appeared": 1, "gone": 1}


def test_no_device_at_either_moment():
    rows, losses = difference(moment(), moment(a=(1, {})))
    assert len(rows) == 0 and losses["appeared"] == 1
    rows, losses = difference(moment(a=(1, {})), moment())
    assert len(rows) == 0 and rows.dtype == LINK and losses["gone"] == 1


def test_patience_answers_and_raises():
    answers = iter([1, OSError("gone"), 2])

    def question() -> int:
        answer = next(answers)
        if isinstance(answer, OSError):
            raise answer
        return answer

    patience = Patience(question, 5)
    assert patience.ask() == 1
    with pytest.raises(OSError, match="gone"):
        patience.ask()
    assert patience.ask() == 2
    patience.close()


def test_patience_ends_and_a_late_answer_is_dropped():
    stuck = threading.Event()
    asked = []

    def question() -> int:
        asked.append(None)
        if len(asked) == 1:
            stuck.wait(10)
        return len(asked)

    patience = Patience(question, 0.05)
    began = time.monotonic()
    assert patience.ask() is None
    assert patience.ask() is None  # asked once only: the thread is still stuck
    assert time.monotonic() - began < 2 and len(asked) == 1
    stuck.set()
    deadline = time.monotonic() + 5
    while (answer := patience.ask()) is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert answer == 2
    patience.close()
