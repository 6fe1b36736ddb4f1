"""The report as text, and what changed against a baseline: the same findings and tables in 80 columns."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from unit.deep_samples import DEEP_HEADER, HZ, SAMPLE, deep_windows
from unit.report_data import Data
from unit.synthetic import SECOND, START, Node, hog_interval

from tracer.analysis.frames import Frame
from tracer.commands import main
from tracer.commands._gathering import gather
from tracer.recording import RecordingWriter
from tracer.reports.sections.functions import changed_functions
from tracer.units import display_width
from tracer.window import Window

SECONDS = 8


def samples(second: int, *stacks: tuple[int, int]) -> list[Window]:
    """Return a second's stacks on the CPU: (stack, samples)."""
    rows = np.array([(0, 60, 60, b"hog", stack, weight) for stack, weight in stacks], SAMPLE)
    start = START + second * SECOND
    _, *told = deep_windows(second)[:3]
    return [Window("oncpu", "samples", start, start + SECOND, rows), *told]


def written(path: Path, *stacks: tuple[int, int], ill: bool = False, governor: str, host: str) -> Path:
    node = Node(cpus=2)
    header = {**DEEP_HEADER, "host": host, "fingerprint": {"cpu": {"governor": governor}, "kernel": {"release": "6.1"}}}
    with RecordingWriter(path, header) as writer:
        for second in range(SECONDS):
            busy = {1: (0.9, 0.05, 0.02)} if ill else {}
            windows = hog_interval(node) if ill and second == 3 else node.interval(busy=busy)
            writer.write([*windows, *samples(second, *stacks)])
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two")
    # 71 is spin, 72 __schedule, 74 operator new: one grew, one vanished, one is new.
    written(folder / "bad.fsk", (71, 40), (72, 10), ill=True, governor="powersave", host="gpu-1")
    written(folder / "good.fsk", (71, 10), (74, 5), governor="performance", host="gpu-2")
    return folder


def report(folder: Path, *arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, ["report", *(one.replace("DIR", str(folder)) for one in arguments)])
    assert result.exit_code == code, result.output
    return result


def cells(text: str, title: str, row: str) -> list[str]:
    """Return the cells of one row of the table with this title."""
    (body,) = re.findall(rf"^{re.escape(title)}.*\n((?:.+\n)+)", text, re.M)
    (line,) = (line for line in body.splitlines() if line.split()[:1] == row.split()[:1] and row in line)
    return re.split(r" {2,}", line.strip())


def test_it_has_the_findings_and_tables_of_the_page(folder):
    text = report(folder, "DIR/bad.fsk", "--text").stdout
    data = re.findall(r'<script id="data"[^>]*>(.*?)</script>', report(folder, "DIR/bad.fsk", "-o", "-").stdout)
    tree = Data(data[0]).tree
    assert tree["findings"] and tree["marks"]
    told = [tree["headline"], *(one[key] for one in tree["findings"] for key in ("what", "next"))]
    for one in [*told, *(mark["text"] for mark in tree["marks"])]:
        assert " ".join(one.split()) in " ".join(text.split())
    assert cells(text, "FUNCTIONS  On CPU, by their own time", "spin")[2:] == ["6.4 s", "80 %", "80 %"]
    assert cells(text, "FUNCTIONS  On CPU, by their own time", "main")[2:] == ["0 ns", "0 %", "100 %"]
    assert all(display_width(line) <= 80 for line in text.splitlines())
    assert text.isprintable() or not set(text) & set(map(chr, [*range(10), *range(11, 32), 127]))


def test_against_a_baseline_it_says_what_changed_and_what_vanished(folder):
    text = report(folder, "DIR/bad.fsk", "--text", "--baseline", "DIR/good.fsk").stdout
    assert "good.fsk of gpu-2: Nothing stands out" in text
    waits = cells(text, "WHAT CHANGED  latencies, those that changed most first", "runqueue.wait")
    assert waits[4] == "≤ 1 s" and waits[6] == "×>999", waits
    title = "FUNCTIONS  On CPU, those whose own time changed most"
    assert cells(text, title, "spin")[-3:] == ["800 ms/s", "200 ms/s", "×4"]
    assert cells(text, title, "__schedule_[k]")[-3:] == ["200 ms/s", "0 ns/s", "new"]
    assert cells(text, title, "operator new(unsigned long) 7")[-3:] == ["0 ns/s", "100 ms/s", "gone"]
    cpu = cells(text, "WHAT CHANGED  CPU time, now and in the baseline", "1")
    assert abs(int(cpu[1].split()[0]) - 90) <= 2 and abs(int(cpu[2].split()[0]) - 37) <= 3, cpu
    assert cells(text, "WHAT DIFFERS", "cpu / governor") == ["cpu / governor", "powersave", "performance"]
    assert "kernel / release" not in text
    assert all(display_width(line) <= 80 for line in text.splitlines())


def test_a_recording_has_not_changed_against_itself(folder):
    text = report(folder, "DIR/good.fsk", "--text", "--baseline", "DIR/good.fsk").stdout
    changes = text[text.index("WHAT CHANGED") : text.index("RUN QUEUE  time")]
    assert not re.search(r"[+−×]\d|\b(?:new|gone)\b", changes.replace("operator new", ""))
    assert "as in the baseline" in changes and "set up alike" in changes


def test_what_may_be_chance_is_in_brackets_and_last():
    main_, few, many = (Frame(False, "hog", name) for name in ("main", "few", "many"))
    before = {main_: (0.0, 9e9), few: (5 * 20e6, 9e9), many: (1000 * 20e6, 9e9)}
    now = {main_: (0.0, 9e9), few: (9 * 20e6, 9e9), many: (1200 * 20e6, 9e9)}
    for sample_ns, expected in (
        (20e6, [("many", "+20 %"), ("few", "(+80 %)")]),
        (0, [("many", "+20 %"), ("few", "+80 %")]),
    ):
        section = changed_functions("On CPU", before, now, (10.0, 10.0), sample_ns)
        assert [(row[0], row[-1]) for row in section.rows] == expected
    # Nothing in a tenth of the time is nothing.
    section = changed_functions("On CPU", {}, {few: (5 * 20e6, 0.0)}, (1.0, 10.0), 20e6)
    assert section.rows[0][-1] == "(new)" and "chance" in section.notes[0]


def test_the_page_holds_both_and_stays_within_its_size(folder):
    html = report(folder, "DIR/bad.fsk", "--baseline", "DIR/good.fsk", "-o", "-", "--max-size", "1MiB").stdout
    assert len(html.encode()) <= 1 << 20
    (beside,) = re.findall(r'<script type="application/octet-stream">(.*?)</script>', html)
    tree = Data(beside).tree
    assert (tree["title"], tree["differences"]) == ("good.fsk", [["cpu / governor", "powersave", "performance"]])


def test_functions_count_once_per_stack(folder):
    found = gather(str(folder / "bad.fsk")).payload.graphs.functions()["On CPU"]
    period = SECOND / HZ
    spin, main_ = Frame(False, "hog", "spin"), Frame(False, "hog", "main")
    assert found[spin] == pytest.approx((SECONDS * 40 * period,) * 2)
    assert found[main_] == pytest.approx((0, SECONDS * 50 * period))


def test_where_it_goes(folder, tmp_path):
    report(folder, "DIR/bad.fsk", "--text", "-o", str(tmp_path / "out.txt"))
    path = tmp_path / "out.txt"
    assert path.stat().st_mode & 0o777 == 0o600 and "VERDICT" in path.read_text()
    assert "exists" in report(folder, "DIR/bad.fsk", "--text", "-o", str(path), code=5).stderr
    assert "--max-size would do nothing" in report(folder, "DIR/bad.fsk", "--text", "--max-size", "2MiB", code=2).stderr
    assert "can't be read" in report(folder, "DIR/bad.fsk", "--text", "--baseline", "DIR/none", code=4).stderr
    assert "can't be both" in report(folder, "-", "--text", "--baseline", "-", code=2).stderr


def test_columns_are_obeyed_in_a_pipe_and_a_named_one_is_waited_for(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "132")
    assert 100 < max(map(len, report(folder, "DIR/bad.fsk", "--text").stdout.splitlines())) <= 132
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes((folder / "bad.fsk").read_bytes()))
    writer.start()
    found = report(folder, str(pipe), "--text")
    writer.join()
    assert "is a named pipe: waits until somebody writes to it" in found.stderr and "VERDICT" in found.stdout


def test_a_recording_that_was_cut_off_is_read_up_to_there_and_one_with_a_hole_is_an_error(folder, tmp_path):
    data = (folder / "bad.fsk").read_bytes()
    (tmp_path / "cut.fsk").write_bytes(data[: len(data) - 100])
    assert "was cut off after" in report(folder, str(tmp_path / "cut.fsk"), "--text").stderr
    (tmp_path / "hole.fsk").write_bytes(data[:-200] + bytes([data[-200] ^ 1]) + data[-199:])
    assert "is damaged" in report(folder, str(tmp_path / "hole.fsk"), "--text", code=4).stderr
