"""What a black box tells: how it ended, the first sign and its lead, the kernel's words, and nothing that isn't so."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from unit.blackbox_samples import BOOT, SECOND, UNIX_NS, alert, box, header, sample_box

from tracer.alerts.alert import Evidence, Severity, State, Subject
from tracer.blackbox import Recorder
from tracer.blackbox.layout import Geometry
from tracer.commands import main
from tracer.kernel.pstore import read_last_words
from tracer.units import display_width

NOW = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
DIED = "cu39 died at 2026-11-30 00:53:28 UTC"


def _run(*arguments: str | Path, code: int = 0) -> Result:
    result = CliRunner().invoke(main, [str(one) for one in arguments])
    assert result.exit_code == code, result.output
    return result


def _tree(*arguments: str | Path, code: int = 0) -> dict:
    return json.loads(_run("postmortem", "--json", *arguments, code=code).stdout)


def _panic(folder: Path, at_s: float | None, name: str = "dmesg-ramoops-0") -> Path:
    folder.mkdir(exist_ok=True)
    when = f"[{at_s:12.6f}] " if at_s is not None else ""
    (folder / name).write_text(
        f"Panic#1 Part1\n<4>{when}nothing of interest\n<0>{when}watchdog: BUG: soft lockup - CPU#1 stuck for 22s!\n"
        f"<4>{when}RIP: 0010:spin_fn+0x12/0x20 [lab]\n<0>{when}Kernel panic - not syncing: softlockup: hung tasks\n"
    )
    return folder


def test_a_node_that_died_is_told_in_two_sentences(tmp_path: Path):
    path = sample_box(tmp_path / "box")
    tree = _tree(path, "--pstore", _panic(tmp_path / "pstore", 9.5))
    assert tree["sentences"] == [
        "cu39 died at 2026-11-30 00:53:29 UTC, 4.5 s after the first sign: "
        "CPU 1 stuck in softirq TIMER; panic in ≤ 23 s; there ran python3[4411], spin_fn [lab].",
        "The kernel's panic line: Kernel panic - not syncing: softlockup: hung tasks.",
    ]
    assert (tree["ending"], tree["boot_id"], tree["goodbye"], tree["missing"]) == ("died", BOOT, None, {})
    (sign,) = tree["alerts"]
    assert (sign["lead_s"], sign["countdown"], sign["culprit"]["module"]) == (4.5, "panic in ≤ 23 s", "lab")
    assert tree["panics"][0]["of_this_boot"] is True and len(tree["panics"][0]["lines"]) == 3
    text = _run("postmortem", path, "--pstore", tmp_path / "pstore").output
    assert "\n".join(tree["sentences"]) in text.replace("\n", " ").replace(". The", ".\nThe").split(" RECORD")[0]
    assert "spin_fn < call_timer_fn" in text and "ran there: python3[4411] in softirq TIMER [lab]" in text
    narrow = CliRunner(env={"COLUMNS": "40"}).invoke(main, ["postmortem", str(path)]).output
    assert max(map(display_width, narrow.splitlines())) <= 40 and "lead 3 s · severity page ·" in narrow


def test_without_an_alert_and_without_pstore_that_is_said(tmp_path: Path):
    with box(tmp_path / "box") as feed:
        feed.windows(7)
    tree = _tree(tmp_path / "box")
    assert tree["sentences"] == [
        f"{DIED} (or this copy was made then); no alert was firing: nothing announced it, or nothing was seen.",
        "The kernel left no panic line of that boot in pstore.",
    ]


@pytest.mark.parametrize(("at_s", "ours"), [(9.5, True), (3000.0, False), (None, None)])
def test_a_panic_of_another_time_is_not_taken_for_this_one(tmp_path: Path, at_s: float | None, ours: bool | None):
    path = sample_box(tmp_path / "box")
    tree = _tree(path, "--pstore", _panic(tmp_path / "pstore", at_s))
    assert tree["panics"][0]["of_this_boot"] is ours
    assert ("left no panic line" in tree["sentences"][1]) == (ours is False)
    assert ("may be of another boot" in tree["sentences"][1]) == (ours is None)
    # Only a panic of this boot says when it was over.
    assert tree["end_unix_s"] == (UNIX_NS / 1e9 + (9.5 if ours else 8.0))


def test_the_first_sign_is_the_worst_that_fired_to_the_end(tmp_path: Path):
    with box(tmp_path / "box", Geometry.of_size(1 << 20)) as feed:
        feed.alert(alert(1, rule="old", began_s=0.5, severity=Severity.PAGE, subject=Subject("cpu", "0")))
        feed.alert(alert(2, rule="old", began_s=0.5, subject=Subject("cpu", "0"), state=State.RESOLVED))
        feed.alert(alert(3, rule="warned", began_s=2.0, severity=Severity.WARNING))
        feed.alert(alert(4, rule="trial", began_s=3.0, shadow=True))
        feed.alert(alert(5, rule="paged", began_s=4.0, summary="this one"))
        feed.alert(alert(6, rule="later", began_s=5.0))
        feed.windows(9)
    tree = _tree(tmp_path / "box")
    assert "5 s after the first sign: this one" in tree["sentences"][0]
    assert [one["rule"] for one in tree["alerts"]] == ["old", "warned", "trial", "paged", "later"]
    assert [one["state"] for one in tree["alerts"]] == ["resolved", *["firing"] * 4]
    assert [one["messages"] for one in tree["alerts"]] == [2, 1, 1, 1, 1]
    assert [one["lead_s"] for one in tree["alerts"]] == [9, 7, 6, 5, 4]


def test_the_culprit_and_countdown_that_came_with_other_messages_are_kept(tmp_path: Path):
    with box(tmp_path / "box", Geometry.of_size(1 << 20)) as feed:
        feed.alert(alert(5, began_s=4.0, culprit=None))
        feed.alert(replace(alert(6, began_s=4.0), evidence=Evidence("/r.fsk", "/r.html", ("spin[7] on CPU",))))
        feed.alert(alert(7, began_s=4.0, culprit=None, countdown=None, severity=Severity.WARNING))
    (sign,) = _tree(tmp_path / "box")["alerts"]
    assert sign["culprit"]["stack"] == ["spin_fn", "call_timer_fn"] and sign["severity"] == "page"
    assert sign["evidence"] == {"recording": "/r.fsk", "report": "/r.html", "stacks": ["spin[7] on CPU"]}
    assert "recorded: /r.html; spin[7] on CPU" in _run("postmortem", tmp_path / "box").stdout


def test_a_goodbye_is_no_death(tmp_path: Path):
    path = sample_box(tmp_path / "box", goodbye=True)
    assert _tree(path)["sentences"] == [
        "The agent on cu39 stopped in good order at 2026-11-30 00:53:28 UTC (stopped); "
        "firing then: CPU 1 stuck in softirq TIMER."
    ]


def test_a_goodbye_of_an_earlier_boot_of_this_machine_says_so(tmp_path: Path):
    path = sample_box(tmp_path / "box", goodbye=True, host=os.uname().nodename)
    tree = _tree(path)
    assert tree["sentences"][1] == f"The node has been started again since: this is boot {NOW[:8]}."
    assert tree["boot_id_now"] == NOW


def test_on_its_own_machine_a_box_of_another_boot_is_of_a_node_that_died(tmp_path: Path):
    (tmp_path / "none").mkdir()
    tree = _tree(sample_box(tmp_path / "box", host=os.uname().nodename), "--pstore", tmp_path / "none")
    assert tree["ending"] == "died" and "copy" not in tree["sentences"][0]
    assert tree["sentences"][1] == f"The kernel left no panic line of that boot in {tmp_path / 'none'}."


def test_a_folder_that_is_not_there_is_said(tmp_path: Path):
    path = sample_box(tmp_path / "box")
    assert "does not exist" in _run("postmortem", path, "--pstore", tmp_path / "none", code=2).stderr


def test_a_killed_agent_is_no_dead_node(tmp_path: Path):
    tree = _tree(sample_box(tmp_path / "box", boot_id=NOW))
    assert tree["ending"] == "agent-gone" and "still in the same boot" in tree["sentences"][0]


def test_a_live_box_is_told_as_alive(tmp_path: Path):
    recorder = Recorder(str(tmp_path / "box"), 1 << 20, header())
    try:
        recorder.alert(alert(1))
        while recorder.status()[0].durable < 1:
            pass
        tree = _tree(tmp_path / "box")
    finally:
        recorder.close()
    assert tree["ending"] == "live" and "cu39 is alive" in tree["sentences"][0]


def test_only_the_end_is_summarized(tmp_path: Path):
    path = sample_box(tmp_path / "box", seconds=8)
    assert _tree(path, "--last", "3s")["last"]["time"]["intervals"] == 4  # the one at the border counts
    assert _tree(path, "--last", "1h")["last"]["time"]["intervals"] == 8


def test_where_there_is_no_box_yet_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tracer.blackbox.DEFAULT_PATH", str(tmp_path / "box"))
    result = _run("postmortem", code=4)
    assert "no black box" in result.stderr and "foreshock agent --blackbox" in result.stderr


def test_what_is_missing_is_said(tmp_path: Path):
    path = sample_box(tmp_path / "box")
    data = bytearray(path.read_bytes())
    places = [at for at in range(0, len(data), 4096) if data[at : at + 4] == b"\x89FBR"]
    data[places[2] + 60] ^= 1
    path.write_bytes(data[: -(1 << 18)])
    tree = _tree(path, code=4)
    assert tree["missing"] == {"damaged": 1, "cut": 1 << 18}
    text = _run("postmortem", path, code=4).output
    assert "MISSING  1 record damaged" in text and "bytes cut off the file" in text


def test_a_recording_that_was_cut_off_is_a_black_box_as_well(tmp_path: Path, checkout: Path):
    sample = (checkout / "tracer/sample/demo.fsk").read_bytes()
    (tmp_path / "cut.fsk").write_bytes(sample[:-5000])
    tree = _tree(tmp_path / "cut.fsk", "--last", "5s")
    assert tree["ending"] == "cut-off" and "was cut off at" in tree["sentences"][0] and "cut off" in tree["warning"]
    assert 4 <= tree["last"]["time"]["intervals"] <= 6
    assert "ended in good order" in _tree(checkout / "tracer/sample/demo.fsk")["sentences"][0]


@pytest.mark.parametrize("content", [b"", bytes(1 << 16), b"text " * 10000, b"\x89FBX\r\n\x1a\n"])
def test_what_is_no_box_is_one_line_and_exit_code_4(tmp_path: Path, content: bytes):
    (tmp_path / "box").write_bytes(content)
    result = _run("postmortem", tmp_path / "box", code=4)
    assert result.stdout == "" and result.stderr.count("\n") == 2 and result.stderr.startswith("foreshock: error: ")


@pytest.mark.parametrize("path", ["none", "", "fifo"])
def test_what_is_no_file_is_one_line_and_exit_code_4(tmp_path: Path, path: str):
    if path == "fifo":
        os.mkfifo(tmp_path / path)
    result = _run("postmortem", tmp_path / path, code=4)
    assert result.stderr.count("\n") == 2


def test_by_default_it_is_the_box_of_the_previous_boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tracer.blackbox.DEFAULT_PATH", str(tmp_path / "box"))
    sample_box(tmp_path / "box", boot_id=NOW)
    assert _tree()["file"] == str(tmp_path / "box")
    sample_box(tmp_path / "box.1a2b3c4d-20261130T021431Z")
    sample_box(tmp_path / f"box.{NOW[:8]}-20261130T031431Z", boot_id=NOW)
    assert _tree()["file"] == str(tmp_path / "box.1a2b3c4d-20261130T021431Z")
    (tmp_path / "box").write_bytes(b"")
    assert _tree()["file"] == str(tmp_path / "box.1a2b3c4d-20261130T021431Z")


def test_last_words_are_found_where_systemd_puts_them_and_bounded(tmp_path: Path):
    _panic(tmp_path / "pstore", 10.0)
    _panic(tmp_path / "pstore" / "1718000000", 20.0, "dmesg.txt")
    (tmp_path / "pstore" / "console-ramoops-0").write_text("Kernel panic - not syncing: not from here")
    (tmp_path / "pstore" / "dmesg-binary").write_bytes(os.urandom(1 << 16) + b"\nOops: 0002 [#1]\n" + b"x" * (1 << 21))
    os.mkfifo(tmp_path / "pstore" / "dmesg-fifo")
    (tmp_path / "pstore" / "dmesg-many").write_text("BUG: at %d\n" * 1000 + "Kernel panic - not syncing: last\n")
    found = read_last_words([str(tmp_path / "pstore"), str(tmp_path / "none")])
    assert [Path(one.file).name for one in found] == ["dmesg.txt", "dmesg-many", "dmesg-ramoops-0", "dmesg-binary"]
    assert [one.at_ns for one in found][:3] == [20 * SECOND, None, 10 * SECOND]
    assert all(len(one.lines) <= 8 for one in found) and found[1].panic == "Kernel panic - not syncing: last"
    assert found[-1].lines == ("Oops: 0002 [#1]",) and found[-1].panic == ""
