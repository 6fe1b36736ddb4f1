"""``foreshock diff`` of two real recordings of this machine: its own load, then softirqs that are held up."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import pytest
from kernel.command import foreshock

from tracer.workloads.latesoftirqs import LateSoftirqs
from tracer.workloads.victim import Victim

#: One CPU, on which a task sleeps and wakes in both recordings: so there are always waits and timers to be compared.
CPU = 0
SECONDS = 4


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Record the machine as it is, and with softirqs on one CPU held up half of the time, at real-time priority."""
    folder = tmp_path_factory.mktemp("sides")
    paths = folder / "before.fsk", folder / "after.fsk"
    for path, late in zip(paths, (False, True), strict=True):
        with ExitStack() as loads:
            working = [loads.enter_context(Victim(CPU, 60))]
            working += [loads.enter_context(LateSoftirqs(CPU, 60))] if late else []
            for load in working:
                load.go()
            command = ("record", "--quiet", "--for", f"{SECONDS}s", "--interval", "100ms", "-o", str(path))
            done = foreshock(*command)
            assert done.returncode == 0, done.stderr
    return paths


def test_softirqs_that_are_held_up_are_slower_and_the_task_is_named(sides: tuple[Path, Path]):
    done = foreshock("diff", "--json", "--fail-over", "25%", *map(str, sides))
    tree = json.loads(done.stdout)
    # Where the machine's own load makes seconds scatter, one recording of before can't tell: that stops a gate as well.
    assert tree["failing"] or tree["doubtful"], tree["verdict"]
    assert done.returncode == (6 if tree["failing"] else 7) and not tree["lacking"], (tree["verdict"], done.stderr)
    late = {
        one["part"] or one["series"] for one in tree["slower"] if one["series"] in ("softirq.delay", "runqueue.wait")
    }
    assert late, tree["verdict"]
    assert all(one["after"] > one["before"] for one in tree["slower"])
    # Tasks of that CPU, and its softirqs, waited for one task at real-time priority.
    assert any("real-time" in one["name"] and one["after_s_per_s"] > 0.01 for one in tree["parties"]), tree["parties"]
    assert any("real-time" in sentence for sentence in tree["who"]), tree["who"]


def test_a_real_recording_with_itself_is_no_change(sides: tuple[Path, Path]):
    done = foreshock("diff", "--fail-over", "1%", str(sides[0]), str(sides[0]))
    assert done.returncode == 7 and "these are the same intervals" in done.stderr, (done.stdout, done.stderr)
    assert done.stdout.startswith("no change beyond the noise of the windows\n")


def test_real_recordings_of_one_machine_differ_in_no_setting_of_its_hardware(sides: tuple[Path, Path]):
    tree = json.loads(foreshock("diff", "--json", *map(str, sides)).stdout)
    settings = {one["setting"].partition(" /")[0] for one in tree["differences"]}
    assert not settings & {"cpu", "cpus", "kernel", "foreshock", "sysctl"}, settings
    assert tree["before"]["boot_id"] == tree["after"]["boot_id"] and tree["before"]["cpus"] > 0
