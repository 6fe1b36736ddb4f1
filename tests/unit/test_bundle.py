"""A bundle is evidence: the same bytes for the same box, every change noticed, and redacted ones name nobody."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import re
import subprocess
import tarfile
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from unit.blackbox_samples import SECOND, UNIX_NS, alert, box, sample_box
from unit.recording_samples import write_anew

from tracer.alerts.alert import Culprit, Subject
from tracer.blackbox.archive import MANIFEST, verify, write
from tracer.blackbox.box import Box
from tracer.blackbox.layout import Geometry
from tracer.blackbox.redact import Redactor
from tracer.commands import main
from tracer.errors import RecordingError
from tracer.recording import FrameEncoder, Kind
from tracer.window import Window

TASK = Subject("task", "stall[7]")
MEMBERS = ["SHA256SUMS", "blackbox.fbx", "fingerprint.json", "postmortem.json", "postmortem.txt", "settings.json"]
SECRETS = (
    "trainer",
    "customer",
    "tenant",
    "preprocess",
    "user-42",
    "10.1.2.3",
    "0c:42:a1:de:ad:01",
    "fe80::e42:a1ff:fede:ad01",
    "node-of-acme",
)


def _run(*arguments: str | Path, code: int = 0) -> Result:
    result = CliRunner().invoke(main, ["bundle", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result


def _members(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        return {one.name: archive.extractfile(one).read() for one in archive}


def _secret_box(path: Path) -> Path:
    """A box whose every part names somebody."""
    rows = np.zeros(2, [("cpu", "u4"), ("comm", "S16"), ("cgroup", "S96"), ("text", "S64")])
    rows["comm"] = b"trainer", b"kworker/3:1"
    rows["cgroup"] = b"/user.slice/user-42", b""
    rows["text"] = b"trainer sent to 10.1.2.3", b""
    # Of names that are in no other column: a cgroup that grows, and what the kernel says about a kill.
    growers = np.zeros(2, [("kind", "S8"), ("name", "S192"), ("bytes", "u8")])
    growers["kind"], growers["name"] = (b"cgroup", b"slab"), (b"/tenant b", b"kmalloc-4k")
    lines = np.zeros(3, [("text", "S256")])
    lines["text"] = (
        b"oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/tenant/a,task_memcg=/tenant/a,task=preprocess,pid=7,uid=0",
        b"Memory cgroup out of memory: Killed process 7 (preprocess) total-vm:9kB, anon-rss:1kB",
        b"preprocess invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
    )
    settings = np.zeros(1, [("name", "S48"), ("value", "S32")])
    settings["name"], settings["value"] = b"kernel.softlockup_panic", b"1"
    fingerprint = {
        "sysctl": {"kernel.panic": "10"},
        "kernel": {"command_line": "ro ip=10.1.2.3 BOOTIF=0c:42:a1:de:ad:01 panic=10"},
        "host": "node-of-acme",
    }
    more = {"host": "node-of-acme", "fingerprint": fingerprint, "filters": {"cgroup": "/customer"}}
    with box(path, Geometry.of_size(1 << 20), **more) as feed:
        for second in range(3):
            start, end = second * SECOND, (second + 1) * SECOND
            windows = [Window("lab", "one", start, end, rows), Window("detectors", "settings", start, end, settings)]
            windows += [
                Window("memory", "growers", start, end, growers),
                Window("kernellog", "lines", start, end, lines),
            ]
            feed.append(FrameEncoder().windows(windows), Kind.WINDOWS, end, UNIX_NS + end)
        feed.alert(
            alert(
                2,
                subject=Subject("memory"),
                summary="memory is gone in 2 s, most of all cgroup /tenant/c (9 MiB per second); cgroup /tenant b",
                culprit=Culprit(context="cgroup /tenant/c (9 MiB per second)"),
            )
        )
        feed.alert(
            alert(
                3,
                began_s=2.5,
                node="node-of-acme",
                subject=Subject("task", "trainer[812]"),
                summary="trainer[812] of /customer waits for fe80::e42:a1ff:fede:ad01 on node-of-acme",
                culprit=Culprit("trainer[812]", "syscall", ("futex_wait",), "mlx5_core"),
            )
        )
    return path


def test_it_holds_the_box_and_what_it_says(tmp_path: Path):
    path = _secret_box(tmp_path / "box")
    result = _run(path, "-o", tmp_path / "b.tar.gz")
    members = _members(tmp_path / "b.tar.gz")
    assert sorted(members) == MEMBERS
    assert members["blackbox.fbx"] == path.read_bytes()
    assert json.loads(members["postmortem.json"])["alerts"][1]["subject"] == "task trainer[812]"
    assert b"node-of-acme died at" in members["postmortem.txt"]
    assert json.loads(members["settings.json"]) == {
        "sysctl": {"kernel.panic": "10"},
        "command_line": "ro ip=10.1.2.3 BOOTIF=0c:42:a1:de:ad:01 panic=10",
        "detectors": {"kernel.softlockup_panic": "1"},
    }
    assert json.loads(members["fingerprint.json"])["host"] == "node-of-acme"
    assert "sha256 of its manifest: " in result.output


def test_the_same_box_makes_the_same_bytes(tmp_path: Path):
    path = sample_box(tmp_path / "box")
    _run(path, "-o", tmp_path / "one.tar.gz")
    os.utime(path, (1, 1))
    _run(path, "-o", tmp_path / "two.tar.gz")
    assert (tmp_path / "one.tar.gz").read_bytes() == (tmp_path / "two.tar.gz").read_bytes()
    with tarfile.open(tmp_path / "one.tar.gz") as archive:
        infos = archive.getmembers()
    assert [one.name for one in infos] == MEMBERS
    assert {(one.uid, one.gid, one.uname, one.gname, one.mtime, one.mode) for one in infos} == {
        (0, 0, "", "", 315532800, 0o600)
    }
    assert (tmp_path / "one.tar.gz").stat().st_mode & 0o777 == 0o600


def test_sha256sum_checks_it_without_foreshock(tmp_path: Path):
    _run(sample_box(tmp_path / "box"), "-o", tmp_path / "b.tar.gz")
    subprocess.run(["tar", "-xzf", tmp_path / "b.tar.gz", "-C", tmp_path], check=True)
    done = subprocess.run(["sha256sum", "-c", MANIFEST], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout.count(": OK\n") == len(MEMBERS) - 1


def test_a_redacted_bundle_names_nobody_and_still_tells_everything_else(tmp_path: Path):
    pstore = tmp_path / "pstore"
    pstore.mkdir()
    (pstore / "dmesg-0").write_text(
        "<0>[    3.500000] BUG: trainer at 10.1.2.3\n<0>[    3.6] Kernel panic - not syncing: x\n"
    )
    path = _secret_box(tmp_path / "box")
    _run(path, "-o", tmp_path / "b.tar.gz", "--redact", "--pstore", pstore)
    members = _members(tmp_path / "b.tar.gz")
    (tmp_path / "redacted").write_bytes(members.pop("blackbox.fbx"))
    with Box(tmp_path / "redacted") as found, Box(path) as original:
        windows = list(found.intervals(1 << 62))
        texts = [str(found.header), *map(str, found.alerts()), *(str(one.rows) for all in windows for one in all)]
        before = list(original.intervals(1 << 62))
        assert len(windows) == len(before) and found.boot_id == original.boot_id
        assert (found.last.unix_ns, found.last.monotonic_ns) == (original.last.unix_ns, original.last.monotonic_ns)
    told = "\n".join([*texts, *(one.decode() for one in members.values())])
    for secret in SECRETS:
        assert secret not in told, secret
    for kept in (
        "kworker/3:1",
        "kmalloc-4k",
        "oom_memcg=h-",
        "(9 MiB per second)",
        "futex_wait",
        "mlx5_core",
        "panic=10",
        "kernel.softlockup_panic",
        "Kernel panic",
    ):
        assert kept in told, kept
    # The same name is the same hash in a column and in a sentence.
    name = windows[0][0].rows["comm"][0].decode()
    assert name.startswith("h-") and f"task {name}[812]" in told and f"{name}[812] of h-" in told
    assert (windows[0][0].rows["cpu"] == before[0][0].rows["cpu"]).all()


def test_tasks_called_like_our_own_words_leave_those_alone(tmp_path: Path):
    summary = "CPU 1 has made no progress for 1 s: kernel code; there ran stall[7]"
    one = alert(2, summary=summary, culprit=Culprit("stall[7]", "kernel code", ("spin",), "made"), subject=TASK)
    words = {*re.findall(r"[A-Za-z-]+", f"{one.title} {one.next} {one.rule} {summary}"), "firing", "softirq", "run"}
    names = sorted(word for word in words if 1 < len(word) < 16)
    rows = np.zeros(len(names), [("comm", "S16"), ("kind", "S8"), ("text", "S96")])
    rows["comm"] = [name.encode() for name in names]
    rows["kind"], rows["text"] = b"stall", b"Kernel panic - not syncing: stall, Comm: stall"
    path = tmp_path / "box"
    with box(path, Geometry.of_size(1 << 20)) as feed:
        feed.append(FrameEncoder().windows([Window("lab", "one", 0, SECOND, rows)]), Kind.WINDOWS, SECOND, UNIX_NS)
        feed.alert(one)
    _run(path, "-o", tmp_path / "b.tar.gz", "--redact")
    (tmp_path / "redacted").write_bytes(_members(tmp_path / "b.tar.gz")["blackbox.fbx"])
    with Box(tmp_path / "redacted") as found, Box(path) as original:
        (told,) = found.alerts()
        ((window,),) = found.intervals(1 << 62)
        assert found.header["probes"] == original.header["probes"]
    assert all(name.startswith(b"h-") for name in window.rows["comm"].tolist())
    stall = window.rows["comm"][names.index("stall")].decode()
    hidden = one.condition.culprit and replace(one.condition.culprit, task=f"{stall}[7]")
    condition = replace(one.condition, summary=summary.replace("stall[7]", f"{stall}[7]"), culprit=hidden)
    expected = replace(condition, subject=Subject("task", f"{stall}[7]"))
    assert told == replace(one, id=told.id, node=told.node, condition=expected) and told.node.startswith("h-")
    assert set(window.rows["kind"].tolist()) == {b"stall"}
    assert set(window.rows["text"].tolist()) == {f"Kernel panic - not syncing: stall, Comm: {stall}".encode()}


def test_hashes_are_stable_with_a_key_and_strange_without(tmp_path: Path):
    path = _secret_box(tmp_path / "box")
    (tmp_path / "key").write_bytes(b"0123456789abcdef")
    for name, more in (("a", ["--key", tmp_path / "key"]), ("b", ["--key", tmp_path / "key"]), ("c", []), ("d", [])):
        _run(path, "-o", tmp_path / name, "--redact", *more)
    content = {name: (tmp_path / name).read_bytes() for name in "abcd"}
    assert content["a"] == content["b"] and len({content[name] for name in "acd"}) == 3


@pytest.mark.parametrize(
    "text", ["::", "1::2", "a::b", "12:30:45", "std::vector", "0000:3b:00.0", "v6.12.1", "[  3.500000]", "1.2.3"]
)
def test_what_is_no_address_is_left_alone_as_far_as_it_can_be_told(text: str):
    redacted = Redactor(b"k" * 16).text(text)
    assert redacted == text or text in ("::", "1::2", "a::b")  # which might be addresses


def test_a_frame_that_nobody_understands_is_left_out_of_a_redacted_bundle(tmp_path: Path):
    with box(tmp_path / "box", Geometry.of_size(1 << 20)) as feed:
        feed.windows(0)
        feed.append(b"customer", Kind.WINDOWS, SECOND, SECOND)
    result = _run(tmp_path / "box", "-o", tmp_path / "b", "--redact")
    assert "1 damaged record" in result.stderr and b"customer" not in _members(tmp_path / "b")["blackbox.fbx"]


def test_an_existing_file_stays_unless_it_may_go(tmp_path: Path):
    path = sample_box(tmp_path / "box")
    (tmp_path / "b").write_text("precious")
    assert "--overwrite" in _run(path, "-o", tmp_path / "b", code=5).stderr
    assert (tmp_path / "b").read_text() == "precious"
    _run(path, "-o", tmp_path / "b", "--overwrite")
    verify(str(tmp_path / "b"))
    assert sorted(one.name for one in tmp_path.iterdir()) == ["b", "box"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["box"], 2),
        (["box", "-o", "none/b"], 5),
        (["box", "-o", "."], 5),
        (["box", "-o", ".", "--overwrite"], 5),
        (["none", "-o", "b"], 4),
        (["empty", "-o", "b"], 4),
        (["box", "-o", "b", "--key", "empty"], 2),
        (["box", "-o", "b", "--key", "empty", "--redact"], 2),
        (["--verify", "none"], 4),
        (["--verify", "empty"], 4),
        (["--verify", "box"], 4),
    ],
)
def test_what_can_not_be_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments, code: int):
    monkeypatch.chdir(tmp_path)
    sample_box(tmp_path / "box")
    (tmp_path / "empty").write_bytes(b"")
    result = _run(*arguments, code=code)
    assert result.stderr.startswith("foreshock: error: ") and result.stderr.count("\n") <= 2
    assert sorted(one.name for one in tmp_path.iterdir()) == ["box", "empty"]


def test_verify_notices_every_change(tmp_path: Path):
    _run(sample_box(tmp_path / "box"), "-o", tmp_path / "b")
    good = (tmp_path / "b").read_bytes()
    assert sorted(verify(str(tmp_path / "b"))[0]) == MEMBERS[1:]
    chance = random.Random(5)
    inner = bytearray(gzip.decompress(good))
    contents = _content_places(bytes(inner))
    for _ in range(60):
        place = chance.choice(contents)
        inner[place] ^= 1
        write_anew(tmp_path / "b", gzip.compress(bytes(inner), 1))
        inner[place] ^= 1
        with pytest.raises(RecordingError):
            verify(str(tmp_path / "b"))
    for _ in range(300):
        mutated = bytearray(good)
        if chance.random() < 0.5:
            del mutated[chance.randrange(len(mutated)) :]
        else:
            mutated[chance.randrange(10, len(mutated))] ^= 1 << chance.randrange(8)
        if _unpacked(bytes(mutated)) == inner:
            continue  # the same content said in another way: where zeros are copied from, bits that mean nothing
        write_anew(tmp_path / "b", mutated)
        with pytest.raises(RecordingError) as error:
            verify(str(tmp_path / "b"))
        assert "\n" not in error.value.message


def _unpacked(packed: bytes) -> bytes | None:
    try:
        return gzip.decompress(packed)
    except (OSError, EOFError, zlib.error):
        return None


def _content_places(inner: bytes) -> list[int]:
    places: list[int] = []
    with tarfile.open(fileobj=io.BytesIO(inner)) as archive:
        for one in archive:
            places += range(one.offset_data, one.offset_data + min(one.size, 4000))
    return places


def test_members_that_are_added_missing_or_no_files_are_noticed(tmp_path: Path):
    (tmp_path / "content").write_text("x")
    write(str(tmp_path / "good"), {"a": str(tmp_path / "content"), "b": str(tmp_path / "content")})
    members = _members(tmp_path / "good")

    def made(change) -> str:
        with tarfile.open(tmp_path / "bad", "w:gz") as archive:
            for name, data in members.items():
                if name != change:
                    info = tarfile.TarInfo(name)
                    info.size = len(data)
                    archive.addfile(info, io.BytesIO(data))
            if change in ("c", "a2"):
                archive.addfile(tarfile.TarInfo(change[0]))
            if change == "link":
                info = tarfile.TarInfo("link")
                info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
                archive.addfile(info)
        with pytest.raises(RecordingError) as error:
            verify(str(tmp_path / "bad"))
        return error.value.message

    assert "a is missing" in made("a") and "c is not in the manifest" in made("c")
    assert "no SHA256SUMS" in made(MANIFEST)
    assert "holds what no bundle has" in made("link") and "holds what no bundle has" in made("a2")
