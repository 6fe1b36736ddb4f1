"""Every name that a node has is a marker here: none of them, in no coding, is in anything that was redacted."""

from __future__ import annotations

import gzip
import json
import re
import tarfile
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from unit.blackbox_samples import alert, box
from unit.deep_samples import DEEP_HEADER, deep_windows
from unit.report_data import Data
from unit.synthetic import SECOND, START, Node, hog_interval

from tracer.alerts.alert import Culprit, Subject
from tracer.blackbox.box import Box
from tracer.blackbox.layout import Geometry
from tracer.blackbox.redact import Redactor
from tracer.blackbox.unnamed import unnamed_header
from tracer.commands import main
from tracer.recording import FrameEncoder, Kind, RecordingWriter
from tracer.window import Window

KEY = b"0123456789abcdef"
HOST, LAN, FABRIC, TASK = "zqhost.zqrack.zqcorp", "zqlan0", "zqfabric_0", "zqtask"
CGROUP, EXE = "/zqslice/zqpod b", "/home/zquser/zqapp/zqmain"


def coded(*words: str) -> str:
    return "\0".join(words).encode().hex().upper()


#: What nobody is named in, and that a name is in each of the others: as the kernel and programs write them.
LINES = (
    "zqlan0: renamed from eth7",
    "eth7: renamed from zqlan9",
    "mlx5_core 0000:3b:00.0 zqlan9: Link up",
    "zqbond: (slave zqlan9): link status definitely down, disabling slave",
    "zqbridge: port 2(zqveth) entered blocking state",
    "device zqveth entered promiscuous mode",
    "IPv6: ADDRCONF(NETDEV_CHANGE): zqveth: link becomes ready",
    "NETDEV WATCHDOG: zqlan9 (mlx5_core): transmit queue 3 timed out",
    "EXT4-fs error (device zqdisk): ext4_lookup:1855: inode #2: comm zqtask: iget: checksum invalid",
    "bond0: zqport is slow",
    "XFS (zqdisk): Mounting V5 Filesystem",
    "EXT4-fs (sda1): mounted filesystem 7a717a71-94b7-47dd-85e0-f5094a5c7a71 r/w",
    "BTRFS info (device zqdisk state M): last unmount",
    "blk_update_request: I/O error, dev zqdisk, sector 7 op 0x0:(READ)",
    "Buffer I/O error on dev zqdisk, logical block 0, async page read",
    "md/raid1:zqarray: Disk failure on sdb1, disabling device.",
    "nfs: server zqnas not responding, still trying",
    "nfs: server zqnas.zqrack.zqcorp OK",
    "NFS: mount of zqnas:/zqvol/zqshare failed",
    "CIFS: VFS: \\\\zqnas\\zqshare BAD_NETWORK_NAME",
    "CIFS: Attempting to mount //zqnas/zqshare",
    "LustreError: 11-0: zqlustre-OST0003-osc-ffff8881: operation ost_statfs failed",
    "overlayfs: upper fs at /zqmount/zqupper does not support tmpfile",
    "systemd[1]: zqunit.service: Main process exited, code=killed",
    "systemd[1]: Mounted zq-mount.mount - /zqmount.",
    "systemd-logind[7]: New session 3 of user zquser.",
    "usb 1-1: SerialNumber: ZQ0123",
    "zqhost kernel: link of zqhost-eth0 to other.zqcorp is down",
    "fetch of https://zqnas/zqvol?zqtoken failed; write to zquser@zqnas.zqrack.zqcorp",
    f'audit: type=1326 audit(1.1:7): auid=0 pid=77 comm={coded("zq task")} exe="{EXE}" sig=31',
    f"audit: type=1327 audit(1.1:7): proctitle={coded(EXE, '--zqoption', 'zqvalue')}",
    f'audit: type=1309 audit(1.1:7): argc=3 a0="zqmain" a1={coded("zq value")} a2="--zqoption"',
    f"audit: type=1306 audit(1.1:7): saddr={coded('zqsocket')}",
    "audit: type=1130 audit(1.1:7): pid=1 msg='unit=zqunit comm=\"systemd\" hostname=zqhost addr=? res=success'",
    f'audit: type=1302 audit(1.1:7): item=0 name="/zqmount/zqdir" inode=7 dev=08:01; cwd={coded("/zq mount")}',
)
STAYS = (
    "eth0: renamed from eth7",
    "mlx5_core 0000:3b:00.0 enp59s0f1np1: Link up",
    "EXT4-fs (nvme0n1p1): mounted filesystem",
    "blk_update_request: I/O error, dev sda, sector 7 op 0x0:(READ)",
    '"echo 0 > /proc/sys/kernel/hung_task_timeout_secs" disables this message.',
    "WARNING: CPU: 3 PID: 7 at kernel/sched/core.c:1234 do_task+0x40/0x80 [nvme_core]",
    "nvme nvme0: I/O 7 (Read) QID 3 timeout, aborting",
    "systemd-journald.service: Deactivated; Linux 6.1.0-18.el9.x86_64, 5/10 read/write and 3 /s",
    "Hardware name: Dell Inc. PowerEdge R740/0DY2X0, BIOS 2.10.0",
)


def node_windows(start: int) -> list[Window]:
    lines = np.zeros(
        len(LINES), [("time_ns", "u8"), ("serial", "u8"), ("level", "u1"), ("count", "u4"), ("text", "S256")]
    )
    lines["time_ns"], lines["text"] = start, [line.encode() for line in LINES]
    link = np.array([(2, LAN, "mlx5_core"), (1, "lo", "")], [("ifindex", "u4"), ("device", "S16"), ("driver", "S16")])
    rdma = np.array([(FABRIC, 1, LAN)], [("device", "S32"), ("port", "u4"), ("netdev", "S16")])
    lab = np.array([(0, TASK, CGROUP)], [("cpu", "u4"), ("comm", "S16"), ("cgroup", "S96")])
    irqs = np.array(
        [(0, 40, f"{LAN}-TxRx-0"), (0, 41, f"{FABRIC}@pci")], [("cpu", "u4"), ("irq", "u4"), ("name", "S32")]
    )
    told = np.array([(start, "tx_timeout", "zqport")], [("time_ns", "u8"), ("kind", "S16"), ("name", "S32")])
    tables = {
        "precursors.told": told,
        "kernellog.lines": lines,
        "netdev.link": link,
        "netdev.rdma": rdma,
        "lab.one": lab,
        "lab.two": irqs,
    }
    return [Window(*name.split("."), start, start + SECOND, rows) for name, rows in tables.items()]


HEADER = {
    "host": HOST,
    "filters": {"cgroup": CGROUP},
    "labels": {"owner": "zqowner"},
    "command": [
        "foreshock",
        "record",
        "--cgroup",
        CGROUP,
        "-o",
        f"{EXE}.fsk",
        "--sink",
        f"json:{EXE}",
        "--label=owner=zqowner",
    ],
    "fingerprint": {
        "host": HOST,
        "kernel": {"command_line": f"root=/dev/zqdisk ip=::::{HOST}:{LAN} lab.path=/zqmount"},
    },
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, node = tmp_path_factory.mktemp("markers"), Node(cpus=2)
    (folder / "key").write_bytes(KEY)
    intervals = []
    with RecordingWriter(folder / "zqnode.fsk", {**DEEP_HEADER, **HEADER}) as writer:
        for second in range(3):
            windows = hog_interval(node) if second == 1 else node.interval()
            intervals.append([*windows, *deep_windows(second), *node_windows(START + second * SECOND)])
            writer.write(intervals[-1])
    with box(folder / "zqbox.fbx", Geometry.of_size(1 << 20), **HEADER) as feed:
        for second in range(3):
            end = (second + 1) * SECOND
            feed.append(FrameEncoder().windows(node_windows(second * SECOND)), Kind.WINDOWS, end, end)
        feed.alert(alert(2, node=HOST, subject=Subject("device", "zqlan9"), summary=f"zqlan9 of {HOST} is down"))
        culprit = Culprit(f"{TASK}[7]", f"cgroup {CGROUP}, {EXE}")
        feed.alert(alert(3, began_s=2.5, node=HOST, subject=Subject("task", f"{TASK}[7]"), culprit=culprit))
    (folder / "zqpstore").mkdir()
    oops = "".join(f"<4>[    3.500000] {line}\n" for line in LINES)
    (folder / "zqpstore" / "dmesg-0").write_text(f"{oops}<0>[    3.6] Kernel panic - not syncing: zqlan0\n")
    return folder


def run(folder: Path, *arguments: str) -> bytes:
    result = CliRunner().invoke(main, [one.replace("DIR", str(folder)) for one in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout_bytes


def named(told: str | bytes) -> list[str]:
    """Return what is told of markers, as they are and in hexadecimal; hashes are none."""
    text = re.sub(r"h-[0-9a-f]{10}", "h-", told if isinstance(told, str) else told.decode("utf-8", "replace"))
    return re.findall(r"(?i).{,40}(?:zq|7a71|5a51).{,40}", re.sub(r"\b[0-9a-f]{16,}\b", "", text))


def page(html: bytes) -> str:
    (data,) = re.findall(r'<script id="data"[^>]*>(.*?)</script>', html.decode())
    return json.dumps(Data(data).tree) + re.sub(r"<script[ >].*?</script>", "", html.decode(), flags=re.DOTALL)


def alerts(html: bytes) -> list[tuple[str, int]]:
    """Return the alerts in a report: by which rule, and when."""
    (data,) = re.findall(r'<script id="data"[^>]*>(.*?)</script>', html.decode())
    return sorted((one["alert"]["rule"], one["start_ns"]) for one in Data(data).tree["marks"] if one["kind"] == "alert")


@pytest.mark.parametrize("file", ["zqnode.fsk", "zqbox.fbx"])
def test_no_report_has_a_marker(folder, file):
    hidden = ("--redact", "--key", "DIR/key")
    plain, redacted = (run(folder, "report", f"DIR/{file}", "-o", "-", *more) for more in ((), hidden))
    assert len(named(page(plain))) > 5 and not named(page(redacted))
    # Rules that read the log find the same in it.
    assert alerts(redacted) == alerts(plain) != []
    assert not named(run(folder, "report", f"DIR/{file}", "--text", *hidden, "--baseline", "DIR/zqnode.fsk"))


@pytest.mark.parametrize("form", ["json", "folded", "speedscope", "pprof", "csv"])
def test_no_export_has_a_marker(folder, form, tmp_path):
    told = run(folder, "export", "DIR/zqnode.fsk", "--format", form, "--redact", "-o", str(tmp_path / "out"))
    files = [tmp_path / "out"] if (tmp_path / "out").is_file() else sorted((tmp_path / "out").iterdir())
    for one in files:
        content = one.read_bytes()
        told += gzip.decompress(content) if form == "pprof" else content
    assert len(told) > 100 and not named(told.replace(str(tmp_path).encode(), b""))


def test_no_bundle_has_a_marker(folder, tmp_path):
    packed = str(tmp_path / "b.tar.gz")
    run(folder, "bundle", "DIR/zqbox.fbx", "-o", packed, "--redact", "--key", "DIR/key", "--pstore", "DIR/zqpstore")
    with tarfile.open(packed) as archive:
        members = {one.name: archive.extractfile(one).read() for one in archive}
    (tmp_path / "box").write_bytes(members.pop("blackbox.fbx"))
    with Box(tmp_path / "box") as found:
        texts = [str(found.header), *map(str, found.alerts())]
        texts += [str(one.rows.tolist()) for windows in found.intervals(1 << 62) for one in windows]
    assert "mlx5_core" in str(texts) and len(members) > 4
    for told in (*texts, *members.values()):
        assert not named(told)


def test_the_same_name_is_the_same_hash_wherever_it_is_told(folder):
    hash = Redactor(KEY).name
    lines = json.loads(run(folder, "export", "DIR/zqnode.fsk", "--format", "json", "--redact", "--key", "DIR/key"))
    (rows,) = (one["rows"] for one in lines["windows"] if one["table"] == "lines" and one["start_ns"] == START)
    said = dict(zip(LINES, (row["text"] for row in rows), strict=True))
    (ports,) = (one["rows"] for one in lines["windows"] if one["table"] == "rdma" and one["start_ns"] == START)
    assert (ports[0]["device"], ports[0]["netdev"]) == (hash(FABRIC), hash(LAN))
    assert lines["header"]["host"] == hash(HOST)
    assert said[LINES[0]] == f"{hash(LAN)}: renamed from eth7"
    assert f'exe="{hash(EXE)}"' in said[next(line for line in LINES if "sig=31" in line)]
    assert said[next(line for line in LINES if "argc=3" in line)].endswith(
        f'a1={hash("zq value")} a2="{hash("--zqoption")}"'
    )
    assert said["systemd[1]: Mounted zq-mount.mount - /zqmount."].endswith(f" - {hash('/zqmount')}.")


@pytest.mark.parametrize("line", STAYS)
def test_what_the_kernel_calls_its_own_stays(line):
    redactor = Redactor(KEY)
    redactor.learn_header(HEADER)
    assert redactor.text(line) == line


def test_a_name_in_an_audit_record_is_the_same_however_it_is_told():
    redactor = Redactor(KEY)
    for name in ("trainer", "two words"):
        assert redactor.text(f"audit: type=1300 comm={coded(name)} key=(null)") == (
            f"audit: type=1300 comm={redactor.name(name)} key=(null)"
        )


def test_the_boot_stays_what_two_files_of_it_are_joined_by():
    boot = "1a2b3c4d-0000-4000-8000-000000000001"
    hidden = unnamed_header({"boot_id": boot, "fingerprint": {"kernel": {"boot_id": boot}}}, Redactor(KEY))
    assert hidden["boot_id"] == hidden["fingerprint"]["kernel"]["boot_id"] == boot
