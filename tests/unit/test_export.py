"""Exports are what their readers' own rules ask for, with nothing lost and no name taken for anything else."""

from __future__ import annotations

import csv
import gzip
import importlib.util
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import fastjsonschema
import numpy as np
import pytest
from click.testing import CliRunner, Result
from unit.deep_samples import (
    DEEP_HEADER,
    EVIL,
    FRAME_OF_BUILD,
    HZ,
    SAMPLE,
    STACK,
    deep_windows,
    still_windows,
    write_deep,
)
from unit.report_data import Data
from unit.synthetic import OFFSET, SECOND, START

from tracer.analysis.sums import Sums
from tracer.commands import main
from tracer.commands._range import RANGE
from tracer.difference.reading import read_sides
from tracer.escape import printable
from tracer.histogram import edges_ns
from tracer.recording import RecordingWriter, read_recording
from tracer.reports.html.payload import Payload
from tracer.window import Window

PERIOD = SECOND // HZ
#: All of ``write_deep``: 4 s of 47 samples, and of blocks.
ON_NS, OFF_NS = 4 * 47 * PERIOD, 4 * (SECOND // 2) + 6 + 4 * 7
# What flamegraph.pl and speedscope read, by their own regular expressions.
FLAMEGRAPH = re.compile(r"^(.*)\s+?(\d+(?:\.\d*)?)$")
SPEEDSCOPE = re.compile(r"^(.*) (\d+)$")


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_deep(tmp_path_factory.mktemp("deep") / "node.fsk")


@pytest.fixture(scope="module")
def profile_pb2(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """pprof's own messages, compiled from its profile.proto."""
    folder = tmp_path_factory.mktemp("proto")
    source = checkout / "tests/vendored"
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{source}", f"--python_out={folder}", "profile.proto"]
    subprocess.run(command, check=True)
    spec = importlib.util.spec_from_file_location("profile_pb2", folder / "profile_pb2.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def export(*arguments: str | Path, code: int = 0) -> Result:
    result = CliRunner().invoke(main, ["export", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result


def refused(code: int, *arguments: str | Path) -> str:
    """Return what is said: one line and a hint, and nothing on standard output."""
    result = export(*arguments, code=code)
    assert result.stdout == "" and len(result.stderr.splitlines()) == 2, result.output
    return result.stderr


def folded(*arguments: str | Path) -> dict[str, int]:
    lines = export(*arguments, "--format", "folded").stdout.splitlines()
    found = {}
    for line in lines:
        match = SPEEDSCOPE.match(line)
        assert match and not FLAMEGRAPH.match(match[1]), "a second number would be another weight"
        assert FLAMEGRAPH.match(line)
        assert line.isprintable()
        found[match[1]] = int(match[2])
    return found


def test_folded_has_every_ns_under_its_task_and_stack(recording):
    found = folded(recording)
    assert found["on-CPU;hog;main;spin"] == 4 * 40 * PERIOD
    assert found["off-CPU;hog;main;nvme_wait_[k];__schedule_[k]"] == 4 * (SECOND // 2) + 6
    assert found["off-CPU;?;[no stack]"] == 4 * 7
    assert sum(found.values()) == ON_NS + OFF_NS


def test_names_end_no_frame_no_line_and_no_weight(recording):
    found = folded(recording, "--series", "oncpu")
    (evil,) = (stack for stack in found if "script" in stack)
    assert evil.count(";") == 2
    assert evil.endswith(r"onerror=alert(1)>:\x0a\x1b[2J\u202e\xff_12")
    assert found["hog;main;operator new(unsigned long)_7"] == 4 * 2 * PERIOD


def test_one_kind_alone_has_no_frame_of_its_own(recording):
    assert sum(folded(recording, "--series", "offcpu").values()) == OFF_NS
    assert "hog;main;spin" in folded(recording, "--series", "oncpu.samples")


def clock(seconds: float, *, date: bool = False) -> str:
    """Return a moment of the recording as UTC says it."""
    text = str(np.datetime64(START + OFFSET + int(seconds * SECOND), "ns"))
    return text if date else text.partition("T")[2]


@pytest.mark.parametrize(
    ("part", "seconds"),
    [
        ("1s..2s", 1),
        ("1500ms..", 3),  # intervals are whole, and belong where their middle lies
        ("1600ms..", 2),
        ("900ms..1900ms", 1),
        ("..2s", 2),
        (f"{clock(2)}..{clock(3)}", 1),
        (f"{clock(0.5, date=True)}..{clock(0.6, date=True)}", 1),
        (f"{clock(3)[:8]}Z..", 1),
    ],
)
def test_a_range_counts_from_the_start_or_by_the_clock(recording, part, seconds):
    assert sum(folded(recording, "--series", "oncpu", "--range", part).values()) == seconds * 47 * PERIOD


@pytest.mark.parametrize("parts", [["4s..5s", "..4s"], ["..1500ms", "1500ms..1700ms", "1700ms.."], [".."]])
def test_a_block_that_went_on_at_the_end_has_its_part_of_every_range(tmp_path, parts):
    """One began 3.5 s before the end of 5 s, one before the recording."""
    blocked = {"o": 3 * SECOND + SECOND // 2, "a": 5 * SECOND + 7}
    path = tmp_path / "still.fsk"
    with RecordingWriter(path, DEEP_HEADER) as writer:
        for second in range(4):
            writer.write(deep_windows(second))
        writer.write(still_windows(4, **blocked))
    added = dict.fromkeys(blocked, 0)
    for part in parts:
        found = folded(path, "--series", "offcpu", "--idle", *([] if part == ".." else ["--range", part]))
        for kind in added:
            added[kind] += found.get(f"{kind};[no stack]", 0)
    assert added == blocked
    found = folded(path, "--series", "offcpu", "--idle", "--range", "4s..5s")
    assert {kind: found[f"{kind};[no stack]"] for kind in blocked} == dict.fromkeys(blocked, SECOND)
    assert "o;[no stack]" not in folded(path, "--series", "offcpu", "--idle", "--range", "..1500ms")


@pytest.mark.parametrize(("first", "last"), [(0, 2), (1, 3), (3, 5), (0, 5)])
def test_a_range_is_the_same_time_as_in_the_page_where_a_probe_began_early(tmp_path, first, last):
    """Two threads are blocked all along: what they weigh in a range shows its ends to the nanosecond."""
    path, payload = tmp_path / "early.fsk", Payload(DEEP_HEADER)
    intervals = [deep_windows(second) for second in range(4)] + [still_windows(4, o=4 * SECOND, a=9 * SECOND)]
    early = [place for place, one in enumerate(intervals[0]) if one.probe == "oncpu"][0]
    intervals[0].insert(0, replace(intervals[0].pop(early), start_ns=START - 33_000_000))
    with RecordingWriter(path, DEEP_HEADER) as writer:
        for windows in intervals:
            writer.write(windows)
            payload.add_interval(windows)
    data = Data(payload.text(8 << 20))
    assert (data.tree["time"]["start_ns"], data.tree["time"]["bins"]) == (START, 5)
    (flame,) = (one for one in data.tree["flames"] if one["name"] == "offcpu")
    bins, weights = data.array(flame["bins"]), data.array(flame["weights"])
    shown = weights[(bins >= first) & (bins < last)].sum()
    for part in (f"{first}s..{last}s", f"{first * 1000 + 300}ms..{last * 1000 - 300}ms"):
        assert sum(folded(path, "--series", "offcpu", "--idle", "--range", part).values()) == shown
    time = RANGE.convert(f"{first}s..{last}s", None, None)
    _, side = read_sides([str(path)] * 2, [time.monotonic_ns])
    assert side.summary.intervals.count == last - first


def test_stacks_told_before_the_range_are_known_in_it(recording):
    assert "hog;main;spin" in folded(recording, "--series", "oncpu", "--range", "3s..4s")


def test_process_and_cpu_filters_take_their_samples_only(recording):
    assert set(folded(recording, "--pid", "9", "--series", "offcpu")) == {"?;[no stack]"}
    assert sum(folded(recording, "--cpus", "0", "--series", "oncpu").values()) == 4 * 40 * PERIOD


def test_speedscope_reads_its_own_schema_and_the_weights_are_all_there(recording, checkout):
    schema = json.loads((checkout / "tests/vendored/speedscope.schema.json").read_text())
    document = json.loads(export(recording, "--format", "speedscope").stdout)
    fastjsonschema.compile(schema)(document)
    profiles = {one["name"]: one for one in document["profiles"]}
    assert list(profiles) == [
        "on-CPU: all",
        "on-CPU: hog[60]",
        f'on-CPU: "{printable(EVIL[:16])}"[9]',
        "off-CPU: all",
        "off-CPU: hog[60]",
        "off-CPU: pid 9",
    ]
    frames = [frame["name"] for frame in document["shared"]["frames"]]
    for name, ns in (("on-CPU: all", ON_NS), ("off-CPU: all", OFF_NS)):
        one = profiles[name]
        assert one["unit"] == "nanoseconds"
        assert len(one["samples"]) == len(one["weights"])
        assert sum(one["weights"]) == one["endValue"] == ns
    stacks = [[frames[place] for place in stack] for stack in profiles["off-CPU: all"]["samples"]]
    assert ["hog", "main", "nvme_wait", "__schedule"] in stacks
    assert {"name": "nvme_wait", "file": "[nvme]"} in document["shared"]["frames"]


def test_a_process_that_became_another_program_is_called_by_all_its_names_the_heaviest_first(tmp_path):
    windows = deep_windows(0)
    rows = np.array([(0, 60, 60, b"the shell", 71, 41), (0, 60, 65, b"a thread", 71, 60)], SAMPLE)
    windows[0] = replace(windows[0], rows=np.concatenate([windows[0].rows, rows]))
    with RecordingWriter(tmp_path / "x.fsk", DEEP_HEADER) as writer:
        writer.write(windows)
    names = [one["name"] for one in json.loads(export(tmp_path / "x.fsk", "--format", "speedscope").stdout)["profiles"]]
    assert names[1] == 'on-CPU: "the shell", hog[60]'


def test_pprof_is_what_its_proto_says(recording, profile_pb2):
    profile = profile_pb2.Profile.FromString(gzip.decompress(export(recording, "--format", "pprof").stdout_bytes))
    text = list(profile.string_table)
    assert text[0] == "" and len(set(text)) == len(text)
    types = [(text[one.type], text[one.unit]) for one in profile.sample_type]
    assert types == [("samples", "count"), ("cpu", "nanoseconds"), ("blocks", "count"), ("off_cpu", "nanoseconds")]
    assert text[profile.default_sample_type] == "cpu"
    assert profile.period == PERIOD
    assert (profile.time_nanos, profile.duration_nanos) == (START + OFFSET, 4 * SECOND)
    functions = {one.id: text[one.name] for one in profile.function}
    locations = {one.id: one for one in profile.location}
    mappings = {one.id: text[one.filename] for one in profile.mapping}
    assert 0 not in {*functions, *locations, *mappings}
    totals = np.zeros(4, np.int64)
    stacks: dict[tuple[str, ...], list[int]] = {}
    for sample in profile.sample:
        totals += list(sample.value)
        labels = {text[one.key]: text[one.str] or one.num for one in sample.label}
        assert set(labels) == {"comm", "pid", "tid"}
        names = tuple(functions[locations[one].line[0].function_id] for one in sample.location_id)
        stacks[names] = list(sample.value)
    assert totals.tolist() == [4 * 47, ON_NS, 4 * 4, OFF_NS]
    # The innermost first.
    assert stacks["spin", "main"] == [160, 160 * PERIOD, 0, 0]
    assert stacks["__schedule", "nvme_wait", "main"][2:] == [12, 4 * (SECOND // 2) + 6]
    spin = next(one for one in profile.location if functions[one.line[0].function_id] == "spin")
    assert mappings[spin.mapping_id] == "hog"


def test_pprof_has_what_a_later_symbolisation_takes(recording, profile_pb2, tmp_path):
    frames = np.array(
        [
            (1, b"u", b"libx.so", b"named", b"aa01"),
            (2, b"u", b"libx.so", b"[unknown libx.so+0x1f40]", b"aa01"),
            (3, b"u", b"libx.so", b"[unknown libx.so+0x1f40]", b"bb02"),  # another build, in a container
            (4, b"u", b"other", b"main", b""),
            (5, b"k", b"[kernel]", b"[unknown kernel+0x99]", b""),
            (6, b"u", b"", b"[unknown 0x7f00]", b""),
        ],
        FRAME_OF_BUILD,
    )
    stacks = np.array([(9, 5 - depth, number) for depth, number in enumerate((4, 1, 2, 3, 6, 5))], STACK)
    samples = np.array([(0, 60, 60, b"hog", 9, 40)], SAMPLE)
    path = tmp_path / "builds.fsk"
    with RecordingWriter(path, DEEP_HEADER) as writer:
        told = {"samples": samples, "stacks": stacks, "frames": frames}
        writer.write([Window("oncpu", table, START, START + SECOND, rows, {}) for table, rows in told.items()])
    profile = profile_pb2.Profile.FromString(gzip.decompress(export(path, "--format", "pprof").stdout_bytes))
    text = list(profile.string_table)
    mappings = {one.id: one for one in profile.mapping}
    named = {number: (text[one.filename], text[one.build_id]) for number, one in mappings.items()}
    assert sorted(named.values()) == [("[kernel]", ""), ("libx.so", "aa01"), ("libx.so", "bb02"), ("other", "")]
    functions = {one.id: text[one.name] for one in profile.function}
    found = {}
    for one in profile.location:
        mapping = mappings.get(one.mapping_id)
        # profile.proto: an address lies between its mapping's start and limit.
        assert not one.address or mapping.memory_start <= one.address < mapping.memory_limit
        (line,) = one.line
        found[functions[line.function_id], named.get(one.mapping_id)] = one.address
    assert found == {
        ("main", ("other", "")): 0,
        ("named", ("libx.so", "aa01")): 0,
        ("[unknown libx.so+0x1f40]", ("libx.so", "aa01")): 0x1F40,
        ("[unknown libx.so+0x1f40]", ("libx.so", "bb02")): 0x1F40,
        ("[unknown 0x7f00]", None): 0,
        ("[unknown kernel+0x99]", ("[kernel]", "")): 0,
    }
    # What a symboliser leaves alone has all its functions.
    assert {named[number][0]: one.has_functions for number, one in mappings.items()} == {
        "other": True,
        "[kernel]": True,
        "libx.so": False,
    }


def windows_of(document: dict[str, Any], probe: str, table: str) -> list[dict[str, Any]]:
    return [one for one in document["windows"] if (one["probe"], one["table"]) == (probe, table)]


def test_json_has_every_row_of_every_table(recording):
    document = json.loads(export(recording, "--format", "json").stdout)
    assert document["schema"] == "foreshock.export/1"
    assert document["header"]["host"] == "gpu-0417"
    read = [window for windows in read_recording(recording).intervals for window in windows]
    assert len(document["windows"]) == len(read)
    for told, window in zip(document["windows"], read, strict=True):
        assert (told["probe"], told["table"], told["start_ns"]) == (window.probe, window.table, window.start_ns)
        assert told["losses"] == dict(window.losses)
        assert len(told["rows"]) == len(window.rows)
    row, slots = (
        windows_of(document, "runqueue", "wait")[0]["rows"][0],
        next(window for window in read if (window.probe, window.table) == ("runqueue", "wait")).rows["slots"][0],
    )
    assert row["count"] == slots.sum()
    assert dict(row["buckets"]) == {int(edges_ns()[slot]): int(slots[slot]) for slot in np.flatnonzero(slots)}


def test_a_reader_with_doubles_only_loses_no_digit(recording, tmp_path):
    path = tmp_path / "big.fsk"
    rows = np.zeros(3, [("stack", "u8"), ("rx_bytes", "u8"), ("offset_ns", "i8"), ("many", "u8", (2,))])
    rows["stack"], rows["rx_bytes"] = (2**64 - 1, 2**53 + 1, 7), (2**64 - 1, 2**53 + 1, 2**53 - 1)
    rows["offset_ns"], rows["many"] = (-(2**63), -(2**53) - 1, 5), 2**60 + 1
    window = type(read_recording(recording).intervals[0][0])("x", "y", 2**53 + 1, 2**53 + 3, rows, {"lost": 2**63 + 1})
    with RecordingWriter(path, {"probes": []}) as writer:
        writer.write([window])
    text = export(path, "--format", "json").stdout
    (told,) = json.loads(text, parse_int=lambda digits: int(float(digits)))["windows"]  # as JavaScript does
    assert [int(told[name]) for name in ("start_ns", "end_ns")] == [2**53 + 1, 2**53 + 3]
    assert int(told["losses"]["lost"]) == 2**63 + 1
    for name in rows.dtype.names:
        found = [[*map(int, one[name])] if isinstance(one[name], list) else int(one[name]) for one in told["rows"]]
        assert found == rows[name].tolist(), name
    # An id is text, whatever its size; other numbers are numbers as long as they can be.
    assert [one["stack"] for one in told["rows"]] == list(map(str, rows["stack"].tolist()))
    assert told["rows"][2]["rx_bytes"] == 2**53 - 1


def test_csv_of_one_table_can_be_read_back_and_is_no_formula(recording, tmp_path):
    text = export(recording, "--format", "csv", "--series", "cpustate.time", code=2).stderr
    assert "no series 'cpustate.time'" in text  # the header decides
    lines = export(recording, "--format", "csv", "--series", "runqueue.wait").stdout.splitlines()
    rows = list(csv.DictReader(lines))
    assert len(rows) == 4 * 2
    assert rows[0]["time"] == f"{np.datetime64(START + OFFSET, 'ns')}Z"
    assert sum(int(pair.partition(":")[2]) for pair in rows[0]["buckets"].split()) == int(rows[0]["count"])
    path = tmp_path / "formula.fsk"
    rows_in = np.array([(b"=cmd|' /C calc'!A0", 3), (b'a,"b"\nc', 4)], [("name", "S32"), ("value", "u4")])
    window = read_recording(recording).intervals[0][0]
    with RecordingWriter(path, {"probes": []}) as writer:
        writer.write([type(window)("x", "y", 1, 2, rows_in)])
    found = list(csv.DictReader(export(path, "--format", "csv", "--series", "x.y").stdout.splitlines()))
    assert [one["name"] for one in found] == ["'=cmd|' /C calc'!A0", 'a,"b"\\x0ac']


def test_csv_of_all_tables_is_a_folder_with_a_file_each(recording, tmp_path):
    assert "--series" in refused(2, recording, "--format", "csv")
    export(recording, "--format", "csv", "-o", tmp_path / "tables")
    names = {f"{one.probe}.{one.table}.csv" for windows in read_recording(recording).intervals for one in windows}
    files = list((tmp_path / "tables").iterdir())
    assert {path.name for path in files} == names
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert (tmp_path / "tables").stat().st_mode & 0o777 == 0o700
    assert "a folder is not replaced" in refused(5, recording, "--format", "csv", "-o", tmp_path / "tables")


def test_a_file_is_whole_private_and_never_replaced_unasked(recording, tmp_path):
    output = tmp_path / "out.folded"
    export(recording, "--format", "folded", "-o", output)
    assert output.stat().st_mode & 0o777 == 0o600
    before = output.read_bytes()
    assert "exists" in refused(5, recording, "--format", "json", "-o", output)
    assert output.read_bytes() == before
    export(recording, "--format", "json", "-o", output, "--overwrite")
    assert output.read_bytes() != before
    assert "folder" in refused(5, recording, "--format", "json", "-o", tmp_path)
    assert "no such file" in refused(5, recording, "--format", "json", "-o", tmp_path / "no" / "x")
    assert [path.name for path in tmp_path.iterdir()] == ["out.folded"]


def test_what_can_not_be_is_one_line_with_a_hint(recording, tmp_path):
    shallow = tmp_path / "shallow.fsk"
    with RecordingWriter(shallow, {"probes": []}) as writer:
        writer.write(read_recording(recording).intervals[1][:3])
    assert "record --deep" in refused(2, shallow, "--format", "folded", "-o", tmp_path / "x")
    assert "did you mean 'speedscope'?" in refused(2, recording, "--format", "speedscop")
    assert "did you mean 'offcpu'?" in refused(2, recording, "--format", "json", "--series", "ofcpu")
    assert "no stacks of that part" in refused(2, recording, "--format", "pprof", "--pid", "12345")
    assert "ends before it starts" in refused(2, recording, "--format", "json", "--range", "3s..2s")
    assert "is no range" in refused(2, recording, "--format", "json", "--range", "..")
    assert "no list of CPUs" in refused(2, recording, "--format", "json", "--cpus", "x")
    assert "its node has 8 CPUs" in refused(2, recording, "--format", "json", "--cpus", "8-11")
    assert "can't be read" in refused(4, tmp_path / "none.fsk", "--format", "json")
    assert not (tmp_path / "x").exists()


def test_a_recording_cut_off_is_exported_as_far_as_it_goes_and_damage_is_an_exit_code(recording, tmp_path):
    data = recording.read_bytes()
    cut, damaged = tmp_path / "cut.fsk", tmp_path / "damaged.fsk"
    cut.write_bytes(data[:-200])
    result = export(cut, "--format", "folded")
    assert "cut off" in result.stderr and "hog;main;spin" in result.stdout
    damaged.write_bytes(data[:-200] + bytes(200))
    assert "damaged" in export(damaged, "--format", "folded", code=4).stderr


def test_a_reader_that_goes_away_is_no_error_of_ours(recording):
    read, write = os.pipe()
    command = [sys.executable, "-m", "tracer", "export", str(recording), "--format", "json"]
    process = subprocess.Popen(command, stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    os.close(read)
    assert process.communicate()[1] == b""
    assert process.returncode == 141


def test_sums_are_those_of_a_dict_and_totals_survive_too_many_keys():
    random = np.random.default_rng(4)
    keys = np.dtype([("pid", "u4"), ("comm", "S16")])
    sums, few = Sums(keys, ("weight",)), Sums(keys, ("weight",), most=10)
    expected: dict[tuple[int, bytes], int] = {}
    for _ in range(60):
        rows = np.zeros(10_000, [*keys.descr, ("weight", "u8")])
        rows["pid"] = random.integers(0, 300, 10_000)
        rows["comm"] = np.array([b"a", b"b", b"longer name"])[random.integers(0, 3, 10_000)]
        rows["weight"] = random.integers(0, 1000, 10_000)
        sums.add(rows)
        few.add(rows)
        for pid, comm, weight in rows.tolist():
            expected[pid, comm] = expected.get((pid, comm), 0) + weight
    assert {(pid, comm): weight for pid, comm, weight in sums.rows().tolist()} == expected
    assert len(few.rows()) == 10
    assert int(few.rows()["weight"].sum()) + few.other["weight"] == sum(expected.values())
