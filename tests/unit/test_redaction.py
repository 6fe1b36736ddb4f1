"""Reports and exports without names: nobody is named, numbers, the kernel's functions and our own words stay."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from unit.blackbox_samples import sample_box
from unit.deep_samples import DEEP_HEADER, FRAME, OFF, SAMPLE, STACK
from unit.report_data import Data
from unit.synthetic import SECOND, START, Node, hog_interval

from tracer.blackbox.redact import Redactor
from tracer.commands import main
from tracer.recording import RecordingWriter
from tracer.window import Window

KEY = b"0123456789abcdef"
#: Tasks that are called like words of ours, and like a function of the kernel.
WORDS = (b"CPU", b"softirq", b"wait", b"critical", b"nvme_wait", b"tasks", b"oncpu")
SECRETS = ("acme", "trainer", "customer", "hog", "python3", "nccl-proxy", "backup.service")
KERNEL = "nvme_wait"
FRAMES = np.array(
    [
        (1, b"u", b"libacme.so", b"acme_step(int)"),
        (2, b"u", b"acme", b"acme+0x1f2"),
        (3, b"k", b"[nvme]", KERNEL.encode()),
        (4, b"u", b"python-acme", b"py::train:/home/acme/train.py"),
        (5, b"u", b"[anonymous]", b"[unknown]"),
    ],
    FRAME,
)
STACKS = np.array([(71, 0, 3), (71, 1, 1), (72, 0, 2), (72, 1, 4), (73, 0, 5)], STACK)


def secret_windows(second: int) -> list[Window]:
    on = np.array([(0, 60, 60, b"trainer", 72, 40), (1, 61, 61, b"trainer", 73, 3)], SAMPLE)
    off = np.array([(0, 60 + at, 60, name, 71, SECOND // 9, 3, b"D") for at, name in enumerate(WORDS)], OFF)
    lines = np.zeros(1, [("time_ns", "u8"), ("serial", "u8"), ("level", "u1"), ("count", "u4"), ("text", "S256")])
    lines["text"] = b"trainer[60] of node-of-acme: segfault at 0 ip 0 in libacme.so, Comm: trainer"
    told = (STACKS, FRAMES) if second == 0 else (STACKS[:0], FRAMES[:0])
    start = START + second * SECOND
    rows = {"oncpu.samples": on, "offcpu.samples": off, "kernellog.lines": lines}
    rows |= {
        f"{probe}.{table}": one
        for probe in ("oncpu", "offcpu")
        for table, one in zip(("stacks", "frames"), told, strict=True)
    }
    return [Window(*name.split("."), start, start + SECOND, one, {"missed": 0}) for name, one in rows.items()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("names")
    (folder / "key").write_bytes(KEY)
    node = Node(cpus=2)
    header = {**DEEP_HEADER, "host": "node-of-acme", "filters": {"cgroup": "/customer"}}
    header["fingerprint"] = {"host": "node-of-acme", "kernel": {"command_line": "ip=10.1.2.3 quiet"}}
    with RecordingWriter(folder / "acme.fsk", header) as writer:
        for second in range(6):
            writer.write([*(hog_interval(node) if second == 3 else node.interval()), *secret_windows(second)])
    return folder


def run(folder: Path, *arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, [one.replace("DIR", str(folder)) for one in arguments])
    assert result.exit_code == code, result.output
    return result


def tree(html: str) -> dict:
    (data,) = re.findall(r'<script id="data"[^>]*>(.*?)</script>', html)
    return Data(data).tree


def named(text: str, secrets: Sequence[str] = SECRETS) -> list[str]:
    return [secret for secret in (*secrets, "10.1.2.3") if secret in text]


def test_a_report_names_nobody_and_says_the_same(folder):
    pages = [
        run(folder, "report", "DIR/acme.fsk", "-o", "-", *more).stdout
        for more in ((), ("--redact", "--key", "DIR/key"))
    ]
    plain, hidden = map(tree, pages)
    assert not named(json.dumps(hidden)) and len(named(json.dumps(plain))) >= len(SECRETS) - 1
    assert not named(re.sub(r'<script id="data".*?</script>', "", pages[1]))
    for kept in ("headline", "normal", "missing", "quality", "time", "series", "lanes", "dropped"):
        assert hidden[kept] == plain[kept], kept
    # What to do is said of the same task by its other name.
    name = Redactor(KEY).name
    for one, other in zip(plain["findings"], hidden["findings"], strict=True):
        told = re.sub(r"\bhog\b", name("hog"), one["next"])
        assert (other["next"], other["what"], other["series"]) == (told, one["what"], one["series"])
    assert dict(hidden["facts"])["probes"] == dict(plain["facts"])["probes"]
    assert dict(hidden["facts"])["host"] == name("node-of-acme")
    on, off = ({one["name"]: one for one in hidden["flames"]}[name] for name in ("oncpu", "offcpu"))
    assert {one for one, kind, _ in off["names"] if kind == "t"} - {"all"} == {name(word.decode()) for word in WORDS}
    assert [one for one, kind, _ in off["names"] if kind == "k"] == [KERNEL] and "[nvme]" in off["modules"]
    functions = {one for one, kind, _ in on["names"] if kind == "u"}
    python = f"py::{name('train:/home/acme/train.py')}"
    assert functions == {f"{name('acme')}+0x1f2", python, "[unknown]"}
    assert on["total"] == plain["flames"][0]["total"]


def test_text_and_exports_name_nobody(folder):
    texts = [run(folder, "report", "DIR/acme.fsk", "--text", "--redact", "--baseline", "DIR/acme.fsk").stdout]
    for form in ("folded", "speedscope", "json"):
        texts.append(run(folder, "export", "DIR/acme.fsk", "--format", form, "--redact").stdout)
    for text in texts:
        assert not named(text) and KERNEL in text
    run(folder, "export", "DIR/acme.fsk", "--format", "csv", "--redact", "-o", "DIR/csv")
    with open(folder / "csv" / "kernellog.lines.csv") as file:
        (line, *_) = csv.DictReader(file)
    assert not named(line["text"]) and re.match(r"h-\w{10}\[60\] of h-\w{10}: segfault at 0 ip 0", line["text"])
    rows = json.loads(texts[-1])["windows"]
    plain = json.loads(run(folder, "export", "DIR/acme.fsk", "--format", "json").stdout)["windows"]
    numbers = [
        [[v for v in row.values() if not isinstance(v, str)] for one in all for row in one["rows"]]
        for all in (rows, plain)
    ]
    assert numbers[0] == numbers[1]


def test_a_name_is_hidden_where_its_row_says_that_it_is_a_tasks():
    rows = np.array([(b"task", b"trainer"), (b"own", b"CPU"), (b"vector", b"TIMER"), (b"cgroup", b"/acme")],
                    [("kind", "S8"), ("name", "S16")])  # fmt: skip
    redactor, window = Redactor(KEY), Window("ledger", "taken", 0, SECOND, rows)
    redactor.learn_windows([window])
    name = redactor.name
    assert [one.decode() for one in redactor.window(window).rows["name"].tolist()] == [
        *(name("trainer"), name("CPU"), "TIMER", name("/acme"))
    ]
    assert redactor.text("trainer waits") == f"{name('trainer')} waits"


def test_the_root_cgroup_is_nobodys_name():
    """A hash of it would look like a cgroup that the waiting task and the one that held it up share."""
    redactor = Redactor(KEY)
    assert [redactor.name(name) for name in ("", "/")] == ["", "/"] and redactor.name("/job") != "/job"


def test_hashes_are_the_same_with_a_key_and_in_both_recordings(folder):
    report = ("report", "DIR/acme.fsk", "-o", "-", "--redact")
    keyed = [run(folder, *report, "--key", "DIR/key").stdout for _ in range(2)]
    assert keyed[0] == keyed[1] != run(folder, *report).stdout
    page = run(folder, *report, "--baseline", "DIR/acme.fsk").stdout
    (beside,) = re.findall(r'<script type="application/octet-stream">(.*?)</script>', page)
    assert Data(beside).tree["flames"][0]["names"] == tree(page)["flames"][0]["names"]


def test_a_black_box_names_nobody_either(tmp_path):
    box = sample_box(tmp_path / "cu39.fbx")
    page = run(tmp_path, "report", str(box), "-o", "-", "--redact").stdout
    (told,) = (one for one in tree(page)["marks"] if one["kind"] == "alert")
    assert told["alert"]["rule"] == "soft-lockup" and "cu39" not in json.dumps(tree(page))


def test_what_can_be_read_once_only_is_one_line_with_a_hint(folder):
    data = (folder / "acme.fsk").read_bytes()
    result = CliRunner().invoke(main, ["export", "-", "--format", "json", "--redact"], input=data)
    assert result.exit_code == 4 and "save it to a file first" in result.stderr, result.output
    assert "--key is for --redact" in run(folder, "report", "DIR/acme.fsk", "--key", "DIR/key", code=2).stderr


def test_who_woke_a_task_is_hidden_and_so_is_which_build_a_program_is():
    samples = np.array(
        [(b"t", 0, b"secret-waker"), (b"s", 3, b""), (b"t", 0, b"kworker/1:2")],
        [("waker_kind", "S1"), ("waker_vector", "u1"), ("waker_comm", "S16")],
    )
    frames = np.array(
        [(b"k", b"[nvme]", b"nvme_wait", b""), (b"u", b"secret", b"Secret::run", b"5f" * 20)],
        [("kind", "S1"), ("module", "S64"), ("symbol", "S192"), ("build_id", "S40")],
    )
    redactor, windows = (
        Redactor(KEY),
        [Window("offcpu", "samples", 0, 1, samples), Window("offcpu", "frames", 0, 1, frames)],
    )
    redactor.learn_windows(windows)
    samples, frames = (redactor.window(one).rows for one in windows)
    name = redactor.name("secret-waker").encode()
    assert samples.tolist() == [(b"t", 0, name), (b"s", 3, b""), (b"t", 0, b"kworker/1:2")]
    assert frames["build_id"].tolist() == [b"", b""] and frames["symbol"][0] == b"nvme_wait"
    assert b"ecret" not in frames.tobytes()
