"""`foreshock compare --by`: cohorts beside each other, nodes as the unit, intervals that hold; whatever is wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from sim.cluster import read_pools
from sim.cohorts import run as simulate
from sim.cohorts import slowed, values
from sim.recordings import DEMO, Change, slower, twin

from tracer.cohorts.contrast import contrast, nodes_needed, t_quantile
from tracer.cohorts.levels import middles, ratios, tails
from tracer.cohorts.membership import find_key, grouped
from tracer.cohorts.rollout import Rollout, compare_cohorts
from tracer.commands import main
from tracer.compare.reading import read_nodes
from tracer.errors import UsageError
from tracer.histogram import SLOTS
from tracer.recording import Recording, read_recording
from tracer.units import display_width
from tracer.window import Window

SECONDS = 16
HOSTILE = "\x1b[2Jr9\u202e is fine\n"
SLOWER = slower(("softirq", "run"), 2)


@pytest.fixture(scope="module")
def demo() -> Recording:
    return read_recording(DEMO)


def nodes_of(
    folder: Path, demo: Recording, labels: Sequence[Mapping[str, Any] | None], change: Change | None
) -> list[str]:
    """Write a recording per entry of ``labels``; those of an image called "new" do ``change``."""
    return [
        str(
            twin(
                *(folder / f"cu{place:02d}.fsk", demo, f"cu{place:02d}"),
                seed=place,
                seconds=SECONDS,
                change=change if (told or {}).get("image") == "new" else None,
                header={} if told is None else {"labels": dict(told)},
            )
        )
        for place, told in enumerate(labels)
    ]


@pytest.fixture(scope="module")
def rollout(tmp_path_factory: pytest.TempPathFactory, demo: Recording) -> list[str]:
    """Nine nodes of the old image and eight of the new one, on which softirq handlers take 2^(1/4) times as long."""
    labels = [{"image": "new" if place < 8 else "old", "rack": f"r{place % 2}"} for place in range(17)]
    return nodes_of(tmp_path_factory.mktemp("rollout"), demo, labels, busier)


def busier(number: int, window: Window) -> Window:
    window = SLOWER(number, window)
    if (window.probe, window.table) != ("cpustate", "time"):
        return window
    rows = window.rows.copy()
    rows["softirq_ns"] += rows["softirq_ns"] // 5
    return replace(window, rows=rows)


def run(*arguments: str, width: int = 80) -> Result:
    return CliRunner(env={"COLUMNS": str(width)}).invoke(main, ["compare", *arguments])


def compared(paths: Sequence[str], by: str) -> Rollout:
    return compare_cohorts(read_nodes(paths)[0], by)


@pytest.mark.parametrize(
    "probability, freedom, table",
    [
        (0.975, 1, 12.706),
        (0.975, 4, 2.776),
        (0.95, 10, 1.812),
        (0.995, 2, 9.925),
        (0.9995, 30, 3.646),
        (0.975, 1e9, 1.960),
    ],
)
def test_quantiles_are_those_of_printed_tables(probability: float, freedom: float, table: float):
    assert t_quantile(probability, freedom) == pytest.approx(table, abs=6e-4)


@pytest.mark.parametrize("sizes, scatter", [((8, 30), 1), ((8, 8), 1), ((30, 30), 1), ((8, 30), 3), ((30, 8), 3)])
def test_intervals_hold_as_often_as_they_say(sizes: tuple[int, int], scatter: float):
    random, held = np.random.default_rng(5), 0
    for _ in range(1000):
        found = contrast(random.normal(0.3, 1, sizes[0]), random.normal(0, scatter, sizes[1]), 0.1)
        held += abs(found.difference - 0.3) <= found.half
    # Four standard errors of a share of 1000. A group that scatters less than the other is taken to scatter more.
    assert 0.9 - 0.038 < held / 1000 < (0.97 if scatter == 1 else 1)


def test_a_straggler_is_not_its_cohorts_doing():
    random = np.random.default_rng(6)
    ours, theirs = random.normal(0, 0.05, 20), random.normal(0, 0.05, 20)
    alone = contrast(ours, theirs, 0.05)
    ours[3] = 5.0
    assert contrast(ours, theirs, 0.05).difference == pytest.approx(alone.difference, abs=0.02)
    assert contrast(ours, theirs, 0.05).half < 1.5 * alone.half


def test_so_many_nodes_as_are_told_find_it_four_times_of_five():
    random = np.random.default_rng(7)
    many = contrast(random.normal(0, 0.2, 2000), random.normal(0, 0.2, 2000), 0.05)
    needed, seen = nodes_needed(many.variances, 0.1, 0.05, 0.8), 0
    for _ in range(600):
        found = contrast(random.normal(0.1, 0.2, needed), random.normal(0, 0.2, needed), 0.05)
        seen += abs(found.difference) > found.half
    assert 0.72 < seen / 600 < 0.88


def test_levels_tell_by_how_much_a_node_is_slower():
    random = np.random.default_rng(8)
    slots = random.poisson(np.exp(-(((np.arange(SLOTS) - 120) / 15) ** 2)) * 400, (6, 8, SLOTS)).astype(np.uint64)
    slots[0] = slowed(slots[0], 1.3, random)
    slots[1, 3:5] = 0  # a hole in a recording says nothing of its node
    for found, noise in ((middles(slots), 0.03), (tails(slots), 0.06)):
        apart = found - np.median(found[1:])
        assert 2 ** apart[0] == pytest.approx(1.3, abs=noise)
        assert np.abs(apart[1:]).max() < noise
    pairs = np.stack([np.full((5, 8), 3.0), np.full((5, 8), 100.0)], axis=-1)
    pairs[:, ::2, 0] *= 4  # phases that all nodes have
    pairs[0, :, 0] *= 1.25
    pairs[1, ::2] = 0  # a node that lacks all of one phase
    assert np.exp2(ratios(pairs, 0.0)) == pytest.approx([1.25, 1, 1, 1, 1], rel=1e-9)


def test_what_was_hardly_measured_has_no_level():
    few = np.zeros((3, 8, SLOTS), np.uint64)
    few[..., 100] = 2
    assert np.isnan(middles(few)).all() and np.isnan(tails(few)).all()
    assert np.isnan(ratios(np.zeros((3, 8, 2)), 0.1)).all()
    assert np.isnan(tails(few[..., :0])).all() and np.isnan(middles(few[..., :0])).all()


def test_the_slower_image_comes_first_with_its_cost(rollout: list[str]):
    done = run("--by", "image", *rollout)
    assert done.exit_code == 1
    said = " ".join(done.stdout.split())
    assert said.startswith("image new is slower than old: ")
    assert "node-days a week on 1,000 nodes" in said and "nodes: old 9 (the reference: the largest), new 8;" in said
    assert "NET_RX softirq run time" in said and "confidence" in said


def test_the_change_is_the_one_that_was_made(rollout: list[str]):
    found = {one.quantity.title: one for one in compared(rollout, "image").effects}
    softirqs = found["NET_RX softirq run time middle"]
    assert softirqs.told and softirqs.low < 2**0.25 - 1 < softirqs.high
    time = found["softirq time"]
    assert time.told and time.low < 0.2 < time.high
    assert time.node_days[0] == pytest.approx(7000 * time.usual * time.change)
    assert not any(one.told for title, one in found.items() if "softirq" not in title)


def test_cohorts_that_are_alike_say_so_and_exit_with_0(rollout: list[str]):
    done = run("--by", "rack", *rollout)
    assert done.exit_code == 0
    said = " ".join(done.stdout.split())
    assert said.startswith("rack: no cohort differs from r0 beyond the noise: ")
    assert " interrupt time by " in said or " softirq time by " in said


def test_the_reference_can_be_chosen(rollout: list[str]):
    done = run("--by", "image", "--reference", "new", *rollout)
    said = " ".join(done.stdout.split())
    assert done.exit_code == 1 and said.startswith("image old is faster than new: ")
    assert "nodes: new 8 (the reference: chosen), old 9;" in said
    done = run("--by", "image", "--reference", "nwe", *rollout)
    assert done.exit_code == 2 and "did you mean new? there are old, new" in done.stderr
    assert run("--reference", "new", *rollout[:2]).exit_code == 2
    done = run("--by", "image", "--reference", "n" * 300, *rollout)
    assert done.exit_code == 2 and f"--reference {'n' * 31}…: no node" in done.stderr
    done = run("--by", "image", "--reference", "old", *rollout[:11])
    assert done.exit_code == 4 and "too few nodes to tell cohorts from chance: old (3 nodes), new (8" in done.stderr


def test_of_equal_cohorts_the_lower_version_is_the_reference(tmp_path: Path, demo: Recording):
    paths = nodes_of(tmp_path, demo, [{"image": "v6.10" if place < 8 else "v6.9"} for place in range(16)], None)
    said = " ".join(run("--by", "image", *paths).stdout.split())
    assert "nodes: v6.9 8 (the reference: the lowest version of the largest; --reference chooses), v6.10 8;" in said


def test_what_else_differs_is_shown(tmp_path: Path, demo: Recording):
    labels = [{"image": "new" if place < 8 else "old", "zone": "a" if place < 8 else "b"} for place in range(17)]
    done = run("--by", "image", *nodes_of(tmp_path, demo, labels, None), width=100)
    title = done.stdout.index("WHAT ELSE DIFFERS")
    assert done.stdout[title:].splitlines()[2].split() == ["label", "/", "zone", "new", "a", "b"]


def test_json_says_what_the_text_says(rollout: list[str]):
    done = run("--json", "--by", "label:image", *rollout)
    tree = json.loads(done.stdout)
    assert done.exit_code == 1 and tree["schema"] == "foreshock.cohorts/1"
    assert (tree["reference"], tree["cohorts"]) == ("old", {"old": 9, "new": 8})
    told = [one for one in tree["effects"] if one["different"]]
    assert told and all(one["low"] > 0 for one in told)
    assert tree["verdict"].startswith("label:image new is slower than old")


@pytest.mark.parametrize("key", ["sysctl / vm.swappiness", "vm.swappiness", "driver", "governor"])
def test_any_row_of_the_fingerprint_is_a_key(rollout: list[str], key: str):
    done = run("--by", key, *rollout[:2])
    assert done.exit_code == 4
    assert f"--by {key}: there is one cohort only, " in done.stderr and "(2 nodes)" in done.stderr


def test_a_driver_is_its_name_and_version(rollout: list[str]):
    nodes = read_nodes(rollout[:2])[0]
    cohorts, unknown = grouped(find_key("driver", nodes), nodes)
    assert [one.value for one in cohorts] == ["virtio_net, 1.0.0"] and not unknown


@pytest.mark.parametrize("key", ["imag", "", "../x", "\x1b[2J", "label"])
def test_an_unknown_key_is_a_usage_error_with_those_that_are_known(rollout: list[str], key: str):
    done = run("--by", key, *rollout[:2])
    assert done.exit_code == 2 and not done.stdout
    assert "no recording says that of its node" in done.stderr and "image, rack" in done.stderr
    assert "\x1b[2J" not in done.stderr
    if key == "imag":
        assert "did you mean image?" in done.stderr


def test_too_few_nodes_are_said(rollout: list[str]):
    done = run("--by", "image", *rollout[:11])  # eight and three
    assert done.exit_code == 4
    assert "too few nodes to tell cohorts from chance: new (8 nodes), old (3 nodes)" in done.stderr
    assert "two cohorts of 8 nodes" in done.stderr


def test_recordings_of_one_host_are_one_node(tmp_path: Path, demo: Recording):
    paths = []
    for place in range(12):
        # Four recordings of each of three hosts, one after the other.
        labels = {"labels": {"image": "new" if place < 6 else "old"}, "boot_id": f"boot {place}"}
        paths.append(
            str(twin(tmp_path / f"{place}.fsk", demo, f"cu{place // 4}", seed=place, seconds=8, header=labels))
        )
    done = run("--by", "image", *paths)
    assert done.exit_code == 4
    assert "too few nodes" in done.stderr and "(2 nodes)" in done.stderr


def test_nodes_without_the_label_and_small_cohorts_are_named(rollout: list[str], tmp_path: Path, demo: Recording):
    more = [
        str(twin(tmp_path / f"x{place}.fsk", demo, f"x{place}", seed=place, seconds=SECONDS, header=header))
        for place, header in enumerate(
            [{}, {"labels": {"image": "odd"}}, {"labels": "no map"}, {"labels": {"image": []}}]
        )
    ]
    done = run("--by", "image", *rollout, *more)
    said = " ".join(done.stdout.split())
    assert done.exit_code == 1
    assert "not compared: odd (1 node);" in said
    assert "image is not known of x0, x2, x3" in said


def test_hostile_labels_are_shown_harmless(tmp_path: Path, demo: Recording):
    labels = [{"rack": HOSTILE if place < 8 else 'r1" is fine'} for place in range(16)]
    paths = nodes_of(tmp_path, demo, labels, None)
    done = run("--by", "rack", *paths)
    assert done.exit_code == 0
    assert "\x1b" not in done.stdout and "\u202e" not in done.stdout and r"\x1b[2Jr9" in done.stdout
    assert max(map(display_width, done.stdout.splitlines())) <= 80
    assert "\\u001b" not in run("--json", "--by", "rack", *paths).stdout


def test_what_can_not_be_read_is_named_and_the_rest_answered(rollout: list[str], tmp_path: Path):
    (tmp_path / "broken.fsk").write_bytes(Path(rollout[0]).read_bytes()[:30])
    done = run("--by", "image", *rollout, str(tmp_path / "broken.fsk"))
    assert done.exit_code == 1
    assert "broken.fsk: cut off before its header" in " ".join(done.stdout.split())
    assert run("--by", "image", str(tmp_path / "broken.fsk"), "gone.fsk").exit_code == 4


def test_a_key_needs_a_recording(demo: Recording):
    with pytest.raises(UsageError):
        find_key("kernel", [])


def test_a_small_simulation_tells_a_slower_image_from_the_same_one():
    pools = {series: found for series, found in read_pools([DEMO]).items() if series.part == "NET_RX"}
    scores = simulate(pools, 2, 2, ((12, 24),))
    same, slow = scores[(12, 24), 1.0], scores[(12, 24), 1.1]
    assert same.intervals == 2 * 3 * len(pools)
    # One in twenty comparisons of the same image may be wrong; of two both are not.
    assert same.told < 2 and slow.told == 2
    assert min(same.single, slow.single) >= 2 * len(pools) * 3 * 0.6


def test_what_is_slowed_takes_so_much_longer():
    slots = np.zeros((1, 1, SLOTS), np.uint64)
    slots[..., 100] = 10**6
    changed = slowed(slots, 1.2, np.random.default_rng(1))
    assert changed.sum() == slots.sum()
    both = values(np.concatenate([slots, changed]).repeat(4, 1), 0)
    assert 2 ** (both["middle"][1] - both["middle"][0]) == pytest.approx(1.2, rel=1e-3)
