"""Real recordings of this machine under other names: one whose job is held back by its quota is named among them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from kernel.command import foreshock

from tests.twins.node import Job, group, job, loop_device, recorder

SECONDS = 5


@pytest.fixture
def working() -> Iterator[Job]:
    with loop_device() as device, job("twins", device, (1.0, 2.5)) as working:
        yield working


def test_the_twin_with_a_quota_is_the_straggler_and_its_ranks_lost_to_that(working: Job, tmp_path: Path):
    paths = tmp_path / "cu1.fsk", tmp_path / "cu2.fsk"
    with group("foreshock") as own:
        for path, cpus in zip(paths, (10.0, 0.3), strict=True):
            working.group.quota(cpus)
            assert recorder(path, path.stem, SECONDS, own, "ledger").wait() == 0
    done = foreshock("compare", "--json", *map(str, paths))
    assert done.returncode == 1, (done.stdout, done.stderr)
    tree = json.loads(done.stdout)
    # Of two nodes either deviates from the other, in whatever else the machine does.
    (suspect,) = (one for one in tree["suspects"] if one["node"] == "cu2")
    assert (suspect["cause"], suspect["deviations"][0]["series"]) == ("quota", "ranks.throttled"), tree["verdict"]
    assert suspect["taken"].startswith("its own quota took ")
