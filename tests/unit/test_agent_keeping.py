"""Which alerts fire survives a restart; a file that can't be used is one line."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from tracer.agent.keeping import Keeper, load, prepare
from tracer.errors import OutputError

STATE = {"boot_id": "b007", "firing": []}


def test_what_is_kept_is_loaded(tmp_path):
    path = tmp_path / "made" / "alerts.state"
    prepare(path)
    keeper = Keeper(path)
    keeper.keep({"boot_id": "earlier", "firing": []})
    keeper.keep(STATE)
    keeper.close(seconds=30)
    state, trouble = load(path)
    assert {name: state[name] for name in STATE} == STATE and trouble == "" and keeper.error == ""
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(path.parent) == ["alerts.state"]


def test_there_may_be_none(tmp_path):
    assert load(tmp_path / "none") == ({}, "")


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"version": 99}', "\0" * 100, "[" * 100_000, "\udcff"])
def test_a_damaged_one_is_said_in_a_line_and_ignored(tmp_path, text):
    path = tmp_path / "state"
    path.write_text(text, errors="surrogateescape")
    state, trouble = load(path)
    assert state == {} and str(path) in trouble and "\n" not in trouble


def test_one_that_is_no_file_is_ignored(tmp_path):
    assert load(tmp_path)[0] == {} and load(tmp_path)[1]


def test_the_old_one_stays_until_the_new_one_is_whole(tmp_path):
    path = tmp_path / "state"
    path.write_text(json.dumps({"version": 1, **STATE}))
    (tmp_path / ".state.new").mkdir()  # in the way
    keeper = Keeper(path)
    keeper.keep({"boot_id": "later", "firing": []})
    keeper.close(seconds=30)
    assert "can't be written" in keeper.error
    assert load(path)[0]["boot_id"] == "b007"


def test_where_there_can_be_none_is_an_error(tmp_path):
    for path in (tmp_path, Path("/proc/none/state"), Path("/dev/null/state")):
        with pytest.raises(OutputError) as caught:
            prepare(path)
        assert caught.value.hint


@pytest.mark.parametrize("text", ["3f9a0c\n", "{}", "[]", '{"versions": 1}'])
def test_a_file_of_something_else_is_left_alone(tmp_path, text):
    path = tmp_path / "token"
    path.write_text(text)
    with pytest.raises(OutputError, match="something else"):
        prepare(path)
    assert path.read_text() == text


@pytest.mark.parametrize("text", ["", "{", '{"version": 99}', "\0" * 100])
def test_what_a_state_may_have_become_is_replaced(tmp_path, text):
    path = tmp_path / "state"
    path.write_text(text)
    prepare(path)


def test_a_disk_that_hangs_keeps_nobody_waiting(tmp_path, monkeypatch):
    hangs = threading.Event()
    monkeypatch.setattr(os, "fsync", lambda descriptor: hangs.wait(20))
    keeper = Keeper(tmp_path / "state")
    for number in range(1000):
        keeper.keep({"boot_id": str(number), "firing": []})
    keeper.close(seconds=0.05)
    hangs.set()
