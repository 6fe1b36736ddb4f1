"""`foreshock compare`: one sentence first, numbers beside those of peers, what differs; exit codes, hostile names."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from sim.recordings import DEMO, Change, slower, twin, write_twins
from unit.report_data import Data

from tracer.analysis.source import Source
from tracer.analysis.summary import Summary
from tracer.commands import main
from tracer.compare.comparison import Common, Comparison, compare
from tracer.compare.details import _is_usual
from tracer.compare.facts import Split
from tracer.compare.quality import Reservation
from tracer.compare.ranks import Apart
from tracer.compare.reading import read_nodes
from tracer.compare.suspect import Detail
from tracer.compare.verdict import headline
from tracer.recording import read_recording
from tracer.reports.comparison import as_dict, render
from tracer.reports.json import dumps
from tracer.units import display_width
from tracer.window import Window

HOSTILE = "\x1b[2Jcu\u202e9\n"
ILL = slower(("softirq", "delay"), 64, since=30, share=0.1, vector=3)


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return write_twins(tmp_path_factory.mktemp("healthy"), 9)


@pytest.fixture(scope="module")
def ill(tmp_path_factory: pytest.TempPathFactory, healthy: list[str]) -> str:
    """A tenth node whose NET_RX softirqs come late from the middle on, and that has a setting of its own."""
    folder = tmp_path_factory.mktemp("ill")
    source = read_recording(DEMO)
    settings = {"sysctl": {**source.header["fingerprint"]["sysctl"], "vm.swappiness": "1"}}
    return str(twin(folder / "cu99.fsk", source, "cu99", seed=99, change=ILL, header={"fingerprint": settings}))


def run(*arguments: str, width: int = 80) -> Result:
    return CliRunner(env={"COLUMNS": str(width)}).invoke(main, ["compare", *arguments])


def compared(paths: Sequence[str]) -> Comparison:
    return compare(read_nodes(paths)[0])


def test_healthy_twins_say_so_and_exit_with_0(healthy: list[str]):
    done = run(*healthy)
    assert done.exit_code == 0
    assert done.stdout.startswith("no node deviates by more than 10 %\n")
    assert "9 nodes, " in done.stdout


def test_healthy_is_not_said_of_what_was_not_seen(healthy: list[str], tmp_path: Path):
    def losing(number: int, window: Window) -> Window:
        return replace(window, losses={"collided": 10**6}) if window.probe == "runqueue" else window

    done = run(*healthy, str(twin(tmp_path / "cu77.fsk", read_recording(DEMO), "cu77", change=losing)), width=200)
    assert done.exit_code == 7
    assert re.match(
        r"no node deviates by more than 10 % in what was recorded: 9\S+ % of cu77's runqueue events", done.stdout
    )


@pytest.mark.parametrize("seconds, confidence", [(30, "medium"), (90, "high")])
def test_half_a_minute_without_a_baseline_makes_nobody_sure(tmp_path: Path, seconds: int, confidence: str):
    always = slower(("softirq", "run"), 64, vector=3)
    (one,) = compared(write_twins(tmp_path, 9, {4: always}, seconds=seconds)).suspects
    assert (one.label, one.lasting, one.confidence) == ("cu04", True, confidence)


def test_the_straggler_comes_first_with_its_number_and_its_peers(healthy: list[str], ill: str):
    done = run(*healthy, ill)
    assert done.exit_code == 1
    said = " ".join(done.stdout.split())
    assert re.match(
        r"node cu99 is the straggler: NET_RX softirq delay p9\S+ \S+ µs against \S+ µs \(9 peers\), since", said
    )
    assert "confidence high" in said and "likely cause: softirq" in said
    # What to do is what the summary of its recording says.
    (told,) = json.loads(run(*healthy, ill, "--json").stdout)["suspects"]
    following = f"Next: {told['next'] or f'foreshock summary {ill}'}"
    # A path that is longer than a line is broken amid a word.
    assert said.count(" Next: ") == 1 and following.replace(" ", "") in said.replace(" ", "")


def test_the_onset_is_the_moment_of_the_fault(healthy: list[str], ill: str):
    start = read_nodes([ill])[0][0].start_ns
    (one,) = compared([*healthy, ill]).suspects
    assert one.since_ns == pytest.approx(start + 30e9, abs=4.1e9)


def test_what_differs_is_shown_and_nothing_else(healthy: list[str], ill: str):
    lines = run(*healthy, ill, width=100).stdout.splitlines()
    title = next(number for number, line in enumerate(lines) if line.startswith("WHAT DIFFERS"))
    table = lines[title + 1 : lines.index("", title) if "" in lines[title:] else None]
    assert table[0].split() == ["setting", "cu99", "their", "twins", "agree"]
    rows = [line.split() for line in table[1:]]
    assert ["sysctl", "/", "vm.swappiness", "1", "60", "100", "%"] in rows
    assert len([row for row in rows if "sysctl" in " ".join(row)]) == 1


def test_many_together_blame_nobody(tmp_path: Path):
    paths = write_twins(tmp_path, 10, dict.fromkeys(range(6), slower(("softirq", "delay"), 16, since=30)))
    done = run(*paths)
    assert done.exit_code == 1
    assert done.stdout.startswith("common cause: ")
    assert "NET_RX softirq delay: 6 of 10 nodes" in done.stdout


def test_who_changed_together_and_what_these_have_is_told(tmp_path: Path):
    recording = read_recording(DEMO)
    paths = []
    for place in range(10):
        ill = slower(("softirq", "delay"), 48 if place == 3 else 16, since=30, vector=3) if place < 4 else None
        header = {"fingerprint": {"driver": "new" if ill else "old"}}
        name = f"cu{place:02d}"
        paths.append(str(twin(tmp_path / f"{name}.fsk", recording, name, seed=place, change=ill, header=header)))
    words = " ".join(run(*paths, width=200).stdout.split())
    assert "4 of 10 nodes deviate together in NET_RX softirq delay since 08:36:12 UTC, most of all cu03" in words
    assert "nearly all of these, and not the others: driver new (others old)" in words
    tree = json.loads(run(*paths, "--json").stdout)
    (one,) = (one for one in tree["common"] if (one["series"], one["part"]) == ("softirq.delay", "NET_RX"))
    assert {member["node"] for member in one["members"]} == {f"cu{place:02d}" for place in range(4)}
    assert one["members"][0]["node"] == "cu03" and one["members"][0]["judged_ratio"] > 8
    assert {"setting": "driver", "these": "new", "others": "old"} in one["differences"]


def documented(page: Path) -> set[str]:
    """Return the fields that the page's table names, from the root on."""
    found = set()
    for line in page.read_text().partition("## As JSON")[2].partition("\n## ")[0].splitlines():
        base = ""
        for name in re.findall(r"`([^`]+)`", line.split("|")[1]) if line.startswith("| `") else ():
            base = base if name.startswith(".") else name.rpartition(".")[0]
            found.add(f"{base}{name}" if name.startswith(".") else name)
    return found


def fields(tree: object, path: str = "") -> set[str]:
    """Return the names of a tree's fields; maps by setting, series or node are one field."""
    if isinstance(tree, list):
        return set().union(*(fields(one, f"{path}[]") for one in tree))
    if not isinstance(tree, dict) or path in ("differences[].suspects", "recorded_on_some"):
        return set()
    named = {f"{path}.{name}".lstrip(".") for name in tree}
    return named.union(*(fields(one, f"{path}.{name}".lstrip(".")) for name, one in tree.items()))


def test_every_field_is_documented_and_a_ratio_is_what_it_says(healthy: list[str], ill: str, checkout: Path):
    found = compared([*healthy, ill])
    together = Common(found.suspects[0].deviations[0].series, (("cu1", 3.0),), 9, (Split("driver", "new", "old"),))
    whole = replace(
        found,
        victims=found.suspects,
        common=(together,),
        left_out=(("x.fsk", "too short"),),
        remarks=(("cu1", "lost events"),),
        partly=(("softirq delay", 3),),
        reservations=(Reservation("cu1", "runqueue", 0.5),),
        ranks=(Apart("cu1", "job 7", 3, "waits", 0.01, 0.9, 63, 64, "for other threads"),),
    )
    tree = json.loads(dumps(as_dict(whole, {})))
    assert {one.replace("victims[]", "suspects[]") for one in fields(tree)} == documented(checkout / "docs/compare.md")
    for one in (told for suspect in tree["suspects"] for told in suspect["deviations"]):
        ratio = one["value"] / one["peers_median"] if one["peers_median"] else None
        assert one["ratio"] == pytest.approx(ratio) and one["judged_ratio"] >= 1.1


def idling(number: int, window: Window) -> Window:
    """The node has nothing to do from the middle on: it waits."""
    if (window.probe, window.table) != ("cpustate", "time") or number < 30:
        return window
    rows = window.rows.copy()
    rows["idle_ns"] += rows["running_ns"]
    rows["running_ns"] = 0
    return replace(window, rows=rows)


def busy(change: Change | None) -> Change:
    """All nodes compute."""

    def changed(number: int, window: Window) -> Window:
        if (window.probe, window.table) == ("cpustate", "time"):
            rows = window.rows.copy()
            rows["running_ns"] += rows["idle_ns"] // 10 * 9
            rows["idle_ns"] -= rows["idle_ns"] // 10 * 9
            window = replace(window, rows=rows)
        return change(number, window) if change else window

    return changed


def test_a_node_that_waits_for_others_is_a_victim(tmp_path: Path):
    paths = write_twins(tmp_path, 9, {place: busy(idling if place == 4 else None) for place in range(9)})
    done = run(*paths)
    assert done.exit_code == 0
    said = " ".join(done.stdout.split())
    assert said.startswith("no node deviates by more than 10 %; cu04 only waits for the others (idle time ")
    assert "VICTIMS" in said


def test_few_nodes_are_said(healthy: list[str], ill: str):
    done = run(*healthy[:4], ill)
    said = " ".join(done.stdout.split())
    assert "node cu99 may be the straggler" in said and "fewer than 8 nodes" in said
    assert run(*healthy[:2]).stdout.startswith("no node deviates by more than 25 %")


def test_one_host_at_several_times_is_said_to_be_for_diff(tmp_path: Path):
    source = read_recording(DEMO)
    paths = [str(twin(tmp_path / f"{day}.fsk", source, "n", skew_ns=day * 3600 * 10**9)) for day in range(2)]
    said = " ".join(run(*paths).stdout.split())
    assert "2 recordings are of a host called n: if it is one, foreshock diff compares it with itself" in said


def test_what_can_not_be_compared_is_named_and_the_rest_answered(healthy: list[str], ill: str, tmp_path: Path):
    (tmp_path / "broken.fsk").write_bytes(Path(ill).read_bytes()[:30])
    done = run(*healthy, ill, str(tmp_path / "broken.fsk"), healthy[0])
    assert done.exit_code == 1
    said = " ".join(done.stdout.split())
    assert "cu99 is the straggler" in said
    assert "broken.fsk: cut off before its header" in said and "same node and time as cu00.fsk" in said


@pytest.mark.parametrize("chosen", [["gone.fsk", "gone too.fsk"], ["gone.fsk"]])
def test_nothing_to_compare_is_an_error_with_a_hint(chosen: list[str], healthy: list[str]):
    for arguments in (chosen, [*chosen, healthy[0]]):
        done = run(*arguments)
        assert done.exit_code == 4 and not done.stdout
        assert re.fullmatch(r"foreshock: error: .*it takes two\.\nhint: gone.fsk.*\n", done.stderr)


def test_recordings_that_are_too_short_are_an_error(tmp_path: Path):
    done = run(*write_twins(tmp_path, 3, seconds=1))
    assert done.exit_code == 4
    assert "window in common" in done.stderr or "it takes two" in done.stderr


def test_no_files_is_a_usage_error():
    assert run().exit_code == 2


def test_json_says_what_the_text_says(healthy: list[str], ill: str):
    done = run("--json", *healthy, ill)
    assert done.exit_code == 1
    tree = json.loads(done.stdout)
    assert tree["schema"] == "foreshock.compare/1"
    assert tree["verdict"].startswith("node cu99 is the straggler")
    (suspect,) = tree["suspects"]
    first = suspect["deviations"][0]
    assert (suspect["node"], suspect["cause"], first["series"], first["part"]) == (
        *("cu99", "softirq"),
        *("softirq.delay", "NET_RX"),
    )
    assert first["value"] > first["peers_median"] > 1e-7 and first["unit"] == "s"
    assert first["peers_low"] <= first["peers_median"] <= first["peers_high"]
    assert {"setting", "suspects", "twins", "agree", "of"} == {*tree["differences"][0]}


@pytest.mark.parametrize("width", [40, 80, 100, 200])
def test_every_line_fits_and_hostile_names_are_escaped(width: int, tmp_path: Path):
    source = read_recording(DEMO)
    paths = write_twins(tmp_path, 8)
    facts = {"fingerprint": {HOSTILE: {HOSTILE: HOSTILE * 50}}}
    paths.append(str(twin(tmp_path / f"{HOSTILE[:4]}.fsk", source, HOSTILE, change=ILL, header=facts)))
    broken = tmp_path / "\x1b]0;x\x07.fsk"
    broken.write_text("no")
    for arguments in ([*paths, str(broken)], ["--json", *paths, str(broken)]):
        done = run(*arguments, width=width)
        assert done.exit_code == 1
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", done.stdout)
        if arguments[0] != "--json":
            assert all(display_width(line) <= width for line in done.stdout.splitlines())
    assert HOSTILE not in str(json.loads(done.stdout))


def test_who_had_the_cpu_is_told_where_it_was_seen(tmp_path: Path):
    """The sample's own hog, which takes CPU 1 now and then, and none of that on its twins."""

    def calm(number: int, window: Window) -> Window:
        if window.probe != "runqueue":
            return window
        rows = window.rows.copy()
        if window.table == "worst":
            return replace(window, rows=rows[:0])
        rows["slots"][:, 150:] = 0
        return replace(window, rows=rows)

    paths = write_twins(tmp_path, 9, {place: calm for place in range(9) if place != 4})
    said = " ".join(run(*paths, width=100).stdout.split())
    assert re.match(
        r"node cu04 (is|may be) the straggler: run-queue wait mean .* since the start, CPU 1; hog\[\d+\] had the CPU",
        said,
    )
    assert "likely cause: scheduler" in said and "has it on its peers" not in said


def test_a_task_that_all_nodes_have_is_not_what_differs(tmp_path: Path):
    """The sample's hog is on every twin; waits of one of them are longer for another reason."""
    paths = write_twins(tmp_path, 9, {4: slower(("runqueue", "wait"), 40)})
    said = " ".join(run(*paths, width=100).stdout.split())
    assert re.match(r"node cu04 .* hog\[\d+\] had the CPU, as on its peers", said), said
    assert "CPU 1. Who had the CPU there has it on its peers for as long. Next: foreshock summary" in said
    suspect = json.loads(run(*paths, "--json").stdout)["suspects"][0]
    assert suspect["node"] == "cu04" and suspect["who_is_usual"] is True


@pytest.mark.parametrize(("factor", "usual"), [(1, True), (10, False)])
def test_softirqs_that_hold_tasks_up_on_all_nodes_are_not_what_differs(factor: int, usual: bool):
    """Waits on two nodes of which softirqs had the CPU for most, on one of them ``factor`` times as long."""

    def waited(ns: int) -> Summary:
        made = Summary(source=Source())
        row = np.zeros(1, [(name, "u8") for name in ("wait_ns", "covered_ns", "softirq_ns", "cpu", "waited_cpu")])
        row["wait_ns"] = row["covered_ns"] = row["softirq_ns"] = ns
        made.add_interval([Window("runqueue", "worst", 0, 10**9, row)])
        return made

    assert _is_usual("softirq", "", waited(factor * 10**6), [waited(10**6)] * 3) is usual
    assert not _is_usual("idle", "", waited(10**6), [waited(10**6)] * 3)


def test_the_headline_counts_what_it_does_not_name(healthy: list[str], ill: str):
    comparison = compared([*healthy, ill])
    (one,) = comparison.suspects
    five = replace(comparison, suspects=tuple(replace(one, label=f"n{number}") for number in range(5)))
    said = headline(five, {})
    assert said.startswith("5 of 10 nodes are stragglers: n0 (") and said.endswith(" and 2 more")
    assert "no single one" in headline(replace(five, labels=five.labels[:8]), {})
    assert "; a[7] had the CPU" in headline(comparison, {"cu99": Detail(holder="a", pid=7)})
    assert "quota" in " ".join(render(comparison, {"cu99": Detail(throttled=True)}))
    assert np.isnan(replace(comparison.grid, by_start=True).unix_ns(0))
    lines = " ".join(render(replace(comparison, grid=replace(comparison.grid, by_start=True)), {}))
    assert "different times" in lines


def test_a_page_has_the_straggler_beside_twins_that_are_set_up_alike(healthy: list[str], ill: str, tmp_path: Path):
    path = tmp_path / "page.html"
    done = run("--html", str(path), *healthy, ill)
    assert done.exit_code == 1 and f"report: {path}" in done.stderr, done.output
    html = path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600 and len(html) < 10 << 20
    main_, *twins = (Data(one).tree for one in re.findall(r'type="application/octet-stream">(.*?)</script>', html))
    assert main_["title"] == "cu99" and len(twins) == 3
    assert {one["title"] for one in twins} <= {Path(one).stem for one in healthy}
    assert all(one["differences"] == [["sysctl / vm.swappiness", "1", "60"]] for one in twins)
    found = main_["comparison"]
    assert found["headline"].startswith("node cu99 is the straggler") and found["headline"] in done.stdout.replace(
        "\n  ", " "
    )
    assert found["series"] == "softirq.delay NET_RX" and found["tables"][0]["rows"][0][0] == "cu99"
    assert found["tables"][0]["notes"][1].startswith("Next: ")
    assert found["tables"][1]["rows"] == [["sysctl / vm.swappiness", "1", "60", "100 %"]]
    time = main_["time"]
    assert found["since_unix_ms"] == pytest.approx(time["start_unix_ms"] + 30_000, abs=2500)
    assert "exists" in run("--html", str(path), *healthy, ill).stderr


def test_there_is_no_page_where_nobody_deviates_or_of_what_has_none(healthy: list[str], tmp_path: Path):
    path = tmp_path / "page.html"
    done = run("--html", str(path), *healthy)
    assert done.exit_code == 0 and "there is no page to write" in done.stderr and not path.exists()
    for arguments in (["--html", "-"], ["--overwrite"], ["--html", str(path), "--by", "kernel"]):
        refused = run(*arguments, *healthy)
        assert refused.exit_code == 2 and len(refused.stderr.splitlines()) == 2, refused.output
